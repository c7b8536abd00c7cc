"""Discrete Fourier transforms, computed by NumPy; their gradients are Fourier transforms too.

A transform is linear with a symmetric matrix, so its gradient is the same transform. Axes are
counted from the end, so that these functions take a leading batch axis.
"""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np

from weft.ir import dtype as types
from weft.ir.dtype import DType
from weft.ir.node import Value
from weft.ops.boundary.host import call as host_call
from weft.ops.boundary.routine import routine
from weft.ops.declaration import catalogue, constant_of
from weft.ops.declaration.rule import dims_of

__all__ = ["fftn", "irfftn", "rfftn"]

_call = functools.partial(host_call, wide=True)


def _transform(x: Value, axes: tuple[int, ...], inverse: bool, norm: Any) -> Value:
    """The transform of complex numbers along axes."""
    run, gradient = _fftn.of(inverse, axes, norm), _of_transform.of(axes, inverse, norm)
    return _call(run, x, types_of=[(x.dtype, dims_of(x))], gradient=gradient)[0]


@routine
def _of_transform(axes: tuple[int, ...], inverse: bool, norm: Any, g: Any, *_: Any) -> list[Value]:
    return [_transform(g[0], axes, inverse, norm)]


def _forward(x: Value, axis: int, norm: Any) -> Value:
    """The nonredundant half of the transform of real numbers."""
    dims = dims_of(x)
    count = dims[axis]
    kind = (complex_of(x.dtype), _with(dims, axis, count // 2 + 1))
    run, gradient = _rfft.of(axis, norm), _of_forward.of(axis, norm)
    return _call(run, x, types_of=[kind], gradient=gradient)[0]


@routine
def _of_forward(axis: int, norm: Any, g: Any, _: Any, x: Value) -> list[Value]:
    wide = _fit(g[0], axis, dims_of(x)[axis])
    return [catalogue.real(_transform(wide, (axis,), False, norm))]


def _backward(y: Value, axis: int, count: Any, norm: Any) -> Value:
    """`count` real numbers from half of their transform; an even number if it is unknown."""
    dims = dims_of(y)
    kind = (y.dtype.real, _with(dims, axis, count))
    told = None if isinstance(count, Value) else count
    run, gradient = _irfft.of(told, axis, norm), _of_backward.of(told, axis, norm)
    return _call(run, y, types_of=[kind], gradient=gradient)[0]


@routine
def _of_backward(count: int | None, axis: int, norm: Any, g: Any, _: Any, y: Value) -> list[Value]:
    # Every element of the half except the first (and the middle one) stands for two.
    twice = np.full(dims_of(y)[axis], 2.0)
    twice[0] = 1.0
    if count is None or count % 2 == 0:
        twice[-1] = 1.0
    shape = [-1] + [1] * (-1 - axis)
    weights = constant_of(twice.reshape(shape).astype(y.dtype.numpy))
    return [weights * catalogue.conj(_forward(g[0], axis, OTHER_NORM[norm]))]


@routine
def _fftn(inverse: bool, axes: tuple[int, ...], norm: Any, x: Any) -> Any:
    return (np.fft.ifftn if inverse else np.fft.fftn)(x, axes=axes, norm=norm)


@routine
def _rfft(axis: int, norm: Any, x: Any) -> Any:
    return np.fft.rfft(x, axis=axis, norm=norm)


@routine
def _irfft(count: int | None, axis: int, norm: Any, y: Any) -> Any:
    return np.fft.irfft(y, count, axis, norm)


OTHER_NORM: Final = {"backward": "forward", "forward": "backward", "ortho": "ortho"}
"""The `norm` of the inverse transform for each `norm`."""


def complex_of(dtype: DType) -> DType:
    """The complex dtype with the precision of a real dtype."""
    return types.complex64 if dtype is types.float32 else types.complex128


def _with(dims: tuple[Any, ...], axis: int, size: Any) -> tuple[Any, ...]:
    return tuple([size if i == axis + len(dims) else d for i, d in enumerate(dims)])


def _fit(x: Value, axis: int, size: Any) -> Value:
    """`x` with an axis cropped or zero-padded to a size, which is its own if that is unknown."""
    dims = dims_of(x)
    if isinstance(size, Value) or size == dims[axis]:
        return x
    known = isinstance(dims[axis], int)
    more = max(0, size - dims[axis]) if known else size
    ends = tuple([(0, more if i == axis + len(dims) else 0) for i in range(len(dims))])
    wide = catalogue.pad(x, paddings=ends) if more else x
    if known and size > dims[axis]:
        return wide
    return catalogue.slice(wide, begin=(0,) * len(dims), end=_with(dims, axis, size))


def fftn(x: Value, *, sizes: Any, axes: tuple[int, ...], inverse: bool, norm: str) -> Value:
    """The transform of complex numbers along axes, each cropped or zero-padded to its size."""
    for axis, size in zip(axes, sizes, strict=True):
        x = _fit(x, axis, size)
    return _transform(x, axes, inverse, norm) if axes else x


def rfftn(x: Value, *, sizes: Any, axes: tuple[int, ...], norm: str) -> Value:
    """The transform of real numbers: the nonredundant half along the last axis."""
    for axis, size in zip(axes, sizes, strict=True):
        x = _fit(x, axis, size)
    *others, last = axes
    y = _forward(x, last, norm)
    return _transform(y, tuple(others), False, norm) if others else y


def irfftn(y: Value, *, sizes: tuple[int, ...], axes: tuple[int, ...], norm: str) -> Value:
    """The inverse of `rfftn`, with these sizes."""
    *others, last = axes
    *halves, count = sizes
    for axis, size in zip(axes, (*halves, count // 2 + 1), strict=True):
        y = _fit(y, axis, size)
    y = _transform(y, tuple(others), True, norm) if others else y
    return _backward(y, last, count, norm)
