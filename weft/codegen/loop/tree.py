"""The loop tree: what a kernel does, independent of the target.

    parallel i0 in 0..4096 by 16:
      reduce max -> r0:
        vector i1 in 0..1024 by 16 x 4:
          r0 max= m0[1024*i0 + i1]
      ...

`to_text` prints it (`WEFT_DEBUG=4`); `weft.codegen.loop.nest` writes it as LLVM IR.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from weft.codegen.loop.expression import Buffer, Expr, needed
from weft.codegen.loop.index import Index, Symbol
from weft.ir.dtype import DType


@dataclass(frozen=True)
class Store:
    """`buffer[offset] = value`; `stream`: non-temporal, for whole vectors."""

    buffer: Buffer
    offset: Index
    value: Expr
    stream: bool = False


@dataclass(frozen=True)
class Accumulate:
    """`result op= value`, inside the `Reduce` that declares `result`."""

    result: Symbol
    op: str
    dtype: DType
    value: Expr


@dataclass(frozen=True)
class Segment:
    """Part number `part` of a loop (`None`: the chunks of this call), of `size` iterations each.

    `slot` names an integer argument that holds the extent, and `slot + 1` one that holds the size,
    for a kernel that serves any length.
    """

    part: Index | None
    size: int
    slot: int | None = None


@dataclass(frozen=True)
class Loop:
    """`body` for every value of `symbol`, or for those of a segment."""

    symbol: Symbol
    body: tuple[Tree, ...]
    segment: Segment | None = None


@dataclass(frozen=True)
class Vector:
    """A loop in steps of `lanes`, unrolled `unroll` times, with a remainder.

    With `around`, an axis outside, it goes through all its rows, or a segment of their elements: an
    element is in the vector and lane in which it would be if the rows were one.
    """

    symbol: Symbol
    lanes: int
    unroll: int
    body: tuple[Tree, ...]
    segment: Segment | None = None
    around: Symbol | None = None


@dataclass(frozen=True)
class Reduce:
    """Runs `body` and binds the results of its `Accumulate`s."""

    results: tuple[Accumulate, ...]
    body: tuple[Tree, ...]


@dataclass(frozen=True)
class Aligned:
    """`body` if all `buffers` start at a cache line, else `other`."""

    buffers: tuple[Buffer, ...]
    body: tuple[Tree, ...]
    other: tuple[Tree, ...]


@dataclass(frozen=True)
class Turned:
    """Vectors along `symbol` in tiles with `across`, along which some loads are contiguous.

    The loads go along `across` and are transposed in registers, `lanes` by `lanes` elements.
    """

    across: Symbol
    symbol: Symbol
    lanes: int
    body: tuple[Store, ...]
    segments: tuple[Segment, Segment]  # of across and of symbol


Tree = Store | Accumulate | Loop | Vector | Reduce | Aligned | Turned


def leaves(body: Sequence[Tree]) -> Iterator[Store | Accumulate]:
    """Stores and accumulations of a tree, in order."""
    for part in body:
        if isinstance(part, Store | Accumulate):
            yield part
        else:
            yield from leaves(part.body)


def find_vector(body: Sequence[Tree]) -> Vector | None:
    """The first vector loop in a tree."""
    for part in body:
        if isinstance(part, Vector):
            return part
        if isinstance(part, Loop | Reduce | Aligned):
            found = find_vector(part.body)
            if found is not None:
                return found
    return None


def accumulations(body: Sequence[Tree]) -> Iterator[Accumulate]:
    """What a tree adds to reductions outside."""
    for part in body:
        if isinstance(part, Accumulate):
            yield part
        elif isinstance(part, Loop | Vector | Aligned):
            yield from accumulations(part.body)


def vector_of(body: Sequence[Tree], result: Symbol) -> Vector | None:
    """The vector loop in which `result` is accumulated."""
    for part in body:
        if isinstance(part, Vector):
            if any(a.result is result for a in accumulations(part.body)):
                return part
        elif isinstance(part, Loop | Reduce | Aligned):
            found = vector_of(part.body, result)
            if found is not None:
                return found
    return None


def to_text(body: Sequence[Tree], indent: str = "") -> str:
    """The tree as readable text."""
    return "\n".join(_lines(body, indent))


def _lines(body: Sequence[Tree], indent: str) -> Iterator[str]:
    for part in body:
        if isinstance(part, Store):
            yield from _lets(part.value, indent)
            past = " past the caches" if part.stream else ""
            yield f"{indent}{part.buffer.name}[{part.offset}] = {_operation(part.value)}{past}"
        elif isinstance(part, Accumulate):
            yield from _lets(part.value, indent)
            yield f"{indent}{part.result} {part.op}= {_operation(part.value)}"
        else:
            yield indent + _head(part) + ":"
            yield from _lines(part.body, indent + "  ")
            if isinstance(part, Aligned):
                yield indent + "else:"
                yield from _lines(part.other, indent + "  ")


def _head(part: Loop | Vector | Reduce | Aligned | Turned) -> str:
    if isinstance(part, Aligned):
        return "if aligned " + ", ".join(b.name for b in part.buffers)
    if isinstance(part, Turned):
        down, along = part.segments
        return (
            f"turn {part.across} part {down.part} of {down.size}, "
            f"{part.symbol} part {along.part} of {along.size} by {part.lanes} x {part.lanes}"
        )
    if isinstance(part, Reduce):
        return "reduce " + ", ".join(f"{a.op} -> {a.result}" for a in part.results)
    kind = "vector" if isinstance(part, Vector) else "loop"
    extent = part.symbol.extent if part.segment is None or part.segment.slot is None else "n"
    text = f"{kind} {part.symbol} in 0..{extent}"
    if isinstance(part, Vector):
        text += f" by {part.lanes} x {part.unroll}"
        if part.around is not None:
            text += f" in each of {part.around} in 0..{part.around.extent}"
    if part.segment is not None:
        owner = part.segment.part or "chunk"
        text += f" part {owner} of {part.segment.size}"
    return text


def _lets(root: Expr, indent: str) -> Iterator[str]:
    for x in needed([root]):
        if x.args and x is not root:
            yield f"{indent}{x.key} = {_operation(x)}"


def _operation(x: Expr) -> str:
    if x.op == "load":
        return f"{x.data[0].name}[{x.data[1]}]"
    if x.op in ("const", "local", "scalar"):
        return str(x.data)
    if x.op == "inside":
        return f"{x.data[1]} <= {x.data[0]} < {x.data[2]}"
    args = ", ".join(a.key if a.args else _operation(a) for a in x.args)
    return f"{x.op}({args})"
