"""Elementwise functions over all numbers, interpreted and compiled, against higher precision."""

import exact
import pytest

import weft.numpy as wnp
from weft import config

LIMIT = 6  # units in the last place


@pytest.mark.parametrize("dtype", exact.DTYPES)
def test_values_are_exact_at_every_size(dtype):
    """Every other type compiled: that both tiers give the same bits is tested elsewhere."""
    kind = exact.DTYPES[dtype]
    with config.override(compile=list(exact.DTYPES).index(dtype) % 2 == 0):
        for table, args in ((exact.ONE, [exact.points(kind)]), (exact.TWO, exact.pairs(kind))):
            xs = [wnp.asarray(x) for x in args]
            found = {n: getattr(wnp, n)(*xs) for n in table if hasattr(wnp, n)}
            for name, y in found.items():
                exact.check(name, y.array, table[name], args, LIMIT)
