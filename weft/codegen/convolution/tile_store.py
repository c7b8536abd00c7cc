"""Stores a tile of finished sums: all of it at once, or some of its rows one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from weft.codegen.builder import Builder, Reg, integer
from weft.codegen.contraction.emit import subtract
from weft.codegen.contraction.finish import store_tile
from weft.codegen.contraction.sink import Streaming
from weft.codegen.convolution.piece import each
from weft.codegen.microkernel import Accumulators, Tile, first_lanes


@dataclass(frozen=True)
class Some:
    """Rows `first` to `end - 1` of a tile; `all` says whether these are all."""

    first: Reg
    end: Reg
    all: Reg


@dataclass(frozen=True)
class Columns:
    """The columns of a tile's vectors: the first one's column, and how many there are.

    Lanes from `end` on, counted from the first column, are not stored.
    """

    start: Reg
    total: int
    end: Reg | None = None


class _Column(NamedTuple):
    """The column of one vector of a tile."""

    start: Reg
    total: Reg
    mask: Reg | None


class TileStore:
    """Gives tiles to a sink.

    To keep kernels small, rows that are stored one by one go through memory, in a loop: unrolled
    code for them was half of a kernel.
    """

    def __init__(self, b: Builder, tile: Tile, sink: Streaming) -> None:
        self.b = b
        self.tile = tile
        self.sink = sink
        self.vector = tile.lanes * tile.dtype.size
        self.line = tile.vectors * self.vector
        self.spill = b.emit("ptr", f"alloca [{tile.rows * self.line} x i8], align 64")
        self.places = b.emit("ptr", f"alloca [{tile.rows} x i64], align 8")

    def place(self, row: Reg | int) -> Reg:
        """The address where the number of a row's result is kept, for `store`."""
        return self.b.offset(self.places, self.b.mul(_index(row), 8))

    def store(
        self, sums: Accumulators, pixels: list[Reg] | None, columns: Columns, some: Some | None
    ) -> None:
        """Store a tile, or some of its rows.

        Args:
            sums: the sums to store.
            pixels: the results of the rows; read from `place` if not given.
            columns: the columns of the vectors.
            some: which rows, if not all.
        """
        b = self.b
        if some is None:
            self._store_all(sums, pixels, columns)
            return
        with b.when(some.all):
            self._store_all(sums, pixels, columns)
        with b.when(b.binary("xor", some.all, Reg("i1", "true"))):
            store_tile(b, self.tile, sums, self.spill)
            for row, pixel in enumerate(pixels or ()):
                b.store(pixel, self.place(row), 8)
            self._store_some(columns, some)

    def _store_all(self, sums: Accumulators, pixels: list[Reg] | None, columns: Columns) -> None:
        b = self.b
        if not self.sink.streams:
            self._store_whole(sums, pixels, columns, stream=False)
            return
        aligned = self.sink.aligned()
        with b.when(aligned):
            self._store_whole(sums, pixels, columns, stream=columns.end is None)
        with b.when(b.binary("xor", aligned, Reg("i1", "true"))):
            self._store_whole(sums, pixels, columns, stream=False)

    def _store_whole(
        self, sums: Accumulators, pixels: list[Reg] | None, columns: Columns, stream: bool
    ) -> None:
        b, tile = self.b, self.tile
        if pixels is None:
            pixels = [b.load("i64", self.place(row), 8) for row in range(tile.rows)]
        self.sink.reset()
        places = [self._column(v, columns) for v in range(tile.vectors)]
        for values, pixel in zip(sums, pixels, strict=True):
            for value, column in zip(values, places, strict=True):
                self._store(value, pixel, column, stream)

    def _store_some(self, columns: Columns, some: Some) -> None:
        b, tile = self.b, self.tile
        with b.loop(some.first, some.end, at_least_once=True) as loop:
            pixel = b.load("i64", self.place(loop.index), 8)
            with each(b, integer(0), integer(tile.vectors)) as v:
                self.sink.reset()
                self._store(self._spilled(loop.index, v), pixel, self._column(v, columns))
        self.sink.reset()

    def _spilled(self, row: Reg | int, v: Reg) -> Reg:
        b = self.b
        line = b.offset(self.spill, b.mul(_index(row), self.line))
        return b.load(self.tile.type, b.offset(line, b.mul(v, self.vector)), self.vector)

    def _column(self, v: Reg | int, columns: Columns) -> _Column:
        b, lanes = self.b, self.tile.lanes
        away = b.mul(_index(v), lanes)
        mask = None
        if columns.end is not None:
            mask = first_lanes(b, subtract(b, columns.end, away), lanes)
        return _Column(b.add(columns.start, away), integer(columns.total), mask)

    def _store(self, value: Reg, pixel: Reg, to: _Column, stream: bool = False) -> None:
        at = pixel, to.start, to.total
        if stream:
            self.sink.stream(value, at)
        else:
            self.sink.store(value, at, self.tile.lanes, to.mask)


def _index(i: Reg | int) -> Reg:
    return integer(i) if isinstance(i, int) else i
