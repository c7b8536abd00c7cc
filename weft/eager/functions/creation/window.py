"""Window functions: weights that fade out to both ends."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from weft.eager.functions.creation.arange import arange
from weft.eager.functions.creation.constructor import finished, floating, ones
from weft.eager.functions.shape.splitting import narrow
from weft.eager.tensor.dispatch import recorded
from weft.eager.tensor.view.memory_format import check_place
from weft.errors import DTypeError, ShapeError
from weft.ops.signal import window as formulas

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

__all__ = [
    "bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window",
]  # fmt: skip

_cosines = recorded(formulas.cosines)
_triangle = recorded(formulas.triangle)
_bessel = recorded(formulas.bessel)


def _window(
    name: str,
    length: int,
    periodic: bool,
    shape: Any,
    dtype: Any,
    requires_grad: bool,
    device: Any,
) -> Tensor:
    """Weights `shape(i, n=n)` at i = 0 ... n, without the last one if `periodic`.

    Raises:
        ShapeError: a negative length.
        DTypeError: the dtype is not floating-point.
    """
    kind = floating(dtype)
    if length < 0:
        raise ShapeError.here(f"{name}: expected a length from 0 on, got {length}")
    if not kind.is_floating:
        raise DTypeError.here(f"{name}: expected a floating type, got {kind}")
    if length < 2:
        return ones(length, dtype=kind, requires_grad=requires_grad, device=device)
    count = length + periodic
    found = shape(arange(count, dtype="float64"), n=count - 1.0)
    return finished(narrow(found, 0, 0, length).to(kind).lazy, requires_grad, device)


def hann_window(
    window_length: int, periodic: bool = True, *,
    dtype: Any = None, device: Any = None, requires_grad: bool = False, layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """The Hann window, `(1 - cos(t)) / 2` over one period.

    Args:
        periodic: without the last weight, as in a sequence of windows; otherwise symmetric.

    >>> import weft as wf
    >>> wf.hann_window(4).tolist()
    [0.0, 0.5, 1.0, 0.5]
    """
    return hamming_window(
        window_length, periodic, 0.5, 0.5, dtype=dtype, device=device, requires_grad=requires_grad,
        layout=layout,
    )  # fmt: skip


def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *,
    dtype: Any = None, device: Any = None, requires_grad: bool = False, layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """The Hamming window, `alpha - beta * cos(t)` over one period; see `hann_window`."""
    check_place(device, layout)
    shape = partial(_cosines, weights=(alpha, beta))
    return _window("window", window_length, periodic, shape, dtype, requires_grad, device)


def blackman_window(
    window_length: int, periodic: bool = True, *,
    dtype: Any = None, device: Any = None, requires_grad: bool = False, layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """The Blackman window, `0.42 - 0.5 * cos(t) + 0.08 * cos(2 * t)`; see `hann_window`."""
    check_place(device, layout)
    shape = partial(_cosines, weights=(0.42, 0.5, 0.08))
    return _window("blackman_window", window_length, periodic, shape, dtype, requires_grad, device)


def bartlett_window(
    window_length: int, periodic: bool = True, *,
    dtype: Any = None, device: Any = None, requires_grad: bool = False, layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """The Bartlett window: a triangle, 0 at both ends; see `hann_window`."""
    check_place(device, layout)
    return _window(
        "bartlett_window", window_length, periodic, _triangle, dtype, requires_grad, device
    )


def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, *,
    dtype: Any = None, device: Any = None, requires_grad: bool = False, layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """The Kaiser window, `i0(beta * sqrt(1 - x**2)) / i0(beta)` on [-1, 1]; see `hann_window`."""
    check_place(device, layout)
    shape = partial(_bessel, beta=float(beta))
    return _window("kaiser_window", window_length, periodic, shape, dtype, requires_grad, device)
