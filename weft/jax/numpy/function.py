"""Functions of `jax.numpy` that take other arguments than `weft.numpy`'s, or that it lacks."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Final

import ml_dtypes
import numpy as np

import weft.numpy as plain
from weft import special
from weft.eager.functions import api
from weft.eager.functions.elementwise import integer
from weft.eager.functions.reduction import statistic
from weft.errors import ArgumentError, nameless
from weft.func.vmap import vmap
from weft.jax.array import Array, as_array, given, jaxed, of_array, strong, taken
from weft.jax.numpy import creation, kind
from weft.numpy import linalg

__all__: list[str] = []


def _public(function: Any) -> Any:
    __all__.append(function.__name__)
    return function


def _array(x: Any) -> Any:
    return strong(creation.asarray(x))


def _floating(x: Any) -> Any:
    x = _array(x)
    return x if x.dtype.is_inexact else x.astype(float)


# Reductions with `where` and `initial`

_NEUTRAL: Final = {"sum": 0, "prod": 1, "any": False, "all": True, "max": None, "min": None}


def _reduction(name: str) -> Callable[..., Any]:
    face = jaxed(getattr(plain, name), True)

    def reduced(
        a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False,
        initial: Any = None, where: Any = None, promote_integers: bool = True, **options: Any,
    ) -> Any:  # fmt: skip
        if isinstance(a, list | tuple):
            got = type(a).__name__
            text = (
                f"{name} requires ndarray or scalar arguments, got <class '{got}'> at position 0."
            )
            raise nameless(TypeError(text))
        axis = tuple(axis) if isinstance(axis, list) else axis
        if where is not None:
            neutral = _NEUTRAL[name] if initial is None else initial
            if neutral is None:
                raise nameless(ArgumentError(f"{name}: where= needs an initial value"))
            a = _where(where, a, neutral)
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


_where = jaxed(plain.where, True)
_COMBINED: Final = {
    "sum": lambda x, y: x + y, "prod": lambda x, y: x * y, "max": jaxed(plain.maximum),
    "min": jaxed(plain.minimum),
}  # fmt: skip
sum, prod, max, min = (_reduction(n) for n in ("sum", "prod", "max", "min"))
any, all = _reduction("any"), _reduction("all")
amax, amin = max, min
__all__ += ["all", "amax", "amin", "any", "max", "min", "prod", "sum"]


def _spread(name: str) -> Callable[..., Any]:
    face = jaxed(getattr(plain, name), True)

    def spread(
        a: Any, axis: Any = None, dtype: Any = None, out: Any = None, *args: Any,
        keepdims: bool = False, where: Any = None, **options: Any,
    ) -> Any:  # fmt: skip
        if isinstance(a, list | tuple):
            got = type(a).__name__
            text = (
                f"{name} requires ndarray or scalar arguments, got <class '{got}'> at position 0."
            )
            raise nameless(TypeError(text))
        if args:
            options["ddof"] = args[0]
        if where is not None:
            a = _where(where, _floating(a), 0)
            weights = creation.astype(where, float)
            count = sum(weights + 0 * a, axis, keepdims=True)
            mean_ = sum(a * weights, axis, keepdims=True) / count
            if name == "mean":
                return mean_ if keepdims else plain.squeeze(mean_, _axes(axis, mean_.ndim))
            free = count - options.get("ddof", 0)
            found = sum(weights * (a - mean_) ** 2, axis, keepdims=keepdims)
            found = found / (free if keepdims else plain.squeeze(free, _axes(axis, free.ndim)))
            return found if name == "var" else plain.sqrt(found)
        axis = tuple(axis) if isinstance(axis, list) else axis
        return face(
            a if dtype is None else creation.astype(a, dtype), axis, keepdims=keepdims, **options
        )

    spread.__name__ = spread.__qualname__ = name
    spread.__doc__ = getattr(plain, name).__doc__
    return spread


def _axes(axis: Any, rank: int) -> Any:
    return tuple(range(rank)) if axis is None else axis


mean, std, var = (_spread(n) for n in ("mean", "std", "var"))
__all__ += ["mean", "std", "var"]

# Choices


@_public
def where(
    condition: Any, x: Any = None, y: Any = None, /, *, size: Any = None, fill_value: Any = None
) -> Any:
    """`x` where the condition is true, `y` elsewhere; without them, the indices."""
    if x is None and y is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    return _where(_array(condition), x, y)


def _filled(found: Any, size: int, fill: Any, axis: int = 0) -> Any:
    """Results whose number depends on values, cut or filled to a size."""
    count = found.shape[axis]
    if count >= size:
        return plain.take(found, np.arange(size), axis)
    pads = [(0, size - count if i == axis else 0) for i in range(found.ndim)]
    return plain.pad(found, pads, constant_values=0 if fill is None else fill)


@_public
def nonzero(a: Any, *, size: Any = None, fill_value: Any = None) -> Any:
    """The indices of nonzero elements: a vector for each axis.

    With a `size`, the function may be traced.
    """
    x = _array(a)
    if size is None:
        return given(plain.nonzero(x))
    flat = plain.ravel(x) != 0
    rank = plain.cumsum(flat) - 1
    n = x.size
    places = plain.where(flat, rank, size)
    order = creation.full((int(size) + 1,), n, int).at[places].set(creation.arange(n), mode="clip")
    order = order[: int(size)]
    fills = fill_value if isinstance(fill_value, tuple) else (fill_value,) * x.ndim
    parts = unravel_index(plain.minimum(order, _larger(n - 1, 0)), x.shape)
    pairs = zip(parts, fills, strict=True)
    return tuple([_where(order < n, p, 0 if f is None else f) for p, f in pairs])


def _larger(a: int, b: int) -> int:
    """The larger of two sizes."""
    return a if a > b else b


@_public
def argwhere(a: Any, *, size: Any = None, fill_value: Any = None) -> Array:
    """The indices of nonzero elements: a row for each."""
    return given(plain.stack(nonzero(a, size=size, fill_value=fill_value), -1))


@_public
def flatnonzero(a: Any, *, size: Any = None, fill_value: Any = None) -> Array:
    """The positions of nonzero elements in the flattened array."""
    return nonzero(plain.ravel(_array(a)), size=size, fill_value=fill_value)[0]


@_public
def unique(
    ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
    axis: int | None = None, *, equal_nan: bool = True, size: int | None = None,
    fill_value: Any = None, sorted: bool = True,
) -> Any:  # fmt: skip
    """The distinct values, sorted; they are read, so the function cannot be traced."""
    found = given(plain.unique(_array(ar), return_index, return_inverse, return_counts, axis))
    if size is None:
        return found
    parts = found if isinstance(found, tuple) else (found,)
    first = _filled(parts[0], size, parts[0].min() if fill_value is None else fill_value)
    return (first, *parts[1:]) if isinstance(found, tuple) else first


@_public
def clip(
    arr: Any = None,
    /,
    min: Any = None,
    max: Any = None,
    *,
    a: Any = None,
    a_min: Any = None,
    a_max: Any = None,
) -> Array:
    """Values within limits."""
    x = _array(a if arr is None else arr)
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    return jaxed(plain.clip)(x, low, high)


@_public
def take(
    a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str | None = None,
    unique_indices: bool = False, indices_are_sorted: bool = False, fill_value: Any = None,
) -> Array:  # fmt: skip
    """The elements at indices along an axis; NaN, or the smallest number, outside it."""
    x, places = _array(a), _array(indices)
    if axis is None:
        x, axis = plain.ravel(x), 0
    size = x.shape[axis]
    if mode == "wrap":
        places = places % size
    found = given(plain.take(x, plain.clip(places, -size, size - 1), axis))
    if mode in ("clip", "wrap") or (places.lazy.array is not None and _within(places.array, size)):
        return found
    outside = (places < -size) | (places >= size)
    wide = outside.reshape((*outside.shape, *(1,) * (x.ndim - axis % x.ndim - 1)))
    fill = (
        np.nan
        if x.dtype.is_inexact
        else int(np.iinfo(x.dtype.numpy).min)
        if x.dtype.kind == "i"
        else 0
    )
    return _where(wide, fill if fill_value is None else fill_value, found)


def _within(x: Any, size: int) -> bool:
    return bool(((x >= -size) & (x < size)).all())


@_public
def take_along_axis(
    arr: Any, indices: Any, axis: int | None = -1, mode: Any = None, fill_value: Any = None
) -> Array:
    """The elements at indices along an axis, position by position on the others."""
    x, places = _array(arr), _array(indices)
    if axis is None:
        x, axis = plain.ravel(x), 0
    shape = list(
        np.broadcast_shapes(
            *[(*s[: axis % x.ndim], 1, *s[axis % x.ndim + 1 :]) for s in (x.shape, places.shape)]
        )
    )
    at = axis % x.ndim
    x = plain.broadcast_to(x, tuple([*shape[:at], x.shape[at], *shape[at + 1 :]]))
    places = plain.broadcast_to(places, tuple([*shape[:at], places.shape[at], *shape[at + 1 :]]))
    return given(plain.take_along_axis(x, places, axis=at))


@_public
def concatenate(arrays: Any, axis: int | None = 0, dtype: Any = None) -> Array:
    """Arrays joined along an axis."""
    parts = list(arrays)
    found = jaxed(plain.concat)([_array(x) for x in parts], axis=axis)
    return found if dtype is None else creation.astype(found, dtype)


concat = concatenate
__all__.append("concat")


@_public
def stack(arrays: Any, axis: int = 0, out: Any = None, dtype: Any = None) -> Array:
    """Arrays joined along a new axis."""
    found = given(plain.stack(dtype_promoted(*arrays), axis=axis))
    return found if dtype is None else creation.astype(found, dtype)


def dtype_promoted(*xs: Any) -> list[Any]:
    """Arrays of their common dtype."""
    return kind.promoted(*[creation.asarray(x) for x in xs])


def _stacked(name: str) -> Callable[..., Any]:
    face = getattr(plain, name)

    def joined(tup: Any, dtype: Any = None) -> Any:
        return given(face(dtype_promoted(*tup)))

    joined.__name__ = joined.__qualname__ = name
    joined.__doc__ = face.__doc__
    return joined


vstack, hstack, dstack, column_stack = map(_stacked, ("vstack", "hstack", "dstack", "column_stack"))
__all__ += ["column_stack", "dstack", "hstack", "vstack"]


@_public
def repeat(
    a: Any,
    repeats: Any,
    axis: int | None = None,
    *,
    total_repeat_length: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Elements repeated along an axis."""
    counts = repeats if isinstance(repeats, int) else np.asarray(repeats)
    counts = int(counts) if isinstance(counts, np.ndarray) and counts.size == 1 else counts
    return given(plain.repeat(_array(a), counts, axis=axis))


@_public
def squeeze(a: Any, axis: Any = None) -> Array:
    """The array without axes of size 1."""
    x = as_array(a)
    if axis is None:
        axis = tuple([i for i, n in enumerate(x.shape) if n == 1])
    return given(plain.squeeze(x, tuple(axis) if isinstance(axis, list) else axis))


@_public
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Array:
    """Whether two arrays have the same shape and elements."""
    x, y = _array(a1), _array(a2)
    if x.shape != y.shape:
        return creation.array(False)
    same = x == y
    return all(same | (plain.isnan(x) & plain.isnan(y)) if equal_nan else same)


@_public
def einsum(
    subscripts: Any,
    /,
    *operands: Any,
    optimize: Any = "auto",
    precision: Any = None,
    preferred_element_type: Any = None,
    **_: Any,
) -> Array:
    """Sums of products by indices."""
    if not isinstance(subscripts, str):
        return given(plain.einsum(*_lettered(subscripts, *operands)))
    return given(plain.einsum(subscripts, *dtype_promoted(*operands)))


def _lettered(*given_: Any) -> list[Any]:
    """The form with lists of numbers as the form with letters."""
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    arrays, axes = list(given_[0::2]), list(given_[1::2])
    out = arrays.pop() if len(arrays) > len(axes) else None
    name = ",".join(["".join([letters[i] for i in row]) for row in axes])
    name += "" if out is None else "->" + "".join([letters[i] for i in out])
    return [name, *dtype_promoted(*arrays)]


def _product(name: str) -> Callable[..., Any]:
    face = jaxed(getattr(plain, name))

    def product(
        a: Any,
        b: Any,
        *args: Any,
        precision: Any = None,
        preferred_element_type: Any = None,
        **options: Any,
    ) -> Any:
        found = face(*dtype_promoted(a, b), *args, **options)
        return found if preferred_element_type is None else found.astype(preferred_element_type)

    product.__name__ = product.__qualname__ = name
    product.__doc__ = getattr(plain, name).__doc__
    return product


dot, matmul, inner, vdot, tensordot, outer, vecdot = (
    _product(n) for n in ("dot", "matmul", "inner", "vdot", "tensordot", "outer", "vecdot")
)
__all__ += ["dot", "inner", "matmul", "outer", "tensordot", "vdot", "vecdot"]


@_public
def matvec(x1: Any, x2: Any, /) -> Array:
    """Matrices times vectors."""
    return matmul(x1, _array(x2)[..., None])[..., 0]


@_public
def vecmat(x1: Any, x2: Any, /) -> Array:
    """Conjugated vectors times matrices."""
    return matmul(plain.conj(_array(x1))[..., None, :], x2)[..., 0, :]


# Functions of functions


@_public
def vectorize(
    pyfunc: Callable[..., Any], *, excluded: Any = (), signature: str | None = None
) -> Any:
    """A function of elements, or of arrays by a signature, mapped over leading axes by `vmap`."""
    cores = _cores(signature)

    @functools.wraps(pyfunc)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        fixed = [i for i in range(len(args)) if i in excluded]
        xs = [x if i in fixed else _array(x) for i, x in enumerate(args)]
        ranks = [len(c) for c in cores] if cores is not None else [0] * len(args)
        free = [i for i in range(len(args)) if i not in fixed]
        leads = {i: xs[i].shape[: xs[i].ndim - ranks[i]] for i in free}
        whole = np.broadcast_shapes(*leads.values())
        for i in free:
            xs[i] = plain.broadcast_to(xs[i], whole + xs[i].shape[len(leads[i]) :])

        def call(*rest: Any) -> Any:
            parts = iter(rest)
            return pyfunc(*[x if i in fixed else next(parts) for i, x in enumerate(args)], **kwargs)

        run: Callable[..., Any] = call
        for _ in whole:
            run = vmap(run, randomness="different")
        return given(run(*[xs[i] for i in free]))

    return mapped


def _cores(signature: str | None) -> list[tuple[str, ...]] | None:
    if signature is None:
        return None
    inputs = signature.split("->")[0].replace(" ", "")
    parts = [p for p in inputs.strip("()").split("),(")]
    return [tuple([n for n in p.split(",") if n]) for p in parts]


@_public
def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any
) -> Any:
    """A function of vectors along an axis, for all others."""
    x = plain.moveaxis(_array(arr), axis, -1)
    run: Callable[..., Any] = functools.partial(lambda v: func1d(v, *args, **kwargs))
    for _ in range(x.ndim - 1):
        run = vmap(run, randomness="different")
    found = run(x)
    rank = found.ndim - (x.ndim - 1)
    lead = range(x.ndim - 1, found.ndim)
    at = axis % x.ndim
    return given(plain.moveaxis(found, tuple(lead), tuple(range(at, at + rank))) if rank else found)


@_public
def apply_over_axes(func: Callable[..., Any], a: Any, axes: Any) -> Any:
    """A reduction over axes, one after the other, which stay."""
    x = _array(a)
    for axis in [axes] if isinstance(axes, int) else axes:
        found = func(x, axis)
        x = found if found.ndim == x.ndim else plain.expand_dims(found, axis=axis)
    return x


@_public
def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Array:
    """For each element, the function whose condition is true, the last one true winning."""
    x, conditions = _array(x), list(condlist)
    functions = list(funclist)
    found = creation.zeros_like(x)
    if len(functions) == len(conditions) + 1:
        last = functions.pop()
        found = last(x, *args, **kw) if callable(last) else creation.full_like(x, last)
    for c, f in zip(conditions, functions, strict=True):
        found = _where(c, f(x, *args, **kw) if callable(f) else f, found)
    return found.astype(x.dtype)


frompyfunc = np.frompyfunc
ufunc = np.ufunc
__all__ += ["frompyfunc", "ufunc"]

# Indices


@_public
def unravel_index(indices: Any, shape: Any) -> Any:
    """The index along each axis for positions in a flattened shape."""
    x = _array(indices)
    dims = (shape,) if isinstance(shape, int) else tuple(shape)
    strides = [math.prod(dims[i + 1 :]) for i in range(len(dims))]
    return tuple([(x // s) % n for s, n in zip(strides, dims, strict=True)])


@_public
def ravel_multi_index(multi_index: Any, dims: Any, mode: str = "raise", order: str = "C") -> Array:
    """Positions in a flattened shape for an index along each axis."""
    sizes = tuple(dims) if order == "C" else tuple(dims)[::-1]
    parts = [_array(p) for p in multi_index]
    parts = parts if order == "C" else parts[::-1]
    if mode == "clip":
        parts = [plain.clip(p, 0, n - 1) for p, n in zip(parts, sizes, strict=True)]
    elif mode == "wrap":
        parts = [p % n for p, n in zip(parts, sizes, strict=True)]
    found = parts[0]
    for p, n in zip(parts[1:], sizes[1:], strict=True):
        found = found * n + p
    return found


class _Grid:
    def __init__(self, dense: bool) -> None:
        self.dense = dense

    def __getitem__(self, key: Any) -> Any:
        found = (np.mgrid if self.dense else np.ogrid)[key]
        return given(found if self.dense else [np.asarray(x) for x in found])


mgrid, ogrid = _Grid(True), _Grid(False)
s_ = np.s_
index_exp = np.index_exp
__all__ += ["index_exp", "mgrid", "ogrid", "s_"]


def _by_numpy(name: str) -> Callable[..., Any]:
    """A function whose results follow from the values of its arguments, which are read."""
    function = getattr(np, name)

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        for option in ("size", "fill_value", "out_sharding"):
            kwargs.pop(option, None) if kwargs.get(option) is None else None
        found = function(*map(_values, args), **{k: _values(v) for k, v in kwargs.items()})
        return given(tuple(found) if type(found) is list else found)

    return run


def _values(x: Any) -> Any:
    if isinstance(x, Array):
        return x.array
    return type(x)(map(_values, x)) if type(x) in (list, tuple) else x


for _name in [
    "argpartition",
    "array_repr",
    "array_str",
    "bartlett",
    "bitwise_count",
    "blackman",
    "block",
    "compress",
    "diag_indices",
    "diag_indices_from",
    "einsum_path",
    "extract",
    "fromfile",
    "fromiter",
    "fromstring",
    "hamming",
    "hanning",
    "histogram2d",
    "histogram_bin_edges",
    "histogramdd",
    "intersect1d",
    "ix_",
    "kaiser",
    "lexsort",
    "load",
    "mask_indices",
    "packbits",
    "poly",
    "polydiv",
    "save",
    "savez",
    "setdiff1d",
    "setxor1d",
    "sort_complex",
    "spacing",
    "tril_indices_from",
    "trim_zeros",
    "triu_indices_from",
    "union1d",
    "unpackbits",
    "frexp",
]:
    globals()[_name] = _by_numpy(_name)
    __all__.append(_name)
for _name in ["get_printoptions", "iterable", "printoptions", "set_printoptions"]:
    globals()[_name] = getattr(np, _name)
    __all__.append(_name)
for _name in [
    "float4_e2m1fn",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "int2",
    "int4",
    "uint2",
    "uint4",
    "int1",
    "uint1",
]:
    if hasattr(ml_dtypes, _name):
        globals()[_name] = getattr(ml_dtypes, _name)
        __all__.append(_name)
ComplexWarning = np.exceptions.ComplexWarning
__all__.append("ComplexWarning")

# Of functions of tensors


@_public
def gcd(x1: Any, x2: Any) -> Array:
    """Greatest common divisors."""
    return given(integer.gcd(*dtype_promoted(x1, x2)))


@_public
def lcm(x1: Any, x2: Any) -> Array:
    """Least common multiples."""
    return given(integer.lcm(*dtype_promoted(x1, x2)))


@_public
def ldexp(x1: Any, x2: Any, /) -> Array:
    """`x1 * 2 ** x2`."""
    return given(integer.ldexp(_floating(x1), _array(x2)))


@_public
def bincount(x: Any, weights: Any = None, minlength: int = 0, *, length: int | None = None) -> Any:
    """How often each integer from 0 on occurs; the first `length` of them, if it is given."""
    if length is None:
        return jaxed(plain.bincount)(_array(x), weights, minlength)
    added = 1 if weights is None else _array(weights)
    whole = creation.zeros(length, int if weights is None else added.dtype)
    return whole.at[_array(x)].add(added, mode="drop")


@_public
def divmod(x1: Any, x2: Any, /) -> tuple[Array, Array]:
    """Quotients rounded down, and remainders."""
    x, y = dtype_promoted(x1, x2)
    return x // y, x % y


@_public
def modf(x: Any, /, out: Any = None) -> tuple[Array, Array]:
    """Fractional and whole parts."""
    x = _floating(x)
    whole = given(plain.trunc(x))
    return x - whole, whole


@_public
def i0(x: Any) -> Array:
    """The modified Bessel function of order 0."""
    return given(special.i0(_floating(x)))


def _of_floats(name: str) -> Callable[..., Any]:
    function = getattr(plain, name)
    return jaxed(lambda x: function(_floating(x)), True)


for _name in ["rint", "fabs", "reciprocal"]:
    globals()[_name] = _of_floats(_name)
    __all__.append(_name)


@_public
def heaviside(x1: Any, x2: Any, /) -> Array:
    """0, `x2` or 1 for negative numbers, 0 and positive ones."""
    x, y = dtype_promoted(x1, x2)
    return given(plain.heaviside(_floating(x), _floating(y)))


@_public
def allclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Array:
    """Whether all elements are close."""
    return all(
        given(plain.isclose(*map(_floating, (a, b)), rtol=rtol, atol=atol, equal_nan=equal_nan))
    )


@_public
def roots(p: Any, *, strip_zeros: bool = True) -> Array:
    """The roots of a polynomial; they are read, so the function cannot be traced."""
    return of_array(np.roots(_values(_array(p))).astype(complex))


@_public
def around(a: Any, decimals: int = 0, out: Any = None) -> Array:
    """Rounded values."""
    return jaxed(plain.round)(_array(a), decimals)


# NaN


def _without_nan(name: str) -> Callable[..., Any]:
    """A reduction of what is no NaN."""
    reduce = globals()[name.removeprefix("nan")]

    def reduced(
        a: Any, axis: Any = None, *args: Any, keepdims: bool = False, **options: Any
    ) -> Any:
        x = _array(a)
        if not x.dtype.is_inexact:
            return reduce(x, axis, *args, keepdims=keepdims, **options)
        bad = plain.isnan(x)
        limit = {"nanmax": -np.inf, "nanmin": np.inf}.get(name, _NEUTRAL.get(name[3:]))
        if limit is None:
            return reduce(x, axis, *args, keepdims=keepdims, where=~bad, **options)
        found = reduce(_where(bad, limit, x), axis, *args, keepdims=keepdims, **options)
        if name in ("nanmax", "nanmin"):
            return _where(all(bad, axis, keepdims=keepdims), np.nan, found)
        return found

    reduced.__name__ = reduced.__qualname__ = name
    reduced.__doc__ = f"`{name.removeprefix('nan')}` of the elements that are no NaN."
    return reduced


nanmax, nanmin, nanprod, nanvar, nanstd, nansum, nanmean = (
    _without_nan(n)
    for n in ("nanmax", "nanmin", "nanprod", "nanvar", "nanstd", "nansum", "nanmean")
)
__all__ += ["nanmax", "nanmean", "nanmin", "nanprod", "nanstd", "nansum", "nanvar"]


@_public
def nanargmax(a: Any, axis: int | None = None, keepdims: bool = False) -> Array:
    """The index of the largest element that is no NaN."""
    return jaxed(plain.argmax)(
        _where(plain.isnan(_floating(a)), -np.inf, _floating(a)), axis, keepdims=keepdims
    )


@_public
def nanargmin(a: Any, axis: int | None = None, keepdims: bool = False) -> Array:
    """The index of the smallest element that is no NaN."""
    return jaxed(plain.argmin)(
        _where(plain.isnan(_floating(a)), np.inf, _floating(a)), axis, keepdims=keepdims
    )


@_public
def nancumsum(a: Any, axis: int | None = None, dtype: Any = None) -> Array:
    """Running sums in which NaN count as 0."""
    return jaxed(plain.cumsum)(_where(plain.isnan(_array(a)), 0, _array(a)), axis)


@_public
def nancumprod(a: Any, axis: int | None = None, dtype: Any = None) -> Array:
    """Running products in which NaN count as 1."""
    return jaxed(plain.cumprod)(_where(plain.isnan(_array(a)), 1, _array(a)), axis)


@_public
def nanquantile(
    a: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False, **_: Any
) -> Array:
    """Quantiles of the elements that are no NaN."""
    x = _floating(a)
    x, axis = (plain.ravel(x), 0) if axis is None else (x, axis)
    return given(
        api.nanquantile(x, _array(q).astype(x.dtype), axis, keepdim=keepdims, interpolation=method)
    )


@_public
def nanpercentile(a: Any, q: Any, axis: Any = None, **options: Any) -> Array:
    """`nanquantile` in percent."""
    return nanquantile(a, _array(q) / 100, axis, **options)


@_public
def nanmedian(a: Any, axis: Any = None, *, keepdims: bool = False, **_: Any) -> Array:
    """The median of the elements that are no NaN."""
    return nanquantile(a, 0.5, axis, keepdims=keepdims)


# Statistics


@_public
def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
) -> Array:
    """The covariance of variables in rows."""
    x = plain.atleast_2d(_floating(m))
    x = x if rowvar or x.shape[0] == 1 else x.T
    if y is not None:
        other = plain.atleast_2d(_floating(y))
        x = concatenate([x, other if rowvar or other.shape[0] == 1 else other.T], 0)
    free = (0 if bias else 1) if ddof is None else ddof
    options = {
        k: _array(v) for k, v in (("fweights", fweights), ("aweights", aweights)) if v is not None
    }
    return given(statistic.cov(x, correction=free, **options))


@_public
def corrcoef(x: Any, y: Any = None, rowvar: bool = True) -> Array:
    """Correlations of variables in rows."""
    c = cov(x, y, rowvar)
    if not c.ndim:
        return c / c
    d = plain.sqrt(plain.diagonal(c))
    return given(plain.clip(c / d[:, None] / d[None, :], -1, 1))


@_public
def histogram(
    a: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: Any = None
) -> tuple[Array, Array]:
    """How many elements lie in each bin, and the edges."""
    x = plain.ravel(_floating(a))
    if isinstance(bins, int):
        low, high = (x.min(), x.max()) if range is None else range
        edges = creation.linspace(low, high, bins + 1)
    else:
        edges = _floating(bins)
    count = edges.shape[0] - 1
    places = plain.searchsorted(edges, x, side="right") - 1
    places = plain.where(x == edges[-1], count - 1, places)
    inside = (x >= edges[0]) & (x <= edges[-1])
    w = creation.ones_like(x) if weights is None else plain.ravel(_floating(weights))
    found = creation.zeros(count + 1, w.dtype).at[plain.where(inside, places, count)].add(w)[:count]
    if density:
        found = found / (found.sum() * diff_of(edges))
    return found, edges


def diff_of(x: Any) -> Any:
    """Differences of neighbors."""
    return x[1:] - x[:-1]


@_public
def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Array:
    """Values of a piecewise linear function with the points (xp, fp)."""
    x, xs, ys = (_floating(v) for v in (x, xp, fp))
    if period is not None:
        x, xs = x % period, xs % period
        turn = plain.argsort(xs)
        xs, ys = xs[turn], ys[turn]
        xs = concatenate([xs[-1:] - period, xs, xs[:1] + period])
        ys = concatenate([ys[-1:], ys, ys[:1]])
    i = plain.clip(plain.searchsorted(xs, x, side="right"), 1, xs.shape[0] - 1)
    x0, x1, y0, y1 = xs[i - 1], xs[i], ys[i - 1], ys[i]
    step = x1 - x0
    safe = _where(step == 0, 1, step)
    found = _where(step == 0, y0, y0 + (x - x0) / safe * (y1 - y0))
    if period is not None:
        return found
    found = _where(x < xs[0], ys[0] if left is None else left, found)
    return _where(x > xs[-1], ys[-1] if right is None else right, found)


@_public
def convolve(
    a: Any, v: Any, mode: str = "full", *, precision: Any = None, preferred_element_type: Any = None
) -> Array:
    """The discrete convolution of two vectors."""
    return _convolved(a, v, mode, turned=True)


@_public
def correlate(
    a: Any,
    v: Any,
    mode: str = "valid",
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """The discrete correlation of two vectors."""
    return _convolved(a, v, mode, turned=False)


def _convolved(a: Any, v: Any, mode: str, turned: bool) -> Any:
    x, w = dtype_promoted(a, v)
    kind = x.dtype
    x, w = _floating(x), _floating(w)
    backwards = not turned and len(x) < len(w)
    w = w if turned else w[::-1]
    if len(x) < len(w):
        x, w = w, x
    n = len(w)
    pads = {"full": (n - 1, n - 1), "same": (n // 2, n - 1 - n // 2), "valid": (0, 0)}
    if mode not in pads:
        raise ArgumentError.here(f"convolve: expected mode full, same or valid, got {mode!r}")
    low, high = pads[mode]
    if mode == "same":
        low, high = n - 1 - (n - 1) // 2, (n - 1) // 2
    whole = plain.pad(x, ((low, high),))
    rows = np.arange(len(x) + low + high - n + 1)[:, None] + np.arange(n)[None, :]
    found = given(matmul(plain.take(whole, rows, 0), w[::-1]))
    del backwards
    return found if kind.is_inexact else plain.round(found).astype(kind)


# Polynomials: coefficients from the highest power down


@_public
def polyval(p: Any, x: Any, *, unroll: int = 16) -> Array:
    """The values of a polynomial."""
    c, x = dtype_promoted(p, x)
    found = creation.zeros_like(x)
    for i in range(c.shape[0]):
        found = found * x + c[i]
    return found


def _padded(a: Any, b: Any) -> Any:
    x, y = dtype_promoted(plain.atleast_1d(_array(a)), plain.atleast_1d(_array(b)))
    n = x.shape[0] if x.shape[0] > y.shape[0] else y.shape[0]
    return [plain.pad(v, ((n - v.shape[0], 0),)) for v in (x, y)]


@_public
def polyadd(a1: Any, a2: Any) -> Array:
    """The sum of two polynomials."""
    x, y = _padded(a1, a2)
    return x + y


@_public
def polysub(a1: Any, a2: Any) -> Array:
    """The difference of two polynomials."""
    x, y = _padded(a1, a2)
    return x - y


@_public
def polymul(a1: Any, a2: Any, *, trim_leading_zeros: bool = False) -> Array:
    """The product of two polynomials."""
    return convolve(plain.atleast_1d(_array(a1)), plain.atleast_1d(_array(a2)))


@_public
def polyder(p: Any, m: int = 1) -> Array:
    """The derivative of a polynomial."""
    c = _array(p)
    for _ in range(m):
        c = c[:-1] * np.arange(c.shape[0] - 1, 0, -1).astype(c.dtype.numpy)
    return c


@_public
def polyint(p: Any, m: int = 1, k: Any = None) -> Array:
    """The integral of a polynomial."""
    c = _floating(p)
    constants = np.broadcast_to(np.atleast_1d(0 if k is None else np.asarray(k)), (m,))
    for i in range(m):
        c = concatenate(
            [
                c / np.arange(c.shape[0], 0, -1).astype(c.dtype.numpy),
                creation.full((1,), float(constants[i])),
            ]
        )
    return c


@_public
def polyfit(
    x: Any,
    y: Any,
    deg: int,
    rcond: Any = None,
    full: bool = False,
    w: Any = None,
    cov: bool = False,
) -> Any:
    """The polynomial of a degree that fits points best."""
    if full or cov:
        raise ArgumentError.here("polyfit: expected full=False and cov=False")
    x, y = _floating(x), _floating(y)
    table = given(plain.stack([x**k for k in range(deg, -1, -1)], -1))
    if w is not None:
        table, y = (
            table * _array(w)[:, None],
            y * (_array(w) if y.ndim == 1 else _array(w)[:, None]),
        )
    scale = plain.sqrt((table * table).sum(0))
    found = linalg_lstsq(table / scale, y)
    return given(found / (scale if y.ndim == 1 else scale[:, None]))


def linalg_lstsq(a: Any, b: Any) -> Any:
    """The least-squares solution of a table of full rank."""
    return matmul(given(linalg.pinv(a)), b)


# Insertion and removal


@_public
def delete(
    arr: Any, obj: Any, axis: int | None = None, *, assume_unique_indices: bool = False
) -> Array:
    """The array without entries along an axis."""
    x = _array(arr)
    x, axis = (plain.ravel(x), 0) if axis is None else (x, axis)
    kept = np.delete(np.arange(x.shape[axis]), _values(obj))
    return given(plain.take(x, kept, axis))


@_public
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Array:
    """The array with entries inserted along an axis."""
    x = _array(arr)
    x, axis = (plain.ravel(x), 0) if axis is None else (x, axis)
    return given(np.insert(_values(x), _values(taken(obj)), _values(_array(values)), axis))


@_public
def resize(a: Any, new_shape: Any) -> Array:
    """The elements, repeated, in another shape."""
    x = plain.ravel(_array(a))
    dims = (new_shape,) if isinstance(new_shape, int) else tuple(new_shape)
    if not x.shape[0]:
        return creation.zeros(dims, x.dtype)
    return given(plain.take(x, np.arange(math.prod(dims)) % x.shape[0], 0).reshape(dims))


@_public
def diagflat(v: Any, k: int = 0) -> Array:
    """A matrix with the elements on a diagonal."""
    return given(plain.diag(plain.ravel(_array(v)), k))


@_public
def fill_diagonal(a: Any, val: Any, wrap: bool = False, *, inplace: bool = True) -> Array:
    """A copy with another diagonal; `inplace` must be False."""
    if inplace:
        raise NotImplementedError(
            "JAX arrays are immutable, must use inplace=False. fill_diagonal returns a new array"
        )
    x = _array(a)
    i = np.arange(x.shape[0] if x.shape[0] < x.shape[1] else x.shape[1])
    return x.at[tuple([i] * x.ndim)].set(val)


@_public
def put(a: Any, ind: Any, v: Any, mode: Any = None, *, inplace: bool = True) -> Array:
    """A copy with values at positions of the flattened array; `inplace` must be False."""
    if inplace:
        raise NotImplementedError("JAX arrays are immutable, must use inplace=False")
    x = _array(a)
    return (
        plain.ravel(x)
        .at[plain.ravel(_array(ind))]
        .set(resize(v, _array(ind).size))
        .reshape(x.shape)
    )


@_public
def place(arr: Any, mask: Any, vals: Any, *, inplace: bool = True) -> Array:
    """A copy with values where a mask is true; `inplace` must be False."""
    if inplace:
        raise NotImplementedError("JAX arrays are immutable, must use inplace=False")
    found = np.array(_values(_array(arr)))
    np.place(found, _values(_array(mask)), _values(_array(vals)))
    return of_array(found)


@_public
def put_along_axis(
    arr: Any, indices: Any, values: Any, axis: int | None, inplace: bool = True, *, mode: Any = None
) -> Array:
    """A copy with values at indices along an axis; `inplace` must be False."""
    if inplace:
        raise NotImplementedError("JAX arrays are immutable, must use inplace=False")
    x, places = _array(arr), _array(indices)
    if axis is None:
        x, axis = plain.ravel(x), 0
    grid = list(np.ogrid[tuple([slice(n) for n in places.shape])])
    grid[axis] = places
    return x.at[tuple(grid)].set(values)


@_public
def unwrap(p: Any, discont: Any = None, axis: int = -1, period: float = 2 * math.pi) -> Array:
    """Phases without jumps of more than half a period."""
    x = plain.moveaxis(_floating(p), axis, -1)
    steps = x[..., 1:] - x[..., :-1]
    half = period / 2
    wrapped = (steps + half) % period - half
    wrapped = _where((wrapped == -half) & (steps > 0), half, wrapped)
    fix = _where(plain.abs(steps) < (half if discont is None else discont), 0, wrapped - steps)
    total = plain.pad(plain.cumsum(fix, axis=-1), [(0, 0)] * (x.ndim - 1) + [(1, 0)])
    return given(plain.moveaxis(x + total, -1, axis))
