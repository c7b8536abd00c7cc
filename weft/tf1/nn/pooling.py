"""Max and average pooling, in all layouts and paddings of `tf.nn`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft import ops
from weft.documentation import named
from weft.errors import GraphError, ShapeError
from weft.ir.node import Value
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.graph import emit, fail, name_scope
from weft.tf1.framework.tensor import Tensor
from weft.tf1.nn.conv import channels_first, in_last, out_of_last, padding_of, spatial_part

__all__ = ["avg_pool", "avg_pool3d", "max_pool", "max_pool3d", "pool"]


def _pool(
    kind: str, op: str, value: Any, ksize: Any, strides: Any, padding: Any, spatial: int,
    data_format: str | None, name: str | None, default: str | None = None,
) -> Tensor:  # fmt: skip
    first = channels_first(kind, data_format, spatial)
    window = spatial_part(kind, "window", ksize, spatial, first)
    steps = window if strides is None else spatial_part(kind, "strides", strides, spatial, first)
    options: dict[str, Any] = {"window": window, "strides": steps,
                               "padding": padding_of(kind, padding, spatial, first)}  # fmt: skip
    if op == "avg_pool":
        options["count_include_pad"] = False
    with name_scope(name, default or kind, [value]) as scope:
        image = convert_to_tensor(value, name="input")
        if image.shape.ndims not in (None, spatial + 2):
            raise fail(
                ShapeError, f"{kind}: expected input of rank {spatial + 2}, got shape {image.shape}"
            )
        pooled: Callable[..., Value] = getattr(ops, op)

        def build(x: Value) -> Value:
            return out_of_last(pooled(in_last(x, first), **options), first)

        return emit(kind, [image], build, name=scope)


def _pool_of_images(title: str, kind: str, doc: str):
    @named(title, doc)
    def pooling(
        value: Any = None, ksize: Any = None, strides: Any = None, padding: Any = None,
        data_format: str = "NHWC", name: str | None = None, input: Any = None,
    ) -> Tensor:  # fmt: skip
        image = value if input is None else input
        return _pool(kind, title, image, ksize, strides, padding, 2, data_format, name)

    return pooling


def _pool_of_volumes(title: str, kind: str, doc: str):
    op = title.removesuffix("3d")

    @named(title, doc)
    def pooling(
        input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NDHWC",
        name: str | None = None,
    ) -> Tensor:  # fmt: skip
        return _pool(kind, op, input, ksize, strides, padding, 3, data_format, name)

    return pooling


max_pool = _pool_of_images("max_pool", "MaxPool", "Max pooling of images.")
avg_pool = _pool_of_images(
    "avg_pool", "AvgPool", "Average pooling of images; padding is not counted."
)
max_pool3d = _pool_of_volumes("max_pool3d", "MaxPool3D", "Max pooling of volumes.")
avg_pool3d = _pool_of_volumes("avg_pool3d", "AvgPool3D", "Average pooling of volumes.")


def pool(
    input: Any, window_shape: Sequence[int], pooling_type: str, padding: Any,
    dilation_rate: Any = None, strides: Any = None, name: str | None = None,
    data_format: str | None = None, dilations: Any = None,
) -> Tensor:  # fmt: skip
    """Pooling in one, two or three dimensions; strides are 1 by default."""
    if any(d != 1 for d in (dilation_rate or dilations or (1,))):
        raise fail(GraphError, "pool: dilations are not supported")
    if pooling_type not in ("MAX", "AVG"):
        raise fail(GraphError, f"pool: expected MAX or AVG, got {pooling_type!r}")
    spatial = len(window_shape)
    op = "max_pool" if pooling_type == "MAX" else "avg_pool"
    kind = "MaxPool" if pooling_type == "MAX" else "AvgPool"
    steps = (1,) * spatial if strides is None else strides
    return _pool(kind, op, input, window_shape, steps, padding, spatial, data_format, name, op)
