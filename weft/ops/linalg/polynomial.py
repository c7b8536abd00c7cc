"""Polynomials as vectors of coefficients, from the highest power down."""

from __future__ import annotations

from weft.ir.node import Value
from weft.ops.declaration import catalogue
from weft.ops.declaration.rule import concrete
from weft.ops.shape.creation import zeros_like
from weft.ops.shape.grid import vander


def value_at(p: Value, x: Value) -> Value:
    """The values of a polynomial, by Horner's rule; of several, if `p` has further axes."""
    found = zeros_like(x)
    for row in catalogue.split.all(p, sizes=(1,) * concrete(p)[0], axis=0):
        found = found * x + catalogue.squeeze(row, axes=(0,))
    return found


def scaled_powers(
    x: Value, y: Value, weights: Value | None = None, *, degree: int
) -> tuple[Value, Value, Value]:
    """The least-squares system of a fit: powers of x as columns of length 1, y, their lengths.

    Args:
        weights: of each point.
    """
    table = vander(x, degree + 1)
    if weights is not None:
        wide = catalogue.expand_dims(weights, axis=1)
        table, y = table * wide, y * (weights if len(concrete(y)) == 1 else wide)
    length = catalogue.sqrt(catalogue.sum(table * table, axes=(0,)))
    return table / length, y, length


def unscaled(found: Value, length: Value) -> Value:
    """Coefficients of powers from those of columns of length 1."""
    wide = length if len(concrete(found)) == 1 else catalogue.expand_dims(length, axis=1)
    return found / wide
