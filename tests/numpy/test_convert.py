"""64-bit integers, and Python numbers beside arrays, against NumPy: values and errors."""

import operator

import numpy as np
import pytest

import weft.numpy as wnp
from tests.numpy.numpy_case import plain
from weft import config

WHOLE = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
NUMBERS = [0, -1, -7, 127, 128, 255, 256, 2**31, 2**53 + 1, 2**63 - 1, 2**63 + 1, -(2**63), 2**64]
OPERATORS = [
    operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.and_,
    operator.or_, operator.xor, operator.eq, operator.ne, operator.lt, operator.le, operator.gt,
    operator.ge,
]  # fmt: skip


def given(run, *args):
    """The dtype and the elements of a result; `None` if the call raises."""
    try:
        y = np.asarray(plain(run(*args)))
    except (OverflowError, TypeError, ValueError):
        return None
    return y.dtype, y.tolist()


@pytest.mark.parametrize("dtype", [*WHOLE, "float32", "float64"])
@pytest.mark.parametrize("number", NUMBERS)
def test_arrays_keep_every_digit(number, dtype):
    def made(m):
        yield given(m.asarray, [0, number], dtype)
        yield given(m.array, ((number,), (1,)), dtype)
        yield given(m.asarray, number, dtype)
        yield given(m.full, (2,), number, dtype)
        yield given(lambda: m.full_like(m.ones(2, dtype), number))
        yield given(lambda: m.arange(number, number + 2, dtype=dtype)) if number < 2**62 else None

    assert list(made(wnp)) == list(made(np))


@pytest.mark.filterwarnings("ignore:.*encountered in")
@pytest.mark.parametrize("dtype", WHOLE)
def test_numbers_beside_arrays(dtype):
    x = np.array([1, 3, np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
    y = wnp.asarray(x)
    for number in NUMBERS:
        for op in OPERATORS:
            assert given(op, y, number) == given(op, x, number), (op, number)
            if op not in (operator.floordiv, operator.mod) or dtype[0] == "u":
                assert given(op, number, y) == given(op, number, x), (op, number)
        for limits in ((number, None), (None, number), (number, 100)):
            # NumPy accepts a limit beyond all numbers; values in between raise
            assert given(wnp.clip, y, *limits) == given(np.clip, x, *limits), limits


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", WHOLE[:4])
def test_signed_beside_unsigned_compares_exactly(dtype, compiled):
    limits = np.iinfo(dtype)
    a = np.array([limits.min, limits.min + 1, -1, 0, 1, limits.max - 1, limits.max], dtype)
    b = np.array([0, 1, 2**63 - 1025, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1], np.uint64)
    pairs = [p.ravel() for p in np.meshgrid(a, b)]
    with config.override(compile=compiled):
        for x, y in (pairs, pairs[::-1]):
            for op in OPERATORS[-6:]:
                found = op(wnp.asarray(x), wnp.asarray(y)).array
                assert np.array_equal(found, op(x, y)), op


def test_what_numpy_takes_for_something_else_raises():
    x = wnp.ones((2, 2))
    for call in (wnp.rint, wnp.floor, wnp.sqrt, wnp.maximum):
        with pytest.raises(TypeError):
            call(x, x, x)
    with pytest.raises(TypeError):
        wnp.rint(x, 1)
    for reduce in (wnp.sum, wnp.prod, wnp.mean, wnp.nansum, wnp.nanmean):
        with pytest.raises(TypeError):
            reduce(x, 0, None, x)
    for reduce in (wnp.max, wnp.min, wnp.all, wnp.any, wnp.median, wnp.count_nonzero):
        with pytest.raises(TypeError):
            reduce(x, 0, x)
    with pytest.raises(TypeError):
        wnp.linspace(0, 1, 3, True, True)
    with pytest.raises(TypeError, match="arange: expected at most 2 booleans"):
        wnp.arange(0, 3, dtype=bool)
