"""Fourier transforms under PyTorch's names; `weft.numpy.fft` has NumPy's.

>>> import weft as wf
>>> wf.fft.irfft(wf.fft.rfft(wf.tensor([1.0, 2.0, 3.0, 4.0])))
tensor([1., 2., 3., 4.])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weft.eager.call import cast, kind_of, lazy_of, leaf, wrap
from weft.eager.promotion import default_dtype
from weft.ir.dtype import as_dtype
from weft.numpy import fft as transforms

if TYPE_CHECKING:
    from weft.eager.tensor import Tensor

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
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
        return function(_numbers(input), s, tuple(dim), norm)

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
