"""Functions whose arguments TensorFlow 2 orders otherwise."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from weft.tf1.control.dependency import no_op
from weft.tf1.control.py_func import py_func
from weft.tf1.framework.convert import is_tensor
from weft.tf1.framework.graph import computes_at_once
from weft.tf1.framework.tensor import Operation, Tensor
from weft.tf1.nn import dropout as dropout_of_1

__all__ = ["dropout", "print"]


def dropout(
    x: Any, rate: Any, noise_shape: Any = None, seed: int | None = None, name: str | None = None
) -> Tensor:
    """`tf.nn.dropout` with the fraction to drop as its second argument."""
    return dropout_of_1(x, None, noise_shape, seed, name, rate)


def print(*inputs: Any, **options: Any) -> Operation:
    """Print values: at once, or whenever the operation that it returns is run.

    Args:
        inputs: tensors and other values.
        options: `output_stream`, by default `sys.stderr`; `summarize`, the elements at each end of
            an axis that are shown, 3 by default and -1 for all; `sep`; `end`; `name`.
    """
    stream: Any = options.get("output_stream") or sys.stderr
    few = options.get("summarize") or 3
    tensors = [x for x in inputs if is_tensor(x)]

    def write(*arrays: Any) -> Any:
        given = iter(arrays)
        parts = [_text(next(given), few) if is_tensor(x) else str(x) for x in inputs]
        text = options.get("sep", " ").join(parts) + options.get("end", "\n")
        stream.write(text)
        stream.flush()
        return np.zeros((), np.bool_)

    if computes_at_once() and all([x.has_value for x in tensors if isinstance(x, Tensor)]):
        write(*[x.numpy() for x in tensors])
        return no_op()
    return py_func(write, tensors, np.bool_, name=options.get("name") or "PrintV2").op


def _text(value: Any, few: int) -> str:
    array = np.asarray(value)
    if array.dtype.hasobject:
        return value.decode() if isinstance(value, bytes) else str(array)
    edge = array.size if few < 0 else few
    return np.array2string(array, separator=" ", edgeitems=edge, threshold=2 * edge)
