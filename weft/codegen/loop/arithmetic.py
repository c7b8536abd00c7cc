"""The LLVM IR of each scalar operation, on registers of any number of lanes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from weft.codegen import vecmath
from weft.codegen.builder import Builder, Reg, constant, element, float_text, vector
from weft.codegen.loop.convert import (
    cast,
    choose,
    convert,
    intrinsic,
    lanes_of,
    loaded,
    number,
    register_type,
    storage_type,
    stored,
)  # fmt: skip
from weft.codegen.loop.expression import Expr
from weft.errors import CompileError
from weft.ir.dtype import DType

_BINARY: Final = {
    "add": ("add", "fadd"), "subtract": ("sub", "fsub"), "multiply": ("mul", "fmul"),
    "bit_and": ("and", ""), "bit_or": ("or", ""), "bit_xor": ("xor", ""),
}  # fmt: skip
_CONDITION: Final = {
    "equal": ("eq", "eq", "oeq"), "not_equal": ("ne", "ne", "une"),
    "less": ("slt", "ult", "olt"), "less_equal": ("sle", "ule", "ole"),
}  # fmt: skip
_INTRINSIC: Final = {
    "sqrt": "llvm.sqrt", "floor": "llvm.floor", "ceil": "llvm.ceil", "trunc": "llvm.trunc",
    "round": "llvm.roundeven", "fma": "llvm.fma",
}  # fmt: skip

EXTREMES: Final = frozenset(("minimum", "maximum"))
"""Operations of the loop language whose result is one of their operands: they never round."""


def literal(value: float, dtype: DType, lanes: int = 1) -> Reg:
    """A constant of a Weft type in a register."""
    type_ = register_type(dtype, lanes)
    scalar = element(type_)
    if dtype.is_floating:
        text = float_text(value, scalar)
    else:
        text = ("true" if value else "false") if scalar == "i1" else str(int(value))
    return Reg(type_, text if lanes == 1 else f"splat ({scalar} {text})")


def compute(f: Builder, x: Expr, args: list[Reg]) -> Reg:
    """Writes the instructions of operation `x` on its arguments.

    Raises:
        CompileError: there is no such operation on that type.
    """
    kind = x.args[0].dtype
    if x.op in _BINARY:
        integer, floating = _BINARY[x.op]
        opcode = floating if kind.is_floating else integer
        if kind.kind == "b":
            opcode = {"add": "or", "multiply": "and", "subtract": "xor"}.get(x.op, integer)
        return f.binary(opcode, *args)
    if x.op in _CONDITION:
        return _compare(f, x.op, kind, *args)
    if x.op in EXTREMES:
        return extremum(f, x.op, kind, *args)
    rule = _RULES.get(x.op)
    if rule is not None:
        return rule(f, x, args)
    if not kind.is_floating:
        raise CompileError(f"{x.op}: there is no kernel for {kind}")
    if x.op in _INTRINSIC:
        return intrinsic(f, _INTRINSIC[x.op], *args)
    return getattr(vecmath, x.op)(f, *args)


def _compare(f: Builder, op: str, dtype: DType, a: Reg, b: Reg) -> Reg:
    signed, unsigned, ordered = _CONDITION[op]
    if dtype.is_floating:
        return f.compare("fcmp " + ordered, a, b)
    return f.compare("icmp " + (signed if dtype.kind == "i" else unsigned), a, b)


_NAN: Final = float_text(math.nan, "double")


def extremum(f: Builder, op: str, dtype: DType, a: Reg, b: Reg) -> Reg:
    """The maximum or minimum; NaN wins."""
    if dtype.kind == "b":
        return f.binary("and" if op == "minimum" else "or", a, b)
    if not dtype.is_floating:
        sign = "s" if dtype.kind == "i" else "u"
        return intrinsic(f, f"llvm.{sign}{op[:3]}", a, b)
    condition = "fcmp olt" if op == "minimum" else "fcmp ogt"
    # One instruction on x86: the second operand if one of them is NaN.
    if not b.text.startswith("%"):
        a, b = b, a
    if _NAN in a.text:
        return a
    best = choose(f, f.compare(condition, a, b), a, b)
    if not a.text.startswith("%"):  # `a` is a number, so only b can be NaN
        return best
    return choose(f, f.compare("fcmp uno", a, a), a, best)


def _negative(f: Builder, x: Expr, args: list[Reg]) -> Reg:
    a = args[0]
    if x.dtype.is_floating:
        return f.emit(a.type, f"fneg {a}")
    return f.binary("sub", number(a, 0), a)


def _abs(f: Builder, x: Expr, args: list[Reg]) -> Reg:
    a = args[0]
    if x.dtype.is_floating:
        return intrinsic(f, "llvm.fabs", a)
    if x.dtype.kind != "i":
        return a
    return choose(f, f.compare("icmp slt", a, number(a, 0)), f.binary("sub", number(a, 0), a), a)


def _select(f: Builder, x: Expr, args: list[Reg]) -> Reg:
    return choose(f, *args)


def _bit_not(f: Builder, x: Expr, args: list[Reg]) -> Reg:
    return f.binary("xor", args[0], literal(1 if x.dtype.kind == "b" else -1, x.dtype, _n(args)))


def _n(args: list[Reg]) -> int:
    return lanes_of(args[0].type)


def _shift(f: Builder, x: Expr, args: list[Reg]) -> Reg:
    a, by = args
    bits = x.dtype.size * 8
    inside = f.compare("icmp ult", by, number(by, bits))
    if x.op == "shift_left":
        far, opcode = number(a, 0), "shl"
    elif x.dtype.kind == "i":
        far, opcode = f.binary("ashr", a, number(a, bits - 1)), "ashr"
    else:
        far, opcode = number(a, 0), "lshr"
    safe = choose(f, inside, by, number(by, 0))
    return choose(f, inside, f.binary(opcode, a, safe), far)


def _mul_high(f: Builder, x: Expr, args: list[Reg]) -> Reg:
    a, b = (convert(f, "zext", r, "i64") for r in args)
    return convert(f, "trunc", f.binary("lshr", f.binary("mul", a, b), number(a, 32)), "i32")


def _cast(f: Builder, x: Expr, args: list[Reg]) -> Reg:
    return cast(f, args[0], x.args[0].dtype, x.dtype)


def _bitcast(f: Builder, x: Expr, args: list[Reg]) -> Reg:
    a, source = args[0], x.args[0].dtype
    if source.kind == "b" or x.dtype.kind == "b":
        return cast(f, a, source, x.dtype)
    bits = convert(f, "bitcast", stored(f, a, source), f"i{8 * source.size}")
    return loaded(f, convert(f, "bitcast", bits, storage_type(x.dtype)), x.dtype)


def _divide(f: Builder, x: Expr, args: list[Reg]) -> Reg:
    if x.dtype.is_floating:
        return f.binary("fdiv", *args)
    return _integer_division(f, x, args)[0]


def _integer_division(f: Builder, x: Expr, args: list[Reg]) -> tuple[Reg, Reg]:
    """Truncating quotient and remainder; by zero both are 0, and INT_MIN / -1 wraps."""
    a, b = args
    zero, one = number(b, 0), number(b, 1)
    by_zero = f.compare("icmp eq", b, zero)
    if x.dtype.kind == "u":
        safe = choose(f, by_zero, one, b)
        quotient = f.binary("udiv", a, safe)
    else:
        minus = f.compare("icmp eq", b, number(b, -1))
        safe = choose(f, f.binary("or", by_zero, minus), one, b)
        quotient = choose(f, minus, f.binary("sub", zero, a), f.binary("sdiv", a, safe))
    quotient = choose(f, by_zero, zero, quotient)
    rest = f.binary("sub", a, f.binary("mul", quotient, b))
    return quotient, choose(f, by_zero, zero, rest)


def _whole(f: Builder, x: Expr, args: list[Reg]) -> Reg:
    """floor_divide, remainder and fmod."""
    if x.dtype.is_floating:
        return getattr(vecmath, x.op)(f, *args)
    quotient, rest = _integer_division(f, x, args)
    if x.op == "fmod":
        return rest
    if x.dtype.kind == "u":
        return quotient if x.op == "floor_divide" else rest
    b = args[1]
    zero = number(b, 0)
    differ = f.compare("icmp slt", f.binary("xor", rest, b), zero)
    adjust = f.binary("and", differ, f.compare("icmp ne", rest, zero))
    if x.op == "floor_divide":
        return f.binary("sub", quotient, convert(f, "zext", adjust, element(b.type)))
    return f.binary("add", rest, choose(f, adjust, b, zero))


def _power(f: Builder, x: Expr, args: list[Reg]) -> Reg:
    if x.dtype.is_floating:
        return vecmath.power(f, *args)
    base, exponent = args
    one = number(base, 1)
    result, known = one, _constant_of(x.args[1])
    steps = x.dtype.size * 8 - (x.dtype.kind == "i")
    square = base
    for bit in range(steps if known is None else max(known, 0).bit_length()):
        if bit:
            square = f.binary("mul", square, square)
        if known is None:
            mask = f.binary("and", exponent, number(exponent, 1 << bit))
            taken = f.compare("icmp ne", mask, number(exponent, 0))
            result = choose(f, taken, f.binary("mul", result, square), result)
        elif known >> bit & 1:
            result = f.binary("mul", result, square)
    if x.dtype.kind == "u" or (known is not None and known >= 0):
        return result
    return _negative_power(f, base, exponent, result)


def _negative_power(f: Builder, base: Reg, exponent: Reg, positive: Reg) -> Reg:
    """A negative exponent gives 1 or -1 for a base of 1 or -1, else 0."""
    zero, one, minus = (number(base, n) for n in (0, 1, -1))
    odd = f.compare("icmp ne", f.binary("and", exponent, one), zero)
    sign = choose(f, odd, minus, one)
    other = choose(f, f.compare("icmp eq", base, minus), sign, zero)
    other = choose(f, f.compare("icmp eq", base, one), one, other)
    return choose(f, f.compare("icmp slt", exponent, zero), other, positive)


def _constant_of(x: Expr) -> int | None:
    return x.data if x.op == "const" else None


_RULES: Final[dict[str, Callable[[Builder, Expr, list[Reg]], Reg]]] = {
    "negative": _negative, "abs": _abs, "select": _select, "bit_not": _bit_not,
    "shift_left": _shift, "shift_right": _shift, "mul_high": _mul_high, "cast": _cast,
    "bitcast": _bitcast, "divide": _divide, "floor_divide": _whole, "remainder": _whole,
    "fmod": _whole, "power": _power,
}  # fmt: skip


def combine(f: Builder, op: str, dtype: DType, a: Reg, b: Reg) -> Reg:
    """Combines two partial results of a reduction."""
    if op in EXTREMES:
        return extremum(f, op, dtype, a, b)
    if dtype.kind == "b":
        return f.binary("or" if op == "add" else "and", a, b)
    integer, floating = _BINARY[op]
    return f.binary(floating if dtype.is_floating else integer, a, b)


def identity(op: str, dtype: DType) -> float:
    """The identity element of a reduction."""
    if op in ("add", "multiply"):
        return 0 if op == "add" else 1
    if dtype.kind == "b":
        return op == "minimum"
    if dtype.is_floating:
        return float("inf") if op == "minimum" else float("-inf")
    bits = dtype.size * 8 - (dtype.kind == "i")
    high, low = (1 << bits) - 1, -(1 << bits) if dtype.kind == "i" else 0
    return high if op == "minimum" else low


def neutral(op: str, dtype: DType) -> float:
    """What leaves every number as it is when combined with it: also -0.0, unlike the identity."""
    return -0.0 if op == "add" and dtype.is_floating else identity(op, dtype)


def across(f: Builder, op: str, dtype: DType, x: Reg) -> Reg:
    """The reduction over a register's lanes, halving it until one is left."""
    lanes = lanes_of(x.type)
    while lanes > 1:
        half = lanes // 2
        low, high = (part(f, x, first, half) for first in (0, half))
        x = combine(f, op, dtype, low, high)
        lanes = half
    return x


def part(f: Builder, x: Reg, first: int, count: int) -> Reg:
    """`count` lanes from `first` on."""
    if count == 1:
        return f.emit(element(x.type), f"extractelement {x}, i64 {first}")
    chosen = ", ".join(f"i32 {i}" for i in range(first, first + count))
    type_ = vector(element(x.type), count)
    return f.emit(type_, f"shufflevector {x}, {x.type} poison, <{count} x i32> <{chosen}>")


def lane_numbers(type_: str, step: int = 1) -> Reg:
    """`<0, step, 2 step, ...>` of an integer vector type; 0 of a scalar type."""
    lanes, scalar = lanes_of(type_), element(type_)
    if lanes == 1:
        return constant(0, type_)
    return Reg(type_, "<" + ", ".join(f"{scalar} {i * step}" for i in range(lanes)) + ">")
