"""Pooling in one, two and three dimensions."""

from __future__ import annotations

from typing import Any

from weft.documentation import named
from weft.tf1.framework.tensor import Tensor
from weft.tf1.keras.engine.graph_state import snake
from weft.tf1.keras.layers import pooling as keras
from weft.tf1.layers.scoped import Scoped, documented

__all__ = [
    "AveragePooling1D", "AveragePooling2D", "AveragePooling3D", "MaxPooling1D", "MaxPooling2D",
    "MaxPooling3D",
    "average_pooling1d", "average_pooling2d", "average_pooling3d", "max_pooling1d",
    "max_pooling2d", "max_pooling3d",
]  # fmt: skip


def _pooling(name: str, rank: int) -> tuple[Any, Any]:
    title = f"{name}Pooling{rank}D"
    what = "greatest element" if name == "Max" else "mean"
    members = {"__module__": __name__, "__doc__": f"The {what} of each window."}
    cls: Any = documented(type(title, (Scoped, getattr(keras, title)), members))

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

    return cls, layer


MaxPooling1D, max_pooling1d = _pooling("Max", 1)
MaxPooling2D, max_pooling2d = _pooling("Max", 2)
MaxPooling3D, max_pooling3d = _pooling("Max", 3)
AveragePooling1D, average_pooling1d = _pooling("Average", 1)
AveragePooling2D, average_pooling2d = _pooling("Average", 2)
AveragePooling3D, average_pooling3d = _pooling("Average", 3)
