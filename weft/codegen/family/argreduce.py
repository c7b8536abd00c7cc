"""Argmax and argmin: the first of equal elements, and the first NaN, wins."""

from __future__ import annotations

from collections.abc import Sequence

from weft.codegen.builder import Builder, Reg, constant, integer, kernel_builder, vector
from weft.codegen.chunk import by_work
from weft.codegen.contraction.emit import divide, read, write
from weft.codegen.family.emit import (
    UNROLL,
    Part,
    axis_of,
    blocks_of,
    compute_dtype,
    over_blocks,
    over_vectors,
)
from weft.codegen.loop.arithmetic import lane_numbers, part
from weft.codegen.loop.convert import choose, convert
from weft.codegen.target import Target
from weft.ir.dtype import DType, bool_, uint8
from weft.ir.extent import Extent, smallest
from weft.ir.shape import known
from weft.ops.declaration import family_of
from weft.passes.group import Group
from weft.passes.launch import Kernel, Launch


class Contest:
    """The comparison of one argmax or argmin: loads, comparisons and stores."""

    def __init__(self, f: Builder, combine: str, dtype: DType, out: DType, target: Target) -> None:
        self.f = f
        self.dtype = uint8 if dtype is bool_ else dtype  # 0 and 1 compare as they are stored
        self.value = compute_dtype(self.dtype)
        self.out = out
        self.index = "i64" if dtype.size == 8 else "i32"
        self.lanes = target.vector_bits // (64 if dtype.size == 8 else 32)
        self.x, self.y = f.argument(0), f.argument(1)
        self._above = "gt" if combine == "maximum" else "lt"

    def load(self, at: Reg, lanes: int, mask: Reg | None = None) -> Reg:
        """Loads elements from offset `at`."""
        pointer = self.f.offset(self.x, self.f.mul(at, self.dtype.size))
        return read(self.f, pointer, lanes, self.dtype, self.value, mask)

    def store(self, index: Reg, at: Reg, mask: Reg | None = None) -> None:
        """Stores positions at offset `at`."""
        bits = self.out.size * 8
        index = convert(
            self.f, "trunc" if bits < int(self.index[1:]) else "zext", index, f"i{bits}"
        )
        write(self.f, index, self.f.offset(self.y, self.f.mul(at, self.out.size)), self.out, mask)

    def beats(self, a: Reg, b: Reg) -> Reg:
        """Lanes where `a`, which comes later, wins over `b`."""
        f = self.f
        if not self.value.is_floating:
            sign = "s" if self.value.kind == "i" else "u"
            return f.compare(f"icmp {sign}{self._above}", a, b)
        above = f.compare(f"fcmp u{self._above}", a, b)  # or one of them is NaN
        return f.binary("and", above, f.compare("fcmp ord", b, b))

    def round(self, best: tuple[Reg, Reg], at: Reg, number: Reg, lanes: int) -> list[Reg]:
        """Updates the best so far, a value and its position, with the elements at `at`."""
        new = self.load(at, lanes)
        wins = self.beats(new, best[0])
        return [choose(self.f, wins, new, best[0]), choose(self.f, wins, number, best[1])]

    def replaces(self, a: tuple[Reg, Reg], b: tuple[Reg, Reg]) -> Reg:
        """Lanes where `a`, a value and its position, wins over `b` in any order."""
        f = self.f
        better, worse = self.beats(a[0], b[0]), self.beats(b[0], a[0])
        equal = f.binary("xor", f.binary("or", better, worse), constant(1, better.type))
        earlier = f.compare("icmp slt", a[1], b[1])
        return f.binary("or", better, f.binary("and", equal, earlier))


def argreduce(group: Group, target: Target) -> tuple[Launch, ...]:
    """Along the last axis by vectors of the row, along another by vectors across it."""
    node = group.nodes[0]
    x, y = node.data_inputs[0], node.outputs[0]
    outer, size, inner = axis_of(known(x.shape), node.attrs["axis"])
    if not outer * inner:
        return ()
    f = kernel_builder()
    contest = Contest(f, family_of(node).combine, x.dtype, y.dtype, target)
    block_size = UNROLL * contest.lanes
    blocks = blocks_of(inner, block_size)
    rows = by_work(outer * blocks, size * smallest(inner, block_size))
    with rows.loop(f) as row:
        if inner == 1:
            along(f, contest, row, size)
        else:
            image, block = divide(f, row, integer(blocks))

            def body(first: Reg, count: Reg | int) -> None:
                start = f.add(f.mul(image, size * inner), first)
                across(f, contest, start, f.add(f.mul(image, inner), first), (size, inner, count))

            over_blocks(f, inner, block_size, block, body)
    name = f"{node.op}_{x.dtype.name}_{outer}x{size}x{inner}"
    read_bytes = float(outer * size * inner * x.dtype.size)
    return (Launch(Kernel(name, f.module()), (x, y), (1,), rows.chunks, bytes=read_bytes),)


def across(
    f: Builder, contest: Contest, start: Reg, out: Reg, sizes: tuple[int, int, Reg | int]
) -> None:
    """`count` adjacent columns; `sizes` are the axis' length, its stride, and the count."""
    size, stride, count = sizes
    lanes = contest.lanes
    zero = constant(0, vector(contest.index, lanes))

    def body(first: Reg, parts: Sequence[Part]) -> None:
        offsets = [f.add(f.add(start, first), p.first) for p in parts]
        best = [contest.load(at, lanes, p.mask) for at, p in zip(offsets, parts, strict=True)]
        with f.loop(1, size, carried=[*best, *[zero] * len(parts)]) as loop:
            number = convert(f, "trunc", loop.index, contest.index)
            number = f.splat(number, lanes)
            for i, (at, block) in enumerate(zip(offsets, parts, strict=True)):
                new = contest.load(f.add(at, f.mul(loop.index, stride)), lanes, block.mask)
                wins = contest.beats(new, loop.carried[i])
                old = loop.carried[len(parts) + i]
                loop.next[i] = choose(f, wins, new, loop.carried[i])
                loop.next[len(parts) + i] = choose(f, wins, number, old)
        for winner, block in zip(loop.results[len(parts) :], parts, strict=True):
            contest.store(winner, f.add(f.add(out, first), block.first), block.mask)

    over_vectors(f, count, lanes, body)


def along(f: Builder, contest: Contest, row: Reg, size: int) -> None:
    """One row: by vectors, then a reduction over lanes, then the remaining single elements."""
    start, whole = f.mul(row, size), size // contest.lanes * contest.lanes
    best = contest.load(start, 1), integer(0, contest.index)
    if whole:
        best = best_lane(f, contest, best_vector(f, contest, start, whole))
    with f.loop(max(whole, 1), size, carried=best) as loop:
        at = f.add(start, loop.index)
        number = convert(f, "trunc", loop.index, contest.index)
        loop.next = contest.round((loop.carried[0], loop.carried[1]), at, number, 1)
    contest.store(loop.results[1], row)


def best_vector(f: Builder, contest: Contest, start: Reg, whole: int) -> tuple[Reg, Reg]:
    """The winner of every lane; several accumulators, to hide the latency of comparisons."""
    lanes = contest.lanes
    count = _vectors(whole // lanes)
    rounds = whole // (count * lanes) * count * lanes
    numbers = lane_numbers(vector(contest.index, lanes))
    offsets = [i * lanes for i in range(count)]

    def positions(index: Reg) -> Reg:
        at = f.splat(convert(f, "trunc", index, contest.index), lanes)
        return f.binary("add", numbers, at)

    carried = [v for at in offsets for v in (contest.load(f.add(start, at), lanes), numbers)]
    with f.loop(count * lanes, rounds, count * lanes, carried=carried) as loop:
        number, at = positions(loop.index), f.add(start, loop.index)
        for i, offset in enumerate(offsets):
            pair = loop.carried[2 * i], loop.carried[2 * i + 1]
            loop.next[2 * i : 2 * i + 2] = contest.round(pair, f.add(at, offset), number, lanes)
    best = loop.results[0], loop.results[1]
    for i, offset in enumerate(offsets[1:], start=1):
        shifted = f.binary("add", loop.results[2 * i + 1], constant(offset, numbers.type))
        other = loop.results[2 * i], shifted
        wins = contest.replaces(other, best)
        best = choose(f, wins, other[0], best[0]), choose(f, wins, other[1], best[1])
    with f.loop(rounds, whole, lanes, carried=best) as loop:
        pair = loop.carried[0], loop.carried[1]
        loop.next = contest.round(pair, f.add(start, loop.index), positions(loop.index), lanes)
    return loop.results[0], loop.results[1]


def _vectors(most: int) -> int:
    """How many vectors at a time; a kernel for many sizes has many or one."""
    if isinstance(most, Extent):
        return UNROLL if most >= UNROLL else 1
    return min(UNROLL, most)


def best_lane(f: Builder, contest: Contest, x: tuple[Reg, Reg]) -> tuple[Reg, Reg]:
    """The winner among the lanes, by halves."""
    lanes = contest.lanes
    while lanes > 1:
        lanes //= 2
        low, high = (tuple(part(f, v, at, lanes) for v in x) for at in (0, lanes))
        wins = contest.replaces((high[0], high[1]), (low[0], low[1]))
        x = choose(f, wins, high[0], low[0]), choose(f, wins, high[1], low[1])
    return x
