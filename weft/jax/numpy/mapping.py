"""Functions of functions; indices; what NumPy computes from values; functions of two."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Final

import ml_dtypes
import numpy as np

import weft.numpy as _plain
from weft import special
from weft.eager.functions.elementwise import integer
from weft.eager.tensor.dispatch import recorded
from weft.errors import ArgumentError, OutOfRangeError, ShapeError
from weft.func.tree import flatten
from weft.func.vmap import vmap
from weft.jax.array import ALL, Array, canonical, given, jaxed, of_array
from weft.jax.config import refuse_given
from weft.jax.host import several
from weft.jax.numpy import creation
from weft.jax.numpy.common import (
    array_of,
    dtype_promoted,
    floating_of,
    public,
    values_of,
    where_of,
    without_gradient,
)
from weft.jax.numpy.reduction import all
from weft.ops.elementwise import bits
from weft.ops.indexing import search

plain: Any = _plain

__all__: list[str] = []

# Functions of functions


@public
def vectorize(
    pyfunc: Callable[..., Any], *, excluded: Any = (), signature: str | None = None
) -> Any:
    """A function of elements, or of arrays by a signature, mapped over leading axes by `vmap`."""
    cores = _cores(signature)

    @functools.wraps(pyfunc)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        fixed = [i for i in range(len(args)) if i in excluded]
        xs = [x if i in fixed else array_of(x) for i, x in enumerate(args)]
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


@public
def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any
) -> Any:
    """A function of vectors along an axis, for all others."""
    x = plain.moveaxis(array_of(arr), axis, -1)
    run: Callable[..., Any] = functools.partial(lambda v: func1d(v, *args, **kwargs))
    for _ in range(x.ndim - 1):
        run = vmap(run, randomness="different")
    found = run(x)
    rank = found.ndim - (x.ndim - 1)
    lead = range(x.ndim - 1, found.ndim)
    at = axis % x.ndim
    return given(plain.moveaxis(found, tuple(lead), tuple(range(at, at + rank))) if rank else found)


@public
def apply_over_axes(func: Callable[..., Any], a: Any, axes: Any) -> Any:
    """A reduction over axes, one after the other, which stay."""
    x = array_of(a)
    for axis in [axes] if isinstance(axes, int) else axes:
        found = func(x, axis)
        x = found if found.ndim == x.ndim else plain.expand_dims(found, axis=axis)
    return x


@public
def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Array:
    """For each element, the function whose condition is true, the last one true winning."""
    x, conditions = array_of(x), list(condlist)
    functions = list(funclist)
    found = creation.zeros_like(x)
    if len(functions) == len(conditions) + 1:
        last = functions.pop()
        found = last(x, *args, **kw) if isinstance(last, Callable) else creation.full_like(x, last)
    for c, f in zip(conditions, functions, strict=True):
        found = where_of(c, f(x, *args, **kw) if isinstance(f, Callable) else f, found)
    return found.astype(x.dtype)


frompyfunc = np.frompyfunc
ufunc = np.ufunc
__all__ += ["frompyfunc", "ufunc"]


# Indices


@public
def unravel_index(indices: Any, shape: Any) -> Any:
    """The index along each axis for positions in a flattened shape."""
    x = array_of(indices)
    dims = (shape,) if isinstance(shape, int) else tuple(shape)
    found = given(_unraveled(x, sizes=tuple(map(int, dims))))
    return found if isinstance(found, tuple) else (found,)


@public
def ravel_multi_index(multi_index: Any, dims: Any, mode: str = "raise", order: str = "C") -> Array:
    """Positions in a flattened shape for an index along each axis."""
    sizes = tuple(map(int, dims)) if order == "C" else tuple(map(int, dims))[::-1]
    parts = dtype_promoted(*multi_index)
    parts = parts if order == "C" else parts[::-1]
    if mode == "clip":
        parts = [plain.clip(p, 0, n - 1) for p, n in zip(parts, sizes, strict=True)]
    elif mode == "wrap":
        parts = [p % n for p, n in zip(parts, sizes, strict=True)]
    return given(_raveled(*parts, sizes=sizes))


_unraveled = recorded(search.unraveled, differentiable=False)
_raveled = recorded(search.raveled, differentiable=False)


@public
def tril_indices_from(arr: Any, k: int = 0) -> Any:
    """The indices of a matrix's lower triangle."""
    rows, columns = array_of(arr).shape[-2:]
    return given(np.tril_indices(rows, k, columns))


@public
def triu_indices_from(arr: Any, k: int = 0) -> Any:
    """The indices of a matrix's upper triangle."""
    rows, columns = array_of(arr).shape[-2:]
    return given(np.triu_indices(rows, k, columns))


@public
def diag_indices_from(arr: Any) -> Any:
    """The indices of the diagonal of an array with equal axes."""
    x = array_of(arr)
    if len(set(x.shape)) != 1 or x.ndim < 2:
        raise ShapeError.here(f"diag_indices_from: expected 2 or more equal axes, got {x.shape}")
    return given(np.diag_indices(x.shape[0], x.ndim))


@public
def lexsort(keys: Any, axis: int = -1) -> Array:
    """The indices that sort by the last key, then by the one before it, and so on."""
    found = [array_of(x) for x in keys]
    return given(_lexical(*found, axis=axis % found[0].ndim))


_lexical = recorded(search.lexical_order, differentiable=False)


@public
def argpartition(a: Any, kth: int, axis: int | None = -1) -> Array:
    """Indices that put the `kth` element in its place: those that sort the array."""
    x = array_of(a)
    x, axis = (plain.ravel(x), 0) if axis is None else (x, axis)
    if not -x.shape[axis] <= kth < x.shape[axis]:
        raise OutOfRangeError.here(f"argpartition: kth={kth} is outside {x.shape[axis]} elements")
    return given(plain.argsort(x, axis=axis)).astype(int)


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


_OF_SHAPES: Final = (
    "frexp", "histogram2d", "histogramdd", "packbits", "sort_complex", "spacing", "unpackbits",
)  # fmt: skip
"""Functions whose results have shapes that no value decides: they may be traced."""


def _when_run(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """A function of NumPy's arrays, called when the program runs."""
    leaves, tree = flatten((args, kwargs))
    arrays = [x for x in leaves if isinstance(x, Array)]
    trees: list[Any] = []

    def call(*values: Any) -> tuple[Any, ...]:
        rest = iter(values)
        whole, named = tree.build([next(rest) if isinstance(x, Array) else x for x in leaves])
        found, result = flatten(_counted(function, whole, named))
        trees[:] = [result]
        return tuple([np.asarray(y, canonical(y.dtype).numpy) for y in found])

    kinds = [
        (canonical(y.dtype), y.shape)
        for y in call(*[np.zeros(x.shape, x.dtype.numpy) for x in arrays])
    ]
    return trees[0].build(several(call, arrays, kinds, False))


def _counted(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """What a function gives; a histogram of unweighted counts is one of integers."""
    found = function(*args, **kwargs)
    if not function.__name__.startswith("histogram"):
        return found
    told = inspect.signature(function).bind(*args, **kwargs).arguments
    weighted = told.get("weights") is not None or told.get("density")
    return found if weighted else (found[0].astype(np.int64), *found[1:])


def _by_numpy(name: str) -> Callable[..., Any]:
    """A function whose results follow from the values of its arguments, which are read."""
    function = getattr(np, name)

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        for option in ("size", "fill_value", "out_sharding"):
            kwargs.pop(option, None) if kwargs.get(option) is None else None
        if name in _OF_SHAPES:
            return _when_run(function, args, kwargs)
        found = function(
            *[values_of(x, name) for x in args],
            **{k: values_of(v, name) for k, v in kwargs.items()},
        )
        found = given(tuple(found) if type(found) is list else found)
        return without_gradient(found, name, args, kwargs)

    return run


for _name in (
    "array_repr", "array_str", "bartlett", "blackman", "diag_indices", "einsum_path",
    "fromfile", "fromiter", "fromstring", "hamming", "hanning", "histogram2d",
    "histogramdd", "intersect1d", "ix_", "kaiser", "load", "mask_indices", "packbits",
    "poly", "polydiv", "save", "savez", "setdiff1d", "setxor1d", "sort_complex", "spacing",
    "unpackbits", "frexp",
):  # fmt: skip
    globals()[_name] = _by_numpy(_name)
    __all__ += [_name]
for _name in ["get_printoptions", "iterable", "printoptions", "set_printoptions"]:
    globals()[_name] = getattr(np, _name)
    __all__ += [_name]
for _name in (
    "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3",
    "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
    "float8_e8m0fnu", "int2", "int4", "uint2", "uint4", "int1", "uint1",
):  # fmt: skip
    if hasattr(ml_dtypes, _name):
        globals()[_name] = getattr(ml_dtypes, _name)
        __all__ += [_name]
ComplexWarning = np.exceptions.ComplexWarning
__all__.append("ComplexWarning")


# Of functions of tensors


@public
def bitwise_count(x: Any, /) -> Array:
    """How many bits are 1, of absolute values."""
    x = array_of(x)
    return given(_bit_count(plain.abs(x) if x.dtype.kind == "i" else x))


_bit_count = recorded(bits.bit_count, differentiable=False)


@public
def array_equiv(a1: Any, a2: Any) -> Array:
    """Whether two arrays are equal when broadcast."""
    x, y = dtype_promoted(a1, a2)
    try:
        np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return creation.array(False)
    return all(given(plain.equal(x, y)))


@public
def gcd(x1: Any, x2: Any) -> Array:
    """Greatest common divisors."""
    return given(integer.gcd(*dtype_promoted(x1, x2)))


@public
def lcm(x1: Any, x2: Any) -> Array:
    """Least common multiples."""
    return given(integer.lcm(*dtype_promoted(x1, x2)))


@public
def ldexp(x1: Any, x2: Any, /) -> Array:
    """`x1 * 2 ** x2`."""
    return given(integer.ldexp(floating_of(x1), array_of(x2)))


@public
def bincount(x: Any, weights: Any = None, minlength: int = 0, *, length: int | None = None) -> Any:
    """How often each integer from 0 on occurs; the first `length` of them, if it is given."""
    if length is None:
        return jaxed(plain.bincount)(array_of(x), weights, minlength)
    added = None if weights is None else array_of(weights)
    whole = creation.zeros(length, int if added is None else added.dtype)
    return whole.at[array_of(x).clip(0)].add(1 if added is None else added, mode="drop")


@public
def divmod(x1: Any, x2: Any, /) -> tuple[Array, Array]:
    """Quotients rounded down, and remainders."""
    x, y = dtype_promoted(x1, x2)
    return x // y, x % y


@public
def modf(x: Any, /, out: Any = None) -> tuple[Array, Array]:
    """Fractional and whole parts."""
    refuse_given("modf", out=out)
    x = floating_of(x)
    whole = given(plain.trunc(x))
    return x - whole, whole


@public
def i0(x: Any) -> Array:
    """The modified Bessel function of order 0."""
    return given(special.i0(floating_of(x)))


def _of_floats(name: str) -> Callable[..., Any]:
    function = getattr(plain, name)
    return jaxed(lambda x: function(floating_of(x)), ALL)


for _name in ["rint", "fabs", "reciprocal"]:
    globals()[_name] = _of_floats(_name)
    __all__ += [_name]


@public
def heaviside(x1: Any, x2: Any, /) -> Array:
    """0, `x2` or 1 for negative numbers, 0 and positive ones."""
    x, y = dtype_promoted(x1, x2)
    return given(plain.heaviside(floating_of(x), floating_of(y)))


@public
def allclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Array:
    """Whether all elements are close."""
    return all(
        given(plain.isclose(*map(floating_of, (a, b)), rtol=rtol, atol=atol, equal_nan=equal_nan))
    )


@public
def roots(p: Any, *, strip_zeros: bool = True) -> Array:
    """The roots of a polynomial; they are read, so the function cannot be traced."""
    values = values_of(array_of(p), "roots")
    if not strip_zeros and values.size and values[0] == 0:
        raise ArgumentError.here("roots: strip_zeros=False: expected p[0] != 0")
    return without_gradient(of_array(np.roots(values).astype(complex)), "roots", p)


@public
def around(a: Any, decimals: int = 0, out: Any = None) -> Array:
    """Rounded values."""
    refuse_given("around", out=out)
    return jaxed(plain.round)(array_of(a), decimals)
