"""Casts between dtypes, and bitwise operations on integers and booleans."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from weft.errors import DTypeError
from weft.ir import dtype as types
from weft.ir.dtype import DTYPES, NAMED, DType, as_dtype
from weft.ops.declaration import NO_GRADIENT, Array, Case, Elementwise, Face, Op, catalogue, defop
from weft.ops.declaration.attribute import REQUIRED
from weft.ops.declaration.fact import CHEAP
from weft.ops.declaration.numeric import HALVES, Rule, binary, draw, elementwise
from weft.ops.declaration.rule import same_shape


def _saturated(x: Array, to: DType) -> Array:
    limits = np.iinfo(to.numpy)
    whole = np.trunc(x)
    above, below = whole >= float(limits.max) + 1.0, whole < float(limits.min)
    inside = np.where(np.isnan(whole) | above | below, 0, whole).astype(to.numpy)
    return np.where(above, limits.max, np.where(below, limits.min, inside)).astype(to.numpy)


def _cast_dtype(x: DType, dtype: Any) -> DType:
    to = as_dtype(dtype)
    if x.is_complex and not to.is_complex and to is not types.bool_:
        raise DTypeError(
            f"expected a complex type or bool for {x}, got {to}: take real(x) or abs(x)"
        )
    return to


def _cast_reference(x: Array, dtype: DType) -> Array:
    if as_dtype(x.dtype) in HALVES:
        x = x.astype(np.float32)
    if dtype is types.bool_:
        return np.not_equal(x, 0)
    with np.errstate(all="ignore"):
        if dtype.is_integer and x.dtype.kind == "f":
            return _saturated(x, dtype)
        if dtype in HALVES and x.dtype.kind != "f":
            x = x.astype(np.float32)  # rounded to float32 and on store, as in kernels
        return x.astype(dtype.numpy)


def _cast_vjp(g: Any, y: Any, x: Any, dtype: DType) -> tuple[Any, ...]:
    if not (x.dtype.is_inexact and y.dtype.is_inexact):
        return (None,)
    if g.dtype.is_complex and not x.dtype.is_complex:
        g = catalogue.real(g)
    return (cast(g, dtype=x.dtype),)


_EDGES: Final = (
    0.0, -0.5, 0.5, 1.5, -1.5, 127.5, 128.0, -129.0, 255.0, 256.0, 65504.0, 2.0**31, -(2.0**31),
    2.0**32, 2.0**63, -(2.0**63), 2.0**64, 1e30, -1e30, np.inf, -np.inf, np.nan,
)  # fmt: skip


def _cast_cases() -> Iterator[Case]:
    for source in NAMED.values():
        for to in NAMED.values():
            if source.is_complex and not to.is_complex and to is not types.bool_:
                continue
            yield Case((draw((19,), source, -100, 300),), {"dtype": to})
            if source.is_floating:
                with np.errstate(over="ignore"):
                    edges = np.array(_EDGES).astype(source.numpy)
                yield Case((edges,), {"dtype": to}, differentiate=False)


cast = defop(
    "cast",
    inputs="x",
    attrs={"dtype": REQUIRED},
    dtype=_cast_dtype,
    shape=same_shape,
    reference=_cast_reference,
    vjp=_cast_vjp,
    lower=Elementwise(lambda b, x, dtype: b.cast(x, dtype)),
    cases=_cast_cases,
    partial=True,
    facts=CHEAP,
)


def _bitcast_dtype(x: DType, dtype: DType) -> DType:
    if types.bool_ in (x, dtype) or x.size != dtype.size or x.is_complex or dtype.is_complex:
        raise DTypeError(f"expected two numeric types of one size, got {x} and {dtype}")
    return dtype


def _bitcast_cases() -> Iterator[Case]:
    for source in DTYPES.values():
        for to in DTYPES.values():
            if source.size == to.size and types.bool_ not in (source, to):
                yield Case((draw((3, 7), source, -100, 300),), {"dtype": to})


bitcast = defop(
    "bitcast",
    inputs="x",
    attrs={"dtype": REQUIRED},
    dtype=_bitcast_dtype,
    shape=same_shape,
    reference=lambda x, dtype: x.view(dtype.numpy),
    vjp=NO_GRADIENT,
    lower=Elementwise(lambda b, x, dtype: b.bitcast(x, dtype)),
    cases=_bitcast_cases,
    partial=True,
)


# Bits. Shift counts outside [0, width) shift everything out, as in NumPy.
def _bits(name: str, rule: Rule, reference: Rule, kinds: str = "biu", **more: Any) -> Op:
    return binary(name, rule, reference, NO_GRADIENT, kinds, low=-128, high=127, **more)


bitwise_and = _bits(
    "bitwise_and", lambda b, x, y: b.bit_and(x, y), np.bitwise_and,
    face=Face("The bits that both integers have; for booleans, whether both are true.",
              "[6, 5], 3 -> [2, 1]",
              torch="bitwise_and_", numpy="bitwise_and", tf1="BitwiseAnd bitwise.bitwise_and"),
)  # fmt: skip
bitwise_or = _bits(
    "bitwise_or", lambda b, x, y: b.bit_or(x, y), np.bitwise_or,
    face=Face("The bits that one integer or both have; for booleans, whether one is true.",
              "[6, 5], 3 -> [7, 7]",
              torch="bitwise_or_", numpy="bitwise_or", tf1="BitwiseOr bitwise.bitwise_or"),
)  # fmt: skip
bitwise_xor = _bits(
    "bitwise_xor", lambda b, x, y: b.bit_xor(x, y), np.bitwise_xor,
    face=Face("The bits in which two integers differ; for booleans, whether they differ.",
              "[6, 5], 3 -> [5, 6]",
              torch="bitwise_xor_", numpy="bitwise_xor", tf1="BitwiseXor bitwise.bitwise_xor"),
)  # fmt: skip
bitwise_not = elementwise(
    "bitwise_not", lower=lambda b, x: b.bit_not(x), reference=np.invert, vjp=NO_GRADIENT,
    kinds="biu",
    face=Face("Integers with every bit inverted, which is `-x - 1`; for booleans, not.",
              "[0, 5] -> [-1, -6]", torch="bitwise_not_ invert",
              numpy="bitwise_invert bitwise_not invert", tf1="Invert bitwise.invert"),
)  # fmt: skip
left_shift = _bits(
    "left_shift", lambda b, x, y: b.shift_left(x, y), np.left_shift, "iu",
    face=Face("Integers with their bits shifted to the left: `x * 2**count`.",
              "[1, 3], 2 -> [ 4, 12]", torch="left_shift bitwise_left_shift_",
              numpy="bitwise_left_shift left_shift", tf1="LeftShift bitwise.left_shift"),
)  # fmt: skip
right_shift = _bits(
    "right_shift", lambda b, x, y: b.shift_right(x, y), np.right_shift, "iu",
    face=Face("Integers with their bits shifted to the right: `x / 2**count`, rounded down.",
              "[4, -7], 2 -> [ 1, -2]", torch="right_shift bitwise_right_shift_",
              numpy="bitwise_right_shift right_shift", tf1="RightShift bitwise.right_shift"),
)  # fmt: skip
