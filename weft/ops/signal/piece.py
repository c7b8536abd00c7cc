"""Short-time Fourier transforms: frames of a signal, their transforms, and overlap-add."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from weft.ir.dtype import DType, int64
from weft.ir.node import Value
from weft.ir.shape import known
from weft.ops.boundary.host import call
from weft.ops.boundary.routine import routine
from weft.ops.declaration import catalogue, constant_of
from weft.ops.declaration.memory_check import check_table
from weft.ops.declaration.rule import concrete, dims_of
from weft.ops.indexing.advanced_index import take_nd
from weft.ops.shape.movement import moveaxis
from weft.ops.shape.padding import padded
from weft.ops.signal.fourier import complex_of, fftn, irfftn, rfftn

LEAST_SHARE: Final = 1e-11
"""Total weights of a sample below this count as 0; PyTorch's limit."""


def pieces_of(x: Value, *, axis: int, size: int, step: int) -> Value:
    """Frames of `size` along an axis, `step` apart, as a new last axis."""
    if not x.shape:
        return catalogue.reshape(x, shape=(1,))[:size]
    count = (dims_of(x)[axis] - size) // step + 1
    if isinstance(count, int):
        check_table("unfold", (max(count, 0), size), int64)
    places = _places(count, size, step)
    return moveaxis(take_nd(x, [*[None] * axis, places]), axis + 1, -1)


def end_padded(x: Value, *, axis: int, size: int, step: int, value: Any) -> Value:
    """`x`, padded at its end so that a frame begins at every `step` of its elements."""
    dims = dims_of(x)
    more = (-(-dims[axis] // step) - 1) * step + size - dims[axis]
    more = max(0, more) if isinstance(more, int) else catalogue.maximum(more, 0)
    shape = tuple([more if i == axis else d for i, d in enumerate(dims)])
    end = catalogue.broadcast_to(constant_of(value, x.dtype), shape=shape)
    return catalogue.concatenate(x, end, axis=axis)


def inverse_window(window: Value, *, hop: int) -> Value:
    """The window that with `window` before the transform weighs all samples by 1."""
    (size,) = concrete(window)
    overlaps = -(-size // hop)
    wide = catalogue.pad(catalogue.square(window), paddings=((0, overlaps * hop - size),))
    total = catalogue.sum(catalogue.reshape(wide, shape=(overlaps, hop)), axes=(0,), keepdims=True)
    whole = catalogue.broadcast_to(total, shape=(overlaps, hop))
    return window / catalogue.reshape(whole, shape=(overlaps * hop,))[:size]


def _places(count: Any, size: Any, step: int) -> Value:
    """The positions of elements in frames."""
    if isinstance(count, int) and isinstance(size, int):
        return constant_of(step * np.arange(count)[:, None] + np.arange(size))
    first, inner = (catalogue.arange(stop=n, dtype=int64) for n in (count, size))
    return catalogue.expand_dims(first, axis=-1) * step + inner


def overlapped(pieces: Value, *, hop: int) -> Value:
    """Overlap-add of frames, shape (..., frames, samples), `hop` apart."""
    *lead, count, size = dims_of(pieces)
    places = catalogue.reshape(_places(count, size, hop), shape=(-1,))
    flat = catalogue.reshape(pieces, shape=(*lead, count * size))
    rows = moveaxis(flat, -1, 0)
    shape = ((count - 1) * hop + size, *lead)
    empty = catalogue.broadcast_to(constant_of(0, pieces.dtype), shape=shape)
    return moveaxis(catalogue.scatter_add(empty, places, rows), 0, -1)


def _between_zeros(window: Value, size: int) -> Value:
    count = concrete(window)[0]
    left = (size - count) // 2
    if count == size:
        return window
    return catalogue.pad(window, paddings=((left, size - count - left),))


def stft(
    x: Value, window: Value, *, size: int, hop: int, pad_mode: str | None, onesided: bool, norm: str
) -> Value:
    """The short-time Fourier transform of signals: (..., frequencies, frames).

    Args:
        window: weights in the dtype of `x`, zero-padded on both sides to `size`.
        pad_mode: how to pad a signal by half a frame at its ends, if at all.
        onesided: omit redundant frequencies of real signals.
    """
    rank = len(concrete(x))
    if pad_mode is not None:
        x = padded(x, (*[(0, 0)] * (rank - 1), (size // 2, size // 2)), pad_mode)
    pieces = pieces_of(x, axis=rank - 1, size=size, step=hop) * _between_zeros(window, size)
    if onesided:
        y = rfftn(pieces, sizes=(size,), axes=(-1,), norm=norm)
    else:
        wide = pieces if pieces.dtype.is_complex else _as(pieces, complex_of(pieces.dtype))
        y = fftn(wide, sizes=(size,), axes=(-1,), inverse=False, norm=norm)
    return moveaxis(y, -1, -2)


def istft(
    y: Value, window: Value, *, dtype: DType, size: int, hop: int, onesided: bool, norm: str,
    span: tuple[int, int | None],
) -> Value:  # fmt: skip
    """The inverse of `stft`, for a range of samples.

    Args:
        dtype: of the signal: real, unless its frames are complex.

    Raises:
        ValueError: when run, all weights of a sample are 0.
    """
    turned = moveaxis(y, -1, -2)
    if onesided:
        pieces = irfftn(turned, sizes=(size,), axes=(-1,), norm=norm)
    else:
        pieces = fftn(turned, sizes=(size,), axes=(-1,), inverse=True, norm=norm)
    pieces = pieces if dtype.is_complex or onesided else catalogue.real(pieces)
    pieces, weights = _as(pieces, dtype), _as(_between_zeros(window, size), dtype)
    signal = overlapped(pieces * weights, hop=hop)
    whole = catalogue.broadcast_to(weights * weights, shape=concrete(pieces)[-2:])
    part = slice(*span)
    return signal[..., part] / _above_zero(overlapped(whole, hop=hop)[part])


def _as(x: Value, dtype: DType) -> Value:
    return x if x.dtype is dtype else catalogue.cast(x, dtype=dtype)


@routine
def _unchanged(g: Any, *_: Any) -> list[Value]:
    return [g[0]]


@routine
def _check_shares(shares: Any) -> Any:
    if shares.size and np.abs(shares).min() < LEAST_SHARE:
        raise ValueError(
            "istft: no piece weighs on some samples; take a window without zeros, a smaller hop, "
            "center=True or a shorter length"
        )
    return shares


def _above_zero(shares: Value) -> Value:
    """The sums of squared weights of samples, which must not be 0."""
    kind = (shares.dtype, known(shares.shape))
    return call(_check_shares, shares, types_of=[kind], gradient=_unchanged)[0]
