"""Arrays from data, shapes and numbers, 32 bits by default."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from weft import numpy as _plain
from weft.eager.tensor.dispatch import cast, wrap
from weft.eager.tensor.handle import Handle
from weft.jax.array import (
    ALL,
    NUMBERS,
    Array,
    Weak,
    canonical,
    given,
    jaxed,
    of_array,
    of_number,
    strong,
    taken,
)
from weft.jax.config import refuse_given, without_effect

plain: Any = _plain

__all__ = [
    "arange", "array", "asarray", "astype", "copy", "empty", "empty_like", "eye", "frombuffer",
    "fromfunction", "full", "full_like", "geomspace", "identity", "indices", "linspace",
    "logspace", "ones", "ones_like", "tri", "zeros", "zeros_like",
]  # fmt: skip


def array(
    object: Any, dtype: Any = None, copy: bool = True, order: str | None = "K", ndmin: int = 0,
    *, device: Any = None, out_sharding: Any = None,
) -> Array:  # fmt: skip
    """An array of numbers, nested lists (which may hold arrays), or another library's array.

    >>> array([1, 2.5]), array(3)
    (Array([1. , 2.5], dtype=float32), Array(3, dtype=int32, weak_type=True))
    """
    without_effect("array", copy=copy, order=order, device=device)
    refuse_given("array", out_sharding=out_sharding)
    if dtype is not None and isinstance(object, np.ndarray | np.generic | int | float):
        object = np.asarray(object, canonical(dtype).numpy)
    x = _of(object)
    if dtype is not None:
        x = astype(x, dtype)
    return x.reshape((1,) * (ndmin - x.ndim) + tuple(x.shape)) if x.ndim < ndmin else x


def _of(x: Any) -> Any:
    if type(x) in NUMBERS:
        return of_number(x)
    x = taken(x)
    if isinstance(x, list | tuple):
        if _holds_arrays(x):
            return strong(_assembled(_inside(x)))
        x = np.asarray(x)
    if isinstance(x, Array):
        return x
    return of_array(x if isinstance(x, np.ndarray) else np.asarray(x))


def _holds_arrays(x: Any) -> bool:
    return isinstance(x, Handle) or (isinstance(x, list | tuple) and any(map(_holds_arrays, x)))


def _inside(x: Any) -> Any:
    """Nested lists with numbers beside arrays as arrays."""
    return [_inside(v) if isinstance(v, list | tuple) else _of(v) for v in x]


_assembled = jaxed(plain.asarray, ALL)


def asarray(
    a: Any, dtype: Any = None, order: Any = None, *, copy: bool | None = None, device: Any = None,
    out_sharding: Any = None,
) -> Array:  # fmt: skip
    """The same without a copy where none is needed."""
    return array(a, dtype, bool(copy), order, device=device, out_sharding=out_sharding)


def astype(x: Any, dtype: Any, /, *, copy: bool = False, device: Any = None) -> Array:
    """An array as another dtype."""
    without_effect("astype", copy=copy, device=device)
    x, kind = strong(_of(x)), canonical(dtype or float)
    if x.dtype.is_complex and not kind.is_complex:
        x = plain.real(x)
    return wrap(cast(x.lazy, kind), x)


def copy(a: Any, order: Any = None) -> Array:
    """The array: none changes."""
    return array(a, order=order)


def _shaped(make: Callable[..., Any]) -> Callable[..., Array]:
    def made(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
        without_effect(make.__name__, device=device)
        refuse_given(make.__name__, out_sharding=out_sharding)
        return given(make(_sizes(shape), canonical(dtype or float)))

    made.__name__ = made.__qualname__ = make.__name__
    made.__doc__ = make.__doc__
    return made


def _sizes(shape: Any) -> Any:
    if isinstance(shape, Sequence):
        return tuple([int(n) for n in shape])
    found = np.asarray(shape)
    return tuple(found.tolist()) if found.ndim else (int(found),)


zeros: Final = _shaped(plain.zeros)
ones: Final = _shaped(plain.ones)
empty: Final = zeros


def _typed(a: Any) -> Any:
    """What has a shape and a dtype: an array is made where nothing else tells."""
    return a if hasattr(a, "shape") and hasattr(a, "dtype") else _of(a)


def _alike(make: Callable[..., Any]) -> Callable[..., Array]:
    def made(a: Any, dtype: Any = None, shape: Any = None, *, device: Any = None) -> Any:
        x = _typed(a)
        found = make(x.shape if shape is None else shape, dtype or x.dtype, device=device)
        return wrap(found.lazy, x) if dtype is None and isinstance(x, Weak) else found

    made.__name__ = made.__qualname__ = f"{make.__name__}_like"
    made.__doc__ = f"`{make.__name__}` of the shape and dtype of an array."
    return made


zeros_like: Final = _alike(zeros)
ones_like: Final = _alike(ones)
empty_like: Final = zeros_like


def full(shape: Any, fill_value: Any, dtype: Any = None, *, device: Any = None) -> Array:
    """An array filled with a number; weak if the number and the missing dtype are."""
    value = array(fill_value, dtype, device=device)
    found = given(plain.broadcast_to(strong(value), _sizes(shape)))
    return wrap(found.lazy, value) if isinstance(value, Weak) else found


def full_like(
    a: Any, fill_value: Any, dtype: Any = None, shape: Any = None, *, device: Any = None
) -> Array:
    """An array filled with a number, of the shape and dtype of an array."""
    x = _typed(a)
    return full(x.shape if shape is None else shape, fill_value, dtype or x.dtype, device=device)


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = None, **_: Any) -> Array:
    """Ones on the `k`-th diagonal, zeros elsewhere."""
    return given(plain.eye(int(N), M if M is None else int(M), k, canonical(dtype or float)))


def identity(n: int, dtype: Any = None) -> Array:
    """The identity matrix."""
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Array:
    """Ones on and below the `k`-th diagonal."""
    return given(plain.tri(N, M, k, canonical(dtype or float)))


def arange(start: Any, stop: Any = None, step: Any = None, dtype: Any = None, **_: Any) -> Array:
    """Numbers from `start` (0) up to but without `stop`, in steps."""
    ends = [x.item() if hasattr(x, "item") else x for x in (start, stop, step)]
    first, last = (0, ends[0]) if stop is None else ends[:2]
    pace = 1 if step is None else ends[2]
    kind = canonical(dtype) if dtype is not None else canonical(np.result_type(first, last, pace))
    return of_array(np.arange(first, last, pace).astype(kind.numpy))


def _spaced(make: Callable[..., Any]) -> Callable[..., Any]:
    face = jaxed(make)

    def made(
        start: Any, stop: Any, num: int = 50, endpoint: bool = True, *args: Any,
        dtype: Any = None, axis: int = 0, **options: Any,
    ) -> Any:  # fmt: skip
        ends = [strong(_of(x)) for x in (start, stop)]
        known = [x if x.dtype.is_inexact else astype(x, float) for x in ends]
        retstep = options.pop("retstep", False)
        found = face(*known, int(num), endpoint, *args, **options)
        if axis and found.ndim > 1:
            found = plain.moveaxis(found, 0, axis)
        if dtype is not None:
            found = _rounded_down(found, dtype) if make is plain.linspace else astype(found, dtype)
        if retstep:
            return found, (known[1] - known[0]) / max(num - 1 if endpoint else num, 1)
        return found

    made.__name__ = made.__qualname__ = make.__name__
    made.__doc__ = make.__doc__
    return made


def _rounded_down(x: Any, dtype: Any) -> Any:
    """Numbers of a type, as `linspace` of NumPy gives integers."""
    return astype(plain.floor(x) if canonical(dtype).is_integer else x, dtype)


linspace: Final = _spaced(plain.linspace)
logspace: Final = _spaced(plain.logspace)
geomspace: Final = _spaced(plain.geomspace)


def indices(dimensions: Any, dtype: Any = None, sparse: bool = False) -> Any:
    """For each axis of a shape, the index along it at every position."""
    found = np.indices(tuple(dimensions), canonical(dtype or int).numpy, sparse)
    return given(found if not sparse else tuple(found))


def frombuffer(buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0) -> Array:
    """An array of the bytes of an object."""
    return of_array(np.frombuffer(buffer, canonical(dtype).numpy, count, offset))


def fromfunction(function: Any, shape: Any, *, dtype: Any = float, **kwargs: Any) -> Any:
    """A function called with the indices of a shape."""
    return function(*indices(shape, dtype), **kwargs)
