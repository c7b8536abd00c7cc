"""What numeric operations share: dtype rules, references, and short forms of `defop`.

Half-precision types are computed in float32 and rounded once, by the references as by the
compiled kernels.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from weft.ir import dtype as types
from weft.ir.dtype import DType, as_dtype
from weft.ops.declaration.defop import defop
from weft.ops.declaration.face import Face
from weft.ops.declaration.fact import PLAIN, Facts
from weft.ops.declaration.gradient_mark import NO_GRADIENT
from weft.ops.declaration.lowering import Elementwise
from weft.ops.declaration.op import Array, Case, Op
from weft.ops.declaration.rule import (
    arithmetic,
    bits,
    boolean,
    broadcast_shape,
    floating,
    inexact,
    integer,
    numeric,
    ordered,
    same,
    sum_like,
)  # fmt: skip

Rule = Callable[..., Any]

FLOATS: Final = (types.float32, types.float64, types.float16, types.bfloat16)
INTEGERS: Final = (
    types.int32, types.int64, types.int8, types.int16, types.uint8, types.uint32, types.uint64,
    types.uint16,
)  # fmt: skip
HALVES: Final = (types.float16, types.bfloat16)
COMPLEX: Final = (types.complex64, types.complex128)
_BY_KIND: Final = {
    "f": FLOATS, "i": INTEGERS[:4], "u": INTEGERS[4:], "b": (types.bool_,), "c": COMPLEX,
}  # fmt: skip
_DTYPE_RULES: Final = {
    "f": floating, "iu": integer, "iuf": numeric, "biu": bits, "b": boolean, "biuf": ordered,
    "fc": inexact, "iufc": arithmetic, "biufc": same,
}  # fmt: skip


# Element types
def to_bool(kinds: str = "iuf") -> Callable[..., DType]:
    """The `dtype` rule of operations on one dtype of the given kinds with boolean output."""

    def rule(*dtypes: DType, **_: Any) -> DType:
        _DTYPE_RULES[kinds](*dtypes)
        return types.bool_

    return rule


def dtypes_of(kinds: str) -> tuple[DType, ...]:
    """All dtypes of the given kinds, the most used first."""
    order = [kind for kind in "fiubc" if kind in kinds]
    return tuple(dtype for kind in order for dtype in _BY_KIND[kind])


# References
def widened(function: Rule) -> Rule:
    """A reference that computes half precision in float32 without warnings; returns an array."""

    @functools.wraps(function)
    def run(*arrays: Array, **attrs: Any) -> Array:
        plain = [a.dtype for a in arrays if not a.dtype.hasobject]
        half = next((d for d in plain if as_dtype(d) in HALVES), None)
        wide = [a if half is None or a.dtype != half else a.astype(np.float32) for a in arrays]
        with np.errstate(all="ignore"):
            y = np.asarray(function(*wide, **attrs))
            return y.astype(half) if half is not None and y.dtype == np.float32 else y

    _PLAIN[run] = function
    return run


_PLAIN: Final[dict[Rule, Rule]] = {}


def unwidened(reference: Rule) -> Rule:
    """The function inside a `widened` reference; equal to it except for half precision."""
    return _PLAIN.get(reference, reference)


# Cotangents
def flat(g: Any, y: Any, *xs: Any, **_: Any) -> tuple[None, ...]:
    """The vjp of a piecewise constant function: no cotangents."""
    return (None,) * len(xs)


def fitted(vjp: Rule) -> Rule:
    """A vjp whose cotangents are summed over the axes along which the inputs broadcast."""

    @functools.wraps(vjp)
    def run(g: Any, y: Any, *xs: Any, **attrs: Any) -> tuple[Any, ...]:
        cotangents = vjp(g, y, *xs, **attrs)
        pairs = zip(cotangents, xs, strict=False)
        return tuple(None if c is None else sum_like(c, x) for c, x in pairs)

    return run


# Cases
UNARY_SHAPES: Final = (((3, 5),), ((),), ((2, 0),), ((67,),))
BINARY_SHAPES: Final = (
    ((3, 5), (3, 5)), ((4, 3), (3,)), ((2, 1), (1, 3)), ((), (5,)), ((0, 3), (3,)),
    ((2, 3, 35), (3, 1)),
)  # fmt: skip
SPECIALS: Final = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e-30, 1e30, -1e30, np.inf, -np.inf, np.nan)


def draw(
    shape: Sequence[int], dtype: DType, low: float = -3, high: float = 3, seed: int = 0
) -> Array:
    """Uniform numbers in [low, high), deterministic; limits are clamped to the dtype's."""
    text = f"{tuple(shape)} {dtype} {low} {high} {seed}"
    if dtype.is_complex:
        parts = [draw(shape, dtype.real, low, high, seed + i) for i in (0, 1)]
        return np.asarray(parts[0] + 1j * parts[1], dtype.numpy)
    rng = np.random.default_rng(zlib.crc32(text.encode()))
    if dtype is types.bool_:
        return rng.integers(0, 2, shape).astype(np.bool_)
    if dtype.is_integer:
        limits = np.iinfo(dtype.numpy)
        first = max(int(np.ceil(low)), limits.min)
        last = min(max(int(high), first + 1), limits.max)
        return np.asarray(rng.integers(first, last, shape, dtype=dtype.numpy, endpoint=True))
    return np.asarray(rng.uniform(low, high, shape)).astype(dtype.numpy)


def over(
    dims: Sequence[Sequence[Sequence[int]]],
    dtypes: Iterable[DType],
    low: float = -3,
    high: float = 3,
    *,
    attrs: Mapping[str, Any] | None = None,
    **options: Any,
) -> Iterator[Case]:
    """Cases over input shapes: all of `dims` for the first dtype, only the first for the others."""
    for i, dtype in enumerate(dtypes):
        for group in dims if i == 0 else dims[:1]:
            inputs = tuple(draw(s, dtype, low, high, seed=n) for n, s in enumerate(group))
            yield Case(inputs, attrs or {}, **options)


def special(arity: int, dtypes: Iterable[DType], values: Sequence[float]) -> Iterator[Case]:
    """A case per floating-point dtype: all combinations of special values, as a grid."""
    for dtype in dtypes:
        if not dtype.is_floating:
            continue
        with np.errstate(over="ignore"):
            array = np.array(values).astype(dtype.numpy)
        sides = [array.reshape([-1] + [1] * (arity - 1 - n)) for n in range(arity)]
        yield Case(tuple(sides), differentiate=False)


# Short forms
def elementwise(
    name: str,
    lower: Rule,
    reference: Rule,
    vjp: Rule,
    *,
    inputs: str = "x",
    kinds: str = "f",
    dtype: Callable[..., DType] | None = None,
    attrs: Mapping[str, Any] | None = None,
    low: float = -3,
    high: float = 3,
    specials: Sequence[float] = SPECIALS,
    variants: Sequence[Mapping[str, Any]] = (),
    fast: Rule | None = None,
    facts: Facts = PLAIN,
    face: Face | None = None,
    **options: Any,
) -> Op:
    """Declare an elementwise operation on one or two inputs of one dtype.

    Args:
        lower: how one element is computed, from the emitter and the inputs.
        kinds: the dtypes that it takes, as letters of `DType.kind`.
        low, high: the range in which its gradients are checked.
        specials: further values at which compiled code must equal the reference.
        variants: attributes other than the defaults, for the cases.
        options: further fields of the cases, such as `rtol`.
    """
    arity = len(inputs.split())
    dims = UNARY_SHAPES if arity == 1 else BINARY_SHAPES

    def cases() -> Iterator[Case]:
        yield from over(dims, dtypes_of(kinds), low, high, **options)
        yield from special(arity, dtypes_of(kinds), specials)
        for variant in variants:
            yield from over(dims[:1], dtypes_of(kinds), low, high, attrs=variant, **options)

    return defop(
        name,
        inputs=inputs,
        dtype=dtype or _DTYPE_RULES[kinds],
        shape=broadcast_shape,
        reference=widened(reference),
        vjp=vjp if arity == 1 or vjp is NO_GRADIENT else fitted(vjp),
        lower=Elementwise(lower),
        cases=cases,
        attrs=attrs,
        partial=True,
        fast=fast,
        facts=facts,
        face=face,
    )


def binary(
    name: str, lower: Rule, reference: Rule, vjp: Rule, kinds: str = "iuf", **more: Any
) -> Op:
    """Declare an elementwise operation `name(x, y)`; cotangents are summed back to the inputs."""
    return elementwise(name, lower, reference, vjp, inputs="x y", kinds=kinds, **more)
