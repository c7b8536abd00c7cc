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
from weft.table.memory import empty
from weft.table.native import rates_of
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


class Gradients(NamedTuple):
    """Gradients of several tables, of which some are added up for each id.

    Attributes:
        places: the address of the first gradient of all tables, for each run.
        members: int64: where those of each id begin in `listed`, and the end; `None` for one each.
        listed: uint32: which they are; `None` for one after the other.
    """

    places: list[int]
    members: Array | None
    listed: Array | None


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

    def lookup(self, ids: Ids, seen: Array | None = None, insert: bool = True) -> list[Array]:
        """The rows of ids, one array (ids, width) for each run; zeros where an id has none.

        Args:
            ids: of each table; equal ones may occur.
            seen: how often each counts, int64; once by default.
            insert: whether ids are counted and get rows; else the tables stay as they are.
        """
        outs = [
            empty((int(ids.bounds[run.last] - ids.bounds[run.first]), run.width), np.float32)
            for run in self.runs
        ]
        places = [
            address_of(out) - SIZE * run.width * int(ids.bounds[run.first])
            for run, out in zip(self.runs, outs, strict=True)
        ]
        self.lookup_into(ids, seen, insert, None, places, None)
        return outs

    def lookup_into(
        self, ids: Ids, seen: Array | None, insert: bool, order: Array | None,
        outs: Sequence[int], threads: int | None,
    ) -> None:  # fmt: skip
        """As `lookup`, for ids that are some of others.

        Args:
            order: uint32: where each row goes; `None` for one after the other.
            outs: the address of the first row of all tables, for each run.
            threads: how many this may use; by default as many as pay.
        """
        with self._lock:
            addresses = self._find(ids, seen, insert, threads)
            for run, out in zip(self.runs, outs, strict=True):
                self._gather(run, ids, addresses, order, out, threads)

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
        places = [
            address_of(g) - SIZE * run.width * int(ids.bounds[run.first])
            for run, g in zip(self.runs, gradients, strict=True)
        ]
        return self.update_from(ids, Gradients(places, None, None), rates, None)

    def update_from(
        self, ids: Ids, gradients: Gradients, rates: Sequence[float | None] | None,
        threads: int | None,
    ) -> int:  # fmt: skip
        """As `update`, by the sums of some gradients.

        Args:
            threads: how many this may use; by default as many as pay.
        """
        with self._lock:
            for table in self.tables:
                table.count_update()
            addresses = self._find(ids, None, False, threads)
            for run, place in zip(self.runs, gradients.places, strict=True):
                for first, last, numbers in self._alike(run, rates):
                    begin, end = int(ids.bounds[first]), int(ids.bounds[last])
                    self._apply(first, (begin, end), addresses, gradients, place, numbers, threads)
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

    def _find(self, ids: Ids, seen: Array | None, insert: bool, threads: int | None) -> Array:
        addresses = empty(ids.ids.size, np.int64)

        def part(first: int, last: int) -> None:
            asked = Search(
                address_of(self._addresses), len(self.tables), address_of(ids.bounds),
                address_of(ids.ids), address_of(addresses),
                None if seen is None else address_of(seen), None, first, last, insert,
            )  # fmt: skip
            searched(asked, self.tables[0])

        in_parts(part, PARTS, min(PARTS, self._threads_for(ids.ids.size, threads)))
        return addresses

    def _gather(
        self, run: Run, ids: Ids, addresses: Array, order: Array | None, out: int,
        threads: int | None,
    ) -> None:  # fmt: skip
        first, last = int(ids.bounds[run.first]), int(ids.bounds[run.last])
        native, start = self.tables[run.first].native, address_of(addresses)

        def gather(begin: int, end: int) -> None:
            begin, end = begin + first, end + first
            places = None if order is None else address_of(order) + 4 * begin
            to = out + SIZE * run.width * begin if order is None else out
            native.gather(start + 8 * begin, places, end - begin, to)

        in_parts(gather, last - first, self._threads_for(last - first, threads))

    def _apply(
        self, table: int, ids: tuple[int, int], addresses: Array, gradients: Gradients, place: int,
        rates: Array, threads: int | None,
    ) -> None:  # fmt: skip
        native, numbers, start = self.tables[table].native, address_of(rates), address_of(addresses)
        members, listed = gradients.members, gradients.listed
        row = SIZE * self.tables[table].options.width
        first, last = ids

        def apply(begin: int, end: int) -> None:
            begin, end = begin + first, end + first
            mine = None if members is None else address_of(members) + 8 * begin
            where = None if listed is None else address_of(listed) + (0 if mine else 4 * begin)
            source = place + row * begin if where is None else place
            native.apply(start + 8 * begin, end - begin, source, mine, where, numbers)

        in_parts(apply, last - first, self._threads_for(last - first, threads))

    def _threads_for(self, count: int, threads: int | None) -> int:
        return self._threads or threads or threads_for(count)

    def _check(self, ids: Ids, gradients: Sequence[Array]) -> None:
        if len(gradients) != len(self.runs):
            raise ArgumentError(
                f"tables: expected {len(self.runs)} arrays of gradients, got {len(gradients)}"
            )
        for run, g in zip(self.runs, gradients, strict=True):
            shape = int(ids.bounds[run.last] - ids.bounds[run.first]), run.width
            if g.shape != shape or g.dtype != np.float32 or not g.flags.c_contiguous:
                raise ShapeError(
                    f"tables: expected contiguous float32 gradients {shape}, "
                    f"got {g.dtype} {g.shape}"
                )
