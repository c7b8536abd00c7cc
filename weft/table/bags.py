"""Bags of rows of dense tables: all tables summed up, or updated, by one kernel for each width."""

from __future__ import annotations

import copy
import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from weft.codegen.table import bags
from weft.codegen.target import current
from weft.errors import OutOfRangeError
from weft.runtime.memory.address import address_of
from weft.table.grouping import Ids, distinct
from weft.table.memory import empty
from weft.table.native import rates_of, rule_of, table_of
from weft.table.optimizer import RowOptimizer
from weft.table.parallel import in_parts, threads_for

Array = np.ndarray[Any, Any]
_ADDRESS: Final = ctypes.c_void_p


class _Functions(NamedTuple):
    pool: Callable[..., None]
    list_bags: Callable[..., None]
    update: Callable[..., None]


_made: Final[dict[Any, _Functions]] = {}


def _functions(width: int, optimizer: RowOptimizer) -> _Functions:
    key = (width, optimizer.shape)
    if key not in _made:
        form = bags.BagForm(width, len(optimizer.slots), rule_of(optimizer))
        places = table_of(bags.kernel(form, current()), len(bags.ENTRIES))
        forms = ((_ADDRESS,), (_ADDRESS, _ADDRESS), (_ADDRESS, _ADDRESS))
        made = [ctypes.CFUNCTYPE(None, *x)(place) for x, place in zip(forms, places, strict=True)]
        _made[key] = _Functions(*made)
    return _made[key]


@dataclass
class DenseTable:
    """A table of rows, and its optimizer's state.

    Attributes:
        name: in errors.
        rows: float32, (rows, width).
        slots: the optimizer's state, each of the shape of the rows.
        columns: where the sums of each of its features begin.
    """

    name: str
    rows: Array
    slots: list[Array]
    columns: list[int]


class BagInput(NamedTuple):
    """The ids of several features by bag, those of a feature one after the other."""

    ids: Array  # int64
    offsets: Array  # int64, (features * bags + 1): where each bag begins
    factors: Array | None = None  # float32: what each id counts


class DenseTables:
    """Tables of one width, summed up by bags into columns of one matrix.

    A table has one or several features, which are neighbors in a `BagInput`.

    Args:
        tables: all of one width.
        mean: whether sums are divided by the number of ids.
        optimizer: how rows are updated.
        threads: how many a call may use; by default as many as pay.
    """

    def __init__(
        self, tables: Sequence[DenseTable], mean: bool, optimizer: RowOptimizer,
        threads: int | None = None,
    ) -> None:  # fmt: skip
        self.tables: Final = list(tables)
        self.width: Final = tables[0].rows.shape[1]
        self.optimizer: Final = optimizer
        self._mean = mean
        self._threads = threads
        self._functions = _functions(self.width, optimizer)
        self._owners = [number for number, t in enumerate(tables) for _ in t.columns]
        self._columns = np.array([c for table in tables for c in table.columns], np.int64)
        self._firsts = np.searchsorted(self._owners, np.arange(len(tables) + 1))
        self._rows = np.array([address_of(table.rows) for table in tables], np.int64)
        self._slots = np.array([address_of(s) for t in tables for s in t.slots], np.int64)
        self._feature_rows = self._rows[self._owners]
        self._sizes = np.array([tables[n].rows.shape[0] for n in self._owners], np.int64)

    def __deepcopy__(self, memo: Any) -> DenseTables:
        tables = copy.deepcopy(self.tables, memo)
        return DenseTables(tables, self._mean, self.optimizer, self._threads)

    @property
    def features(self) -> int:
        """How many there are."""
        return len(self._owners)

    def pool(self, given: BagInput, out: Array) -> None:
        """Writes the sums of all bags to their columns of `out`, (bags, columns).

        Raises:
            OutOfRangeError: a table has no row of some id.
        """
        faults: list[int] = []

        def part(begin: int, end: int) -> None:
            asked = self._bags(given, out, slice(0, len(self.tables)))
            asked.begin, asked.end = begin, end
            self._functions.pool(ctypes.byref(asked))
            if asked.fault:
                faults.append(asked.fault - 1)

        in_parts(part, given.offsets.size - 1, self._threads_for(given.ids.size))
        if faults:
            self._refuse(given, min(faults))

    def update(self, given: BagInput, g: Array, step: int, lr: float | None = None) -> None:
        """Updates all rows that bags have, from the gradients of their sums.

        Args:
            given: as `pool` was given.
            g: float32, (bags, columns), contiguous.
            step: the number of this update, from 1.
            lr: the learning rate, by default the optimizer's.
        """
        rates = rates_of(self.optimizer, step, lr)
        threads = self._threads_for(given.ids.size)

        def part(begin: int, end: int) -> None:
            self._update(given, g, rates, slice(begin, end), 1)

        if len(self.tables) >= threads:
            in_parts(part, len(self.tables), threads)
        else:
            self._update(given, g, rates, slice(0, len(self.tables)), threads)

    def _update(
        self, given: BagInput, g: Array, rates: Array, tables: slice, threads: int
    ) -> None:  # fmt: skip
        """Updates some tables."""
        count = (given.offsets.size - 1) // self.features
        bounds = self._firsts[tables.start : tables.stop + 1] * count
        offsets = given.offsets[bounds]
        first, last = int(offsets[0]), int(offsets[-1])
        some = distinct(Ids(given.ids[first:last], offsets - first))
        members = np.append(some.seen, 0)
        following, listed = empty(members.size, np.int64), empty(last - first, np.uint32)
        factors = None if given.factors is None else empty(last - first, np.float32)
        slots = self._slots[tables.start * len(self.optimizer.slots) :]
        lists = bags.Lists(
            tables.stop - tables.start, address_of(self._rows) + 8 * tables.start,
            address_of(some.ids), address_of(some.bounds), address_of(some.inverse),
            address_of(members), address_of(following), address_of(listed),
            None if factors is None else address_of(factors), address_of(slots),
            address_of(rates),
        )  # fmt: skip
        asked = self._bags(given, g, tables)
        self._functions.list_bags(ctypes.byref(asked), ctypes.byref(lists))

        def part(begin: int, end: int) -> None:
            mine = bags.Bags.from_buffer_copy(asked)
            mine.begin, mine.end = begin, end
            self._functions.update(ctypes.byref(mine), ctypes.byref(lists))

        in_parts(part, some.ids.size, threads)

    def _bags(self, given: BagInput, sums: Array, tables: slice) -> bags.Bags:
        count = (given.offsets.size - 1) // self.features
        first, last = (int(n) for n in self._firsts[[tables.start, tables.stop]])
        return bags.Bags(
            last - first, address_of(self._feature_rows) + 8 * first,
            address_of(self._sizes) + 8 * first, address_of(self._columns) + 8 * first, count,
            address_of(given.ids), address_of(given.offsets) + 8 * first * count,
            None if given.factors is None else address_of(given.factors), self._mean,
            address_of(sums), sums.shape[1],
        )  # fmt: skip

    def _refuse(self, given: BagInput, position: int) -> None:
        count = (given.offsets.size - 1) // self.features
        bag = int(np.searchsorted(given.offsets, position, side="right")) - 1
        table = self.tables[self._owners[bag // count]]
        raise OutOfRangeError.here(
            f"table {table.name!r}: expected ids from 0 to {table.rows.shape[0] - 1}, "
            f"got {given.ids[position]} in bag {bag % count}"
        )

    def _threads_for(self, count: int) -> int:
        return threads_for(count) if self._threads is None else self._threads
