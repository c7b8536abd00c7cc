"""Padding, cropping and upsampling: ZeroPadding, Cropping, UpSampling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import weft.tf1 as tf
from weft.errors import ArgumentError, ShapeError
from weft.tf1.framework.graph import fail
from weft.tf1.keras.engine.input_spec import InputSpec
from weft.tf1.keras.engine.layer import Layer
from weft.tf1.keras.engine.settings import data_format_of
from weft.tf1.keras.layers.convolution import AXES, tuple_of

__all__ = [
    "Cropping1D", "Cropping2D", "Cropping3D", "UpSampling1D", "UpSampling2D", "UpSampling3D",
    "ZeroPadding1D", "ZeroPadding2D", "ZeroPadding3D",
]  # fmt: skip

Pairs = tuple[tuple[int, int], ...]


class _Spatial(Layer):
    """A layer that works on the spatial axes alone."""

    rank: int
    _sizes: str
    """The argument that has an entry for each axis."""

    def __init__(self, data_format: str | None, **options: Any) -> None:
        super().__init__(**options)
        self.data_format = data_format_of(data_format)
        self.input_spec = InputSpec(ndim=self.rank + 2)

    @property
    def first(self) -> int:
        """The first spatial axis."""
        return 2 if self.data_format == "channels_first" and self.rank > 1 else 1

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments; layers of sequences have no data format, and one size."""
        config = super().get_config()
        if self.rank == 1:
            del config["data_format"]
            config[self._sizes] = config[self._sizes][0]
        return config


def _pairs(sizes: Any, rank: int, what: str) -> Pairs:
    """Sizes before and after each axis: from a number, one number per axis, or pairs."""
    if isinstance(sizes, int):
        return ((sizes, sizes),) * rank
    if rank == 1 and len(sizes) == 2 and all(isinstance(n, int) for n in sizes):
        return (tuple(sizes),)  # pyright: ignore[reportReturnType]
    if len(sizes) != rank:
        raise fail(ArgumentError, f"{what}: expected a number, or {rank} of them, got {sizes}")
    return tuple((n, n) if isinstance(n, int) else (int(n[0]), int(n[1])) for n in sizes)


class ZeroPadding(_Spatial):
    """Base class: zero padding.

    Args:
        padding: zeros at both ends: a number, one for each axis, or pairs.
    """

    _sizes = "padding"

    def __init__(self, padding: Any = 1, data_format: str | None = None, **options: Any) -> None:
        super().__init__(data_format, **options)
        self.padding = _pairs(padding, self.rank, type(self).__name__)

    def call(self, inputs: Any) -> Any:
        """The outputs."""
        pairs: list[tuple[int, int]] = [(0, 0)] * (self.rank + 2)
        pairs[self.first : self.first + self.rank] = self.padding
        return tf.pad(inputs, pairs)


class Cropping(_Spatial):
    """Base class: cropping at the borders.

    Args:
        cropping: elements cut off at both ends: a number, one for each axis, or pairs.
    """

    _sizes = "cropping"

    def __init__(self, cropping: Any = 1, data_format: str | None = None, **options: Any) -> None:
        super().__init__(data_format, **options)
        self.cropping = _pairs(cropping, self.rank, type(self).__name__)

    def call(self, inputs: Any) -> Any:
        """The outputs."""
        dims = inputs.shape.as_list()
        key: list[Any] = [slice(None)] * len(dims)
        for axis, (before, behind) in enumerate(self.cropping, self.first):
            size = dims[axis]
            if size is not None and size <= before + behind:
                raise fail(
                    ShapeError,
                    f"{self.name}: expected more than {before + behind} places along axis {axis}, "
                    f"got shape {tuple(dims)}",
                )
            key[axis] = slice(before, -behind if behind else None)
        return inputs[tuple(key)]


class UpSampling(_Spatial):
    """Base class: repeats each element along each axis.

    Args:
        size: how often elements are repeated along each axis.
    """

    _sizes = "size"

    def __init__(self, size: Any = 2, data_format: str | None = None, **options: Any) -> None:
        interpolation = options.pop("interpolation", "nearest")
        if interpolation != "nearest":
            raise fail(
                ArgumentError,
                f"{type(self).__name__}: expected interpolation 'nearest', got {interpolation!r}",
            )
        super().__init__(data_format, **options)
        self.size = tuple_of(size, self.rank, type(self).__name__)

    def call(self, inputs: Any) -> Any:
        """The outputs."""
        for i, count in enumerate(self.size):
            inputs = repeat_elements(inputs, count, self.first + i)
        return inputs


def repeat_elements(x: Any, rep: int, axis: int) -> Any:
    """Repeats each element along an axis `rep` times."""
    if rep == 1:
        return x
    dims, now = x.shape.as_list(), tf.shape(x)
    many = [1] * (len(dims) + 1)
    many[axis + 1] = rep
    wide = tf.tile(tf.expand_dims(x, axis + 1), many)
    sizes: list[Any] = [now[i] if n is None else n for i, n in enumerate(dims)]
    sizes[axis] = sizes[axis] * rep
    y = tf.reshape(wide, sizes)
    y.set_shape([n if i != axis or n is None else n * rep for i, n in enumerate(dims)])
    return y


def _classes(name: str, base: Any) -> Sequence[Any]:
    what = (base.__doc__ or "").partition(".")[0].removeprefix("Base class: ").capitalize()
    return [
        type(
            f"{name}{n}D",
            (base,),
            {"__module__": __name__, "rank": n, "__doc__": f"{what}, of {AXES[n]}."},
        )
        for n in (1, 2, 3)
    ]


ZeroPadding1D, ZeroPadding2D, ZeroPadding3D = _classes("ZeroPadding", ZeroPadding)
Cropping1D, Cropping2D, Cropping3D = _classes("Cropping", Cropping)
UpSampling1D, UpSampling2D, UpSampling3D = _classes("UpSampling", UpSampling)
