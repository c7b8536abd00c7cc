"""Pooling in one, two and three dimensions."""

from __future__ import annotations

from typing import Any

from weft.documentation import named
from weft.tf1.framework.tensor import Tensor
from weft.tf1.keras.engine.graph_state import snake
from weft.tf1.keras.layers import pooling as keras
from weft.tf1.layers.scoped import Scoped

__all__ = [
    "average_pooling1d", "average_pooling2d", "average_pooling3d", "max_pooling1d",
    "max_pooling2d", "max_pooling3d",
]  # fmt: skip


def _pooling(name: str, rank: int):
    title = f"{name}Pooling{rank}D"
    cls: Any = type(title, (Scoped, getattr(keras, title)), {"__module__": __name__})
    what = "greatest element" if name == "Max" else "mean"

    @named(
        snake(title),
        f"""The {what} of each window, in {rank} dimensions.

    Args:
        inputs: a tensor, or an array.
        pool_size: the window's sizes.
        strides: distances between windows.
        padding: `"valid"` or `"same"`.
        data_format: `"channels_last"` or `"channels_first"`.
        name: of the variable scope; `{snake(title)}` by default, made unique.
    """,
    )
    def layer(
        inputs: Any,
        pool_size: Any,
        strides: Any,
        padding: str = "valid",
        data_format: str = "channels_last",
        name: str | None = None,
    ) -> Tensor:
        return cls(pool_size, strides, padding, data_format, _scope=name)(inputs)

    return layer


max_pooling1d, max_pooling2d, max_pooling3d = (_pooling("Max", n) for n in (1, 2, 3))
average_pooling1d, average_pooling2d, average_pooling3d = (
    _pooling("Average", n) for n in (1, 2, 3)
)
