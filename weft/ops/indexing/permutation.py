"""Permutations as vectors of integers."""

from __future__ import annotations

from weft.ir.dtype import int32
from weft.ir.node import Value
from weft.ops.declaration import catalogue
from weft.ops.shape.creation import ones_like


def inverse_permutation(p: Value) -> Value:
    """The permutation that undoes `p`, in its dtype.

    Raises:
        InvalidArgumentError: when run, `p` does not have each number from 0 to below its length.
    """
    order, places = catalogue.sort.all(p, axis=0)
    counted = catalogue.cumsum(ones_like(p), axis=0, exclusive=True)
    wrong = catalogue.sum(catalogue.cast(catalogue.not_equal(order, counted), dtype=int32))
    text = "invert_permutation: expected every number from 0 to below the length"
    return catalogue.check(catalogue.cast(places, dtype=p.dtype), wrong, text=text)
