"""Attention of one query per head: keys and values are read once, in place.

Keys in blocks of a vector: one dot product each, whose lanes are reduced for all keys together.
Then exponentials, and the values in the same blocks. Blocks that a mask hides entirely are skipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from weft.codegen import vecmath
from weft.codegen.builder import Reg, constant, integer, kernel_builder, vector
from weft.codegen.chunk import even_chunks
from weft.codegen.contraction.dot import add_lanes
from weft.codegen.contraction.emit import read, scaled, smaller, subtract, write
from weft.codegen.contraction.tile import ceil_div
from weft.codegen.loop.arithmetic import across, combine
from weft.codegen.loop.convert import choose, loaded
from weft.codegen.microkernel import first_lanes, fma, prefetch
from weft.codegen.target import Target
from weft.host.memory import LINE
from weft.ir.dtype import DType, bool_, float32
from weft.ir.extent import pinned
from weft.ir.node import Node
from weft.ir.shape import known
from weft.passes.group import Group
from weft.passes.launch import Argument, Kernel, Launch, Scratch

TOGETHER = 8
"""Vectors of a result that are summed at the same time."""


@dataclass(frozen=True)
class Problem:
    """`heads` queries, each attending to `keys` rows of its own."""

    heads: int
    keys: int
    width: int  # of queries and keys
    depth: int  # of values
    scale: float
    dtype: DType
    mask: DType | None

    @property
    def accumulator(self) -> DType:
        """The type of scores and sums: float32 for half precision."""
        return float32 if self.dtype.size < 4 else self.dtype

    @property
    def label(self) -> str:
        """For kernel names."""
        mask = "" if self.mask is None else f"_{self.mask}"
        return f"{self.dtype}_{self.heads}x{self.keys}x{self.width}x{self.depth}{mask}"


def query_attention(group: Group, target: Target) -> tuple[Launch, ...]:
    """The launch of a `query_attention` node."""
    node = group.nodes[0]
    problem = _problem_of(node)
    if not problem.heads:
        return ()
    kernel = _Kernel(problem, target)
    name = f"attention_of_one_{problem.label}"
    scratch = Scratch(kernel.pitch, per_thread=True)
    args: tuple[Argument, ...] = (*node.data_inputs, scratch, *node.outputs)
    first = len(node.data_inputs)
    rows = float(problem.heads * problem.keys * (problem.width + problem.depth))
    return (
        Launch(
            Kernel(name, kernel.ir(first)), args, (first, first + 1, first + 2),
            kernel.heads.chunks, flops=2 * rows, bytes=rows * problem.dtype.size,
        ),
    )  # fmt: skip


def _problem_of(node: Node) -> Problem:
    q, _, v, *mask = node.data_inputs
    batch, width = known(q.shape)[:-2], known(q.shape)[-1]
    kind = mask[0].dtype if mask else None
    keys, depth = known(v.shape)[-2:]
    depth = pinned(depth)  # of which there are registers
    return Problem(prod(batch), keys, width, depth, float(node.attrs["scale"]), q.dtype, kind)


class _Kernel:
    def __init__(self, problem: Problem, target: Target) -> None:
        self.problem = problem
        self.stored, self.dtype = problem.dtype, problem.accumulator
        self.size = self.dtype.size
        self.lanes = target.lanes(self.size)
        self.scalar = "float" if self.size == 4 else "double"
        self.type = vector(self.scalar, self.lanes)
        self.bytes = self.lanes * self.size  # of a vector
        self.blocks = ceil_div(problem.keys, self.lanes)
        self.pitch = self.blocks * self.bytes  # of a thread's scores
        self.heads = even_chunks(problem.heads)
        self.ahead = int(problem.keys) * problem.depth * self.stored.size <= target.l2 // 2
        self.low = constant(float("-inf"), self.type)
        self.zero = constant(0, self.type)

    def ir(self, scratch: int) -> str:
        """The kernel; arguments q, k, v, a mask if there is one, scratch, y, log-sum-exps."""
        b, p = kernel_builder(), self.problem
        self.b = b
        self.top, self.total = (b.emit("ptr", f"alloca {self.type}, align 64") for _ in range(2))
        self.dots = b.emit("ptr", f"alloca [{self.lanes} x {self.type}], align 64")
        self.sums = b.emit("ptr", f"alloca [{p.depth // self.lanes} x {self.type}], align 64")
        self.scores = b.offset(b.argument(scratch), b.mul(b.params[3], self.pitch))
        with self.heads.loop(b) as head:
            self._head(head, b.argument(scratch + 1), b.argument(scratch + 2))
        return b.module()

    def _head(self, head: Reg, y: Reg, logs: Reg) -> None:
        b, p = self.b, self.problem
        q, k, v = (
            scaled(b, b.argument(slot), head, elements, self.stored.size)
            for slot, elements in enumerate((p.width, p.keys * p.width, p.keys * p.depth))
        )
        self._put(self.top, self.low)
        with b.loop(0, self.blocks) as loop:
            self._score(head, loop.index, (q, k, v))
        top = across(b, "maximum", self.dtype, self._get(self.top))
        none = b.compare("fcmp oeq", top, constant(float("-inf"), self.scalar))
        top = choose(b, none, constant(0, self.scalar), top)
        self._put(self.total, self.zero)
        for i in range(p.depth // self.lanes):
            self._put(b.offset(self.sums, i * self.bytes), self.zero)
        with b.loop(0, self.blocks) as loop:
            self._add(loop.index, b.splat(top, self.lanes), v)
        total = across(b, "add", self.dtype, self._get(self.total))
        total = combine(b, "maximum", self.dtype, total, constant(1, self.scalar))
        factor = b.splat(b.binary("fdiv", constant(1, self.scalar), total), self.lanes)
        y = scaled(b, y, head, p.depth, self.stored.size)
        for i in range(p.depth // self.lanes):
            value = b.binary("fmul", self._get(b.offset(self.sums, i * self.bytes)), factor)
            write(b, value, b.offset(y, i * self.lanes * self.stored.size), self.stored, None)
        log = b.binary("fadd", top, vecmath.log(b, total))
        b.store(log, scaled(b, logs, head, 1, self.size), self.size)

    def _score(self, head: Reg, block: Reg, operands: tuple[Reg, Reg, Reg]) -> None:
        """The scores of a block of keys; minus infinity where masked."""
        b, p, (q, k, v) = self.b, self.problem, operands
        first = b.mul(block, self.lanes)
        left = smaller(b, subtract(b, integer(p.keys), first), self.lanes)
        seen, added = self._seen(head, first, left)
        place = self._scores(block)
        self._put(place, self.low)
        with b.when(self._any(seen)):
            with b.loop(0, left, at_least_once=True) as loop:
                key = b.add(first, loop.index)
                row = scaled(b, k, key, p.width, self.stored.size)
                self._put(b.offset(self.dots, b.mul(loop.index, self.bytes)), self._dot(q, row))
                if self.ahead:
                    self._ask(scaled(b, v, key, p.depth, self.stored.size))
            dots = [self._get(b.offset(self.dots, i * self.bytes)) for i in range(self.lanes)]
            (value,) = add_lanes(b, dots, self.lanes)
            value = b.binary("fmul", value, constant(p.scale, self.type))
            if added is not None:
                value = b.binary("fadd", value, added)
            value = choose(b, seen, value, self.low)
            self._put(place, value)
            self._put(self.top, combine(b, "maximum", self.dtype, self._get(self.top), value))

    def _seen(self, head: Reg, first: Reg, left: Reg) -> tuple[Reg, Reg | None]:
        """Which keys of a block count, and what a mask adds to their scores."""
        b, p, inside = self.b, self.problem, first_lanes(self.b, left, self.lanes)
        if p.mask is None:
            return inside, None
        at = b.add(b.mul(head, p.keys), first)
        place = scaled(b, b.argument(3), at, 1, p.mask.size)
        if p.mask is bool_:
            bytes_ = read(b, place, self.lanes, bool_, bool_, inside)
            return loaded(b, bytes_, bool_), None
        return inside, read(b, place, self.lanes, p.mask, self.dtype, inside)

    def _any(self, lanes: Reg) -> Reg:
        """Whether any lane is true."""
        bits = self.b.emit(f"i{self.lanes}", f"bitcast {lanes} to i{self.lanes}")
        return self.b.compare("icmp ne", bits, integer(0, f"i{self.lanes}"))

    def _ask(self, row: Reg) -> None:
        """Prefetches a row of values."""
        for at in range(0, self.problem.depth * self.stored.size, LINE):
            prefetch(self.b, self.b.offset(row, at), 2)

    def _dot(self, q: Reg, row: Reg) -> Reg:
        """Products of a query and a key, before the reduction over lanes."""
        b, step = self.b, self.lanes * self.stored.size
        whole = self.problem.width // self.lanes
        if whole > TOGETHER:
            with b.loop(0, whole * step, step, [self.zero]) as loop:
                x, y = (self._load(b.offset(z, loop.index)) for z in (q, row))
                loop.next = [fma(b, x, y, loop.carried[0])]
            return loop.results[0]
        found = self.zero
        for i in range(whole):
            x, y = (self._load(b.offset(z, i * step)) for z in (q, row))
            found = fma(b, x, y, found)
        return found

    def _add(self, block: Reg, top: Reg, v: Reg) -> None:
        """Exponentials of a block's scores, which scale the values added to the sums."""
        b, p = self.b, self.problem
        first = b.mul(block, self.lanes)
        score = self._get(self._scores(block))
        with b.when(self._any(b.compare("fcmp une", score, self.low))):
            e = vecmath.exp(b, b.binary("fsub", score, top))
            self._put(self.total, b.binary("fadd", self._get(self.total), e))
            self._put(self._scores(block), e)
            left = smaller(b, subtract(b, integer(p.keys), first), self.lanes)
            vectors = p.depth // self.lanes
            for begin in range(0, vectors, TOGETHER):
                self._values(block, left, v, range(begin, min(begin + TOGETHER, vectors)))

    def _values(self, block: Reg, left: Reg, v: Reg, vectors: range) -> None:
        b, p = self.b, self.problem
        places = [b.offset(self.sums, i * self.bytes) for i in vectors]
        weights = self._scores(block)
        rows = scaled(b, v, b.mul(block, self.lanes), p.depth, self.stored.size)
        start = [self._get(place) for place in places]
        with b.loop(0, left, 1, start, at_least_once=True) as loop:
            at = b.offset(weights, b.mul(loop.index, self.size))
            weight = b.splat(b.load(self.scalar, at, self.size), self.lanes)
            row = scaled(b, rows, loop.index, p.depth, self.stored.size)
            for n, i in enumerate(vectors):
                value = self._load(b.offset(row, i * self.lanes * self.stored.size))
                loop.next[n] = fma(b, weight, value, loop.carried[n])
        for place, value in zip(places, loop.results, strict=True):
            self._put(place, value)

    def _scores(self, block: Reg) -> Reg:
        return self.b.offset(self.scores, self.b.mul(block, self.bytes))

    def _load(self, place: Reg) -> Reg:
        return read(self.b, place, self.lanes, self.stored, self.dtype, None)

    def _get(self, place: Reg) -> Reg:
        return self.b.load(self.type, place, self.size)

    def _put(self, place: Reg, value: Reg) -> None:
        self.b.store(value, place, self.size)
