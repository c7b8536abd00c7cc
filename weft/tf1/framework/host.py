"""Operations that Python computes between programs: input pipelines, texts, summaries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.tf1.framework.dtypes import as_dtype
from weft.tf1.framework.graph import get_default_graph
from weft.tf1.framework.tensor import Operation, Tensor
from weft.tf1.framework.tensor_shape import as_shape


def host_op(
    kind: str, inputs: Sequence[Tensor], function: Callable[..., Any], dtypes: Sequence[Any],
    shapes: Sequence[Any], name: str | None = None, with_state: bool = False,
) -> Operation:  # fmt: skip
    """An operation that is computed by Python, once per run in which it is needed.

    Args:
        kind: TensorFlow's type name.
        function: takes an array per input; gives its only output, or a sequence of all outputs.
            Texts are bytes or arrays of them.
        with_state: whether it takes the values of variables before the arrays.
    """
    types = tuple([as_dtype(d).ir for d in dtypes])
    dims = tuple([as_shape(s).as_dims() for s in shapes])
    return get_default_graph().emit(
        kind, inputs, "host_value", function=function, dtypes=types, shapes=dims, title=kind,
        with_state=with_state, name=name or kind,
    )  # fmt: skip


def host_tensor(
    kind: str, inputs: Sequence[Tensor], function: Callable[..., Any], dtype: Any, shape: Any,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The output of such an operation with one."""
    return host_op(kind, inputs, function, [dtype], [shape], name).outputs[0]


def is_text(value: Any) -> bool:
    """Whether a plain value is text, or lists or an array that begin with one."""
    while isinstance(value, list | tuple) and value:
        value = value[0]
    if isinstance(value, np.ndarray):
        kind = value.dtype.kind
        return kind in "US" or (kind == "O" and value.size > 0 and is_text(value.flat[0]))
    return isinstance(value, str | bytes)


def fits(shape: Sequence[int], dims: Sequence[int | None]) -> bool:
    """Whether a shape has these dimensions, as far as they are known."""
    pairs = list(zip(shape, dims, strict=False))
    return len(shape) == len(dims) and all(d is None or n == d for n, d in pairs)
