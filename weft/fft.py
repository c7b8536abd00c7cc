"""Fourier transforms under PyTorch's names; `weft.numpy.fft` has NumPy's.

>>> import weft as wf
>>> wf.fft.irfft(wf.fft.rfft(wf.tensor([1.0, 2.0, 3.0, 4.0])))
tensor([1., 2., 3., 4.])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weft.eager.functions.creation.constructor import as_tensor
from weft.eager.functions.elementwise.complex_number import conj, real, view_as_real
from weft.eager.functions.indexing.gather import index_add
from weft.eager.functions.out_argument import with_outlet
from weft.eager.functions.shape.joining import cat
from weft.eager.tensor.argument import axes_of, dims_of
from weft.eager.tensor.dispatch import cast, kind_of, lazy_of, leaf, recorded, wrap
from weft.eager.tensor.dtype.promotion import get_default_dtype
from weft.errors import DTypeError, ShapeError
from weft.ir.dtype import as_dtype, bfloat16, float16, float64
from weft.ir.node import Value
from weft.ir.shape import known
from weft.numpy import fft as transforms
from weft.ops.base import at_user_line
from weft.ops.boundary.host import call
from weft.ops.declaration.memory_check import check_table
from weft.ops.warning import warn

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2",
    "ifftn", "ifftshift", "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "istft", "rfft",
    "rfft2", "rfftfreq", "rfftn", "stft",
]  # fmt: skip


LEAST_SHARE: Final = 1e-11
"""Below this, the weights of a sample count as none; PyTorch's limit."""


def _numbers(name: str, x: Any) -> Any:
    """A tensor whose integers become PyTorch's default type.

    Raises:
        DTypeError: numbers of half precision, which have no complex ones.
    """
    lazy = lazy_of(x)
    dtype = lazy.type.dtype
    if dtype in (float16, bfloat16):
        text = f"{name}: there are no complex numbers of half precision; convert {dtype} to float32"
        raise DTypeError(text + at_user_line())
    return wrap(lazy if dtype.is_inexact else cast(lazy, get_default_dtype()), kind_of(x))


def _axes(name: str, input: Any, s: Any, dim: Any) -> tuple[Any, Any]:
    """Sizes and axes, each as a tuple or none at all.

    Raises:
        ShapeError: an axis that is named twice.
    """
    sizes, axes = ((v,) if isinstance(v, int) else v for v in (s, dim))
    if axes is not None:
        axes_of(name, axes, len(dims_of(input)))  # NumPy's may come again, PyTorch's not
    return sizes, axes


def _one(function: Callable[..., Any]) -> Callable[..., Tensor]:
    name = function.__name__

    def along(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
        return function(_numbers(name, input), n, dim, norm)

    return _named(along, function)


def _two(function: Callable[..., Any]) -> Callable[..., Tensor]:
    name = function.__name__

    def plane(input: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
        return function(_numbers(name, input), *_axes(name, input, s, dim), norm)

    return _named(plane, function)


def _several(function: Callable[..., Any]) -> Callable[..., Tensor]:
    name = function.__name__

    def over(input: Any, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
        return function(_numbers(name, input), *_axes(name, input, s, dim), norm)

    return _named(over, function)


def _named(function: Any, like: Callable[..., Any]) -> Any:
    function.__name__ = function.__qualname__ = like.__name__
    function.__doc__ = like.__doc__
    return function


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


def hfftn(input: Any, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """The (real) transform along several axes of numbers that mirror each other.

    The last one of the axes has the first half of them, and `s` says of what.
    """
    return irfftn(conj(as_tensor(input)), s, dim, transforms.other_norm("hfftn", norm))


def ihfftn(input: Any, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """The inverse of `hfftn`."""
    return conj(rfftn(input, s, dim, transforms.other_norm("ihfftn", norm)))


def hfft2(input: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """`hfftn` along two axes."""
    return hfftn(input, s, dim, norm)


def ihfft2(input: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """The inverse of `hfft2`."""
    return ihfftn(input, s, dim, norm)


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
    check_table("fftfreq", (n,), float64)
    return _frequencies(np.fft.fftfreq(n, d), dtype)


def rfftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of the results of `rfft`, of samples `d` apart."""
    check_table("rfftfreq", (n // 2 + 1,), float64)
    return _frequencies(np.fft.rfftfreq(n, d), dtype)


def _frequencies(found: Any, dtype: Any) -> Tensor:
    kind = get_default_dtype() if dtype is None else as_dtype(dtype)
    if not kind.is_floating:
        raise DTypeError(f"fftfreq: expected a floating type, got {kind}{at_user_line()}")
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
            its ends as `pad_mode` says: "reflect", "replicate", "circular" or "constant" (zeros).
        normalized: whether to divide by the root of `n_fft`.
        onesided: whether to leave out frequencies that follow from others; the default where signal
            and window are real.
        return_complex: if false, real and imaginary parts lie along a last axis.

    Returns:
        Shape (..., frequencies, pieces).

    Raises:
        DTypeError: `onesided`, of complex numbers.
        ShapeError: lengths that do not fit.
    """
    x = _numbers("stft", input)
    hop = n_fft // 4 if hop_length is None else hop_length
    weights = _weights("stft", window, win_length, n_fft, hop, x)
    whole = x.dtype.is_complex or weights.dtype.is_complex
    if whole and onesided:
        text = "stft: of complex numbers no frequency follows from others; leave out onesided=True"
        raise DTypeError(text + at_user_line())
    if center:
        x = _continued(x, n_fft // 2, pad_mode)
    if len(dims_of(x)) not in (1, 2) or dims_of(x)[-1] < n_fft:
        raise ShapeError(
            f"stft: expected one or more signals of {n_fft} samples or more, got {x.shape}"
            f"{at_user_line()}"
        )
    function = fft if whole or onesided is False else rfft
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
        length: of the signal, which is cut or, with a warning, continued by zeros.
        return_complex: whether the signal is complex, as it is with a complex window.

    Raises:
        DTypeError: numbers that are not complex, or a complex window of a real signal.
        ShapeError: lengths that do not fit.
        UserOpError: when computed, samples for which all weights are 0.
    """
    dims = dims_of(input)
    if not lazy_of(input).type.dtype.is_complex:
        raise DTypeError(f"istft: expected complex numbers, as stft gives{at_user_line()}")
    whole = dims[-2:-1] == (n_fft,) if onesided is None else not onesided
    rows = n_fft if whole else n_fft // 2 + 1
    if len(dims) not in (2, 3) or dims[-2] != rows or 0 in dims:
        raise ShapeError(
            f"istft: expected shape (..., {rows} frequencies, pieces), got {dims}{at_user_line()}"
        )
    hop = n_fft // 4 if hop_length is None else hop_length
    turned = input.transpose(-1, -2)
    norm = "ortho" if normalized else None
    pieces = ifft(turned, norm=norm) if whole else irfft(turned, n_fft, norm=norm)
    pieces = real(pieces) if whole and not return_complex else pieces
    weights = _weights("istft", window, win_length, n_fft, hop, real(pieces))
    if weights.dtype.is_complex and not return_complex:
        raise DTypeError(
            f"istft: with a complex window the signal is complex: say return_complex=True"
            f"{at_user_line()}"
        )
    signal = _overlapped(pieces * weights, hop)
    shares = _overlapped((weights * weights).expand(dims_of(pieces)[-2:]), hop)
    begin = n_fft // 2 if center else 0
    end = dims_of(signal)[-1] - begin if length is None else begin + length
    found = signal[..., begin:end] / _above_zero(shares[begin:end])
    rest = 0 if length is None else length - dims_of(found)[-1]
    if rest <= 0:
        return found
    text = f"istft: the signal is shorter than {length}: zeros fill {rest} samples{at_user_line()}"
    warn(text)
    return cat([found, found.new_zeros((*dims_of(found)[:-1], rest))], -1)


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


_MODES: Final = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}  # NumPy's names


def _continued(x: Any, size: int, mode: str) -> Tensor:
    """A signal with `size` samples more at both ends."""
    count = dims_of(x)[-1]
    least = {"constant": 0, "replicate": 1, "circular": size, "reflect": size + 1}.get(mode)
    if least is None or count < least:
        known = f"one of {', '.join(['constant', *_MODES])}" if least is None else repr(mode)
        raise ShapeError(
            f"stft: pad_mode: expected {known}, of {least or 0} samples or more, got {mode!r} of "
            f"{count}{at_user_line()}"
        )
    if mode == "constant":
        zeros = x.new_zeros((*dims_of(x)[:-1], size))
        return cat([zeros, x, zeros], -1)
    places = np.pad(np.arange(count), size, _MODES[mode])  # pyright: ignore[reportCallIssue, reportArgumentType]
    return x[..., wrap(leaf(places))]


def _overlapped(pieces: Any, hop: int) -> Tensor:
    """The sum of pieces, shape (..., pieces, samples), each `hop` after the one before."""
    count, size = dims_of(pieces)[-2:]
    places = np.arange(count)[:, None] * hop + np.arange(size)
    flat = pieces.reshape((*dims_of(pieces)[:-2], count * size))
    empty = flat.new_zeros((*dims_of(flat)[:-1], (count - 1) * hop + size))
    return index_add(empty, -1, wrap(leaf(places.reshape(-1))), flat)


def _check_shares(shares: Any) -> Any:
    if shares.size and np.abs(shares).min() < LEAST_SHARE:
        raise ValueError(
            "istft: no piece weighs on some samples; take a window without zeros, a smaller hop, "
            "center=True or a shorter length"
        )
    return shares


@recorded
def _above_zero(shares: Value) -> Value:
    """The sums of squared weights of samples, none of which may be 0."""
    kind = (shares.dtype, known(shares.shape))
    return call(_check_shares, shares, types_of=[kind], gradient=lambda g, *_: [g[0]])[0]


for _name in __all__:
    globals()[_name] = with_outlet(globals()[_name], __name__, _name)
