"""Functions of NumPy and LAPACK as graph nodes, with gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.ir.dtype import DType
from weft.ir.node import Value
from weft.ir.record import record
from weft.ops.boundary.state import NO_AXIS
from weft.ops.declaration import catalogue

Type = tuple[DType, tuple[Any, ...]]


@record
@dataclass(frozen=True)
class Host:
    """A function of arrays with results of these types."""

    function: Callable[..., Any]
    types: tuple[Type, ...]
    wide: bool

    def __call__(self, *arrays: Any) -> list[Any]:
        """The results, contiguous."""
        found = self.function(*arrays)
        results = found if isinstance(found, tuple) else (found,)
        return [
            np.ascontiguousarray(y, dtype.numpy).reshape(np.shape(y) if None in shape else shape)
            for y, (dtype, shape) in zip(results, self.types, strict=True)
        ]

    def of_many(self, size: int) -> Host:
        """The same function on a leading batch axis of `size` examples."""
        return Host(self.function, tuple([(d, (size, *shape)) for d, shape in self.types]), True)


def call(
    function: Callable[..., Any],
    *xs: Value,
    types_of: Sequence[Type],
    gradient: Callable[..., Any] | None = None,
    title: str = "host_call",
    wide: bool = False,
) -> tuple[Value, ...]:
    """Call a function of arrays when the graph runs.

    Args:
        types_of: dtype and shape of each result; a dimension may be a value.
        gradient: maps (cotangents, results, *inputs) to a cotangent (or `None`) for each input;
            missing cotangents are zeros.
        title: the name in error messages.
        wide: arrays and results, also those of the gradient, may all have an additional leading
            batch axis.
    """
    shapes = [tuple(shape) for _, shape in types_of]
    told = [tuple([None if isinstance(d, Value) else d for d in shape]) for shape in shapes]
    types = tuple([(dtype, shape) for (dtype, _), shape in zip(types_of, told, strict=True)])
    if told != shapes:
        rank = max(map(len, shapes))
        shapes = [(*shape, *[NO_AXIS] * (rank - len(shape))) for shape in shapes]
    return catalogue.host_call.all(
        *xs,
        function=Host(function, types, wide),
        dtypes=tuple([dtype for dtype, _ in types]),
        shapes=tuple(shapes),
        gradient=gradient,
        title=title,
    )
