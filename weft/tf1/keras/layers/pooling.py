"""Max and average pooling, of windows or global."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import weft.tf1 as tf
from weft.errors import ArgumentError
from weft.ops.reduction.spread import mean_of_kept
from weft.tf1.framework.graph import emit, fail
from weft.tf1.keras.engine.input_spec import InputSpec
from weft.tf1.keras.engine.layer import Layer
from weft.tf1.keras.engine.settings import data_format_of
from weft.tf1.keras.layers.convolution import AXES, FORMATS, tuple_of

__all__ = [
    "AveragePooling1D", "AveragePooling2D", "AveragePooling3D", "GlobalAveragePooling1D",
    "GlobalAveragePooling2D", "GlobalAveragePooling3D", "GlobalMaxPooling1D", "GlobalMaxPooling2D",
    "GlobalMaxPooling3D", "MaxPooling1D", "MaxPooling2D", "MaxPooling3D",
]  # fmt: skip

_OPERATIONS: Final[dict[tuple[int, str], Callable[..., Any]]] = {
    (2, "MAX"): tf.nn.max_pool, (2, "AVG"): tf.nn.avg_pool,
    (3, "MAX"): tf.nn.max_pool3d, (3, "AVG"): tf.nn.avg_pool3d,
}  # fmt: skip


class Pooling(Layer):
    """Base class.

    Args:
        pool_size: the window's sizes.
        strides: distances between windows; by default the window's sizes.
        padding: `"valid"` or `"same"`.
    """

    rank: int
    kind: str

    def __init__(
        self, pool_size: Any = 2, strides: Any = None, padding: str = "valid",
        data_format: str | None = None, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(**options)
        name = type(self).__name__
        self.pool_size = tuple_of(pool_size, self.rank, f"{name} pool_size")
        steps = self.pool_size if strides is None else strides
        self.strides = tuple_of(steps, self.rank, f"{name} strides")
        if str(padding).lower() not in ("valid", "same"):
            raise fail(ArgumentError, f"{name}: expected padding valid or same, got {padding!r}")
        self.padding, self.data_format = padding.lower(), data_format_of(data_format)
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def call(self, inputs: Any) -> Any:
        """The outputs."""
        padding, form = self.padding.upper(), FORMATS[self.rank, self.data_format]
        operation = _OPERATIONS.get((self.rank, self.kind))
        if operation is None:  # TensorFlow has none for sequences
            return tf.nn.pool(
                inputs, self.pool_size, self.kind, padding, strides=self.strides, data_format=form
            )
        return operation(inputs, self.pool_size, self.strides, padding, form)


class GlobalPooling(Layer):
    """Base class: one number per channel."""

    rank: int
    reduce: Callable[..., Any]

    def __init__(self, data_format: str | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.data_format = data_format_of(data_format)
        self.input_spec = InputSpec(ndim=self.rank + 2)
        self.supports_masking = self.rank == 1

    def call(self, inputs: Any, mask: Any = None) -> Any:
        """The outputs."""
        first = 1 if self.data_format == "channels_last" else 2
        axes = list(range(first, first + self.rank))
        if mask is None or type(self).reduce is tf.reduce_max:
            return type(self).reduce(inputs, axes)
        kept = tf.expand_dims(tf.cast(mask, inputs.dtype), 2 if first == 1 else 1)
        return emit("RealDiv", [inputs, kept], mean_of_kept, axes=tuple(axes), name="truediv")

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """None: the step axis is gone."""
        return None


def _pooling(rank: int, name: str, kind: str) -> Any:
    said = {"MAX": "greatest element", "AVG": "mean"}[kind]
    told = {"rank": rank, "kind": kind, "__module__": __name__}
    told["__doc__"] = f"The {said} of each window of {AXES[rank]}."
    return type(f"{name}Pooling{rank}D", (Pooling,), told)


def _global(rank: int, name: str, reduce: Callable[..., Any]) -> Any:
    said = {"Max": "greatest element", "Average": "mean"}[name]
    told: dict[str, Any] = {"rank": rank, "reduce": staticmethod(reduce), "__module__": __name__}
    told["__doc__"] = f"The {said} of each channel of {AXES[rank]}."
    return type(f"Global{name}Pooling{rank}D", (GlobalPooling,), told)


MaxPooling1D, MaxPooling2D, MaxPooling3D = (_pooling(n, "Max", "MAX") for n in (1, 2, 3))
AveragePooling1D, AveragePooling2D, AveragePooling3D = (
    _pooling(n, "Average", "AVG") for n in (1, 2, 3)
)
GlobalMaxPooling1D, GlobalMaxPooling2D, GlobalMaxPooling3D = (
    _global(n, "Max", tf.reduce_max) for n in (1, 2, 3)
)
GlobalAveragePooling1D, GlobalAveragePooling2D, GlobalAveragePooling3D = (
    _global(n, "Average", tf.reduce_mean) for n in (1, 2, 3)
)
