"""Several tables of this process, looked up and updated together."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from weft.codegen.table.layout import PARTS, Search
from weft.codegen.table.rows import SIZE
from weft.errors import ArgumentError, ShapeError
from weft.runtime.memory.address import address_of
from weft.table.embedding_table import EmbeddingTable, TableOptions, searched
from weft.table.grouping import Ids
from weft.table.native import RowFunctions, rates_of
from weft.table.parallel import in_parts, threads_for

Array = np.ndarray[Any, Any]


class Run(NamedTuple):
    """Neighbors among tables whose rows have one width: their rows are one array."""

    first: int
    last: int
    width: int


def runs_of(options: Sequence[TableOptions]) -> list[Run]:
    """The tables as runs of equal widths."""
    found: list[Run] = []
    for number, option in enumerate(options):
        if found and found[-1].width == option.width:
            found[-1] = found[-1]._replace(last=number + 1)
        else:
            found.append(Run(number, number + 1, option.width))
    return found


class TableGroup:
    """Tables that are looked up and updated with one search, and one pass over the rows.

    A large call is divided between threads; its results are the same bits for any number of them.

    Args:
        tables: in the order of the ids of each call.
        lock: held during a call: the tables' others must hold it, too.
        threads: how many a call may use; by default as many as pay.
    """

    def __init__(
        self, tables: Sequence[EmbeddingTable], lock: threading.Lock, threads: int | None = None
    ) -> None:
        self.tables: Final = list(tables)
        self.runs: Final = runs_of([table.options for table in tables])
        self._lock = lock
        self._threads = threads
        self._addresses = np.array([table.address for table in tables], np.int64)

    def lookup(
        self, ids: Ids, seen: Array | None = None, insert: bool = True,
        out: Sequence[Array] | None = None,
    ) -> list[Array]:  # fmt: skip
        """The rows of ids, one array (ids, width) for each run; zeros where an id has none.

        Args:
            ids: of each table; equal ones may occur.
            seen: how often each counts, int64; once by default.
            insert: whether ids are counted and get rows; else the tables stay as they are.
            out: where the rows are written.
        """
        with self._lock:
            addresses = self._find(ids, seen, insert)
            found: list[Array] = []
            for number, run in enumerate(self.runs):
                begin, end = int(ids.bounds[run.first]), int(ids.bounds[run.last])
                rows = (
                    np.empty((end - begin, run.width), np.float32) if out is None else out[number]
                )
                self._gather(self.tables[run.first].native, addresses[begin:end], rows)
                found.append(rows)
            return found

    def update(
        self, ids: Ids, gradients: Sequence[Array], rates: Sequence[float | None] | None = None
    ) -> int:
        """Applies the optimizers' rules; how many ids had a row, as others are left out.

        Args:
            ids: of each table, all of a table different: see `weft.table.grouping.distinct`.
            gradients: float32, contiguous, one array (ids, width) for each run.
            rates: the learning rate of each table, by default the optimizer's.
        """
        self._check(ids, gradients)
        with self._lock:
            for table in self.tables:
                table.count_update()
            addresses = self._find(ids, None, False)
            for run, g in zip(self.runs, gradients, strict=True):
                for first, last, numbers in self._alike(run, rates):
                    start = int(ids.bounds[run.first])
                    begin, end = int(ids.bounds[first]), int(ids.bounds[last])
                    part = g[begin - start : end - start]
                    self._apply(self.tables[first].native, addresses[begin:end], part, numbers)
            return int(np.count_nonzero(addresses))

    def _alike(
        self, run: Run, rates: Sequence[float | None] | None
    ) -> list[tuple[int, int, Array]]:
        """Neighbors in a run that are updated alike: the first, behind the last, the rates."""
        found: list[tuple[int, int, Array]] = []
        for number in range(run.first, run.last):
            table = self.tables[number]
            lr = None if rates is None else rates[number]
            numbers = rates_of(table.options.optimizer, table.updates, lr)
            if found and self._follows(found[-1], table, numbers):
                found[-1] = (found[-1][0], number + 1, numbers)
            else:
                found.append((number, number + 1, numbers))
        return found

    def _follows(
        self, before: tuple[int, int, Array], table: EmbeddingTable, numbers: Array
    ) -> bool:
        same = self.tables[before[0]].native.form is table.native.form
        return same and np.array_equal(before[2], numbers)

    def _find(self, ids: Ids, seen: Array | None, insert: bool) -> Array:
        addresses = np.empty(ids.ids.size, np.int64)

        def part(first: int, last: int) -> None:
            asked = Search(
                address_of(self._addresses), len(self.tables), address_of(ids.bounds),
                address_of(ids.ids), address_of(addresses),
                None if seen is None else address_of(seen), None, first, last, insert,
            )  # fmt: skip
            searched(asked, self.tables[0])

        in_parts(part, PARTS, min(PARTS, self._threads_for(ids.ids.size)))
        return addresses

    def _gather(self, native: RowFunctions, addresses: Array, out: Array) -> None:
        start, to, row = address_of(addresses), address_of(out), SIZE * out.shape[1]

        def gather(begin: int, end: int) -> None:
            native.gather(start + 8 * begin, end - begin, to + row * begin)

        in_parts(gather, addresses.size, self._threads_for(addresses.size))

    def _apply(self, native: RowFunctions, addresses: Array, g: Array, rates: Array) -> None:
        start, source, row = address_of(addresses), address_of(g), SIZE * g.shape[1]
        numbers = address_of(rates)

        def apply(begin: int, end: int) -> None:
            native.apply(start + 8 * begin, end - begin, source + row * begin, numbers)

        in_parts(apply, addresses.size, self._threads_for(addresses.size))

    def _threads_for(self, count: int) -> int:
        return threads_for(count) if self._threads is None else self._threads

    def _check(self, ids: Ids, gradients: Sequence[Array]) -> None:
        if len(gradients) != len(self.runs):
            raise ArgumentError(
                f"tables: expected {len(self.runs)} arrays of gradients, got {len(gradients)}"
            )
        for run, g in zip(self.runs, gradients, strict=True):
            shape = int(ids.bounds[run.last] - ids.bounds[run.first]), run.width
            if g.shape != shape or g.dtype != np.float32 or not g.flags.c_contiguous:
                raise ShapeError(
                    f"tables: expected contiguous float32 gradients {shape}, got {g.dtype} {g.shape}"
                )
