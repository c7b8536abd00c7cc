"""The destination of the sums: rounding, the epilogue, the output's memory."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Protocol

from weft.codegen.builder import Builder, Reg, integer
from weft.codegen.contraction.emit import fixed, scaled, write
from weft.codegen.loop.epilogue import Epilogue
from weft.codegen.microkernel import Ahead, Tile, opaque
from weft.host.memory import LINE
from weft.ir.dtype import DType, float32
from weft.ir.node import Value
from weft.ir.shape import known, size
from weft.passes.group import Group
from weft.passes.launch import Argument, Kernel, Launch, Scratch

TOUCHED = 4
"""Maximum matrices to prefetch: each takes a general register in the innermost loop."""


class Sink(Protocol):
    """What a matmul does with finished sums; rows count through the whole batch."""

    values: tuple[Argument, ...]  # what it reads and writes: the kernel's last arguments
    writes: tuple[int, ...]  # positions in `values`
    inplace: tuple[tuple[int, int], ...]  # positions (written, read) that may share memory
    cost: float  # estimated cycles per vector

    def bind(self, b: Builder, slot: int) -> None:
        """Loads the addresses of `values`, which start in argument slot `slot`."""
        ...

    def reset(self) -> None:
        """Starts a new basic block, in which registers of the last one are unusable."""
        ...

    def store(self, value: Reg, at: tuple[Reg, Reg, Reg], lanes: int, mask: Reg | None) -> None:
        """Finishes contiguous sums starting at `at`: row, column, columns in all.

        They go along the row, or down it if the matrix has one column.
        """
        ...

    def ahead(self, at: tuple[Reg, Reg, Reg], tile: Tile) -> list[Ahead]:
        """What storing a tile of sums from `at` on touches, to prefetch."""
        ...


class Streaming(Sink, Protocol):
    """A sink of a kernel that may store past the caches."""

    streams: bool  # whether whole vectors may be stored non-temporally, if `aligned`

    def past_caches(self, least: int) -> None:
        """Enables non-temporal stores for arrays of `least` bytes and more; 0 disables them."""
        ...

    def aligned(self) -> Reg:
        """Whether the arrays with non-temporal stores begin at cache lines."""
        ...

    def stream(self, value: Reg, at: tuple[Reg, Reg, Reg]) -> None:
        """Finishes a whole vector as `store` does, with a non-temporal store."""
        ...


def launch_into(
    sink: Sink | None, kernel: Kernel, args: Sequence[Argument], writes: Iterable[int], chunks: int,
    flops: float = 0.0, bytes_: float = 0.0,
) -> Launch:  # fmt: skip
    """The launch of a kernel; if it has a sink, that one's values are its last arguments.

    Args:
        args: those before.
        writes: positions among them.
    """
    if sink is None:
        return Launch(kernel, tuple(args), tuple(writes), chunks, (), flops, bytes_)
    at = len(args)
    return Launch(
        kernel, (*args, *sink.values), (*writes, *(at + i for i in sink.writes)), chunks,
        tuple((at + i, at + j) for i, j in sink.inplace), flops, bytes_,
    )  # fmt: skip


def sink_of(group: Group) -> Streaming:
    """The sink for a group that begins with a matmul."""
    if len(group.nodes) == 1:
        out = group.nodes[0].outputs[0]
        return Plain(out, out.dtype)
    return Fused(group)


class Plain:
    """Stores the sums, rounded to the output's type; knows no sizes, so that kernels are shared."""

    def __init__(self, out: Value | Scratch, dtype: DType) -> None:
        self.values: tuple[Argument, ...] = (out,)
        self.writes: tuple[int, ...] = (0,)
        self.inplace: tuple[tuple[int, int], ...] = ()
        self.streams = False
        self.cost = 8.0 if dtype.size == 2 else 1.0  # rounding to half precision
        self._dtype = dtype
        self._b: Builder
        self._base: Reg

    def bind(self, b: Builder, slot: int) -> None:
        """Loads the output's address."""
        self._b = b
        self._base = b.argument(slot)

    def reset(self) -> None:
        """Does nothing: no registers are cached."""

    def past_caches(self, least: int) -> None:
        """Enables non-temporal stores if the output has `least` bytes."""
        self.streams = bool(_streamed(self.values, least))

    def aligned(self) -> Reg:
        """Whether the output begins at a cache line."""
        return _aligned(self._b, [self._base])

    def stream(self, value: Reg, at: tuple[Reg, Reg, Reg]) -> None:
        """Stores whole, aligned vectors non-temporally, as nobody will find them in cache."""
        row, column, n = at
        run = scaled(self._b, self._base, row, n, self._dtype.size)
        place = scaled(self._b, run, column, 1, self._dtype.size)
        self._b.declarations.add("!0 = !{i32 1}")
        align = _lanes(value) * self._dtype.size
        self._b.line(f"store {value}, {place}, align {align}, !nontemporal !0")

    def store(self, value: Reg, at: tuple[Reg, Reg, Reg], lanes: int, mask: Reg | None) -> None:
        """Rounds and stores."""
        row, column, n = at
        run = scaled(self._b, self._base, row, n, self._dtype.size)
        write(self._b, value, scaled(self._b, run, column, 1, self._dtype.size), self._dtype, mask)

    def ahead(self, at: tuple[Reg, Reg, Reg], tile: Tile) -> list[Ahead]:
        """The output's lines, as stores to lines that are not in cache would wait."""
        return [] if self.streams else [_ahead(self._b, self._base, at, tile, self._dtype)]


class Fused:
    """Stores through the group's other nodes, the epilogue."""

    def __init__(self, group: Group) -> None:
        self._group = group
        node = group.nodes[0]
        shape = known(node.outputs[0].shape)
        self._single = shape[-1] == 1
        self._view = (1, size(shape)) if self._single else (size(shape[:-1]), shape[-1])
        epilogue = self._make(Builder("probe", []))
        self._arrays = epilogue.values
        self.values: tuple[Argument, ...] = self._arrays
        places = {value: i for i, value in enumerate(self._arrays)}
        self.writes = tuple(places[value] for value in epilogue.writes)
        whole = [v for v in self._arrays if size(v.shape) == size(shape)]
        self._touched = [] if self._single else whole[:TOUCHED]
        # Other tiles read the matmul's own operands after this one is stored.
        self.inplace = tuple(
            (places[out], places[read])
            for out, read in epilogue.inplace
            if read not in group.operands
        )
        self.streams = False
        self._streamed: frozenset[Value] = frozenset()
        self.cost = float(epilogue.cost)
        self._small = any(value.dtype.size < 4 for value in group.outputs)
        self._b: Builder
        self._slots: dict[Value, Reg]
        self._epilogue: Epilogue

    def past_caches(self, least: int) -> None:
        """Enables non-temporal stores for outputs of `least` bytes."""
        self._streamed = _streamed([self._arrays[i] for i in self.writes], least)
        self.streams = bool(self._streamed)
        self._touched = [v for v in self._touched if v not in self._streamed]

    def aligned(self) -> Reg:
        """Whether those outputs begin at cache lines."""
        return _aligned(self._b, [p for v, p in self._slots.items() if v in self._streamed])

    def _make(self, b: Builder) -> Epilogue:
        return Epilogue(self._group, b, view=self._view)

    def bind(self, b: Builder, slot: int) -> None:
        """Loads all addresses."""
        self._b = b
        self._epilogue = self._make(b)
        self._slots = {v: b.argument(slot + i) for i, v in enumerate(self._arrays)}
        self._epilogue.bind(self._slots)

    def reset(self) -> None:
        """Forgets registers of the last block."""
        self._epilogue.reset()

    def store(self, value: Reg, at: tuple[Reg, Reg, Reg], lanes: int, mask: Reg | None) -> None:
        """Computes the epilogue on this vector and stores the group's outputs."""
        if mask is not None and self._small:
            mask = opaque(self._b, mask)
        index = (integer(0), self._b.add(*at[:2])) if self._single else at[:2]
        self._epilogue.store(index, value, lanes, mask)

    def stream(self, value: Reg, at: tuple[Reg, Reg, Reg]) -> None:
        """Stores a whole vector, to some outputs non-temporally."""
        self._epilogue.store(at[:2], value, _lanes(value), streamed=self._streamed)

    def ahead(self, at: tuple[Reg, Reg, Reg], tile: Tile) -> list[Ahead]:
        """The outputs and the epilogue's inputs: rows are too far apart for hardware prefetching.

        Without it GELU's gradient in an epilogue takes 90 cycles a vector more (Cascade Lake).
        """
        return [_ahead(self._b, self._slots[v], at, tile, v.dtype) for v in self._touched]


def _lanes(value: Reg) -> int:
    return int(value.type[1:].split(" x ")[0])


def _streamed(outputs: Sequence[Argument], least: int) -> frozenset[Value]:
    """Outputs of at least so many bytes whose rows are whole cache lines of float32."""
    values = [v for v in outputs if isinstance(v, Value) and v.dtype is float32]
    return frozenset(
        v
        for v in values
        if least
        and size(v.shape) * v.dtype.size >= least
        and not known(v.shape)[-1] * v.dtype.size % LINE
    )


def _aligned(b: Builder, pointers: Sequence[Reg]) -> Reg:
    """Whether all begin at a cache line."""
    addresses = [b.emit("i64", f"ptrtoint {pointer} to i64") for pointer in pointers]
    together = functools.reduce(lambda x, y: b.binary("or", x, y), addresses)
    return b.compare("icmp eq", b.binary("and", together, integer(LINE - 1)), integer(0))


def _ahead(b: Builder, base: Reg, at: tuple[Reg, Reg, Reg], tile: Tile, dtype: DType) -> Ahead:
    """The rows of a matrix from `at` on, one per iteration."""
    row, column, n = at
    pointer = scaled(b, scaled(b, base, row, n, dtype.size), column, 1, dtype.size)
    stride = b.mul(n, dtype.size)
    constant = fixed(stride)
    lines = -(-tile.columns * dtype.size // LINE)
    return Ahead(pointer, stride if constant is None else constant, lines, tile.rows)
