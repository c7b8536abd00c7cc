"""Discrete Fourier transforms, computed by NumPy; their gradients are Fourier transforms too.

A transform is linear with a symmetric matrix, so its gradient is the same transform.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weft.eager.tensor.argument import axis_of
from weft.eager.tensor.dispatch import leaf, recorded
from weft.errors import ArgumentError, DTypeError, ShapeError
from weft.ir import dtype as types
from weft.ir.dtype import DType, as_dtype
from weft.ir.node import Value
from weft.ir.shape import known
from weft.numpy.convert import array_like, floats, new, typed
from weft.numpy.elementwise import conj
from weft.numpy.manipulation import roll
from weft.ops.base import at_user_line, catalogue, constant_of
from weft.ops.host import call as host_call

if TYPE_CHECKING:
    from weft.numpy.array import ndarray

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

# Of graph values


# Axes are counted from the end, so that these functions take an axis of examples in front.

call = functools.partial(host_call, wide=True)


def _transform(x: Value, axes: tuple[int, ...], inverse: bool, norm: Any) -> Value:
    """The transform of complex numbers along axes."""
    function = np.fft.ifftn if inverse else np.fft.fftn
    run = functools.partial(function, axes=axes, norm=norm)

    def gradient(g: Any, *_: Any) -> list[Value]:
        return [_transform(g[0], axes, inverse, norm)]

    return call(run, x, types_of=[(x.dtype, known(x.shape))], gradient=gradient)[0]


def _forward(x: Value, axis: int, norm: Any) -> Value:
    """The half of the transform of real numbers that says all of it."""
    dims = known(x.shape)
    count = dims[axis]
    kind = (_whole(x.dtype), _with(dims, axis, count // 2 + 1))

    def gradient(g: Any, *_: Any) -> list[Value]:
        return [catalogue.real(_transform(_fit(g[0], axis, count), (axis,), False, norm))]

    run = functools.partial(np.fft.rfft, axis=axis, norm=norm)
    return call(run, x, types_of=[kind], gradient=gradient)[0]


def _backward(y: Value, axis: int, count: int, norm: Any) -> Value:
    """`count` real numbers from the half of their transform."""
    dims = known(y.shape)
    kind = (y.dtype.real, _with(dims, axis, count))

    def gradient(g: Any, *_: Any) -> list[Value]:
        # Every element of the half but the first (and the middle one) stands for two.
        twice = np.full(dims[axis], 2.0)
        twice[0] = 1.0
        if count % 2 == 0:
            twice[-1] = 1.0
        shape = [-1] + [1] * (-1 - axis)
        weights = constant_of(twice.reshape(shape).astype(y.dtype.numpy))
        return [weights * catalogue.conj(_forward(g[0], axis, _OTHER[norm]))]

    run = functools.partial(np.fft.irfft, n=count, axis=axis, norm=norm)
    return call(run, y, types_of=[kind], gradient=gradient)[0]


_OTHER: Final = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def _whole(dtype: DType) -> DType:
    return types.complex64 if dtype is types.float32 else types.complex128


def _with(dims: tuple[int, ...], axis: int, size: int) -> tuple[int, ...]:
    return tuple([size if i == axis + len(dims) else d for i, d in enumerate(dims)])


def _fit(x: Value, axis: int, size: int) -> Value:
    """`x` with an axis cut, or filled with zeros, to a size."""
    dims = known(x.shape)
    more = size - dims[axis]
    if more < 0:
        return catalogue.slice(x, begin=(0,) * len(dims), end=_with(dims, axis, size))
    if more:
        ends = tuple([(0, more if i == axis + len(dims) else 0) for i in range(len(dims))])
        return catalogue.pad(x, paddings=ends)
    return x


@recorded
def _complex(x: Value, *, sizes: Any, axes: tuple[int, ...], inverse: bool, norm: str) -> Value:
    for axis, size in zip(axes, sizes, strict=True):
        x = _fit(x, axis, size)
    return _transform(x, axes, inverse, norm) if axes else x


@recorded
def _of_real(x: Value, *, sizes: Any, axes: tuple[int, ...], norm: str) -> Value:
    for axis, size in zip(axes, sizes, strict=True):
        x = _fit(x, axis, size)
    *others, last = axes
    y = _forward(x, last, norm)
    return _transform(y, tuple(others), False, norm) if others else y


@recorded
def _to_real(y: Value, *, sizes: tuple[int, ...], axes: tuple[int, ...], norm: str) -> Value:
    *others, last = axes
    *halves, count = sizes
    for axis, size in zip(axes, (*halves, count // 2 + 1), strict=True):
        y = _fit(y, axis, size)
    y = _transform(y, tuple(others), True, norm) if others else y
    return _backward(y, last, count, norm)


# Of arrays


def other_norm(name: str, norm: str | None) -> str:
    """The norm of the transform in the other direction."""
    return _OTHER[_norm(name, norm)]


def _norm(name: str, norm: str | None) -> str:
    found = norm or "backward"
    if found not in _OTHER:
        raise ArgumentError(
            f"{name}: expected norm backward, ortho or forward, got {norm!r}{at_user_line()}"
        )
    return found


def _plan(name: str, x: Any, s: Any, axes: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The axes counted from the end, and their sizes.

    Raises:
        ShapeError: sizes that are not positive, or not as many as axes.
    """
    rank = x.ndim
    if axes is None:
        axes = range(rank) if s is None else range(rank - len(s), rank)
    found = tuple([axis_of(name, a, rank) for a in axes])
    sizes = [x.shape[a] for a in found] if s is None else [int(n) for n in s]
    sizes = [x.shape[a] if n == -1 else n for a, n in zip(found, sizes, strict=False)]
    if len(sizes) != len(found) or len(sizes) > rank or any([n < 1 for n in sizes]):
        raise ShapeError(
            f"{name}: expected a size of 1 or more for each of axes {found}, got {tuple(sizes)}"
            f"{at_user_line()}"
        )
    return tuple([a - rank for a in found]), tuple(sizes)


def _check_some(name: str, axes: Sequence[int]) -> None:
    if not axes:
        raise ShapeError(
            f"{name}: expected one axis or more, of which one is halved{at_user_line()}"
        )


def _run_complex(name: str, x: Any, s: Any, axes: Any, inverse: bool, norm: str | None) -> Any:
    x = floats(x)
    x = x if x.dtype.is_complex else typed(x, _whole(x.dtype))
    found, sizes = _plan(name, x, s, axes)
    return _complex(x, sizes=sizes, axes=found, inverse=inverse, norm=_norm(name, norm))


def _run_of_real(name: str, x: Any, s: Any, axes: Any, norm: str | None) -> Any:
    x = floats(x)
    if x.dtype.is_complex:
        raise DTypeError(f"{name}: expected real numbers, got {x.dtype}{at_user_line()}")
    found, sizes = _plan(name, x, s, axes)
    _check_some(name, found)
    return _of_real(x, sizes=sizes, axes=found, norm=_norm(name, norm))


def _run_to_real(name: str, x: Any, s: Any, axes: Any, norm: str | None) -> Any:
    x = floats(x)
    x = x if x.dtype.is_complex else typed(x, _whole(x.dtype))
    if s is None:
        over = range(x.ndim) if axes is None else axes
        _check_some(name, over)
        s = [x.shape[a] for a in over]
        s[-1] = 2 * (s[-1] - 1)
    found, sizes = _plan(name, x, s, axes)
    _check_some(name, found)
    return _to_real(x, sizes=sizes, axes=found, norm=_norm(name, norm))


def _size(n: int | None) -> Any:
    return None if n is None else (n,)


def fft(x: Any, /, n: int | None = None, axis: int = -1, norm: str | None = None) -> ndarray:
    """The transform along one axis, which is cut or filled with zeros to `n`.

    Args:
        norm: which direction divides by the number of elements: `backward` (the inverse one),
            `forward`, or `ortho` (both, by its root).

    Raises:
        ShapeError: `n` is below 1.
    """
    return _run_complex("fft", x, _size(n), (axis,), False, norm)


def ifft(x: Any, /, n: int | None = None, axis: int = -1, norm: str | None = None) -> ndarray:
    """The inverse of `fft`."""
    return _run_complex("ifft", x, _size(n), (axis,), True, norm)


def fftn(x: Any, /, s: Any = None, axes: Any = None, norm: str | None = None) -> ndarray:
    """The transform along several axes (all, if none are given), of sizes `s`."""
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
    """The first `n // 2 + 1` elements of the transform of real numbers: the others mirror them."""
    return _run_of_real("rfft", x, _size(n), (axis,), norm)


def irfft(x: Any, /, n: int | None = None, axis: int = -1, norm: str | None = None) -> ndarray:
    """The inverse of `rfft`: `n` real numbers, an even number of them if `n` is not given."""
    return _run_to_real("irfft", x, _size(n), (axis,), norm)


def rfftn(x: Any, /, s: Any = None, axes: Any = None, norm: str | None = None) -> ndarray:
    """The transform of real numbers along several axes, of which the last one is halved."""
    return _run_of_real("rfftn", x, s, axes, norm)


def irfftn(x: Any, /, s: Any = None, axes: Any = None, norm: str | None = None) -> ndarray:
    """The inverse of `rfftn`."""
    return _run_to_real("irfftn", x, s, axes, norm)


def rfft2(
    x: Any, s: Any = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> ndarray:
    """The transform of real numbers along two axes, of which the last one is halved."""
    return _run_of_real("rfft2", x, s, axes, norm)


def irfft2(
    x: Any, s: Any = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> ndarray:
    """The inverse of `rfft2`."""
    return _run_to_real("irfft2", x, s, axes, norm)


def hfft(x: Any, /, n: int | None = None, axis: int = -1, norm: str | None = None) -> ndarray:
    """The (real) transform of numbers that mirror each other, of which the first half is given."""
    return irfft(conj(x), n, axis, other_norm("hfft", norm))


def ihfft(x: Any, /, n: int | None = None, axis: int = -1, norm: str | None = None) -> ndarray:
    """The inverse of `hfft`."""
    return conj(rfft(x, n, axis, other_norm("ihfft", norm)))


# Frequencies


def _frequencies(function: Callable[..., Any], n: int, d: float, dtype: Any) -> ndarray:
    found = function(n, d)
    return new(leaf(found if dtype is None else found.astype(as_dtype(dtype).numpy)))


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> ndarray:
    """The frequencies of the elements of a transform of `n` samples, `d` apart."""
    return _frequencies(np.fft.fftfreq, n, d, dtype)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> ndarray:
    """The frequencies of the elements of `rfft` of `n` samples, `d` apart."""
    return _frequencies(np.fft.rfftfreq, n, d, dtype)


def fftshift(x: Any, /, *, axes: Any = None) -> ndarray:
    """Frequency 0 moved to the middle."""
    return _shifted(x, axes, 1)


def ifftshift(x: Any, /, *, axes: Any = None) -> ndarray:
    """The inverse of `fftshift`."""
    return _shifted(x, axes, -1)


def _shifted(x: Any, axes: Any, sign: int) -> Any:
    x = array_like(x)
    over = tuple(range(x.ndim)) if axes is None else (axes,) if isinstance(axes, int) else axes
    by = tuple([sign * (x.shape[a] // 2) for a in over])
    return roll(x, by, tuple(over)) if over else x.clone()
