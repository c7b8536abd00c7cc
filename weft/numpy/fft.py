"""Discrete Fourier transforms under NumPy's names; `weft.ops.signal.fourier` computes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from weft import ops
from weft.eager.tensor.argument import axis_of
from weft.eager.tensor.device import check_device
from weft.eager.tensor.dispatch import leaf, recorded
from weft.errors import ArgumentError, DTypeError, ShapeError
from weft.ir.dtype import as_dtype
from weft.numpy.convert import array_like, floats, new, typed
from weft.numpy.elementwise import conj
from weft.numpy.manipulation import roll
from weft.ops.signal.fourier import OTHER_NORM, complex_of

if TYPE_CHECKING:
    from weft.numpy.array import ndarray

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

_complex = recorded(ops.fftn)
_of_real = recorded(ops.rfftn)
_to_real = recorded(ops.irfftn)

# Of arrays


def other_norm(name: str, norm: str | None) -> str:
    """The `norm` of the inverse transform."""
    return OTHER_NORM[_norm(name, norm)]


def _norm(name: str, norm: str | None) -> str:
    found: Any = "backward" if norm is None else norm
    if not isinstance(found, str) or found not in OTHER_NORM:
        raise ArgumentError.here(f"{name}: expected norm backward, ortho or forward, got {norm!r}")
    return found


def _plan(name: str, x: Any, s: Any, axes: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The axes counted from the end, and their sizes.

    Raises:
        ShapeError: sizes that are not positive, or different numbers of sizes and axes.
    """
    rank = x.ndim
    if axes is None:
        axes = range(rank) if s is None else range(rank - len(s), rank)
    found = tuple([axis_of(name, a, rank) for a in axes])
    sizes = [-1] * len(found) if s is None else [int(n) for n in s]
    alike = len(sizes) == len(found) <= rank
    if alike:
        sizes = [x.shape[a] if n == -1 else n for a, n in zip(found, sizes, strict=True)]
    if not alike or any([n < 1 for n in sizes]):
        raise ShapeError.here(
            f"{name}: expected a size of 1 or more for each of axes {found}, got {tuple(sizes)}"
        )
    return tuple([a - rank for a in found]), tuple(sizes)


def _check_some(name: str, axes: Sequence[int]) -> None:
    if not axes:
        raise ShapeError.here(f"{name}: expected one axis or more, of which one is halved")


def _run_complex(name: str, x: Any, s: Any, axes: Any, inverse: bool, norm: str | None) -> Any:
    x = floats(x)
    x = x if x.dtype.is_complex else typed(x, complex_of(x.dtype))
    found, sizes = _plan(name, x, s, axes)
    return _complex(x, sizes=sizes, axes=found, inverse=inverse, norm=_norm(name, norm))


def _run_of_real(name: str, x: Any, s: Any, axes: Any, norm: str | None) -> Any:
    x = floats(x)
    if x.dtype.is_complex:
        raise DTypeError.here(f"{name}: expected real numbers, got {x.dtype}")
    found, sizes = _plan(name, x, s, axes)
    _check_some(name, found)
    return _of_real(x, sizes=sizes, axes=found, norm=_norm(name, norm))


def _run_to_real(name: str, x: Any, s: Any, axes: Any, norm: str | None) -> Any:
    x = floats(x)
    x = x if x.dtype.is_complex else typed(x, complex_of(x.dtype))
    if s is None:
        over = range(x.ndim) if axes is None else axes
        _check_some(name, over)
        s = [x.shape[a] for a in over]
        s[-1] = 2 * (s[-1] - 1)
    found, sizes = _plan(name, x, s, axes)
    _check_some(name, found)
    return _to_real(x, sizes=sizes, axes=found, norm=_norm(name, norm))


def _size(n: int | None) -> Any:
    if n == -1:  # the whole axis among the sizes of several; of one, NumPy and PyTorch refuse it
        raise ShapeError.here(f"fft: expected a number of points n of 1 or more, got {n}")
    return None if n is None else (n,)


def fft(x: Any, /, n: int | None = None, axis: int = -1, norm: str | None = None) -> ndarray:
    """The transform along one axis, which is cropped or zero-padded to `n`.

    Args:
        norm: the direction that divides by the number of elements: `backward` (the inverse),
            `forward`, or `ortho` (both, by its square root).

    Raises:
        ShapeError: `n` is below 1.
    """
    return _run_complex("fft", x, _size(n), (axis,), False, norm)


def ifft(x: Any, /, n: int | None = None, axis: int = -1, norm: str | None = None) -> ndarray:
    """The inverse of `fft`."""
    return _run_complex("ifft", x, _size(n), (axis,), True, norm)


def fftn(x: Any, /, s: Any = None, axes: Any = None, norm: str | None = None) -> ndarray:
    """The transform along several axes (all by default), of sizes `s`."""
    return _run_complex("fftn", x, s, axes, False, norm)


def ifftn(x: Any, /, s: Any = None, axes: Any = None, norm: str | None = None) -> ndarray:
    """The inverse of `fftn`."""
    return _run_complex("ifftn", x, s, axes, True, norm)


def fft2(x: Any, s: Any = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> ndarray:
    """The transform along two axes."""
    return _run_complex("fft2", x, s, axes, False, norm)


def ifft2(
    x: Any, s: Any = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> ndarray:
    """The inverse of `fft2`."""
    return _run_complex("ifft2", x, s, axes, True, norm)


def rfft(x: Any, /, n: int | None = None, axis: int = -1, norm: str | None = None) -> ndarray:
    """The first `n // 2 + 1` elements of the transform of real numbers."""
    return _run_of_real("rfft", x, _size(n), (axis,), norm)


def irfft(x: Any, /, n: int | None = None, axis: int = -1, norm: str | None = None) -> ndarray:
    """The inverse of `rfft`: `n` real numbers, by default an even number."""
    return _run_to_real("irfft", x, _size(n), (axis,), norm)


def rfftn(x: Any, /, s: Any = None, axes: Any = None, norm: str | None = None) -> ndarray:
    """The transform of real numbers along several axes; the last one is halved."""
    return _run_of_real("rfftn", x, s, axes, norm)


def irfftn(x: Any, /, s: Any = None, axes: Any = None, norm: str | None = None) -> ndarray:
    """The inverse of `rfftn`."""
    return _run_to_real("irfftn", x, s, axes, norm)


def rfft2(
    x: Any, s: Any = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> ndarray:
    """The transform of real numbers along two axes; the last one is halved."""
    return _run_of_real("rfft2", x, s, axes, norm)


def irfft2(
    x: Any, s: Any = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> ndarray:
    """The inverse of `rfft2`."""
    return _run_to_real("irfft2", x, s, axes, norm)


def hfft(x: Any, /, n: int | None = None, axis: int = -1, norm: str | None = None) -> ndarray:
    """The real transform of a Hermitian-symmetric array, given its first half."""
    return irfft(conj(x), n, axis, other_norm("hfft", norm))


def ihfft(x: Any, /, n: int | None = None, axis: int = -1, norm: str | None = None) -> ndarray:
    """The inverse of `hfft`."""
    return conj(rfft(x, n, axis, other_norm("ihfft", norm)))


# Frequencies


def _frequencies(
    function: Callable[..., Any], n: int, d: float, dtype: Any, device: Any
) -> ndarray:
    check_device(device)
    found = function(n, d)
    return new(leaf(found if dtype is None else found.astype(as_dtype(dtype).numpy)))


def fftfreq(n: int, /, d: float = 1.0, dtype: Any = None, device: Any = None) -> ndarray:
    """The frequencies of a transform of `n` samples, `d` apart."""
    return _frequencies(np.fft.fftfreq, n, d, dtype, device)


def rfftfreq(n: int, /, d: float = 1.0, dtype: Any = None, device: Any = None) -> ndarray:
    """The frequencies of `rfft` of `n` samples, `d` apart."""
    return _frequencies(np.fft.rfftfreq, n, d, dtype, device)


def fftshift(x: Any, /, axes: Any = None) -> ndarray:
    """Move frequency 0 to the middle."""
    return _shifted(x, axes, 1)


def ifftshift(x: Any, /, axes: Any = None) -> ndarray:
    """The inverse of `fftshift`."""
    return _shifted(x, axes, -1)


def _shifted(x: Any, axes: Any, sign: int) -> Any:
    x = array_like(x)
    over = tuple(range(x.ndim)) if axes is None else (axes,) if isinstance(axes, int) else axes
    by = tuple([sign * (x.shape[a] // 2) for a in over])
    return roll(x, by, tuple(over)) if over else x.clone()
