"""Products other than matmul: dot, outer, kron, cross."""

from __future__ import annotations

from weft.errors import ShapeError
from weft.ir.node import Value
from weft.ir.shape import show
from weft.ops.declaration import catalogue
from weft.ops.declaration.fact import Autocast, autocasting
from weft.ops.declaration.rule import concrete
from weft.ops.linalg.einsum import tensordot
from weft.ops.shape.movement import roll
from weft.ops.shape.reshape import axis_of

__all__ = ["cross", "dot", "inner", "kron", "outer", "vdot"]


def outer(x: Value, y: Value) -> Value:
    """The outer product of `x` and `y`, both flattened."""
    column, row = catalogue.reshape(x, shape=(-1, 1)), catalogue.reshape(y, shape=(1, -1))
    return catalogue.multiply(column, row)


@autocasting(Autocast.LOW)
def inner(x: Value, y: Value) -> Value:
    """The sum of products over the last axes; the product if one is a scalar."""
    return tensordot(x, y, (-1, -1)) if x.rank and y.rank else catalogue.multiply(x, y)


def dot(x: Value, y: Value) -> Value:
    """The sum of products over the last axis of `x` and the last but one, or only one, of `y`."""
    if not (x.rank and y.rank):
        return catalogue.multiply(x, y)
    return tensordot(x, y, (-1, -1 if y.rank == 1 else -2))


def vdot(x: Value, y: Value) -> Value:
    """The sum of products of all elements, both flattened."""
    return tensordot(catalogue.reshape(x, shape=(-1,)), catalogue.reshape(y, shape=(-1,)), 1)


def kron(x: Value, y: Value) -> Value:
    """The Kronecker product; shapes must be known."""
    a, b = concrete(x), concrete(y)
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    wide_x = tuple(n for d in a for n in (d, 1))
    wide_y = tuple(n for d in b for n in (1, d))
    product = catalogue.reshape(x, shape=wide_x) * catalogue.reshape(y, shape=wide_y)
    return catalogue.reshape(product, shape=tuple(p * q for p, q in zip(a, b, strict=True)))


def cross(x: Value, y: Value, axis: int = -1) -> Value:
    """The cross product along an axis of size 3; other axes broadcast.

    Raises:
        ShapeError: an axis of another size.
    """
    for value in (x, y):
        if concrete(value)[axis_of("cross", value, axis)] != 3:
            shape = show(value.shape)
            raise ShapeError.here(
                f"cross: expected 3 elements along axis {axis}, got shape {shape}"
            )
    (x1, y1), (x2, y2) = ([roll(v, shifts=-by, axes=axis) for v in (x, y)] for by in (1, 2))
    return x1 * y2 - x2 * y1
