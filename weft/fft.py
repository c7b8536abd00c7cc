"""Fourier transforms under PyTorch's names; `weft.numpy.fft` has NumPy's.

>>> import weft as wf
>>> wf.fft.irfft(wf.fft.rfft(wf.tensor([1.0, 2.0, 3.0, 4.0])))
tensor([1., 2., 3., 4.])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from weft.documentation import named
from weft.eager.functions.creation.constructor import as_tensor, finished, zeros
from weft.eager.functions.elementwise.complex_number import conj, view_as_real
from weft.eager.functions.out_argument import with_outlet
from weft.eager.functions.shape.joining import cat
from weft.eager.tensor.argument import axes_of, dims_of
from weft.eager.tensor.dispatch import cast, kind_of, lazy_of, leaf, recorded, wrap
from weft.eager.tensor.dtype.promotion import get_default_dtype, promote
from weft.eager.tensor.elementwise import promoted
from weft.eager.tensor.view.memory_format import check_place
from weft.errors import DTypeError, ShapeError
from weft.ir.dtype import as_dtype, bfloat16, float16, float64
from weft.ir.node import at_user_line
from weft.numpy import fft as transforms
from weft.ops.declaration.memory_check import check_table
from weft.ops.signal import piece
from weft.ops.warning import warn

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2",
    "ifftn", "ifftshift", "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "istft", "rfft",
    "rfft2", "rfftfreq", "rfftn", "stft",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])


def _numbers(name: str, x: Any) -> Any:
    """A tensor, with integers converted to PyTorch's default type.

    Raises:
        DTypeError: half precision, which has no complex type.
    """
    lazy = lazy_of(x)
    dtype = lazy.type.dtype
    if dtype in (float16, bfloat16):
        text = f"{name}: there are no complex numbers of half precision; convert {dtype} to float32"
        raise DTypeError.here(text)
    return wrap(lazy if dtype.is_inexact else cast(lazy, get_default_dtype()), kind_of(x))


def _axes(name: str, input: Any, s: Any, dim: Any) -> tuple[Any, Any]:
    """Sizes and axes, each as a tuple or `None`.

    Raises:
        ShapeError: an axis is named twice.
    """
    sizes, axes = ((v,) if isinstance(v, int) else v for v in (s, dim))
    if axes is not None:
        axes_of(name, axes, len(dims_of(input)))  # NumPy allows repeated axes, PyTorch does not
    return sizes, axes


def _one(function: Callable[..., Any]):
    name = function.__name__

    @named(name, function.__doc__)
    def along(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
        return function(_numbers(name, input), n, dim, norm)

    return along


def _two(function: Callable[..., Any]):
    name = function.__name__

    @named(name, function.__doc__)
    def plane(input: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
        return function(_numbers(name, input), *_axes(name, input, s, dim), norm)

    return plane


def _several(function: Callable[..., Any]):
    name = function.__name__

    @named(name, function.__doc__)
    def over(input: Any, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
        return function(_numbers(name, input), *_axes(name, input, s, dim), norm)

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


def hfftn(input: Any, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """The (real) transform along several axes of numbers with Hermitian symmetry.

    The last axis has only the first half of them; `s` gives the full size.
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
    """Moves frequency 0 to the middle of axes (all, if none are given)."""
    found: Any = transforms.fftshift(input, axes=dim)
    return found


def ifftshift(input: Any, dim: Any = None) -> Tensor:
    """The inverse of `fftshift`."""
    found: Any = transforms.ifftshift(input, axes=dim)
    return found


def fftfreq(
    n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None,
    requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """The frequencies of the results of `fft`, for samples `d` apart."""
    check_place(device, layout)
    check_table("fftfreq", (n,), float64)
    return _frequencies(np.fft.fftfreq(n, d), dtype, requires_grad)


def rfftfreq(
    n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None,
    requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """The frequencies of the results of `rfft`, for samples `d` apart."""
    check_place(device, layout)
    check_table("rfftfreq", (n // 2 + 1,), float64)
    return _frequencies(np.fft.rfftfreq(n, d), dtype, requires_grad)


def _frequencies(found: Any, dtype: Any, requires_grad: bool) -> Tensor:
    kind = get_default_dtype() if dtype is None else as_dtype(dtype)
    if not kind.is_floating:
        raise DTypeError.here(f"fftfreq: expected a floating type, got {kind}")
    return finished(leaf(found.astype(kind.numpy)), requires_grad)


# Short-time transforms


def stft(
    input: Any, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Any = None, center: bool = True, pad_mode: str = "reflect", normalized: bool = False,
    onesided: bool | None = None, return_complex: bool | None = None,
) -> Tensor:  # fmt: skip
    """The short-time Fourier transform: of frames of a signal, `hop_length` apart.

    Args:
        input: shape (samples,) or (signals, samples).
        hop_length: a quarter of `n_fft` by default.
        window: `win_length` weights (ones by default), padded with zeros on both sides to `n_fft`.
        center: whether frame t is centered at sample `t * hop_length`, with the signal padded at
            its ends by `pad_mode`: "reflect", "replicate", "circular" or "constant" (zeros).
        normalized: whether to divide by the square root of `n_fft`.
        onesided: whether to omit redundant frequencies; the default if signal and window are real.
        return_complex: if false, real and imaginary parts are a last axis.

    Returns:
        Shape (..., frequencies, frames).

    Raises:
        DTypeError: `onesided` of complex numbers.
        ShapeError: lengths do not fit.
    """
    x = _numbers("stft", input)
    hop = n_fft // 4 if hop_length is None else hop_length
    weights = _weights("stft", window, win_length, n_fft, hop, x)
    whole = x.dtype.is_complex or weights.dtype.is_complex
    if whole and onesided:
        text = "stft: complex input has no redundant frequencies; omit onesided=True"
        raise DTypeError.here(text)
    mode = pad_mode if center else None
    dims = dims_of(x)
    if center:
        _check_continued(dims[-1], n_fft // 2, pad_mode)
    if len(dims) not in (1, 2) or dims[-1] + 2 * (n_fft // 2) * center < n_fft:
        raise ShapeError.here(
            f"stft: expected one or more signals of {n_fft} samples or more, got {x.shape}"
        )
    found = _stft.on(
        kind_of(x), *promoted(x, weights), size=n_fft, hop=hop, pad_mode=mode,
        onesided=not whole and onesided is not False, norm="ortho" if normalized else "backward",
    )  # fmt: skip
    return view_as_real(found) if return_complex is False else found


_stft = recorded(piece.stft)
_istft = recorded(piece.istft)


def istft(
    input: Any, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Any = None, center: bool = True, normalized: bool = False,
    onesided: bool | None = None, length: int | None = None, return_complex: bool = False,
) -> Tensor:  # fmt: skip
    """The inverse of `stft`; arguments as there.

    Args:
        length: of the signal, which is cut or, with a warning, padded with zeros.
        return_complex: whether the signal is complex, as it is with a complex window.

    Raises:
        DTypeError: input that is not complex, or a complex window of a real signal.
        ShapeError: lengths do not fit.
        UserOpError: at run time, samples for which all weights are 0.
    """
    dims = dims_of(input)
    if not lazy_of(input).type.dtype.is_complex:
        raise DTypeError.here("istft: expected complex numbers, as from stft")
    whole = dims[-2:-1] == (n_fft,) if onesided is None else not onesided
    rows = n_fft if whole else n_fft // 2 + 1
    if len(dims) not in (2, 3) or dims[-2] != rows or 0 in dims:
        raise ShapeError.here(
            f"istft: expected shape (..., {rows} frequencies, frames), got {dims}"
        )
    hop = n_fft // 4 if hop_length is None else hop_length
    kind = lazy_of(input).type.dtype
    kind = kind if whole and return_complex else kind.real
    weights = _weights("istft", window, win_length, n_fft, hop, zeros(0, dtype=kind.real))
    if weights.dtype.is_complex and not return_complex:
        raise DTypeError.here(
            "istft: with a complex window the signal is complex: pass return_complex=True"
        )
    begin = n_fft // 2 if center else 0
    size = n_fft + (dims[-1] - 1) * hop
    found = _istft.on(
        kind_of(input), input, weights, dtype=promote(kind, weights.dtype), size=n_fft, hop=hop,
        onesided=not whole, norm="ortho" if normalized else "backward",
        span=(begin, size - begin if length is None else begin + length),
    )  # fmt: skip
    rest = 0 if length is None else length - dims_of(found)[-1]
    if rest <= 0:
        return found
    text = f"istft: the signal is shorter than {length}: zeros fill {rest} samples{at_user_line()}"
    warn(text)
    return cat([found, found.new_zeros((*dims_of(found)[:-1], rest))], -1)


def _weights(name: str, window: Any, length: int | None, n_fft: int, hop: int, like: Any) -> Tensor:
    """The weights of a window."""
    count = (n_fft if window is None else dims_of(window)[0]) if length is None else length
    found = like.new_ones(count, dtype=like.dtype.real) if window is None else window
    if dims_of(found) != (count,) or not 0 < count <= n_fft or hop < 1:
        raise ShapeError.here(
            f"{name}: expected a window of 1 to {n_fft} weights and a hop above 0, got "
            f"{dims_of(found)}, win_length={length} and {hop}"
        )
    return found


_MODES: Final = ("constant", "reflect", "replicate", "circular")


def _check_continued(count: int, size: int, mode: str) -> None:
    """Raises if the signal is too short to be padded by `size` samples at both ends."""
    least = {"constant": 0, "replicate": 1, "circular": size, "reflect": size + 1}.get(mode)
    if least is None or count < least:
        known = f"one of {', '.join(_MODES)}" if least is None else repr(mode)
        raise ShapeError.here(
            f"stft: pad_mode: expected {known}, of {least or 0} samples or more, got {mode!r} of "
            f"{count}"
        )


for _name in __all__:
    globals()[_name] = with_outlet(globals()[_name], __name__, _name)
