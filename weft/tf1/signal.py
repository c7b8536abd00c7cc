"""`tf.signal`: Fourier and cosine transforms, frames of signals, windows, mel scales."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft import ops
from weft.documentation import named
from weft.errors import ArgumentError, DTypeError, ShapeError
from weft.ir.node import Value
from weft.ops.declaration.rule import dims_of, reshape_like
from weft.ops.shape.movement import moveaxis
from weft.ops.signal.cosine import cosine_transform, mel_filters
from weft.ops.signal.fourier import fftn, irfftn, rfftn
from weft.ops.signal.piece import end_padded, inverse_window, overlapped, pieces_of
from weft.ops.signal.window import raised_cosine
from weft.tf1.framework import dtypes
from weft.tf1.framework.convert import (
    constant,
    convert_to_tensor,
    require_kind,
    static_value,
)
from weft.tf1.framework.dtypes import as_dtype
from weft.tf1.framework.graph import emit, fail, name_scope
from weft.tf1.framework.tensor import Tensor
from weft.tf1.shaping.arrangement import pad

__all__ = [
    "dct", "fft", "fft2d", "fft3d", "fftshift", "frame", "hamming_window", "hann_window", "idct",
    "ifft", "ifft2d", "ifft3d", "ifftshift", "inverse_stft", "inverse_stft_window_fn", "irfft",
    "irfft2d", "irfft3d", "linear_to_mel_weight_matrix", "mfccs_from_log_mel_spectrograms",
    "overlap_and_add", "rfft", "rfft2d", "rfft3d", "stft",
]  # fmt: skip

Window = Callable[..., Any] | None
_NORM = "backward"  # TensorFlow's: the inverse transform divides by the number of elements


def _number(name: str, value: Any) -> int:
    """An argument that must be known when the graph is built."""
    found = static_value(value)
    if found is None:
        raise fail(ArgumentError, f"{name}: expected a number that is known now, got {value!r}")
    return int(found)


# Fourier transforms


def _whole(kind: str, axes: tuple[int, ...], inverse: bool, doc: str) -> Callable[..., Tensor]:
    @named(kind.lower(), doc)
    def function(input: Any, name: str | None = None) -> Tensor:
        with name_scope(name, kind, [input]) as scope:
            x = convert_to_tensor(input, name="input")
            require_kind(kind, x, lambda dtype: dtype.is_complex, "complex numbers")

            def build(v: Value) -> Value:
                sizes = dims_of(v)[-len(axes) :]
                return fftn(v, sizes=sizes, axes=axes, inverse=inverse, norm=_NORM)

            return emit(kind, [x], build, name=scope)

    return function


def _half(kind: str, axes: tuple[int, ...], inverse: bool, doc: str) -> Callable[..., Tensor]:
    run, what = (irfftn, "complex numbers") if inverse else (rfftn, "floating-point numbers")

    @named(kind.lower(), doc)
    def function(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
        with name_scope(name, kind, [input_tensor]) as scope:
            x = convert_to_tensor(input_tensor, name="input")
            require_kind(kind, x, lambda d: d.is_complex if inverse else d.is_floating, what)

            def build(v: Value) -> Value:
                sizes = dims_of(v)[-len(axes) :]
                if inverse:
                    sizes = (*sizes[:-1], 2 * (sizes[-1] - 1))
                if fft_length is not None:
                    sizes = tuple([_number(kind, n) for n in _listed(fft_length)])
                return run(v, sizes=sizes, axes=axes, norm=_NORM)

            return emit(kind, [x], build, name=scope)

    return function


def _listed(value: Any) -> list[Any]:
    found = static_value(value)
    if found is None:
        raise fail(ArgumentError, f"fft_length: expected numbers that are known now, got {value!r}")
    return [int(n) for n in np.atleast_1d(found)]


_AXES: tuple[tuple[int, ...], ...] = ((-1,), (-2, -1), (-3, -2, -1))
_ALONG = ("the last axis", "the last two axes", "the last three axes")
fft, fft2d, fft3d = (
    _whole(kind, axes, False, f"The discrete Fourier transform of complex numbers along {where}.")
    for kind, axes, where in zip(("FFT", "FFT2D", "FFT3D"), _AXES, _ALONG, strict=True)
)
ifft, ifft2d, ifft3d = (
    _whole(kind, axes, True, f"The inverse discrete Fourier transform along {where}.")
    for kind, axes, where in zip(("IFFT", "IFFT2D", "IFFT3D"), _AXES, _ALONG, strict=True)
)
rfft, rfft2d, rfft3d = (
    _half(kind, axes, False, f"Half of the transform of real numbers along {where}: all it takes.")
    for kind, axes, where in zip(("RFFT", "RFFT2D", "RFFT3D"), _AXES, _ALONG, strict=True)
)
irfft, irfft2d, irfft3d = (
    _half(kind, axes, True, f"Real numbers from the half of their transform along {where}.")
    for kind, axes, where in zip(("IRFFT", "IRFFT2D", "IRFFT3D"), _AXES, _ALONG, strict=True)
)


def _shift(kind: str, inverse: bool, doc: str) -> Callable[..., Tensor]:
    @named(kind, doc)
    def function(x: Any, axes: Any = None, name: str | None = None) -> Tensor:
        with name_scope(name, kind, [x]) as scope:

            def build(v: Value) -> Value:
                dims = dims_of(v)
                places = range(len(dims)) if axes is None else np.atleast_1d(axes).tolist()
                halves = [dims[i] - dims[i] // 2 if inverse else dims[i] // 2 for i in places]
                found = ops.roll(v, shifts=tuple(halves), axes=tuple(places))
                return reshape_like(found, v)

            return emit("Roll", [convert_to_tensor(x)], build, name=scope)

    return function


fftshift = _shift("fftshift", False, "The middle of each axis, or of `axes`, becomes its zero.")
ifftshift = _shift("ifftshift", True, "The inverse of `fftshift`.")


# Cosine transforms


def dct(
    input: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The discrete cosine transform along the last axis, by a matmul.

    Args:
        type: 1, 2, 3 or 4.
        n: the length to crop or zero-pad to first.
        axis: the last one; there is no other in TensorFlow.
        norm: `None` or `'ortho'`.
    """
    if type not in (1, 2, 3, 4):
        raise fail(ArgumentError, f"dct: expected type 1, 2, 3 or 4, got {type}")
    if axis != -1 or norm not in (None, "ortho") or (type == 1 and norm):
        text = f"axis -1 and norm None or 'ortho' (not for type 1), got {axis} and {norm!r}"
        raise fail(ArgumentError, f"dct: expected {text}")
    with name_scope(name, "dct", [input]) as scope:
        x = convert_to_tensor(input)
        require_kind("dct", x, lambda dtype: dtype.is_floating, "floating-point numbers")

        def build(v: Value) -> Value:
            last = dims_of(v)[-1]
            size = last if n is None else _number("n", n)
            if n is not None and not isinstance(last, int):
                raise fail(ShapeError, f"dct: expected a known size to pad, got {x.shape}")
            if not isinstance(size, int) or size < (2 if type == 1 else 1):
                raise fail(ShapeError, f"dct: expected a known size of enough elements, got {size}")
            v = v[..., :size]
            if size > last:
                v = ops.pad(v, paddings=(*[(0, 0)] * ((v.rank or 1) - 1), (0, size - last)))
            return cosine_transform(v, kind=type, size=size, orthonormal=norm == "ortho")

        return emit("DCT", [x], build, name=scope)


def idct(
    input: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The inverse of `dct`, up to a factor where `norm` is `None`."""
    return dct(input, {2: 3, 3: 2}.get(type, type), n, axis, norm, name or "idct")


# Frames


def frame(
    signal: Any, frame_length: Any, frame_step: Any, pad_end: bool = False, pad_value: Any = 0,
    axis: int = -1, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Frames of `frame_length` along an axis, `frame_step` apart: (frames, samples) in its place.

    Args:
        pad_end: pad the end, so that every sample that can begin a frame does.
        pad_value: what it is padded with.
    """
    size, step = _number("frame_length", frame_length), _number("frame_step", frame_step)
    with name_scope(name, "frame", [signal]) as scope:
        x = convert_to_tensor(signal, name="signal")

        def build(v: Value) -> Value:
            at = axis % (v.rank or 1)
            if pad_end:
                v = end_padded(v, axis=at, size=size, step=step, value=pad_value)
            return moveaxis(pieces_of(v, axis=at, size=size, step=step), -1, at + 1)

        return emit("Frame", [x], build, name=scope)


def overlap_and_add(signal: Any, frame_step: Any, name: str | None = None) -> Tensor:
    """The signal of frames in the last two axes, `frame_step` apart, summed where they overlap."""
    hop = _number("frame_step", frame_step)
    with name_scope(name, "overlap_and_add", [signal]) as scope:
        x = convert_to_tensor(signal, name="signal")
        if x.shape.ndims is not None and x.shape.ndims < 2:
            raise fail(ShapeError, f"overlap_and_add: expected frames, got shape {x.shape}")
        return emit("OverlapAdd", [x], overlapped, hop=hop, name=scope)


# Windows


def _raised_cosine(name: str, first: float) -> Callable[..., Tensor]:
    @named(f"{name}_window", f"The {name.capitalize()} window; periodic for even lengths.")
    def function(
        window_length: Any, periodic: Any = True, dtype: Any = dtypes.float32,
        name: str | None = None,
    ) -> Tensor:  # fmt: skip
        size, kind = _number("window_length", window_length), as_dtype(dtype)
        if not kind.is_floating:
            raise fail(DTypeError, f"window: expected a floating-point dtype, got {kind.name}")
        options: dict[str, Any] = {"size": size, "periodic": bool(periodic), "first": first}
        with name_scope(name, function.__name__) as scope:
            return emit("Window", [], raised_cosine, dtype=kind.ir, name=scope, **options)

    return function


hann_window = _raised_cosine("hann", 0.5)
hamming_window = _raised_cosine("hamming", 0.54)


# Short-time Fourier transforms


def stft(
    signals: Any, frame_length: Any, frame_step: Any, fft_length: Any = None,
    window_fn: Window = hann_window, pad_end: bool = False, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Short-time Fourier transforms of signals: (..., frames, frequencies).

    Args:
        fft_length: of each transform; by default the next power of 2.
        window_fn: the weights of a frame, of its length and dtype; `None` for none.
        pad_end: see `frame`.
    """
    with name_scope(name, "stft", [signals]):
        x = convert_to_tensor(signals, name="signals")
        size = _number("frame_length", frame_length)
        length = 2 ** (size - 1).bit_length() if fft_length is None else _number("fft", fft_length)
        pieces = frame(x, size, frame_step, pad_end=pad_end)
        return rfft(_weighted(pieces, window_fn, size), [length])


def _weighted(pieces: Tensor, window_fn: Window, size: int) -> Tensor:
    if window_fn is None:
        return pieces
    return pieces * window_fn(size, dtype=pieces.dtype)


def inverse_stft(
    stfts: Any, frame_length: Any, frame_step: Any, fft_length: Any = None,
    window_fn: Window = hann_window, name: str | None = None,
) -> Tensor:  # fmt: skip
    """The signals of short-time Fourier transforms; arguments as for `stft`.

    With the window `inverse_stft_window_fn(frame_step)` it is the inverse.
    """
    with name_scope(name, "inverse_stft", [stfts]):
        x = convert_to_tensor(stfts, name="stfts")
        size = _number("frame_length", frame_length)
        length = 2 ** (size - 1).bit_length() if fft_length is None else _number("fft", fft_length)
        pieces = irfft(x, [length])[..., :size]
        if size > length:
            pieces = pad(pieces, [*[[0, 0]] * (len(pieces.shape) - 1), [0, size - length]])
        return overlap_and_add(_weighted(pieces, window_fn, size), frame_step)


def inverse_stft_window_fn(
    frame_step: Any, forward_window_fn: Callable[..., Any] = hann_window, name: str | None = None
) -> Callable[..., Tensor]:
    """The window for `inverse_stft` with which it inverts `stft` with another window."""

    def window(frame_length: Any, dtype: Any) -> Tensor:
        with name_scope(name, "inverse_stft_window_fn"):
            size, step = _number("frame_length", frame_length), _number("frame_step", frame_step)
            forward = convert_to_tensor(forward_window_fn(size, dtype=dtype))
            return emit("Window", [forward], inverse_window, hop=step, name="window")

    return window


# Mel scales


def linear_to_mel_weight_matrix(
    num_mel_bins: Any = 20, num_spectrogram_bins: Any = 129, sample_rate: Any = 8000,
    lower_edge_hertz: Any = 125.0, upper_edge_hertz: Any = 3800.0, dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Triangular filters that take spectra to the mel scale: (spectrogram bins, mel bins)."""
    given = (num_mel_bins, num_spectrogram_bins, sample_rate, lower_edge_hertz, upper_edge_hertz)
    numbers = [static_value(value) for value in given]
    if any([n is None for n in numbers]):
        raise fail(ArgumentError, "linear_to_mel_weight_matrix: expected numbers known now")
    count, bins, rate, lower, upper = [float(n) for n in numbers]
    if count <= 0 or lower < 0 or lower >= upper or rate <= 0 or upper > rate / 2:
        text = "positive counts and 0 <= lower_edge_hertz < upper_edge_hertz <= sample_rate / 2"
        raise fail(ArgumentError, f"linear_to_mel_weight_matrix: expected {text}, got {given}")
    found = mel_filters(int(count), int(bins), rate, lower, upper)
    return constant(found.astype(as_dtype(dtype).as_numpy_dtype), name=name or "mel_weights")


def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: Any, name: str | None = None) -> Tensor:
    """Mel-frequency cepstral coefficients: the orthonormal `dct` but for a factor, as in HTK."""
    with name_scope(name, "mfccs_from_log_mel_spectrograms", [log_mel_spectrograms]):
        x = convert_to_tensor(log_mel_spectrograms)
        count = x.shape[-1].value
        if not count:
            raise fail(ShapeError, f"mfccs: expected a known number of mel bins, got {x.shape}")
        return dct(x) * (2.0 * count) ** -0.5
