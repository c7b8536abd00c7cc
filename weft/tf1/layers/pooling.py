"""Pooling in one, two and three dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from weft.tf1.framework.tensor import Tensor
from weft.tf1.layers.convolution import form_of
from weft.tf1.nn import pooling
from weft.tf1.variable.variable_scope import variable_scope

_OPS: Final = {
    (2, "MAX"): pooling.max_pool, (2, "AVG"): pooling.avg_pool,
    (3, "MAX"): pooling.max_pool3d, (3, "AVG"): pooling.avg_pool3d,
}  # fmt: skip


def _pooling(spatial: int, mode: str) -> Callable[..., Tensor]:
    title = f"{'max' if mode == 'MAX' else 'average'}_pooling{spatial}d"

    own: Any = _OPS.get((spatial, mode))

    def layer(
        inputs: Any,
        pool_size: Any,
        strides: Any,
        padding: str = "valid",
        data_format: str = "channels_last",
        name: str | None = None,
    ) -> Tensor:
        form = form_of(spatial, data_format)
        window = [pool_size] * spatial if isinstance(pool_size, int) else pool_size
        with variable_scope(name, default_name=title):
            if own is None:  # as in TensorFlow, which has no operation for one dimension
                return pooling.pool(
                    inputs, window, mode, padding.upper(), strides=strides, data_format=form
                )
            return own(inputs, window, strides, padding.upper(), form)

    layer.__name__ = layer.__qualname__ = title
    what = "greatest element" if mode == "MAX" else "mean"
    layer.__doc__ = f"The {what} of each window, in {spatial} dimensions."
    return layer


max_pooling1d = _pooling(1, "MAX")
max_pooling2d = _pooling(2, "MAX")
max_pooling3d = _pooling(3, "MAX")
average_pooling1d = _pooling(1, "AVG")
average_pooling2d = _pooling(2, "AVG")
average_pooling3d = _pooling(3, "AVG")
