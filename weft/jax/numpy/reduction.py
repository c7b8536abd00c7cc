"""Reductions, with `where` and `initial`, and of what is no NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

import weft.numpy as _plain
from weft.eager.functions import api
from weft.eager.tensor.dispatch import recorded
from weft.errors import ArgumentError, nameless
from weft.jax.array import Array, as_array, given, jaxed
from weft.jax.config import refuse_given
from weft.jax.numpy import creation
from weft.jax.numpy.common import array_of, axes_of, floating_of, public, where_of
from weft.ops.reduction import spread

plain: Any = _plain

__all__: list[str] = []
_mean_where, _variance_where = map(recorded, (spread.mean_where, spread.variance_where))

# Reductions with `where` and `initial`

_NEUTRAL: Final = {"sum": 0, "prod": 1, "any": False, "all": True, "max": None, "min": None}


def _reduction(name: str) -> Callable[..., Any]:
    face = jaxed(getattr(plain, name))

    def reduced(
        a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False,
        initial: Any = None, where: Any = None, promote_integers: bool = True, **options: Any,
    ) -> Any:  # fmt: skip
        if isinstance(a, list | tuple):
            got = type(a).__name__
            text = (
                f"{name} requires ndarray or scalar arguments, got <class '{got}'> at position 0."
            )
            raise TypeError(text)
        axis = tuple(axis) if isinstance(axis, list) else axis
        if where is not None:
            neutral = _NEUTRAL[name] if initial is None else initial
            if neutral is None:
                raise nameless(ArgumentError(f"{name}: where= needs an initial value"))
            a = where_of(where, a, neutral)
        if dtype is not None:
            a = creation.astype(a, dtype)
        elif name in ("sum", "prod") and as_array(a).dtype.size < 4:
            dtype = as_array(a).dtype if as_array(a).dtype.is_inexact else None
        found = face(a, axis, keepdims=keepdims, **options)
        if initial is not None and name in _COMBINED:
            found = _COMBINED[name](found, initial)
        return found if dtype is None else creation.astype(found, dtype)

    reduced.__name__ = reduced.__qualname__ = name
    reduced.__doc__ = getattr(plain, name).__doc__
    return reduced


_COMBINED: Final = {
    "sum": lambda x, y: x + y, "prod": lambda x, y: x * y, "max": jaxed(plain.maximum),
    "min": jaxed(plain.minimum),
}  # fmt: skip
sum, prod, max, min = (_reduction(n) for n in ("sum", "prod", "max", "min"))
any, all = _reduction("any"), _reduction("all")
amax, amin = max, min
__all__ += ["all", "amax", "amin", "any", "max", "min", "prod", "sum"]


def _running(name: str) -> Callable[..., Any]:
    face = jaxed(getattr(plain, name))

    def running(a: Any, axis: int | None = None, dtype: Any = None) -> Array:
        x = array_of(a)
        dtype = x.dtype if dtype is None and x.dtype.kind in "iu" else dtype
        return face(x, axis, dtype=dtype)

    running.__name__ = running.__qualname__ = name
    running.__doc__ = getattr(plain, name).__doc__
    return running


cumsum, cumprod = _running("cumsum"), _running("cumprod")
__all__ += ["cumprod", "cumsum"]


def _moment(name: str) -> Callable[..., Any]:
    face = jaxed(getattr(plain, name))

    def moment(
        a: Any, axis: Any = None, dtype: Any = None, out: Any = None, *args: Any,
        keepdims: bool = False, where: Any = None, **options: Any,
    ) -> Any:  # fmt: skip
        if isinstance(a, list | tuple):
            got = type(a).__name__
            text = (
                f"{name} requires ndarray or scalar arguments, got <class '{got}'> at position 0."
            )
            raise TypeError(text)
        if args:
            options["ddof"] = args[0]
        if (correction := options.pop("correction", None)) is not None:
            options["ddof"] = correction
        about = options.pop("mean", None)
        refuse_given(name, out=out, mean=None if about is None else [about])  # 0, too
        a = a if dtype is None else creation.astype(a, dtype)
        if where is not None:
            x = floating_of(a)
            kept = plain.broadcast_to(creation.asarray(where, bool), x.shape)
            axes = axes_of(axis, x.ndim)
            chosen = {"axes": axes if isinstance(axes, tuple) else (axes,), "keepdims": keepdims}
            if name == "mean":
                return given(_mean_where(x, kept, **chosen))
            found = given(_variance_where(x, kept, ddof=options.get("ddof", 0), **chosen))
            return found if name == "var" else plain.sqrt(found)
        axis = tuple(axis) if isinstance(axis, list) else axis
        found = face(a, axis, keepdims=keepdims, **options)
        return found if dtype is None else creation.astype(found, dtype)

    moment.__name__ = moment.__qualname__ = name
    moment.__doc__ = getattr(plain, name).__doc__
    return moment


mean, std, var = (_moment(n) for n in ("mean", "std", "var"))
__all__ += ["mean", "std", "var"]


# NaN


def _without_nan(name: str) -> Callable[..., Any]:
    """A reduction of what is no NaN."""
    reduce = globals()[name.removeprefix("nan")]

    def reduced(
        a: Any, axis: Any = None, *args: Any, keepdims: bool = False, **options: Any
    ) -> Any:
        x = array_of(a)
        if not x.dtype.is_inexact:
            return reduce(x, axis, *args, keepdims=keepdims, **options)
        bad = plain.isnan(x)
        limit = {"nanmax": -np.inf, "nanmin": np.inf}.get(name, _NEUTRAL.get(name[3:]))
        if limit is None:
            return reduce(x, axis, *args, keepdims=keepdims, where=~bad, **options)
        found = reduce(where_of(bad, limit, x), axis, *args, keepdims=keepdims, **options)
        if name in ("nanmax", "nanmin"):
            return where_of(all(bad, axis, keepdims=keepdims), np.nan, found)
        return found

    reduced.__name__ = reduced.__qualname__ = name
    reduced.__doc__ = f"`{name.removeprefix('nan')}` of the elements that are no NaN."
    return reduced


nanmax, nanmin, nanprod, nanvar, nanstd, nansum, nanmean = (
    _without_nan(n)
    for n in ("nanmax", "nanmin", "nanprod", "nanvar", "nanstd", "nansum", "nanmean")
)
__all__ += ["nanmax", "nanmean", "nanmin", "nanprod", "nanstd", "nansum", "nanvar"]


@public
def nanargmax(a: Any, axis: int | None = None, keepdims: bool = False) -> Array:
    """The index of the largest element that is no NaN; -1 where all are."""
    return _index(plain.argmax, a, -np.inf, axis, keepdims)


@public
def nanargmin(a: Any, axis: int | None = None, keepdims: bool = False) -> Array:
    """The index of the smallest element that is no NaN; -1 where all are."""
    return _index(plain.argmin, a, np.inf, axis, keepdims)


def _index(of: Any, a: Any, limit: float, axis: int | None, keepdims: bool) -> Array:
    x = array_of(a)
    if not x.dtype.is_inexact:
        return jaxed(of)(x, axis, keepdims=keepdims)
    bad = plain.isnan(x)
    found = jaxed(of)(where_of(bad, limit, x), axis, keepdims=keepdims)
    return where_of(all(bad, axis, keepdims=keepdims), -1, found)


@public
def nancumsum(a: Any, axis: int | None = None, dtype: Any = None) -> Array:
    """Running sums in which NaN count as 0."""
    x = array_of(a)
    return cumsum(where_of(plain.isnan(x), 0, x), axis, dtype)


@public
def nancumprod(a: Any, axis: int | None = None, dtype: Any = None) -> Array:
    """Running products in which NaN count as 1."""
    x = array_of(a)
    return cumprod(where_of(plain.isnan(x), 1, x), axis, dtype)


@public
def nanquantile(
    a: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False, **_: Any
) -> Array:
    """Quantiles of the elements that are no NaN."""
    x = floating_of(a)
    x, axis = (plain.ravel(x), 0) if axis is None else (x, axis)
    return given(
        api.nanquantile(
            x, array_of(q).astype(x.dtype), axis, keepdim=keepdims, interpolation=method
        )
    )


@public
def nanpercentile(a: Any, q: Any, axis: Any = None, **options: Any) -> Array:
    """`nanquantile` in percent."""
    return nanquantile(a, array_of(q) / 100, axis, **options)


@public
def nanmedian(a: Any, axis: Any = None, *, keepdims: bool = False, **_: Any) -> Array:
    """The median of the elements that are no NaN."""
    return nanquantile(a, 0.5, axis, keepdims=keepdims)


for _name in ("all", "any", "cumprod", "cumsum", "max", "mean", "min", "prod", "std", "sum", "var"):
    setattr(Array, _name, globals()[_name])
