"""Parameters as one vector, and back."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from weft.documentation import arguments_of
from weft.eager.tensor.argument import dims_of
from weft.eager.tensor.dispatch import recorded
from weft.errors import ShapeError
from weft.ir.node import Value
from weft.ir.shape import known, show
from weft.ops.declaration import catalogue

__all__ = ["parameters_to_vector", "vector_to_parameters"]


@recorded
def _flat(*xs: Value) -> Value:
    rows = [catalogue.reshape(x, shape=(math.prod(known(x.shape)),)) for x in xs]
    return catalogue.concatenate(*rows, axis=0)


@recorded
def _cut(x: Value, *, shapes: tuple[tuple[int, ...], ...]) -> tuple[Value, ...]:
    sizes = tuple(map(math.prod, shapes))
    parts = catalogue.split.all(x, sizes=sizes, axis=0)
    return tuple([catalogue.reshape(p, shape=s) for p, s in zip(parts, shapes, strict=True)])


def parameters_to_vector(parameters: Iterable[Any]) -> Any:
    """All elements of all parameters, concatenated.

    Args:
        parameters: several tensors.
    """
    return _flat(*parameters)


@arguments_of(parameters_to_vector)
def vector_to_parameters(vec: Any, parameters: Iterable[Any]) -> None:
    """Set parameters, in place, from the elements of a vector.

    Args:
        vec: the vector.

    Raises:
        ShapeError: the number of elements differs.
    """
    targets = list(parameters)
    shapes = tuple([p.shape for p in targets])
    count = sum(map(math.prod, shapes))
    if dims_of(vec) != (count,):
        raise ShapeError.here(
            f"vector_to_parameters: expected a vector of {count} elements, got {show(dims_of(vec))}"
        )
    for parameter, lazy in zip(targets, _cut.record((vec,), {"shapes": shapes}), strict=True):
        lazy.tracked = False
        parameter.replace(lazy)
