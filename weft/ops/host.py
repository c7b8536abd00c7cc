"""Functions of NumPy and LAPACK as nodes of a graph, with gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.ir.dtype import DType
from weft.ir.node import Value
from weft.ops.base import catalogue

Type = tuple[DType, tuple[int, ...]]


def call(
    function: Callable[..., Any],
    *xs: Value,
    types_of: Sequence[Type],
    gradient: Callable[..., Any] | None = None,
    title: str = "host_call",
) -> tuple[Value, ...]:
    """Call a function of arrays when the graph runs.

    Args:
        types_of: element type and shape of each result.
        gradient: from (cotangents, results, *inputs) to a cotangent (or `None`) per input; a
            cotangent that nothing has reached is zeros.
        title: what errors name.
    """

    def run(*arrays: Any) -> list[Any]:
        found = function(*arrays)
        results = found if isinstance(found, tuple) else (found,)
        return [
            np.ascontiguousarray(y, dtype.numpy).reshape(shape)
            for y, (dtype, shape) in zip(results, types_of, strict=True)
        ]

    return catalogue.host_call.all(
        *xs,
        function=run,
        dtypes=tuple([dtype for dtype, _ in types_of]),
        shapes=tuple([shape for _, shape in types_of]),
        gradient=gradient,
        title=title,
    )
