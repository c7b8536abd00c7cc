"""Matmuls with vectors, and matmuls added to another array."""

from __future__ import annotations

from weft.ir.node import Value
from weft.ops.declaration import catalogue
from weft.ops.declaration.fact import Autocast, autocasting
from weft.ops.declaration.rule import concrete


@autocasting(Autocast.LOW)
def matmul(x: Value, w: Value) -> Value:
    """Like `numpy.matmul`: vectors count as a row on the left and as a column on the right."""
    left, right = len(concrete(x)), len(concrete(w))
    if left == 1:
        x = catalogue.expand_dims(x, axis=0)
    if right == 1:
        w = catalogue.expand_dims(w, axis=1)
    y = catalogue.matmul(x, w)
    gone = [axis for axis, rank in ((-2, left), (-1, right)) if rank == 1]
    return catalogue.squeeze(y, axes=tuple(gone)) if gone else y


@autocasting(Autocast.LOW)
def added(c: Value, x: Value, y: Value, beta: Value, alpha: Value, *, summed: bool) -> Value:
    """`beta * c + alpha * x @ y`; with `summed`, summed over the first axis of the products."""
    product = matmul(x, y)
    if summed:
        product = catalogue.sum(product, axes=(0,))
    return beta * c + alpha * product


@autocasting(Autocast.LOW)
def plainly_added(c: Value, x: Value, y: Value, *, summed: bool) -> Value:
    """`c + x @ y`; with `summed`, summed over the first axis of the products."""
    product = matmul(x, y)
    return c + (catalogue.sum(product, axes=(0,)) if summed else product)


def vecdot(x: Value, y: Value, *, axis: int) -> Value:
    """The sum of products along an axis, with the first operand conjugated."""
    left = catalogue.conj(x) if x.dtype.is_complex else x
    return catalogue.sum(left * y, axes=(axis,))
