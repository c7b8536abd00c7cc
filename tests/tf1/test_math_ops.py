"""Elementwise operations over all numbers, against higher precision."""

import exact
import numpy as np
import pytest

import weft.tf1 as tf

LIMIT = 6  # units in the last place
NAMES = {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh",
    "arctanh": "atanh", "arctan2": "atan2", "power": "pow", "gammaln": "lgamma",
}  # fmt: skip


def found(name):
    """The operation that goes by NumPy's name, if there is one."""
    called = NAMES.get(name, name)
    return next((getattr(m, called) for m in (tf, tf.math, tf.nn) if hasattr(m, called)), None)


@pytest.mark.parametrize("dtype", ["float32", "float64"])  # others: tests/numpy
@pytest.mark.parametrize("which", [(exact.ONE, exact.SPECIAL), (exact.TWO, exact.SPECIAL_TWO)])
def test_values_are_exact_at_every_size(session, dtype, which):
    kind, table = exact.DTYPES[dtype], which[0] | which[1]
    args = [exact.points(kind)] if which[0] is exact.ONE else exact.pairs(kind)
    xs = [tf.placeholder(tf.as_dtype(x.dtype), x.shape) for x in args]
    ys = {name: found(name)(*xs) for name in table if found(name) is not None}
    results = session.run(ys, dict(zip(xs, args, strict=True)))
    for name, y in results.items():
        by_scipy = name in which[1] and kind is np.float64
        limit = exact.LOOSE.get(name, 1000) if by_scipy else LIMIT
        exact.check(name, y, table[name], args, limit, where=exact.defined(name, args))
