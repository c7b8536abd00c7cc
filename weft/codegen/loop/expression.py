"""Scalar expressions: a DAG of operations on one element, built by the lowering rules.

`Expressions` implements the emitter protocol. It builds each distinct expression once, so a value
that several outputs need is computed once; the vector width is decided later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from weft.codegen.loop.index import Index, Symbol, clamped, fixed, picked, substituted
from weft.errors import CompileError
from weft.ir import dtype as types
from weft.ir.dtype import DType
from weft.ir.extent import certain
from weft.ir.node import Value
from weft.passes.launch import Scratch

# Estimated cycles per vector, right in order of magnitude; they only size chunks and decide what to
# keep instead of recomputing.
COST: Final = {
    "exp": 10, "expm1": 16, "log": 12, "log1p": 16, "tanh": 16, "sigmoid": 12, "erf": 16,
    "sin": 30, "cos": 30, "tan": 40, "asin": 24, "acos": 24, "atan": 24, "atan2": 36,
    "sinh": 24, "cosh": 24, "sqrt": 8, "rsqrt": 12, "divide": 6, "power": 60,
    "floor_divide": 24, "remainder": 24, "fmod": 24,
}  # fmt: skip
EXPENSIVE: Final = 8
"""From this cost on a value is kept between two passes over a row instead of recomputed."""


@dataclass(frozen=True, eq=False)
class Buffer:
    """Memory that a kernel accesses: what it is, its element type, its printed name."""

    source: Value | Scratch
    dtype: DType
    name: str
    stride: int = 0  # bytes between the threads' parts of per-thread scratch


class Expr:
    """One scalar operation; operators build further ones. Equal expressions are one object."""

    __slots__ = ("args", "data", "dtype", "key", "op", "owner", "serial", "symbols")

    def __init__(
        self,
        owner: Expressions,
        serial: int,
        op: str,
        dtype: DType,
        args: tuple[Expr, ...],
        data: Any,
        symbols: frozenset[Symbol],
    ) -> None:
        self.owner: Final = owner
        self.serial: Final = serial
        self.op: Final = op
        self.dtype: Final = dtype
        self.args: Final = args  # all subexpressions, in order of evaluation
        self.data: Final = data
        self.symbols: Final = symbols
        self.key: Final = f"%{serial}"

    def __repr__(self) -> str:
        return f"{self.key} = {self.op}({', '.join(a.key for a in self.args)}) {self.data or ''}"

    def _with(self, op: str, other: Any, swap: bool = False) -> Expr:
        b = self.owner.const(other, self.dtype) if isinstance(other, int | float) else other
        return self.owner.apply(op, b, self) if swap else self.owner.apply(op, self, b)

    def __add__(self, other: Any) -> Expr:
        return self._with("add", other)

    def __radd__(self, other: float) -> Expr:
        return self._with("add", other, swap=True)

    def __sub__(self, other: Any) -> Expr:
        return self._with("subtract", other)

    def __rsub__(self, other: float) -> Expr:
        return self._with("subtract", other, swap=True)

    def __mul__(self, other: Any) -> Expr:
        return self._with("multiply", other)

    def __rmul__(self, other: float) -> Expr:
        return self._with("multiply", other, swap=True)

    def __truediv__(self, other: Any) -> Expr:
        return self._with("divide", other)

    def __rtruediv__(self, other: float) -> Expr:
        return self._with("divide", other, swap=True)

    def __neg__(self) -> Expr:
        return self.owner.apply("negative", self)


def _plain(op: str) -> Callable[..., Expr]:
    def method(self: Expressions, *args: Any) -> Expr:
        return self.apply(op, *self.alike(args))

    return method


class Expressions:
    """Builds expressions; this is the emitter `b` that lowering rules see."""

    def __init__(self) -> None:
        self.nodes: list[Expr] = []
        self._known: dict[tuple[Any, ...], Expr] = {}

    def node(
        self,
        op: str,
        dtype: DType,
        args: tuple[Expr, ...] = (),
        data: Any = None,
        key: str = "",
        symbols: Iterable[Symbol] = (),
    ) -> Expr:
        """The expression of these parts, built on first use."""
        identity = (op, dtype.name, tuple(a.serial for a in args), key)
        found = self._known.get(identity)
        if found is None:
            free = frozenset(symbols).union(*[a.symbols for a in args])
            found = Expr(self, len(self.nodes), op, dtype, args, data, free)
            self.nodes.append(found)
            self._known[identity] = found
        return found

    def apply(self, op: str, *args: Expr, dtype: DType | None = None) -> Expr:
        """`op` on expressions, of the first argument's type by default."""
        return self.node(op, dtype or args[0].dtype, args)

    def alike(self, args: Sequence[Any]) -> list[Expr]:
        """Arguments with Python numbers converted to constants of the others' type."""
        like = next((a.dtype for a in args if isinstance(a, Expr)), types.float32)
        return [a if isinstance(a, Expr) else self.const(a, like) for a in args]

    # leaves
    def const(self, value: Any, dtype: DType) -> Expr:
        """A constant; in half precision as float32, the type of the computation."""
        wide = types.float32 if dtype.is_floating and dtype.size == 2 else dtype
        with np.errstate(all="ignore"):
            number = np.asarray(value).astype(wide.numpy)
        if dtype.is_floating:
            plain: Any = float(number)
        else:
            plain = bool(number) if dtype.kind == "b" else int(number)
        return self.node("const", dtype, (), plain, repr(plain))

    def load(self, buffer: Buffer, offset: Index) -> Expr:
        """The element of a buffer at a flat position."""
        key = f"{buffer.name}[{offset.key}]"
        return self.node("load", buffer.dtype, picks(offset), (buffer, offset), key, offset.symbols)

    def local(self, symbol: Symbol, dtype: DType, symbols: Iterable[Symbol] = ()) -> Expr:
        """A value that the loops bind: the result of a reduction, or of a matmul."""
        return self.node("local", dtype, (), symbol, symbol.name, (symbol, *symbols))

    def scalar(self, index: Any, dtype: DType) -> Expr:
        """An index as a scalar."""
        index = _as_index(index)
        if index.is_constant:
            return self.const(index.const, dtype)
        return self.node("scalar", dtype, picks(index), index, index.key, index.symbols)

    def inside(self, index: Any, low: int, high: int) -> Expr:
        """`low <= index < high`; a constant if the bounds decide it."""
        index = _as_index(index)
        if index.lies(low, high):
            return self.const(True, types.bool_)
        if certain("<", index.high, low) or certain("<=", high, index.low):
            return self.const(False, types.bool_)
        key = f"{low} <= {index.key} < {high}"
        return self.node(
            "inside", types.bool_, picks(index), (index, low, high), key, index.symbols
        )

    # conversion to indices
    def index(self, x: Any, size: int) -> Index:
        """An integer scalar as an index, clamped to `[0, size)`."""
        return picked(x, x.key, x.symbols, size)

    def clamp(self, index: Any, low: int, high: int) -> Index:
        """`index` limited to `[low, high - 1]`."""
        return clamped(_as_index(index), low, high - 1)

    # operations that have their own rules
    def _compare(self, op: str, x: Any, y: Any) -> Expr:
        return self.apply(op, *self.alike((x, y)), dtype=types.bool_)

    def equal(self, x: Any, y: Any) -> Expr:
        """`x == y`."""
        return self._compare("equal", x, y)

    def not_equal(self, x: Any, y: Any) -> Expr:
        """`x != y`."""
        return self._compare("not_equal", x, y)

    def less(self, x: Any, y: Any) -> Expr:
        """`x < y`."""
        return self._compare("less", x, y)

    def less_equal(self, x: Any, y: Any) -> Expr:
        """`x <= y`."""
        return self._compare("less_equal", x, y)

    def select(self, condition: Any, x: Any, y: Any) -> Expr:
        """`x` if the condition holds, else `y`."""
        x, y = self.alike((x, y))
        if condition.op == "const":
            return x if condition.data else y
        return x if x is y else self.node("select", x.dtype, (condition, x, y))

    def bit_and(self, x: Any, y: Any) -> Expr:
        """Bitwise and; a constant boolean operand is folded."""
        return self._logic("bit_and", x, y, True)

    def bit_or(self, x: Any, y: Any) -> Expr:
        """Bitwise or; a constant boolean operand is folded."""
        return self._logic("bit_or", x, y, False)

    def _logic(self, op: str, x: Any, y: Any, neutral: bool) -> Expr:
        x, y = self.alike((x, y))
        for one, other in ((x, y), (y, x)):
            if one.dtype.kind == "b" and one.op == "const":
                return other if one.data is neutral else one
        return self.apply(op, x, y)

    def cast(self, x: Any, dtype: DType) -> Expr:
        """`x` converted; float to integer saturates and NaN becomes 0."""
        return x if x.dtype is dtype else self.node("cast", dtype, (x,))

    def bitcast(self, x: Any, dtype: DType) -> Expr:
        """The bits of `x` as another type of the same size."""
        if x.dtype.size != dtype.size:
            raise CompileError(f"bitcast: expected a type of {x.dtype.size} bytes, got {dtype}")
        return x if x.dtype is dtype else self.node("bitcast", dtype, (x,))

    negative = _plain("negative")
    exp = _plain("exp")
    expm1 = _plain("expm1")
    log = _plain("log")
    log1p = _plain("log1p")
    tanh = _plain("tanh")
    sigmoid = _plain("sigmoid")
    erf = _plain("erf")
    sin = _plain("sin")
    cos = _plain("cos")
    tan = _plain("tan")
    asin = _plain("asin")
    acos = _plain("acos")
    atan = _plain("atan")
    atan2 = _plain("atan2")
    sinh = _plain("sinh")
    cosh = _plain("cosh")
    sqrt = _plain("sqrt")
    rsqrt = _plain("rsqrt")
    floor = _plain("floor")
    ceil = _plain("ceil")
    round = _plain("round")
    trunc = _plain("trunc")
    fma = _plain("fma")
    power = _plain("power")
    abs = _plain("abs")
    minimum = _plain("minimum")
    maximum = _plain("maximum")
    floor_divide = _plain("floor_divide")
    remainder = _plain("remainder")
    fmod = _plain("fmod")
    bit_xor = _plain("bit_xor")
    bit_not = _plain("bit_not")
    shift_left = _plain("shift_left")
    shift_right = _plain("shift_right")
    mul_high = _plain("mul_high")

    def substitute(
        self,
        roots: Sequence[Expr],
        new: Mapping[Symbol, Index],
        other: Mapping[Expr, Expr] | None = None,
    ) -> list[Expr]:
        """The expressions with loop variables, or whole subexpressions, replaced."""
        done: dict[int, Expr] = {}
        for x in needed(roots):
            swapped = None if other is None else other.get(x)
            done[x.serial] = swapped or self._replaced(x, new, done)
        return [done[x.serial] for x in roots]

    def _replaced(self, x: Expr, new: Mapping[Symbol, Index], done: Mapping[int, Expr]) -> Expr:
        if all(done[a.serial] is a for a in x.args) and not any(s in new for s in x.symbols):
            return x

        def index(old: Index) -> Index:
            return substituted(old, new, lambda e: done[e.serial])

        if x.op == "load":
            return self.load(x.data[0], index(x.data[1]))
        if x.op == "scalar":
            return self.scalar(index(x.data), x.dtype)
        if x.op == "inside":
            return self.inside(index(x.data[0]), *x.data[1:])
        if x.op == "local":
            free: set[Symbol] = set()
            for s in x.symbols - {x.data}:
                free |= new[s].symbols if s in new else {s}
            key = f"{x.data.name} {sorted(s.name for s in free)}"
            return self.node("local", x.dtype, (), x.data, key, (x.data, *free))
        args = tuple([done[a.serial] for a in x.args])
        if x.op == "select":
            return self.select(*args)
        return self.node(x.op, x.dtype, args, x.data)


def _as_index(index: Index | int) -> Index:
    return index if isinstance(index, Index) else fixed(index)


def picks(index: Index) -> tuple[Expr, ...]:
    """The scalars from which an index is computed."""
    found: list[Expr] = []
    for atom, _ in index.terms:
        if atom.kind == "pick":
            found.append(atom.inner)
        elif atom.kind != "var":
            found.extend(picks(atom.inner))
    return tuple(found)


def needed(roots: Iterable[Expr]) -> list[Expr]:
    """All subexpressions of `roots`, arguments first."""
    found: dict[int, Expr] = {}
    stack = list(roots)
    while stack:
        x = stack.pop()
        if x.serial not in found:
            found[x.serial] = x
            stack.extend(x.args)
    return [found[serial] for serial in sorted(found)]


def indices(x: Expr) -> tuple[Index, ...]:
    """The index expressions directly in `x`."""
    if x.op == "load":
        return (x.data[1],)
    if x.op == "scalar":
        return (x.data,)
    return (x.data[0],) if x.op == "inside" else ()


def cost(roots: Iterable[Expr]) -> int:
    """Estimated cycles per vector of the expressions."""
    total = 0
    for x in needed(roots):
        weight = COST.get(x.op, 0 if x.op in ("const", "local") else 1)
        if x.op in ("floor_divide", "remainder", "fmod", "divide") and x.dtype.is_integer:
            weight = 100  # no vector instruction
        total += weight
    return total


def roots_of(values: Iterable[Expr]) -> list[Index]:
    """All index expressions that `values` use."""
    return [index for x in needed(values) for index in indices(x)]
