"""A small writer of LLVM IR text: registers, loops with carried values, no llvmlite.

Text is written directly in SSA form, already vectorized and unrolled, so a kernel needs no
optimization passes: 2 to 15 ms to an object file instead of 50.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import struct
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from weft.ir.dtype import DType
from weft.ir.extent import Extent


class Reg(NamedTuple):
    """An SSA value or a constant: its LLVM type and its text."""

    type: str
    text: str

    def __str__(self) -> str:
        return f"{self.type} {self.text}"


_TYPES = {
    "bool": "i8", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "i8", "uint16": "i16", "uint32": "i32", "uint64": "i64",
    "float16": "half", "bfloat16": "bfloat", "float32": "float", "float64": "double",
}  # fmt: skip


EXTENT: Final = "extent"
"""Prefix of registers that hold extents: see `weft.codegen.extents`."""
INVERSE: Final = "inverse"
ENTRY: Final = "entry:"


def memory_type(dtype: DType, lanes: int = 1) -> str:
    """The LLVM type of `lanes` elements in memory (booleans are bytes)."""
    return vector(_TYPES[dtype.name], lanes)


def vector(scalar: str, lanes: int) -> str:
    """`<lanes x scalar>`, or the scalar type itself for one lane."""
    return scalar if lanes == 1 else f"<{lanes} x {scalar}>"


def element(type_: str) -> str:
    """The element type of a vector type, or the type itself."""
    return type_.split(" x ")[1][:-1] if type_.startswith("<") else type_


def float_text(value: float, type_: str) -> str:
    """A floating-point constant in LLVM's notation: the bits of the double equal to it."""
    if type_ == "float":
        value = struct.unpack("f", struct.pack("f", value))[0]
    return f"0x{struct.unpack('Q', struct.pack('d', value))[0]:016X}"


def integer(value: int, type_: str = "i64") -> Reg:
    """An integer constant; for an extent, a register that `with_extents` defines."""
    return _extent(value, type_) if isinstance(value, Extent) else Reg(type_, str(value))


def number(value: int) -> Reg | int:
    """The integer itself, or the register of an extent: for code that treats them differently."""
    return integer(value) if isinstance(value, Extent) else value


def inverse(value: Extent, lanes: int) -> Reg:
    """The `double` 1 / value in all lanes, which is computed at the beginning of the kernel."""
    return Reg(vector("double", lanes), f"%{EXTENT}{value.index}.{lanes}x{INVERSE}")


def _extent(value: Extent, type_: str) -> Reg:
    kind = type_.strip("<>").replace(" ", "")
    return Reg(type_, f"%{EXTENT}{value.index}.{kind}")


def _number(text: str) -> int | None:
    """The integer constant in `text`, or `None`."""
    return None if text[0] == "%" or not text.lstrip("-").isdigit() else int(text)


def constant(value: float, type_: str) -> Reg:
    """A `float`, `double` or integer constant, splat over a vector type."""
    if isinstance(value, Extent):
        return _extent(value, type_)
    scalar = element(type_)
    text = float_text(value, scalar) if scalar in ("float", "double") else str(int(value))
    return Reg(type_, text if scalar == type_ else f"splat ({scalar} {text})")


class Loop:
    """A counted loop under construction: its index, carried values, and final results."""

    def __init__(self, index: Reg, carried: list[Reg]) -> None:
        self.index = index
        self.carried = carried
        self.next: list[Reg] = list(carried)  # values for the next iteration, assigned by the body
        self.results: list[Reg] = []


LOOKED_THROUGH: Final = 4
"""Rows of a transposition in one fence: limits how far LLVM looks through shuffles."""


class Builder:
    """Writes one function of an LLVM module."""

    def __init__(self, name: str, params: Sequence[tuple[str, str]], result: str = "void") -> None:
        self.name = name
        self.params = [Reg(type_, "%" + text) for type_, text in params]
        self.result = result
        self._lines: list[str] = [ENTRY]
        self._block = "entry"
        self._count = 0
        self.declarations: set[str] = set()  # module-level lines outside the function
        self.narrow: dict[str, Reg] = {}  # widened half-precision register -> the narrow one

    def fresh(self, hint: str = "v") -> str:
        """A new register name."""
        self._count += 1
        return f"%{hint}{self._count}"

    def line(self, text: str) -> None:
        """Writes an instruction without a result."""
        self._lines.append("  " + text)

    def emit(self, type_: str, text: str, hint: str = "v") -> Reg:
        """Writes an instruction with a result of `type_`."""
        self._count += 1
        name = f"%{hint}{self._count}"
        self._lines.append(f"  {name} = {text}")
        return Reg(type_, name)

    def binary(self, opcode: str, a: Reg, b: Reg) -> Reg:
        """`opcode a, b`, such as `fadd`, `add nsw`, `and`."""
        return self.emit(a.type, f"{opcode} {a.type} {a.text}, {b.text}")

    def compare(self, condition: str, a: Reg, b: Reg) -> Reg:
        """`icmp` or `fcmp` with its condition, such as `icmp slt`."""
        lanes = int(a.type[1:].split(" x ")[0]) if a.type.startswith("<") else 1
        return self.emit(vector("i1", lanes), f"{condition} {a}, {b.text}")

    def add(self, a: Reg, b: Reg | int) -> Reg:
        """Integer sum, folded if both operands are constants or one is zero."""
        return self._fold("add", a, b)

    def mul(self, a: Reg, b: Reg | int) -> Reg:
        """Integer product, folded if both operands are constants or one is zero or one."""
        return self._fold("mul", a, b)

    def _fold(self, opcode: str, a: Reg, b: Reg | int) -> Reg:
        if not isinstance(b, Reg):
            b = integer(b, a.type)
        x, y = _number(a.text), _number(b.text)
        if x is not None and y is not None:
            return integer(x + y if opcode == "add" else x * y, a.type)
        neutral = 0 if opcode == "add" else 1
        if y == neutral:
            return a
        if x == neutral:
            return b
        if opcode == "mul" and 0 in (x, y):
            return integer(0, a.type)
        return self.binary(opcode + " nsw", a, b)

    def fence(self, x: Reg) -> Reg:
        """The same vector, behind a barrier for LLVM's search for better shuffles.

        Searching through four rounds of a transposition takes most of LLVM's time, and finds
        nothing.
        """
        kind = {"float": "f32", "double": "f64"}.get(element(x.type))
        if kind is None or x.type == element(x.type):
            return x
        lanes = x.type.strip("<>").split()[0]
        return self.call(x.type, f"llvm.arithmetic.fence.v{lanes}{kind}", [x])

    def call(self, type_: str, function: str, args: Sequence[Reg], attributes: str = "") -> Reg:
        """Calls an intrinsic or function, declaring it; `void` yields an unusable register."""
        types = ", ".join([a.type for a in args])
        self.declarations.add(f"declare {type_} @{function}({types}) {attributes}".rstrip())
        given = ", ".join([f"{a.type} {a.text}" for a in args])
        text = f"call {type_} @{function}({given})"
        if type_ == "void":
            self.line(text)
            return Reg("void", "")
        return self.emit(type_, text)

    def offset(self, pointer: Reg, count: Reg | int, type_: str = "i8") -> Reg:
        """The address `count` elements of `type_` after `pointer`."""
        if not isinstance(count, Reg):
            count = integer(count)
        many = f"{count.type} {count.text}"
        if many == "i64 0":
            return pointer
        return self.emit("ptr", f"getelementptr inbounds {type_}, ptr {pointer.text}, {many}", "p")

    def load(self, type_: str, pointer: Reg, align: int = 1) -> Reg:
        """Load a value of `type_`."""
        return self.emit(type_, f"load {type_}, {pointer}, align {align}")

    def store(self, value: Reg, pointer: Reg, align: int = 1) -> None:
        """Store a value."""
        self.line(f"store {value}, {pointer}, align {align}")

    def argument(self, slot: int, type_: str = "ptr") -> Reg:
        """The kernel argument in `slot` of the argument table (the first parameter)."""
        return self.load(type_, self.offset(self.params[0], slot, "i64"), 8)

    def splat(self, value: Reg, lanes: int) -> Reg:
        """A vector with `value` in all lanes."""
        if lanes == 1:
            return value
        type_ = vector(value.type, lanes)
        if value.text.startswith(("%",)):
            first = self.emit(type_, f"insertelement {type_} poison, {value}, i64 0")
            return self.emit(
                type_, f"shufflevector {first}, {type_} poison, <{lanes} x i32> zeroinitializer"
            )
        return Reg(type_, f"splat ({value})")

    def label(self, hint: str) -> str:
        """A new block label."""
        return self.fresh(hint)[1:]

    def start(self, label: str) -> None:
        """Begins the block `label`."""
        self._lines.append(f"{label}:")
        self._block = label

    def jump(self, label: str) -> None:
        """Branch to a block."""
        self.line(f"br label %{label}")

    def branch(self, condition: Reg, then: str, other: str) -> None:
        """Branch on an `i1`."""
        self.line(f"br {condition}, label %{then}, label %{other}")

    @contextlib.contextmanager
    def loop(
        self,
        start: Reg | int,
        stop: Reg | int,
        step: Reg | int = 1,
        carried: Sequence[Reg] = (),
        at_least_once: bool = False,
    ) -> Iterator[Loop]:
        """`for index in range(start, stop, step)`, carrying values from iteration to iteration.

        Assign `loop.next` in the body; read `loop.results` after it. A loop that is known to run at
        least once has no test before it.
        """
        begin, end, by = (integer(r) if isinstance(r, int) else r for r in (start, stop, step))
        entry, body, exit_ = self._block, self.label("body"), self.label("exit")
        if begin.text.isdigit() and end.text.isdigit() and int(begin.text) < int(end.text):
            at_least_once = True
        if at_least_once:
            self.jump(body)
        else:
            self.branch(self.compare("icmp slt", begin, end), body, exit_)
        self.start(body)
        hole = len(self._lines)
        loop = Loop(
            Reg(begin.type, self.fresh("i")), [Reg(c.type, self.fresh("c")) for c in carried]
        )
        yield loop
        following = self.binary("add nsw", loop.index, by)
        latch = self._block
        self.branch(self.compare("icmp slt", following, end), body, exit_)
        phis = [(loop.index, begin, following), *zip(loop.carried, carried, loop.next, strict=True)]
        self._lines[hole:hole] = [
            f"  {phi.text} = phi {phi.type} [ {first.text}, %{entry} ], [ {again.text}, %{latch} ]"
            for phi, first, again in phis
        ]
        self.start(exit_)
        if at_least_once:
            loop.results = list(loop.next)
            return
        for first, again in zip(carried, loop.next, strict=True):
            name = Reg(first.type, self.fresh("r"))
            sources = f"[ {first.text}, %{entry} ], [ {again.text}, %{latch} ]"
            self._lines.append(f"  {name.text} = phi {first.type} {sources}")
            loop.results.append(name)

    @contextlib.contextmanager
    def when(self, condition: Reg) -> Iterator[None]:
        """Code that runs only if the `i1` condition holds."""
        then, after = self.label("then"), self.label("after")
        self.branch(condition, then, after)
        self.start(then)
        yield
        self.jump(after)
        self.start(after)

    @contextlib.contextmanager
    def interleaved(self) -> Iterator[Callable[[], None]]:
        """Interleaves runs of independent instructions, one instruction of each at a time.

        Call what is yielded before each run. A processor looks only some hundred instructions
        ahead, so two long dependency chains one after the other would not overlap.
        """
        begin = len(self._lines)
        cuts: list[int] = []
        yield lambda: cuts.append(len(self._lines))
        bounds = [begin, *cuts, len(self._lines)]
        runs = [self._lines[i:j] for i, j in itertools.pairwise(bounds)]
        if all(line.startswith("  ") for run in runs for line in run):  # one block
            self._lines[begin:] = interleaved(runs)

    def function(self, attributes: str = "nounwind") -> str:
        """The finished function's text; the body must have ended without a return."""
        params = ", ".join(f"{p.type} {p.text}" for p in self.params)
        body = "\n".join([*self._lines, "  ret void"])
        return f"define {self.result} @{self.name}({params}) {attributes} {{\n{body}\n}}\n"

    def module(self) -> str:
        """The finished module: declarations, then the function."""
        return "\n".join([*sorted(self.declarations), "", self.function()])


_NAME: Final = re.compile(r"%[A-Za-z_.0-9]+")


def interleaved(runs: Sequence[Sequence[str]]) -> list[str]:
    """One instruction of each run in turn; a run waits for registers of other runs."""
    waiting = {line.split(" = ")[0].strip() for run in runs for line in run if " = " in line}
    queues = [deque(run) for run in runs]
    found: list[str] = []
    while any(queues):
        for queue in queues:
            if not queue:
                continue
            name, _, text = queue[0].strip().rpartition(" = ")
            if waiting.isdisjoint(_NAME.findall(text)):
                found.append(queue.popleft())
                waiting.discard(name)
    return found


def kernel_builder() -> Builder:
    """A builder for a kernel; its parameters are args, begin, end, thread: `weft.passes.launch`."""
    return Builder(
        "weft_kernel", [("ptr", "args"), ("i64", "begin"), ("i64", "end"), ("i64", "thread")]
    )
