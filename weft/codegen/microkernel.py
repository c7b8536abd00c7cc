"""The microkernel: a tile of accumulators in registers, the sum of outer products over k.

`rows x vectors` accumulators; each k loads `vectors` vectors of the right operand, broadcasts one
element per row of the left one and does `rows * vectors` multiply-adds. Matmuls, convolutions,
recurrent cells and attention differ only in the loops around it. Accumulators stay in registers:
the caller stores them or goes on computing with them.

Budget: accumulators + one vector per column + one broadcast <= registers, and at least 8
accumulators, because two units with a latency of 4 cycles need 8 independent multiply-adds.
14 x 2 of 32 registers (AVX-512) takes 16 loads for 28 multiply-adds and reaches the peak of Zen 5,
288 GFLOP/s a core; 6 x 2 of 16 registers (AVX2) is the usual choice there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from weft.codegen.builder import Builder, Reg, constant, element, integer, memory_type, vector
from weft.codegen.target import Target
from weft.host.memory import LINE
from weft.ir.dtype import DType
from weft.ir.extent import symbolic

UNROLL = 4
"""Steps of k per iteration: amortizes loop overhead; 8 gains nothing measurable."""
LOADS = 0.75
"""Maximum loads per multiply-add. Up to it multiply-adds use embedded broadcasts for some rows,
once for each vector, which takes fewer instructions: 8 x 3 32 a step, not 35, 13 x 2 37, not 41.
Matmuls of 2048 x 384 x 1536 and others are 2 to 9% faster, most where another tenant's thread has
half of the core's decoder (Cascade Lake); with a load for every multiply-add 15% slower.
"""
SHARED = 3
"""Rows that share a pointer, if the bytes between rows are in a register: 13 take 5 pointers and 2
indices, not 13 pointers, most of which would be loaded again in each iteration.
"""
EMBEDDED = 64
"""Bytes of the vectors that have embedded broadcasts from memory (AVX-512)."""
SECOND = 2
"""The cache level to prefetch into: in L1 they would evict what the loop reads."""


@dataclass(frozen=True)
class Tile:
    """The shape of a microkernel: `rows x (vectors * lanes)` sums of a floating type.

    With `pairs`, an element of an operand is two bfloat16 adjacent along k, in place of one
    float32: AVX512_BF16 multiplies and adds both in one instruction.
    """

    rows: int
    vectors: int
    lanes: int
    dtype: DType
    pairs: bool = False

    @property
    def columns(self) -> int:
        """Elements across the tile."""
        return self.vectors * self.lanes

    @property
    def type(self) -> str:
        """LLVM's type of one accumulator."""
        return memory_type(self.dtype, self.lanes)


def max_rows(target: Target, vectors: int) -> int:
    """How many rows fit the registers beside `vectors` columns: 14 for 2 of 32, 6 for 2 of 16."""
    spare = vectors + 1 if vectors > 1 else 2  # a single column folds its broadcast into the fma
    return max(1, min((target.registers - spare) // vectors, 28))


def largest_tile(target: Target, dtype: DType) -> Tile:
    """The tile for matmuls that are large in every dimension."""
    return Tile(max_rows(target, 2), 2, target.lanes(dtype.size), dtype)


class Address(NamedTuple):
    """A memory address: a pointer and a constant byte offset, or one in a register."""

    pointer: Reg
    bytes: int = 0
    more: Reg | None = None


class Left(NamedTuple):
    """The operand that is broadcast: element (row, k) lies at `rows[row] + k * step` bytes.

    Rows that share a pointer and differ by a constant are free; each further pointer costs a
    general register, or one reload per iteration once they run out.
    """

    rows: tuple[Address, ...]
    step: Reg | int


class Right(NamedTuple):
    """The operand read by vectors: those of step k begin at `pointer + k * step` bytes.

    Vectors are `spacing` bytes apart (contiguous if 0). `masks` gives, per vector, an
    `<lanes x i1>` register, or nothing to read all lanes; other lanes are 0 and not touched.
    `distance` is for steps that are pages apart, in memory and not in a cache.
    """

    pointer: Reg
    step: Reg | int
    masks: tuple[Reg | None, ...] = ()
    spacing: int = 0
    distance: int = 0  # prefetch distance in steps of k


class Ahead(NamedTuple):
    """Cache lines to prefetch in the loop, because they are needed soon after.

    The first `times` iterations of the loop over k prefetch `lines` adjacent lines each, at
    `pointer` and then `stride` bytes on: not all at once, which would fill the queue of misses.
    """

    pointer: Reg
    stride: Reg | int
    lines: int
    times: int


Accumulators = list[list[Reg]]
"""Registers of a tile by row, then vector."""


def strided(b: Builder, base: Reg, stride: Reg | int, count: int, step: Reg | int) -> Left:
    """A left operand whose rows are `stride` bytes apart: constants become displacements.

    Otherwise `SHARED` rows share a pointer, from which the others are an index away.
    """
    if isinstance(stride, int):
        return Left(tuple(Address(base, row * stride) for row in range(count)), step)
    places = [None, stride, *(b.mul(stride, i) for i in range(2, SHARED))]
    apart = b.mul(stride, SHARED)
    rows: list[Address] = []
    pointer = base
    for row in range(count):
        if row and row % SHARED == 0:
            pointer = b.offset(pointer, apart)
        rows.append(Address(pointer, 0, places[row % SHARED]))
    return Left(tuple(rows), step)


def embedded(tile: Tile) -> list[int]:
    """The rows whose multiply-adds use embedded broadcasts, evenly spread."""
    if tile.pairs or tile.vectors == 1 or tile.lanes * tile.dtype.size != EMBEDDED:
        return []
    loads = tile.vectors + tile.rows
    spare = int(LOADS * tile.rows * tile.vectors) - loads
    count = max(0, min(spare // (tile.vectors - 1), tile.rows))
    return [i * tile.rows // count for i in range(count)]


def zeros(tile: Tile) -> Accumulators:
    """Zero accumulators."""
    return [[constant(0, tile.type)] * tile.vectors for _ in range(tile.rows)]


def unroll_of(depth: int) -> int:
    """Steps per iteration: two if the depth differs from run to run.

    Convolutions are as fast as with four, and compile in 0.85 of the time.
    """
    return UNROLL // 2 if symbolic(depth) else UNROLL


def microkernel(
    b: Builder,
    tile: Tile,
    left: Left,
    right: Right,
    depth: Reg | int,
    start: Accumulators | None = None,
    unroll: int = UNROLL,
    ahead: Sequence[Ahead] = (),
    even: bool = False,
) -> Accumulators:
    """Writes `start + left @ right` over `depth` steps of k; returns the result registers.

    Args:
        depth: number of steps; 0 gives `start`.
        start: accumulators to add to, such as loaded ones; zeros if not given.
        ahead: memory to prefetch, which is used after the loop.
        even: whether `depth` is a multiple of `unroll`. If it is in a register, the kernel has
            no loop for what is left over, and compiles 10% faster.
    """
    writer = _Writer(b, tile, left, right, unroll, ahead)
    return writer.write(depth, start or zeros(tile), even)


class _Writer:
    """One microkernel under construction."""

    def __init__(
        self, b: Builder, tile: Tile, left: Left, right: Right, unroll: int,
        ahead: Sequence[Ahead] = (),
    ) -> None:  # fmt: skip
        self.b = b
        self.tile = tile
        self.left = left
        self.right = right
        self.unroll = unroll
        self.ahead = ahead
        # Few pointers advance; many stay fixed and share one advancing offset.
        self.pointers = list(dict.fromkeys(address.pointer for address in left.rows))
        few = len(self.pointers) <= 2
        self.moving = few or any(address.more is not None for address in left.rows)
        self.embedded = embedded(tile) if few else []

    def write(self, depth: Reg | int, start: Accumulators, even: bool) -> Accumulators:
        b, unroll = self.b, self.unroll
        flat = [register for row in start for register in row]
        state = [*flat, self.right.pointer, *(self._copies() if self.moving else [integer(0)])]
        self.asked = len(state)
        state += [ahead.pointer for ahead in self.ahead]
        self.iterations = max(1, depth // unroll) if isinstance(depth, int) else 0
        if isinstance(depth, int):
            whole: Reg | int = depth - depth % unroll
            if whole:
                state = self._loop(state, 0, whole, unroll)
            for _ in range(depth % unroll):
                state = self._steps(state, 1)
        else:
            whole = b.binary("and", depth, integer(-unroll))
            state = self._loop(state, 0, whole, unroll)
            if not even:
                state = self._loop(state, whole, depth, 1)
        vectors = self.tile.vectors
        return [state[i : i + vectors] for i in range(0, len(flat), vectors)]

    def _copies(self) -> list[Reg]:
        """The left operand's pointers, one per vector, as LLVM would merge equal loads."""
        more = self.tile.vectors - 1 if self.embedded else 0
        return [q for p in self.pointers for q in (p, *(_moved(self.b, p) for _ in range(more)))]

    def _loop(self, state: list[Reg], start: Reg | int, stop: Reg | int, steps: int) -> list[Reg]:
        with self.b.loop(start, stop, steps, state) as loop:
            loop.next = self._steps(loop.carried, steps)
            if self.ahead and steps == self.unroll:
                loop.next[self.asked :] = self._ask(loop.carried[self.asked :], loop.index)
        return loop.results

    def _steps(self, state: list[Reg], steps: int) -> list[Reg]:
        """`steps` steps of k, then the pointers advanced past them."""
        count = self.tile.rows * self.tile.vectors
        flat, right, moving = list(state[:count]), state[count], state[count + 1 : self.asked]
        for k in range(steps):
            self._step(flat, self._ahead(right, self.right.step, k), k, moving)
        right = _moved(self.b, self._ahead(right, self.right.step, steps))
        if self.moving:
            moving = [_moved(self.b, self._ahead(p, self.left.step, steps)) for p in moving]
        else:
            moving = [self.b.add(moving[0], self._times(self.left.step, steps))]
        return [*flat, right, *moving, *state[self.asked :]]

    def _ask(self, pointers: list[Reg], k: Reg) -> list[Reg]:
        """Prefetches what `ahead` says; returns the advanced pointers."""
        b = self.b
        following: list[Reg] = []
        for pointer, (_, stride, lines, times) in zip(pointers, self.ahead, strict=True):
            step = stride if isinstance(stride, Reg) else integer(stride)
            each = -(-times // self.iterations) if self.iterations else 1
            more = b.compare("icmp slt", k, integer(times // each * self.unroll))
            step = b.emit("i64", f"select {more}, {step}, {integer(0)}")
            for _ in range(each):
                for line in range(lines):
                    prefetch(b, b.offset(pointer, line * LINE), SECOND)
                pointer = b.offset(pointer, step)
            following.append(_moved(b, pointer))
        return following

    def _step(self, flat: list[Reg], right: Reg, k: int, moving: list[Reg]) -> None:
        """One step of k: the vectors of the right operand, then each row's element times them."""
        b, vectors = self.b, self.tile.vectors
        columns = [self._column(right, v) for v in range(vectors)]
        at = self._positions(moving, k)
        for row, address in enumerate(self.left.rows):
            places = at[address.pointer] if row in self.embedded else at[address.pointer][:1]
            if address.more is not None:
                places = [b.offset(place, address.more) for place in places]
            factors = [self._factor(b.offset(place, address.bytes)) for place in places]
            for v, column in enumerate(columns):
                i = row * vectors + v
                factor = factors[v % len(factors)]
                if self.tile.pairs:
                    flat[i] = multiply_pairs(b, factor, column, flat[i])
                else:
                    flat[i] = fma(b, factor, column, flat[i])

    def _factor(self, place: Reg) -> Reg:
        tile = self.tile
        scalar = self.b.load(memory_type(tile.dtype), place, tile.dtype.size)
        return self.b.splat(scalar, tile.lanes)

    def _positions(self, moving: list[Reg], k: int) -> dict[Reg, list[Reg]]:
        """The positions of the left operand's pointers at step k of an iteration."""
        if self.moving:
            ahead = [self._ahead(p, self.left.step, k) for p in moving]
            each = len(ahead) // len(self.pointers)
            return {p: ahead[i * each : (i + 1) * each] for i, p in enumerate(self.pointers)}
        place = self.b.add(moving[0], self._times(self.left.step, k))
        return {pointer: [self.b.offset(pointer, place)] for pointer in self.pointers}

    def _ahead(self, pointer: Reg, step: Reg | int, steps: int) -> Reg:
        return self.b.offset(pointer, self._times(step, steps))

    def _times(self, step: Reg | int, steps: int) -> Reg:
        if isinstance(step, int):
            return integer(step * steps)
        return self.b.mul(step, steps)

    def _column(self, pointer: Reg, v: int) -> Reg:
        tile, size = self.tile, self.tile.dtype.size
        place = self.b.offset(pointer, v * (self.right.spacing or tile.lanes * size))
        if self.right.distance:
            prefetch(self.b, self._ahead(place, self.right.step, self.right.distance), SECOND)
        mask = self.right.masks[v] if self.right.masks else None
        if mask is None:
            return self.b.load(tile.type, place, size)
        return load_masked(self.b, tile.type, place, mask)


def prefetch(b: Builder, place: Reg, near: int, write: bool = False) -> None:
    """Prefetches the cache line at `place` into L1 (`near` 3) or L2 (2).

    Any address is allowed. `write` acquires the line for writing.
    """
    args = (place, integer(int(write), "i32"), integer(near, "i32"), integer(1, "i32"))
    b.call("void", "llvm.prefetch.p0", args)


def fma(b: Builder, x: Reg, y: Reg, z: Reg) -> Reg:
    """`x * y + z`, rounded once if the processor can (all but x86-64-v2)."""
    return b.call(z.type, f"llvm.fmuladd.{suffix(z.type)}", (x, y, z))


def multiply_pairs(b: Builder, x: Reg, y: Reg, z: Reg) -> Reg:
    """`z` plus both products of the bfloat16 pairs in each lane; vectors of 512 bits."""
    pairs = "<32 x bfloat>"
    x, y = (b.emit(pairs, f"bitcast {r} to {pairs}") for r in (x, y))
    return b.call(z.type, "llvm.x86.avx512bf16.dpbf16ps.512", (z, x, y))


def load_masked(b: Builder, type_: str, pointer: Reg, mask: Reg) -> Reg:
    """Loads the lanes of `mask`; other lanes are 0."""
    name = f"llvm.masked.load.{suffix(type_)}.p0"
    return b.call(type_, name, (pointer, integer(1, "i32"), mask, Reg(type_, "zeroinitializer")))


def store_masked(b: Builder, value: Reg, pointer: Reg, mask: Reg) -> None:
    """Stores the lanes of `mask` only."""
    if element(value.type) in ("half", "bfloat", "i8", "i16", "i32"):
        mask = opaque(b, mask)
    b.call(
        "void",
        f"llvm.masked.store.{suffix(value.type)}.p0",
        (value, pointer, integer(1, "i32"), mask),
    )


def _moved(b: Builder, pointer: Reg) -> Reg:
    """The same pointer, hidden from LLVM's loop strength reduction.

    That pass would express one pointer by the other if their steps are 1, 2, 4 or 8 apart, with
    a pointer for every load of an iteration: 32 of them, spilled and reloaded each time.
    """
    if not pointer.text.startswith("%"):
        return pointer
    return b.emit("ptr", f'call ptr asm "", "=r,0"({pointer})', "p")


def opaque(b: Builder, mask: Reg) -> Reg:
    """The same mask, with its value hidden from LLVM.

    LLVM 22 widens masked stores with one constant lane set: of 1 or 2 bytes to 4 bytes, and of
    4-byte integers truncated from 8 bytes to 8 bytes.
    """
    bits = f"i{mask.type[1:].split(' x ')[0]}"
    word = b.emit(bits, f"bitcast {mask} to {bits}")
    hidden = b.emit(bits, f'call {bits} asm "", "=r,0"({word})')
    return b.emit(mask.type, f"bitcast {hidden} to {mask.type}")


def first_lanes(b: Builder, count: Reg, lanes: int) -> Reg:
    """A mask of the lanes below `count`, an `i64` of any sign."""
    limit = b.splat(count, lanes)
    names = ", ".join(f"i64 {i}" for i in range(lanes))
    return b.compare("icmp sgt", limit, Reg(vector("i64", lanes), f"<{names}>"))


_SUFFIXES = {
    "half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64",
    "i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64",
}  # fmt: skip


def suffix(type_: str) -> str:
    """A type's spelling in overloaded intrinsics: `v16f32` for `<16 x float>`."""
    if not type_.startswith("<"):
        return _SUFFIXES[type_]
    lanes, scalar = type_[1:-1].split(" x ")
    return f"v{lanes}{_SUFFIXES[scalar]}"
