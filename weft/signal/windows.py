"""Windows of `M` weights that fade out to both ends, computed in float64.

All take `sym`: whether the window is symmetric, for filters, or periodic, for transforms. `dtype`
is float32 or float64.

>>> import weft as wf
>>> wf.signal.windows.hann(5).tolist()
[0.0, 0.5, 1.0, 0.5, 0.0]
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from weft.eager.functions.api import Tensor
from weft.eager.functions.creation.arange import arange
from weft.eager.functions.creation.constructor import finished, floating
from weft.eager.tensor.device import check_device
from weft.eager.tensor.dispatch import recorded
from weft.errors import ArgumentError, DTypeError
from weft.ir.dtype import float32, float64
from weft.ops.refusal import guard
from weft.ops.signal import window as formulas

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine",
    "general_hamming", "hamming", "hann", "kaiser", "nuttall",
]  # fmt: skip


_cosines = recorded(formulas.cosines)
_triangle = recorded(formulas.triangle)
_bessel = recorded(formulas.bessel)
_half_wave = recorded(formulas.half_wave)
_exponential = recorded(formulas.exponential)
_gaussian = recorded(formulas.gaussian)


def _check(name: str, expected: str, holds: bool, got: Any) -> None:
    if not holds:
        raise ArgumentError.here(f"{name}: expected {expected}, got {got}")


def _window(
    name: str, length: int, sym: bool, shape: Callable[..., Any],
    dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Weights `shape(i, n=n)` at i from 0 on; `n` is the mirror position of the first.

    Raises:
        ArgumentError: a negative length, or a dtype other than float32 and float64.
    """
    kind = floating(dtype)
    count = int(operator.index(length))  # also of a tensor of one integer or boolean
    _check(name, "M >= 0", count >= 0, count)
    _check(name, "dtype float32 or float64", kind in (float32, float64), kind)
    _check(name, "a strided layout", layout is None or str(layout).endswith("strided"), layout)
    check_device(device)
    last = max(count - 1, 0) if sym or count < 2 else count
    found = shape(arange(count, dtype=float64), n=float(last)).to(kind)
    return finished(found.lazy, requires_grad)


def general_cosine(M: int, *, a: Sequence[float], sym: bool = True, **options: Any) -> Tensor:
    """A cosine-sum window with coefficients `a` of alternating signs.

    Raises:
        ArgumentError: no coefficients.
        DTypeError: `a` is no list.
    """
    if not isinstance(a, list | tuple):
        raise DTypeError.here(f"general_cosine: expected a list of coefficients, got {a!r}")
    _check("general_cosine", "coefficients", len(a) > 0, "none")
    return _of_cosines("general_cosine", M, a, sym, options)


def _of_cosines(
    name: str, M: int, a: Sequence[float], sym: bool, options: dict[str, Any]
) -> Tensor:
    return _window(name, M, sym, partial(_cosines, weights=tuple(map(float, a))), **options)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **options: Any) -> Tensor:
    """`alpha - (1 - alpha) * cos(2 pi i / n)`."""
    return _of_cosines("general_hamming", M, (alpha, 1 - alpha), sym, options)


def hamming(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """The Hamming window: `general_hamming` of 0.54."""
    return _of_cosines("hamming", M, (0.54, 0.46), sym, options)


def hann(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """The Hann window: `general_hamming` of 0.5, which ends at 0."""
    return _of_cosines("hann", M, (0.5, 0.5), sym, options)


def blackman(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """The Blackman window: a sum of three cosines."""
    return _of_cosines("blackman", M, (0.42, 0.5, 0.08), sym, options)


def nuttall(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """The Nuttall window: a sum of four cosines, with minimal side lobes."""
    a = (0.3635819, 0.4891775, 0.1365995, 0.0106411)
    return _of_cosines("nuttall", M, a, sym, options)


def bartlett(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """The Bartlett window: a triangle, 0 at the ends."""
    return _window("bartlett", M, sym, _triangle, **options)


def cosine(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """The cosine window: half a wave of the sine."""
    return _window("cosine", M, sym, _half_wave, **options)


def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, **options: Any
) -> Tensor:
    """The exponential window: `exp(-|i - center| / tau)`.

    Args:
        center: where it is 1, by default the middle; needs `sym=False`.

    Raises:
        ArgumentError: a `tau` that is not positive, or a center for a symmetric window.
    """
    _check("exponential", "tau > 0", tau > 0, tau)
    _check("exponential", "no center with sym", center is None or not sym, center)
    middle = None if center is None else float(center)
    shape = partial(_exponential, center=middle, tau=float(tau))
    return _window("exponential", M, sym, shape, **options)


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, **options: Any) -> Tensor:
    """The Gaussian window with this standard deviation, around the middle.

    Raises:
        ArgumentError: a deviation that is not positive.
    """
    _check("gaussian", "std > 0", std > 0, std)
    return _window("gaussian", M, sym, partial(_gaussian, std=float(std)), **options)


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, **options: Any) -> Tensor:
    """The Kaiser window: `i0(beta * sqrt(1 - x ** 2)) / i0(beta)`, x from -1 to 1.

    Raises:
        ArgumentError: a negative `beta`.
    """
    _check("kaiser", "beta >= 0", beta >= 0, beta)
    return _window("kaiser", M, sym, partial(_bessel, beta=float(beta)), **options)


guard(globals())
