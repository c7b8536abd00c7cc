"""Iteration spaces: which axes collapse into one, and how work is cut into chunks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from weft.codegen.loop.expression import Buffer, Expr, cost, needed
from weft.codegen.loop.index import ZERO, Index, Symbol, variable
from weft.codegen.target import Target
from weft.ir.dtype import DType
from weft.ir.extent import Extent, largest, same, smallest
from weft.ir.node import Value
from weft.ir.shape import size

CHUNK_BYTES: Final = 128 * 1024
"""Memory traffic of a chunk: some 10 us from memory, far more than handing it to a thread costs."""
CHUNK_CYCLES: Final = 100_000
"""Work of a chunk in cycles, if there is more arithmetic than traffic: some 25 us."""


def merged_axes(
    symbols: Sequence[Symbol],
    groups: Sequence[object],
    indices: Iterable[Index],
    single: Collection[Symbol] = (),
) -> dict[Symbol, Index]:
    """Substitutions that drop axes of extent 1 and collapse adjacent axes where possible.

    Two axes of one group (equal entries of `groups`) collapse if every index expression steps over
    the inner one's whole extent when the outer one steps by one. Axes in `single` have extent 1.
    """
    steps = [_steps(index) for index in _affine_parts(indices)]
    new: dict[Symbol, Index] = {}
    run: list[tuple[Symbol, object]] = []
    for symbol, group in zip(symbols, groups, strict=True):
        if symbol in single or same(symbol.extent, 1):
            new[symbol] = ZERO
            continue
        if run and run[-1][1] == group and _joins(run[-1][0], symbol, steps):
            run.append((symbol, group))
            continue
        new.update(_merge([s for s, _ in run]))
        run = [(symbol, group)]
    new.update(_merge([s for s, _ in run]))
    return new


def _merge(run: Sequence[Symbol]) -> dict[Symbol, Index]:
    if len(run) < 2:
        return {}
    extent = 1
    for symbol in run:
        extent *= symbol.extent
    merged = variable(Symbol("".join(s.name for s in run), extent))
    return {s: merged if s is run[-1] else ZERO for s in run}


def _joins(outer: Symbol, inner: Symbol, steps: Iterable[Mapping[Symbol, int]]) -> bool:
    return all(same(s.get(outer, 0), s.get(inner, 0) * inner.extent) for s in steps)


def _steps(index: Index) -> dict[Symbol, int]:
    return {atom.inner: k for atom, k in index.terms if atom.kind == "var"}


def _affine_parts(indices: Iterable[Index]) -> Iterable[Index]:
    for index in indices:
        yield index
        for atom, _ in index.terms:
            if atom.kind in ("div", "mod", "clamp"):
                yield from _affine_parts([atom.inner])


def symbols_of(
    symbols: Sequence[Symbol], new: Mapping[Symbol, Index]
) -> tuple[list[Symbol], dict[Symbol, Symbol]]:
    """The remaining loop variables, in order, and which one each axis became."""
    left: list[Symbol] = []
    became: dict[Symbol, Symbol] = {}
    for symbol in symbols:
        index = new.get(symbol)
        if index is None:
            left.append(symbol)
            became[symbol] = symbol
        elif index.terms:
            now = index.terms[0][0].inner
            became[symbol] = now
            left.append(now)
    return left, became


def same_shape(x: Sequence[int], y: Sequence[int]) -> bool:
    """Whether two shapes are equal for all sizes."""
    return len(x) == len(y) and all([same(a, b) for a, b in zip(x, y, strict=True)])


def lanes_for(values: Iterable[Expr], target: Target) -> int:
    """Elements per vector: as many of the widest type in the arithmetic as fit a register.

    Scalars, such as a step counter, do not count.
    """
    widest = 1
    for x in needed(values):
        if x.symbols:
            widest = max(widest, _width(x.dtype))
    return target.lanes(widest)


def _width(dtype: DType) -> int:
    return 4 if dtype.is_floating and dtype.size == 2 else dtype.size


def unroll_for(values: Sequence[Expr]) -> int:
    """Vectors per iteration: enough loads in flight in simple loops, one if the code is long."""
    work = cost(values)
    if work <= 16:
        return 4
    return 2 if work <= 48 else 1


def traffic(reads: Iterable[Expr], writes: Iterable[Buffer]) -> float:
    """Bytes that a kernel moves if it reads every buffer once."""
    buffers = {x.data[0] for x in needed(reads) if x.op == "load"} | set(writes)
    return float(
        sum(size(b.source.shape) * b.dtype.size for b in buffers if isinstance(b.source, Value))
    )


def per_chunk(count: int, moved: float, cycles: float, elements: int = 1) -> int:
    """How many of `count` items make a chunk.

    Args:
        moved: bytes of each of their elements.
        cycles: work of each of them.
        elements: how many an item has.
    """
    share = max(moved / CHUNK_BYTES, cycles / CHUNK_CYCLES, 1e-12)
    most = max(1, int(1 / share))
    if isinstance(elements, Extent):
        return smallest(count, largest(1, most // largest(1, elements)))
    return smallest(count, max(1, int(1 / (share * max(1, elements)))))
