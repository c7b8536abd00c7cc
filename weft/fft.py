"""Fourier transforms under PyTorch's names; `weft.numpy.fft` has NumPy's.

>>> import weft as wf
>>> wf.fft.irfft(wf.fft.rfft(wf.tensor([1.0, 2.0, 3.0, 4.0])))
tensor([1., 2., 3., 4.])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weft.eager.argument import dims_of
from weft.eager.call import cast, kind_of, lazy_of, leaf, wrap
from weft.eager.imaginary import real, view_as_real
from weft.eager.joining import cat
from weft.eager.movement import flip, narrow
from weft.eager.placing import index_add
from weft.eager.promotion import default_dtype
from weft.errors import ShapeError
from weft.ir.dtype import as_dtype
from weft.numpy import fft as transforms
from weft.ops.base import at_user_line

if TYPE_CHECKING:
    from weft.eager.tensor import Tensor

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "irfft", "irfft2", "irfftn", "istft", "rfft", "rfft2", "rfftfreq", "rfftn", "stft",
]  # fmt: skip


def _numbers(x: Any) -> Any:
    """A tensor whose integers become PyTorch's default type."""
    lazy = lazy_of(x)
    return wrap(lazy if lazy.type.dtype.is_inexact else cast(lazy, default_dtype()), kind_of(x))


def _one(function: Callable[..., Any]) -> Callable[..., Tensor]:
    def along(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
        return function(_numbers(input), n, dim, norm)

    along.__doc__ = function.__doc__
    return along


def _two(function: Callable[..., Any]) -> Callable[..., Tensor]:
    def plane(input: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
        return function(_numbers(input), s, (dim,) if isinstance(dim, int) else tuple(dim), norm)

    plane.__doc__ = function.__doc__
    return plane


def _several(function: Callable[..., Any]) -> Callable[..., Tensor]:
    def over(input: Any, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
        axes = (dim,) if isinstance(dim, int) else dim
        sizes = (s,) if isinstance(s, int) else s
        return function(_numbers(input), sizes, axes, norm)

    over.__doc__ = function.__doc__
    return over


fft: Final = _one(transforms.fft)
ifft: Final = _one(transforms.ifft)
rfft: Final = _one(transforms.rfft)
irfft: Final = _one(transforms.irfft)
hfft: Final = _one(transforms.hfft)
ihfft: Final = _one(transforms.ihfft)
fft2: Final = _two(transforms.fft2)
ifft2: Final = _two(transforms.ifft2)
rfft2: Final = _two(transforms.rfft2)
irfft2: Final = _two(transforms.irfft2)
fftn: Final = _several(transforms.fftn)
ifftn: Final = _several(transforms.ifftn)
rfftn: Final = _several(transforms.rfftn)
irfftn: Final = _several(transforms.irfftn)


def fftshift(input: Any, dim: Any = None) -> Tensor:
    """The frequency 0 moved to the middle of axes (all, if none are given)."""
    found: Any = transforms.fftshift(input, axes=dim)
    return found


def ifftshift(input: Any, dim: Any = None) -> Tensor:
    """The inverse of `fftshift`."""
    found: Any = transforms.ifftshift(input, axes=dim)
    return found


def fftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of the results of `fft`, of samples `d` apart."""
    return _frequencies(np.fft.fftfreq(n, d), dtype)


def rfftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of the results of `rfft`, of samples `d` apart."""
    return _frequencies(np.fft.rfftfreq(n, d), dtype)


def _frequencies(found: Any, dtype: Any) -> Tensor:
    kind = default_dtype() if dtype is None else as_dtype(dtype)
    return wrap(leaf(found.astype(kind.numpy)))


# Of pieces of a signal


def stft(
    input: Any, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Any = None, center: bool = True, pad_mode: str = "reflect", normalized: bool = False,
    onesided: bool | None = None, return_complex: bool | None = None,
) -> Tensor:  # fmt: skip
    """Fourier transforms of pieces of a signal, each `hop_length` after the one before.

    Args:
        input: shape (samples,) or (signals, samples).
        hop_length: a quarter of `n_fft` by default.
        window: `win_length` weights (ones), zeros to both sides up to `n_fft`.
        center: whether piece t lies around sample `t * hop_length`, with the signal continued at
            its ends as `pad_mode` says: "reflect" or "constant".
        normalized: whether to divide by the root of `n_fft`.
        onesided: whether to leave out frequencies that follow from others; the default for reals.
        return_complex: if false, real and imaginary parts lie along a last axis.

    Returns:
        Shape (..., frequencies, pieces).

    Raises:
        ShapeError: lengths that do not fit.
    """
    x = _numbers(input)
    hop = hop_length or n_fft // 4
    weights = _weights("stft", window, win_length, n_fft, hop, x)
    if center:
        x = _continued(x, n_fft // 2, pad_mode)
    if dims_of(x)[-1] < n_fft:
        raise ShapeError(f"stft: expected {n_fft} samples or more, got {x.shape}{at_user_line()}")
    half = not x.dtype.is_complex if onesided is None else onesided
    function = rfft if half else fft
    found = function(x.unfold(-1, n_fft, hop) * weights, norm="ortho" if normalized else None)
    found = found.transpose(-1, -2)
    return view_as_real(found) if return_complex is False else found


def istft(
    input: Any, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Any = None, center: bool = True, normalized: bool = False,
    onesided: bool | None = None, length: int | None = None, return_complex: bool = False,
) -> Tensor:  # fmt: skip
    """The signal of which `stft` gave the transforms; arguments as there.

    Args:
        length: of the signal, which is cut or continued by zeros.

    Raises:
        ShapeError: lengths that do not fit.
    """
    hop = hop_length or n_fft // 4
    turned = input.transpose(-1, -2)
    norm = "ortho" if normalized else None
    whole = dims_of(input)[-2] == n_fft if onesided is None else not onesided
    pieces = ifft(turned, norm=norm) if whole else irfft(turned, n_fft, norm=norm)
    pieces = real(pieces) if whole and not return_complex else pieces
    weights = _weights("istft", window, win_length, n_fft, hop, real(pieces))
    signal = _overlapped(pieces * weights, hop)
    shares = _overlapped((weights * weights).expand(dims_of(pieces)[-2:]), hop)
    begin = n_fft // 2 if center else 0
    end = dims_of(signal)[-1] - begin if length is None else begin + length
    signal, shares = signal[..., begin:end], shares[..., begin:end]
    found = signal / shares
    rest = 0 if length is None else length - dims_of(found)[-1]
    return cat([found, found.new_zeros((*dims_of(found)[:-1], rest))], -1) if rest > 0 else found


def _weights(name: str, window: Any, length: int | None, n_fft: int, hop: int, like: Any) -> Tensor:
    """A window, between zeros."""
    count = (n_fft if window is None else dims_of(window)[0]) if length is None else length
    found = like.new_ones(count, dtype=like.dtype.real) if window is None else window
    if dims_of(found) != (count,) or not 0 < count <= n_fft or hop < 1:
        raise ShapeError(
            f"{name}: expected a window of 1 to {n_fft} weights and a hop above 0, got "
            f"{dims_of(found)}, win_length={length} and {hop}{at_user_line()}"
        )
    left = (n_fft - count) // 2
    sides = [found.new_zeros(left), found, found.new_zeros(n_fft - count - left)]
    return cat(sides, 0) if count < n_fft else found


def _continued(x: Any, size: int, mode: str) -> Tensor:
    """A signal with `size` samples more at both ends."""
    count = dims_of(x)[-1]
    if mode == "constant":
        ends = [x.new_zeros((*dims_of(x)[:-1], size))] * 2
    elif mode == "reflect" and size < count:
        ends = [flip(narrow(x, -1, 1, size), -1), flip(narrow(x, -1, count - 1 - size, size), -1)]
    else:
        raise ShapeError(
            f"stft: pad_mode: expected 'constant', or 'reflect' of more than {size} samples, got "
            f"{mode!r} of {count}{at_user_line()}"
        )
    return cat([ends[0], x, ends[1]], -1)


def _overlapped(pieces: Any, hop: int) -> Tensor:
    """The sum of pieces, shape (..., pieces, samples), each `hop` after the one before."""
    count, size = dims_of(pieces)[-2:]
    places = np.arange(count)[:, None] * hop + np.arange(size)
    flat = pieces.reshape((*dims_of(pieces)[:-2], count * size))
    empty = flat.new_zeros((*dims_of(flat)[:-1], (count - 1) * hop + size))
    return index_add(empty, -1, wrap(leaf(places.reshape(-1))), flat)
