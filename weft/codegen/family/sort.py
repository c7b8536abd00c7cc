"""Sort and top-k of rows, on integer keys that order like the elements.

NaN is the largest, -0 equals 0, and the sort is stable. Rows of up to `SHORT` elements (and the k
best of any row, for small k) use insertion sort; longer ones LSD radix sort, one byte of the key at
a time, which is linear and never compares.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from weft.codegen.builder import Builder, Reg, constant, integer, kernel_builder, vector
from weft.codegen.chunk import by_work
from weft.codegen.contraction.emit import divide
from weft.codegen.family.emit import axis_of
from weft.codegen.loop.convert import choose
from weft.codegen.target import Target
from weft.ir.dtype import DType
from weft.ir.extent import largest
from weft.ir.node import Node
from weft.ir.shape import known
from weft.passes.group import Group
from weft.passes.launch import Kernel, Launch, Scratch

SHORT: Final = 32  # n * n / 4 moves against 256 counters to clear and sum for every byte
BUCKETS: Final = 256
INFINITY: Final = {
    "float16": 0x7C00, "bfloat16": 0x7F80, "float32": 0x7F800000, "float64": 0x7FF << 52,
}  # fmt: skip


@dataclass(frozen=True)
class Sort:
    """Sort along one axis, keeping the first `kept` elements of each row."""

    outer: int
    size: int
    inner: int
    kept: int
    dtype: DType
    descending: bool
    lanes: int

    @property
    def rows(self) -> int:
        """Rows of the whole array."""
        return self.outer * self.inner

    @property
    def by_insertion(self) -> bool:
        """Whether few enough elements are wanted for insertion sort."""
        return self.kept <= SHORT

    @property
    def key(self) -> str:
        """The LLVM type of a key."""
        return f"i{self.dtype.size * 8}"

    @property
    def held(self) -> int:
        """Keys in scratch memory at once."""
        return largest(1, self.kept if self.by_insertion else self.size)

    @property
    def scratch(self) -> int:
        """Bytes per thread: two arrays of keys and positions, and counters."""
        return -(-(2 * self.held * (self.dtype.size + 4) + 4 * BUCKETS + 64) // 64) * 64


def sort(group: Group, target: Target) -> tuple[Launch, ...]:
    """All elements in order, and their positions."""
    node = group.nodes[0]
    outer, size, inner = axis_of(known(node.data_inputs[0].shape), node.attrs["axis"])
    dtype = node.outputs[0].dtype
    lanes = target.lanes(dtype.size)
    return launch(node, Sort(outer, size, inner, size, dtype, node.attrs["descending"], lanes))


def top_k(group: Group, target: Target) -> tuple[Launch, ...]:
    """The k largest of each row, largest first, and their positions."""
    node = group.nodes[0]
    outer, size, _ = axis_of(known(node.data_inputs[0].shape), -1)
    dtype = node.outputs[0].dtype
    return launch(
        node, Sort(outer, size, 1, node.attrs["k"], dtype, True, target.lanes(dtype.size))
    )


def launch(node: Node, problem: Sort) -> tuple[Launch, ...]:
    """One kernel over rows."""
    if not problem.rows * problem.kept:
        return ()
    work = problem.size * (4 if problem.by_insertion else 8 * problem.dtype.size)
    rows = by_work(problem.rows, work)
    f = kernel_builder()
    writer = _Writer(f, problem)
    with rows.loop(f) as row:
        writer.row(row)
    order = "down" if problem.descending else "up"
    sizes = f"{problem.outer}x{problem.size}x{problem.inner}"
    name = f"{node.op}_{problem.dtype.name}_{sizes}_{problem.kept}_{order}"
    args = (node.data_inputs[0], *node.outputs, Scratch(problem.scratch, per_thread=True))
    moved = problem.rows * (problem.size + problem.kept) * problem.dtype.size
    return (Launch(Kernel(name, f.module()), args, (1, 2, 3), rows.chunks, bytes=float(moved)),)


class _Writer:
    """Writes the work on one row."""

    def __init__(self, f: Builder, problem: Sort) -> None:
        self.f = f
        self.problem = problem
        self.x, self.y, self.positions = (f.argument(i) for i in range(3))
        base = f.offset(f.argument(3), f.mul(f.params[3], problem.scratch))
        keys = problem.held * problem.dtype.size
        self.keys = base, f.offset(base, keys)
        base = f.offset(base, 2 * keys)
        self.order = base, f.offset(base, 4 * problem.held)
        self.counters = f.offset(base, 8 * problem.held)

    def row(self, row: Reg) -> None:
        """Sorts one row and writes the kept elements."""
        f, problem = self.f, self.problem
        image, column = divide(f, row, integer(problem.inner))
        start = f.add(f.mul(image, problem.size * problem.inner), column)
        if problem.by_insertion:
            self.insertion(start)
            side = 0
        else:
            side = self.radix(start)
        out = f.add(f.mul(image, problem.kept * problem.inner), column)
        with f.loop(0, problem.kept) as loop:
            place = f.load("i32", f.offset(self.order[side], loop.index, "i32"), 1)
            wide = f.emit("i64", f"zext {place} to i64")
            value = f.load(problem.key, self.element(self.x, start, wide), 1)
            f.store(value, self.element(self.y, out, loop.index), 1)
            at = f.add(out, f.mul(loop.index, problem.inner))
            f.store(place, f.offset(self.positions, at, "i32"), 4)

    def element(self, base: Reg, start: Reg, number: Reg) -> Reg:
        """The address of an element of a row."""
        f, problem = self.f, self.problem
        at = f.add(start, f.mul(number, problem.inner))
        return f.offset(base, at, problem.key)

    def key(self, start: Reg, number: Reg) -> Reg:
        """The key of an element."""
        bits = self.f.load(self.problem.key, self.element(self.x, start, number), 1)
        return key_of(self.f, bits, self.problem)

    def put(self, side: int, at: Reg, key: Reg, place: Reg) -> None:
        """Store a key and its position."""
        f = self.f
        f.store(key, f.offset(self.keys[side], at, self.problem.key), 1)
        f.store(place, f.offset(self.order[side], at, "i32"), 1)

    def insertion(self, start: Reg) -> None:
        """Keeps the first `kept` in order; long rows are scanned by vectors."""
        f, problem = self.f, self.problem
        kept, lanes = problem.kept, problem.lanes
        blocks = (problem.size - kept) // lanes if problem.inner == 1 and lanes > 1 else 0
        filled = kept + blocks * lanes
        with f.loop(0, kept) as loop:
            self.insert(self.key(start, loop.index), loop.index, loop.index)
        if blocks:
            type_ = vector(problem.key, lanes)
            with f.loop(kept, filled, lanes) as loop:
                bits = f.load(type_, self.element(self.x, start, loop.index), 1)
                better = f.compare(
                    "icmp ult", key_of(f, bits, problem), f.splat(self.last(), lanes)
                )
                some = f.call("i1", f"llvm.vector.reduce.or.v{lanes}i1", [better])
                with f.when(some), f.loop(0, lanes) as lane:
                    self.challenge(start, f.add(loop.index, lane.index))
        with f.loop(filled, problem.size) as loop:
            self.challenge(start, loop.index)

    def last(self) -> Reg:
        """The largest key that is kept."""
        end = (self.problem.kept - 1) * self.problem.dtype.size
        return self.f.load(self.problem.key, self.f.offset(self.keys[0], end), 1)

    def challenge(self, start: Reg, number: Reg) -> None:
        """Inserts an element if it comes before the last kept one."""
        f = self.f
        key = self.key(start, number)
        with f.when(f.compare("icmp ult", key, self.last())):
            self.insert(key, number, integer(self.problem.kept - 1))

    def insert(self, key: Reg, number: Reg, last: Reg) -> None:
        """Moves larger keys up from position `last`, and inserts element `number`."""
        f, problem = self.f, self.problem
        names = ("start", "head", "test", "move", "done")
        before, head, test, body, done = (f.label(name) for name in names)
        f.jump(before)
        f.start(before)
        f.jump(head)
        f.start(head)
        following = f.fresh("i")
        at = f.emit("i64", f"phi i64 [ {last.text}, %{before} ], [ {following}, %{body} ]")
        f.branch(f.compare("icmp sgt", at, integer(0)), test, done)
        f.start(test)
        lower = f.binary("sub", at, integer(1))
        other = f.load(problem.key, f.offset(self.keys[0], lower, problem.key), 1)
        f.branch(f.compare("icmp ugt", other, key), body, done)
        f.start(body)
        self.put(0, at, other, f.load("i32", f.offset(self.order[0], lower, "i32"), 1))
        f.line(f"{following} = add i64 {lower.text}, 0")
        f.jump(head)
        f.start(done)
        self.put(0, at, key, f.emit("i32", f"trunc {number} to i32"))

    def radix(self, start: Reg) -> int:
        """Sorts all keys byte by byte; returns which of the two arrays holds the result."""
        f, problem = self.f, self.problem
        with f.loop(0, problem.size) as loop:
            place = f.emit("i32", f"trunc {loop.index} to i32")
            self.put(0, loop.index, self.key(start, loop.index), place)
        side = 0
        for byte in range(problem.dtype.size):
            self.distribute(side, 8 * byte)
            side = 1 - side
        return side

    def distribute(self, side: int, shift: int) -> None:
        """Moves keys from one array to the other, ordered stably by one byte."""
        f, problem = self.f, self.problem
        with f.loop(0, BUCKETS) as loop:
            f.store(integer(0, "i32"), f.offset(self.counters, loop.index, "i32"), 1)
        with f.loop(0, problem.size) as loop:
            counter = self.counter(side, loop.index, shift)[0]
            count = f.load("i32", counter, 1)
            f.store(f.binary("add", count, integer(1, "i32")), counter, 1)
        with f.loop(0, BUCKETS, carried=[integer(0, "i32")]) as loop:
            counter = f.offset(self.counters, loop.index, "i32")
            count = f.load("i32", counter, 1)
            f.store(loop.carried[0], counter, 1)
            loop.next = [f.binary("add", loop.carried[0], count)]
        with f.loop(0, problem.size) as loop:
            counter, key = self.counter(side, loop.index, shift)
            count = f.load("i32", counter, 1)
            f.store(f.binary("add", count, integer(1, "i32")), counter, 1)
            place = f.load("i32", f.offset(self.order[side], loop.index, "i32"), 1)
            self.put(1 - side, f.emit("i64", f"zext {count} to i64"), key, place)

    def counter(self, side: int, number: Reg, shift: int) -> tuple[Reg, Reg]:
        """The address of the counter of a key's byte, and the key."""
        f, problem = self.f, self.problem
        key = f.load(problem.key, f.offset(self.keys[side], number, problem.key), 1)
        digit = f.binary("lshr", key, integer(shift, problem.key)) if shift else key
        if problem.key != "i8":
            digit = f.binary("and", digit, integer(BUCKETS - 1, problem.key))
        if problem.key != "i64":
            digit = f.emit("i64", f"zext {digit} to i64")
        return f.offset(self.counters, digit, "i32"), key


def key_of(f: Builder, bits: Reg, problem: Sort) -> Reg:
    """Keys of elements: unsigned integers in the order wanted."""

    def number(value: int) -> Reg:
        return constant(value, bits.type)

    key, sign = bits, -(1 << (problem.dtype.size * 8 - 1))
    if problem.dtype.kind == "i":
        key = f.binary("xor", bits, number(sign))
    elif problem.dtype.is_floating:
        size = f.binary("and", bits, number(~sign))
        zero = f.compare("icmp eq", size, number(0))
        bits = choose(f, zero, size, bits)  # -0 as 0
        below = f.compare("icmp slt", bits, number(0))
        turned = f.binary("xor", bits, number(-1))
        key = choose(f, below, turned, f.binary("or", bits, number(sign)))
        nan = f.compare("icmp ugt", size, number(INFINITY[problem.dtype.name]))
        key = choose(f, nan, number(-1), key)
    return f.binary("xor", key, number(-1)) if problem.descending else key
