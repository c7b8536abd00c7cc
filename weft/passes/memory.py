"""Plans the arena before anything runs: the offset and the lifetime of every temporary buffer.

>>> steps = [Step(reads=(), writes=(0,)), Step(reads=(0,), writes=(1,)), Step((1,), (2,))]
>>> print(plan(steps, {0: 100, 1: 100, 2: 100}))
arena 256 B, 3 buffers, most alive at once 256 B (at step 1)
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from weft.host.memory import LINE

EXACT: Final = 1500  # buffers placed by size; the rest, which hold few bytes, by time


class Step(NamedTuple):
    """One launch for the memory planner: the buffer ids that it reads and writes.

    `inplace` pairs (written, read) may share memory, as in `weft.passes.launch.Launch`. A buffer
    that is read twice appears twice in `reads`, and is shared only if both reads allow it.
    """

    reads: tuple[int, ...]
    writes: tuple[int, ...]
    inplace: tuple[tuple[int, int], ...] = ()


class Life(NamedTuple):
    """The live range of a buffer: its first and last step, inclusive."""

    first: int
    last: int


@dataclass(frozen=True)
class Plan:
    """Byte offsets of the buffers in one block of `total` bytes."""

    offsets: Mapping[int, int]
    total: int
    sizes: Mapping[int, int]
    lives: Mapping[int, Life]
    hosts: Mapping[int, int] = field(default_factory=dict[int, int])  # buffer -> buffer it reuses

    def live_bytes(self) -> list[int]:
        """Live bytes after each step; their maximum is a lower bound of any plan."""
        return _live_bytes(self._blocks())

    def _blocks(self) -> dict[int, _Block]:
        return _blocks(self.sizes, self.lives, self.hosts)

    def __str__(self) -> str:
        live = self.live_bytes()
        peak = max(range(len(live)), key=live.__getitem__, default=0)
        bytes_ = live[peak] if live else 0
        shared = f", {len(self.hosts)} in place" if self.hosts else ""
        return (
            f"arena {self.total:,} B, {len(self.sizes)} buffers{shared}, "
            f"most alive at once {bytes_:,} B (at step {peak})"
        )


class _Block(NamedTuple):
    """Memory for one buffer, or for a chain of buffers that reuse each other in place."""

    size: int
    first: int
    last: int


def lifetimes(steps: Sequence[Step], keep: Iterable[int] = ()) -> dict[int, Life]:
    """Live ranges of the buffers; those in `keep` live to the end of the program."""
    lives: dict[int, Life] = {}
    for now, step in enumerate(steps):
        for buffer in (*step.reads, *step.writes):
            known = lives.get(buffer)
            lives[buffer] = Life(now if known is None else known.first, now)
    end = len(steps) - 1
    for buffer in keep:
        if buffer in lives:
            lives[buffer] = Life(lives[buffer].first, end)
    return lives


def plan(
    steps: Sequence[Step],
    sizes: Mapping[int, int],
    keep: Iterable[int] = (),
    alignment: int = LINE,
) -> Plan:
    """Place the buffers that `steps` touch; `sizes` in bytes.

    Buffer ids that are not in `sizes` lie outside the arena and are ignored. Buffers in `keep` stay
    readable until the end.
    """
    kept = frozenset(keep)
    lives = {b: life for b, life in lifetimes(steps, kept).items() if b in sizes}
    padded = {b: _round(max(sizes[b], 1), alignment) for b in lives}
    hosts = _reuse(steps, padded, lives, kept)
    blocks = _blocks(padded, lives, hosts)
    places, total = _place(blocks)
    offsets = {b: places[_root(b, hosts)] for b in lives}
    return Plan(offsets, total, padded, lives, hosts)


def _round(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment


def _reuse(
    steps: Sequence[Step],
    sizes: Mapping[int, int],
    lives: Mapping[int, Life],
    kept: frozenset[int],
) -> dict[int, int]:
    """Which buffer reuses the memory of which, where the last reader allows it in place."""
    hosts: dict[int, int] = {}
    for now, step in enumerate(steps):
        if not step.inplace:
            continue
        pairs, reads, taken = Counter(step.inplace), Counter(step.reads), set[int]()
        for written, read in pairs:
            fits = (
                written in sizes
                and read in sizes
                and written not in hosts
                and read not in taken
                and read not in kept  # nor by the last step, at which its life ends
                and lives[read].last == now
                and lives[written].first == now
                and lives[read].first < now
                and sizes[written] <= sizes[read]
                and pairs[written, read] >= reads[read]
            )
            if fits:
                hosts[written] = read
                taken.add(read)
    return hosts


def _root(buffer: int, hosts: Mapping[int, int]) -> int:
    while buffer in hosts:
        buffer = hosts[buffer]
    return buffer


def _blocks(
    sizes: Mapping[int, int], lives: Mapping[int, Life], hosts: Mapping[int, int]
) -> dict[int, _Block]:
    blocks: dict[int, _Block] = {}
    for buffer, life in sorted(lives.items(), key=lambda item: item[1].first):
        # A buffer is alive strictly before the one that reuses it, so its block exists.
        root = _root(buffer, hosts)
        block = blocks.get(root)
        if block is None:
            blocks[root] = _Block(sizes[buffer], *life)
        else:
            blocks[root] = _Block(block.size, block.first, max(block.last, life.last))
    return blocks


def _live_bytes(blocks: Mapping[int, _Block]) -> list[int]:
    if not blocks:
        return []
    change = [0] * (max(b.last for b in blocks.values()) + 2)
    for block in blocks.values():
        change[block.first] += block.size
        change[block.last + 1] -= block.size
    live: list[int] = []
    total = 0
    for delta in change[:-1]:
        total += delta
        live.append(total)
    return live


def _place(blocks: Mapping[int, _Block]) -> tuple[dict[int, int], int]:
    """The smallest of a few cheap plans; stops at the lower bound."""
    bound = max(_live_bytes(blocks), default=0)
    best: tuple[dict[int, int], int] = ({}, 0)
    for number, candidate in enumerate(_candidates(blocks)):
        if number == 0 or candidate[1] < best[1]:
            best = candidate
        if best[1] <= bound:
            break
    return best


def _candidates(blocks: Mapping[int, _Block]) -> Iterator[tuple[dict[int, int], int]]:
    yield _by_time(blocks)
    yield _by_time({key: _Block(b.size, -b.last, -b.first) for key, b in blocks.items()})
    order = sorted(blocks, key=lambda key: (-blocks[key].size, blocks[key].first))
    large, small = order[:EXACT], order[EXACT:]
    places, total = _by_size({key: blocks[key] for key in large})
    rest, extra = _by_time({key: blocks[key] for key in small})
    places.update({key: total + offset for key, offset in rest.items()})
    yield places, total + extra


def _by_time(blocks: Mapping[int, _Block]) -> tuple[dict[int, int], int]:
    """Allocates and frees in program order, with best fit."""
    heap = _Heap()
    events: list[tuple[int, int, int, int]] = []  # frees after step t come before step t + 1
    for key, block in blocks.items():
        events.append((block.first, 1, -block.size, key))
        events.append((block.last + 1, 0, 0, key))
    offsets: dict[int, int] = {}
    for _, starts, _, key in sorted(events):
        if starts:
            offsets[key] = heap.take(blocks[key].size)
        else:
            heap.give(offsets[key], blocks[key].size)
    return offsets, heap.top


class _Heap:
    """Free holes below `top`, by size and by address."""

    def __init__(self) -> None:
        self.top = 0
        self._by_size: list[tuple[int, int]] = []  # (size, offset), sorted
        self._starts: dict[int, int] = {}  # offset -> size
        self._ends: dict[int, int] = {}  # end -> offset

    def take(self, size: int) -> int:
        """Allocates `size` bytes; returns the offset."""
        index = bisect.bisect_left(self._by_size, (size, 0))
        if index < len(self._by_size):
            hole, offset = self._by_size.pop(index)
            self._forget(offset, hole)
            if hole > size:
                self._insert(offset + size, hole - size)
            return offset
        offset = self._ends.get(self.top, self.top)  # grow the hole at the top
        if offset != self.top:
            self._remove(offset)
        self.top = offset + size
        return offset

    def give(self, offset: int, size: int) -> None:
        """Frees memory and merges adjacent holes."""
        if offset + size in self._starts:
            size += self._remove(offset + size)
        if offset in self._ends:
            before = self._ends[offset]
            size += self._remove(before)
            offset = before
        self._insert(offset, size)

    def _insert(self, offset: int, size: int) -> None:
        bisect.insort(self._by_size, (size, offset))
        self._starts[offset] = size
        self._ends[offset + size] = offset

    def _remove(self, offset: int) -> int:
        size = self._starts[offset]
        del self._by_size[bisect.bisect_left(self._by_size, (size, offset))]
        self._forget(offset, size)
        return size

    def _forget(self, offset: int, size: int) -> None:
        del self._starts[offset], self._ends[offset + size]


def _by_size(blocks: Mapping[int, _Block]) -> tuple[dict[int, int], int]:
    """Largest first, each in the smallest gap between buffers alive at the same time."""
    placed: list[tuple[int, int, int, int]] = []  # (offset, end, first, last), sorted
    offsets: dict[int, int] = {}
    total = 0
    for key, (size, first, last) in blocks.items():
        cursor, best, gap = 0, -1, 0
        for offset, end, start, stop in placed:
            if stop < first or start > last:
                continue
            hole = offset - cursor
            if hole >= size and (best < 0 or hole < gap):
                best, gap = cursor, hole
            cursor = max(cursor, end)
        offsets[key] = place = best if best >= 0 else cursor
        bisect.insort(placed, (place, place + size, first, last))
        total = max(total, place + size)
    return offsets, total


def check(plan: Plan, steps: Sequence[Step], sizes: Mapping[int, int]) -> None:
    """Runs the plan on labels instead of data, checking that every read finds what was written.

    Independent of `plan`. Quadratic at worst: for tests and `WEFT_VERIFY=1`.

    Raises:
        AssertionError: a buffer is overwritten before its last reader, or lies outside the arena.
    """
    holds: dict[int, int] = {}  # buffer -> offset of intact buffers
    for now, step in enumerate(steps):
        for buffer in step.reads:
            if buffer in sizes and buffer not in holds:
                raise AssertionError(f"step {now} reads buffer {buffer}, which is not there")
        mine = {b for b in step.writes if b in sizes}
        for buffer in mine:
            low, high = plan.offsets[buffer], plan.offsets[buffer] + sizes[buffer]
            if low < 0 or high > plan.total or low % LINE:
                raise AssertionError(f"buffer {buffer} at {low} to {high} of {plan.total}")
            for other in [b for b, at in holds.items() if at < high and low < at + sizes[b]]:
                _check_share(now, step, buffer, other, plan)
                del holds[other]
        for buffer in mine:
            if any(_overlap(plan, sizes, buffer, other) for other in mine if other != buffer):
                raise AssertionError(f"step {now} writes two buffers at one place")
            holds[buffer] = plan.offsets[buffer]


def _check_share(now: int, step: Step, written: int, held: int, plan: Plan) -> None:
    if held == written or held not in step.reads:
        return
    if step.inplace.count((written, held)) < step.reads.count(held):
        raise AssertionError(f"step {now} writes buffer {written} over {held}, which it reads")
    if plan.offsets[written] != plan.offsets[held]:
        raise AssertionError(f"step {now} writes buffer {written} partly over {held}")


def _overlap(plan: Plan, sizes: Mapping[int, int], a: int, b: int) -> bool:
    low = max(plan.offsets[a], plan.offsets[b])
    return low < min(plan.offsets[a] + sizes[a], plan.offsets[b] + sizes[b])
