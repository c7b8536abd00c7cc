"""`InputSpec`: requirements on a layer's inputs, with errors that name layer and shapes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import weft.tf1 as tf
from weft.errors import DTypeError, ShapeError
from weft.tf1.framework.graph import fail
from weft.tf1.keras.engine import nest


class InputSpec:
    """The requirements on an input.

    Args:
        dtype: its type.
        shape: its shape, as far as it is fixed.
        ndim, max_ndim, min_ndim: its rank, and bounds of it.
        axes: sizes of axes.
    """

    def __init__(
        self, dtype: Any = None, shape: Any = None, ndim: int | None = None,
        max_ndim: int | None = None, min_ndim: int | None = None,
        axes: Mapping[int, int] | None = None,
    ) -> None:  # fmt: skip
        self.dtype = None if dtype is None else tf.as_dtype(dtype).name
        self.shape = None if shape is None else tuple(shape)
        self.ndim = len(self.shape) if self.shape is not None else ndim
        self.max_ndim, self.min_ndim = max_ndim, min_ndim
        self.axes = dict(axes or {})

    def fault(self, x: Any) -> str:
        """What is wrong with a tensor; empty if nothing is."""
        rank = x.shape.ndims
        if rank is None:
            return ""
        dims = x.shape.as_list()
        if self.ndim is not None and rank != self.ndim:
            return f"of rank {self.ndim}"
        if self.min_ndim is not None and rank < self.min_ndim:
            return f"of rank {self.min_ndim} or more"
        if self.max_ndim is not None and rank > self.max_ndim:
            return f"of rank {self.max_ndim} at most"
        wrong = {a: n for a, n in self.axes.items() if dims[a] not in (None, n)}
        if wrong:
            return " and ".join(f"with {n} along axis {a}" for a, n in wrong.items())
        pairs = zip(self.shape or (), dims, strict=False)
        if any(None not in (a, b) and a != b for a, b in pairs):
            return f"of shape {self.shape}"
        return ""


def check_inputs(layer: Any, inputs: Any) -> None:
    """Check a layer's inputs.

    Raises:
        DTypeError: an input is not a tensor.
        ShapeError: a shape or the number of inputs is wrong.
    """
    leaves = nest.flatten(inputs)
    for x in leaves:
        if not tf.is_tensor(x):
            raise fail(
                DTypeError, f"{layer.name}: expected tensors as inputs, got {type(x).__name__}"
            )
    spec = layer.input_spec
    if spec is None:
        return
    specs: list[InputSpec] = list(spec) if isinstance(spec, list | tuple) else [spec]
    if len(leaves) != len(specs):
        raise fail(ShapeError, f"{layer.name}: expected {len(specs)} inputs, got {len(leaves)}")
    for x, one in zip(leaves, specs, strict=True):
        fault = one.fault(x)
        if fault:
            raise fail(
                ShapeError, f"{layer.name}: expected an input {fault}, got shape {nest.shape_of(x)}"
            )
