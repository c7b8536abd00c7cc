"""Arithmetic on vectors of any width as Python operators that write LLVM IR.

No algorithm may rely on a fused multiply-add being exact: `fma` is `llvm.fmuladd`, one instruction
if the target has it, else a multiplication and an addition (x86-64-v2), never a library call. Every
width and the scalar form do the same operations, so a result depends neither on the number of lanes
nor on an element's position.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, overload

from weft.codegen.builder import Builder, Reg, constant, element, vector
from weft.codegen.vecmath.coefficients import Coefficients


@dataclass(frozen=True)
class Format:
    """An IEEE binary format in numbers."""

    integer: str  # LLVM type of the same size
    width: int  # bits
    mantissa: int  # bits stored
    bias: int

    @property
    def magic(self) -> float:
        """Adding it to a small number leaves the nearest integer in the low bits."""
        return 1.5 * 2.0**self.mantissa

    @property
    def magic_bits(self) -> int:
        """The bits of `magic`."""
        return (self.bias + self.mantissa) << self.mantissa | 1 << (self.mantissa - 1)

    @property
    def smallest(self) -> float:
        """The smallest normal number."""
        return 2.0 ** (1 - self.bias)


FORMATS = {"float": Format("i32", 32, 23, 127), "double": Format("i64", 64, 52, 1023)}
OPCODES = {  # operator: (floating, integer)
    "+": ("fadd", "add"), "-": ("fsub", "sub"), "*": ("fmul", "mul"), "/": ("fdiv", "sdiv"),
    "<": ("fcmp olt", "icmp slt"), "<=": ("fcmp ole", "icmp sle"), ">": ("fcmp ogt", "icmp sgt"),
    ">=": ("fcmp oge", "icmp sge"), "==": ("fcmp oeq", "icmp eq"), "!=": ("fcmp une", "icmp ne"),
}  # fmt: skip


def _operator(operator: str, reflected: bool = False) -> Callable[[Vec, Vec | float], Vec]:
    floating, whole = OPCODES[operator]

    def result(x: Vec, other: Vec | float) -> Vec:
        y = x.other_of(other)
        first, second = (y, x) if reflected else (x, y)
        opcode = floating if x.scalar in FORMATS else whole
        emit = x.f.compare if "cmp" in opcode else x.f.binary
        return Vec(x.f, emit(opcode, first.reg, second.reg))

    return result


def _logic(opcode: str) -> Callable[[Vec, Vec | int], Vec]:
    def result(x: Vec, other: Vec | int) -> Vec:
        return Vec(x.f, x.f.binary(opcode, x.reg, x.other_of(other).reg))

    return result


@dataclass(frozen=True, eq=False)
class Vec:
    """A value under construction: a scalar or a vector of numbers, integers or booleans."""

    f: Builder
    reg: Reg

    @property
    def scalar(self) -> str:
        """The LLVM type of one lane."""
        return element(self.reg.type)

    @property
    def lanes(self) -> int:
        """Numbers in the vector."""
        return int(self.reg.type[1:].split(" x ")[0]) if self.reg.type.startswith("<") else 1

    @property
    def format(self) -> Format:
        """The format of a floating-point value."""
        return FORMATS[self.scalar]

    def like(self, value: float) -> Vec:
        """A constant of this type."""
        return Vec(self.f, constant(value, self.reg.type))

    def pick(self, table: Coefficients) -> tuple[float, ...]:
        """The entry of a table for this type."""
        return table[self.scalar]

    def other_of(self, x: Vec | float) -> Vec:
        """The other operand: a value, or a number as a constant of this type."""
        return x if isinstance(x, Vec) else self.like(x)

    __add__ = _operator("+")
    __sub__ = _operator("-")
    __mul__ = _operator("*")
    __truediv__ = _operator("/")
    __radd__ = _operator("+", reflected=True)
    __rsub__ = _operator("-", reflected=True)
    __rmul__ = _operator("*", reflected=True)
    __rtruediv__ = _operator("/", reflected=True)
    __lt__ = _operator("<")
    __le__ = _operator("<=")
    __gt__ = _operator(">")
    __ge__ = _operator(">=")
    equals = _operator("==")
    differs = _operator("!=")  # or is not a number
    __and__ = _logic("and")
    __or__ = _logic("or")
    __xor__ = _logic("xor")
    __lshift__ = _logic("shl")
    __rshift__ = _logic("ashr")  # the sign is kept

    def __neg__(self) -> Vec:
        return Vec(self.f, self.f.emit(self.reg.type, f"fneg {self.reg}"))

    def __invert__(self) -> Vec:
        return self ^ Vec(self.f, Reg(self.reg.type, _all_ones(self)))

    def convert(self, opcode: str, scalar: str) -> Vec:
        """Converts the lanes by an instruction such as `bitcast` or `fpext`."""
        type_ = vector(scalar, self.lanes)
        return Vec(self.f, self.f.emit(type_, f"{opcode} {self.reg} to {type_}"))

    def bits(self) -> Vec:
        """The representation of a floating value."""
        return self.convert("bitcast", self.format.integer)

    def as_float(self) -> Vec:
        """The floating value with this representation."""
        return self.convert("bitcast", "float" if self.scalar == "i32" else "double")


def _all_ones(x: Vec) -> str:
    scalar = "true" if x.scalar == "i1" else "-1"
    return scalar if x.lanes == 1 else f"splat ({x.scalar} {scalar})"


def vector_math(rule: Callable[..., Vec]) -> Callable[..., Reg]:
    """Turns a function on `Vec` into one on a builder and registers."""

    @functools.wraps(rule)
    def emit(f: Builder, *args: Reg) -> Reg:
        return rule(*(Vec(f, a) for a in args)).reg

    return emit


def intrinsic(name: str, *args: Vec) -> Vec:
    """Call `llvm.<name>` on values of one type."""
    x = args[0]
    short = {"float": "f32", "double": "f64"}.get(x.scalar, x.scalar)
    suffix = short if x.lanes == 1 else f"v{x.lanes}{short}"
    return Vec(x.f, x.f.call(x.reg.type, f"llvm.{name}.{suffix}", [a.reg for a in args]))


def fma(x: Vec, y: Vec | float, z: Vec | float) -> Vec:
    """x * y + z, fused if the target can."""
    a = y if isinstance(y, Vec) else x.like(y)
    b = z if isinstance(z, Vec) else x.like(z)
    return intrinsic("fmuladd", x, a, b)


def polynomial(x: Vec, coefficients: Sequence[float]) -> Vec:
    """Horner's rule, lowest power first."""
    y = x.like(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        y = fma(y, x, c)
    return y


@overload
def select(condition: Vec, x: Vec, y: Vec | float) -> Vec: ...
@overload
def select(condition: Vec, x: float, y: Vec) -> Vec: ...
def select(condition: Vec, x: Any, y: Any) -> Vec:
    """x if the condition holds, else y; one of them may be a number."""
    a = x if isinstance(x, Vec) else y.like(x)
    b = y if isinstance(y, Vec) else a.like(y)
    text = f"select {condition.reg}, {a.reg}, {b.reg}"
    return Vec(a.f, a.f.emit(a.reg.type, text))


def at_least(x: Vec, low: float) -> Vec:
    """The larger of x and a bound; NaN stays."""
    return select(x < low, low, x)


def at_most(x: Vec, high: float) -> Vec:
    """The smaller of x and a bound; NaN stays."""
    return select(x > high, high, x)


def absolute(x: Vec) -> Vec:
    """The magnitude."""
    return intrinsic("fabs", x)


def with_sign(x: Vec, sign: Vec) -> Vec:
    """The magnitude of x with the sign of another value."""
    return intrinsic("copysign", x, sign)


def whole(n: Vec) -> Vec:
    """A small integer (below 2**22 in magnitude) as a floating-point value, in two instructions."""
    format_ = FORMATS["float" if n.scalar == "i32" else "double"]
    return (n + format_.magic_bits).as_float() - format_.magic


def power_of_two(n: Vec) -> Vec:
    """2**n for integers n with a normal result."""
    format_ = FORMATS["float" if n.scalar == "i32" else "double"]
    return ((n + format_.bias) << format_.mantissa).as_float()


def scale(x: Vec, n: Vec) -> Vec:
    """x * 2**n for x near 1: in two factors, so that it may overflow or become subnormal.

    It multiplies instead of adding to the exponent, which could turn NaN into a number.
    """
    half = n >> 1
    return x * power_of_two(half) * power_of_two(n - half)


Vecs = tuple[Vec, ...]


def rarely(condition: Vec, usual: Vecs, compute: Callable[[], Vecs]) -> Vecs:
    """`compute()` in the lanes where the condition holds; skipped if it holds in none."""
    f = condition.f
    lanes = condition.lanes
    some = condition.reg
    if lanes > 1:
        some = f.call("i1", f"llvm.vector.reduce.or.v{lanes}i1", [condition.reg])
    before, slow, last, after = (f.label(hint) for hint in ("usual", "rare", "done", "after"))
    f.jump(before)
    f.start(before)
    f.branch(some, slow, after)
    f.start(slow)
    results = [select(condition, x, y) for x, y in zip(compute(), usual, strict=True)]
    f.jump(last)  # `compute` may have ended in another block: give the phi a label it knows
    f.start(last)
    f.jump(after)
    f.start(after)
    return tuple(_join(x, before, y, last) for x, y in zip(usual, results, strict=True))


def _join(x: Vec, x_label: str, y: Vec, y_label: str) -> Vec:
    type_ = x.reg.type
    text = f"phi {type_} [ {x.reg.text}, %{x_label} ], [ {y.reg.text}, %{y_label} ]"
    return Vec(x.f, x.f.emit(type_, text))
