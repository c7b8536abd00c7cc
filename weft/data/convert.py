"""Conversion between arrays, which pipelines pass on, and tensors, which users get."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from weft.eager.functions.api import Tensor, tensor
from weft.eager.tensor.dispatch import leaf, wrap
from weft.errors import DTypeError
from weft.ir.dtype import as_dtype
from weft.pipeline.structure import map_leaves


def to_tensors(element: Any) -> Any:
    """An element with numbers and arrays replaced by tensors; strings and the like stay."""
    return map_leaves(_tensor, element)


def to_arrays(element: Any) -> Any:
    """An element with tensors replaced by arrays."""
    return map_leaves(lambda x: x.detach().numpy() if isinstance(x, Tensor) else x, element)


def _tensor(x: Any) -> Any:
    if isinstance(x, np.ndarray | np.generic):
        if not _has_tensors(x.dtype):
            return x
        array = np.asarray(x)
        return wrap(leaf(array if array.flags.writeable else array.copy()))
    return tensor(x) if isinstance(x, bool | int | float | complex) else x


@functools.lru_cache(maxsize=64)
def _has_tensors(kind: np.dtype[Any]) -> bool:
    """Whether there are tensors of this element type."""
    try:
        as_dtype(kind)
    except DTypeError:
        return False
    return kind.isnative
