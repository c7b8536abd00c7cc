"""A table of rows by id in this process."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from weft.codegen.table.layout import PARTS, Collect, Search, Table
from weft.codegen.table.rows import SIZE
from weft.errors import ArgumentError, OutOfMemoryError, ShapeError
from weft.runtime.memory.address import address_of
from weft.table.first_row import FirstRow, Uniform, first_row_of
from weft.table.native import functions, rates_of, row_functions
from weft.table.optimizer import SGD, RowOptimizer, optimizer_of
from weft.table.parallel import in_parts, threads_for

Array = np.ndarray[Any, Any]
BLOCK_BYTES: Final = 1 << 12
MOST_BLOCK_BYTES: Final = 1 << 22
"""Memory that a part of a table asks for at once for rows: at first, and at most."""
_MIX: Final = 0x9E3779B97F4A7C15


@dataclass(frozen=True)
class TableOptions:
    """What a table is; tables of one name must agree in it.

    Attributes:
        width: numbers of a row.
        optimizer: how rows are updated, which tells what is kept beside them.
        first: what rows contain at first.
        seed: of random first rows: a row depends on its id and this alone.
        admit: how often an id must have been looked up before it gets a row; until then its row is
            zeros, and its gradients are dropped.
        expire: ids that were not looked up for so many updates are dropped; 0 for never.
    """

    width: int
    optimizer: RowOptimizer = field(default_factory=SGD)
    first: FirstRow = field(default_factory=Uniform)
    seed: int = 0
    admit: int = 1
    expire: int = 0

    def __post_init__(self) -> None:
        for name, least in (("width", 1), ("admit", 1), ("expire", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or value < least:
                raise ArgumentError.here(
                    f"table of rows: expected {name} of at least {least}, got {value!r}"
                )

    def record(self) -> dict[str, Any]:
        """The options as plain values."""
        return {
            "width": self.width, "optimizer": self.optimizer.record(),
            "first": self.first.record(), "seed": self.seed, "admit": self.admit,
            "expire": self.expire,
        }  # fmt: skip

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> TableOptions:
        """The options that a record tells."""
        first, optimizer = first_row_of(record["first"]), optimizer_of(record["optimizer"])
        return cls(**{**record, "first": first, "optimizer": optimizer})


class Content(NamedTuple):
    """What a table has: one row of each array belongs to an id; ids ascend."""

    ids: Array  # int64
    rows: Array  # float32, (ids, width)
    slots: Array  # float32, (ids, slots, width)
    seen: Array  # int64: how often each was looked up
    steps: Array  # int64: after how many updates each was looked up last
    admitted: Array  # bool: which have a row


class EmbeddingTable:
    """Rows by id, made when an id is looked up for the first time.

    Rows never move, and the index grows a sixteenth at a time. One call at a time works on a table;
    a large one is divided between threads, and its results are the same bits for any number.

    Args:
        options: what the table is.
        threads: how many threads a call may use; by default as many as pay.
    """

    def __init__(self, options: TableOptions, threads: int | None = None) -> None:
        self.options: Final = options
        self.updates = 0
        self._threads = threads
        self._native = row_functions(options.width, options.optimizer, options.first)
        form = self._native.form
        self._table = Table(
            row_bytes=form.row_bytes, block_rows=max(8, BLOCK_BYTES // form.row_bytes),
            most_rows=max(8, MOST_BLOCK_BYTES // form.row_bytes),
            fill=self._native.fill, seed=_signed(options.seed * _MIX),
        )  # fmt: skip
        self._lock = threading.Lock()
        self._finalizer = weakref.finalize(self, functions().clear, ctypes.byref(self._table))

    def __len__(self) -> int:
        """How many ids have been seen, those without a row included."""
        return sum(part.used for part in self._table.parts)

    @property
    def rows(self) -> int:
        """How many ids have a row."""
        return sum(part.rows for part in self._table.parts)

    @property
    def nbytes(self) -> int:
        """The memory of the table: its index, and the rows in use."""
        index = sum(32 * (part.mask + 1) for part in self._table.parts if part.entries)
        return index + self.rows * self._table.row_bytes

    def lookup(
        self, ids: Array, seen: Array | None = None, *, insert: bool = True, out: Array | None = None
    ) -> Array:  # fmt: skip
        """The rows of ids, (ids, width); zeros where an id has none.

        Args:
            ids: int64, contiguous; equal ones may occur.
            seen: how often each counts, int64; once by default.
            insert: whether ids are counted and get rows; else the table stays as it is.
            out: where the rows are written.
        """
        with self._lock:
            addresses = self._find(ids, seen, insert)
            width, count = self.options.width, ids.size
            out = np.empty((count, width), np.float32) if out is None else out
            start, to = address_of(addresses), address_of(out)

            def gather(begin: int, end: int) -> None:
                self._native.gather(start + 8 * begin, end - begin, to + SIZE * width * begin)

            in_parts(gather, count, self._threads_for(count))
            return out

    def update(self, ids: Array, gradients: Array, lr: float | None = None) -> int:
        """Applies the optimizer's rule; how many of the ids had a row, as others are left out.

        Args:
            ids: int64, contiguous, all different: see `weft.table.lookup.summed`.
            gradients: float32, contiguous, (ids, width).
            lr: the learning rate, by default the optimizer's.
        """
        if gradients.shape != (ids.size, self.options.width):
            raise ShapeError(
                f"table of rows: expected gradients {(ids.size, self.options.width)}, "
                f"got {gradients.shape}"
            )
        with self._lock:
            self.updates += 1
            rates = rates_of(self.options.optimizer, self.updates, lr)
            addresses = self._find(ids, None, False)
            start, g, numbers = address_of(addresses), address_of(gradients), address_of(rates)
            row = SIZE * self.options.width

            def apply(begin: int, end: int) -> None:
                self._native.apply(start + 8 * begin, end - begin, g + row * begin, numbers)

            in_parts(apply, ids.size, self._threads_for(ids.size))
            expire = self.options.expire
            if expire and self.updates % max(1, expire // 8) == 0:
                self._drop(self.updates - expire)
            return int(np.count_nonzero(addresses))

    def drop(self, before: int) -> int:
        """Drops the ids that were last looked up before so many updates; how many.

        Args:
            before: a number of updates.
        """
        with self._lock:
            return self._drop(before)

    def export(self) -> Content:
        """What the table has, ids ascending."""
        with self._lock:
            count, width = len(self), self.options.width
            found = [np.empty(count, np.int64) for _ in range(4)]
            functions().collect(
                ctypes.byref(self._table), ctypes.byref(Collect(*map(address_of, found)))
            )
            order = np.argsort(found[0], kind="stable")
            ids, places, seen, steps = (x[order] for x in found)
            slots = self._native.form.slots
            rows = self._read(places, 0)
            kept = [self._read(places, 1 + slot) for slot in range(slots)]
            state = np.stack(kept, 1) if kept else np.empty((count, 0, width), np.float32)
            return Content(ids, rows, state, seen, steps, places != 0)

    def load(self, content: Content, updates: int | None = None) -> None:
        """Adds ids with their rows, or replaces them.

        Args:
            content: as `export` gives it, of any ids.
            updates: the number of updates that the table has had then.
        """
        self._check(content)
        with self._lock:
            for admitted, least in ((True, 1), (False, (1 << 62))):
                chosen = np.flatnonzero(content.admitted == admitted)
                ids = np.ascontiguousarray(content.ids[chosen], np.int64)
                places = self._put(ids, content, chosen, least)
                if admitted:
                    self._write(places, 0, content.rows[chosen])
                    for slot in range(self._native.form.slots):
                        self._write(places, 1 + slot, content.slots[chosen, slot])
            if updates is not None:
                self.updates = updates

    def clear(self) -> None:
        """Drops all ids, and gives the memory back."""
        with self._lock:
            functions().clear(ctypes.byref(self._table))

    def _put(self, ids: Array, content: Content, chosen: Array, least: int) -> Array:
        seen = np.ascontiguousarray(content.seen[chosen], np.int64)
        steps = np.ascontiguousarray(content.steps[chosen], np.int64)
        return self._find(ids, seen, True, steps, least)

    def _find(
        self, ids: Array, seen: Array | None, insert: bool, steps: Array | None = None,
        admit: int | None = None,
    ) -> Array:  # fmt: skip
        addresses = np.empty(ids.size, np.int64)
        lists = [None if x is None else address_of(x) for x in (seen, steps)]
        admit = self.options.admit if admit is None else admit
        table = ctypes.byref(self._table)

        def part(first: int, last: int) -> None:
            asked = Search(
                address_of(ids), ids.size, address_of(addresses), *lists, self.updates,
                first, last, insert, admit,
            )  # fmt: skip
            if functions().search(table, ctypes.byref(asked)):
                raise OutOfMemoryError(
                    f"table of rows: no memory for more than {len(self)} ids of "
                    f"{self._table.row_bytes} bytes"
                )

        in_parts(part, PARTS, min(PARTS, self._threads_for(ids.size)))
        return addresses

    def _threads_for(self, count: int) -> int:
        return threads_for(count) if self._threads is None else self._threads

    def _drop(self, before: int) -> int:
        count = functions().drop(ctypes.byref(self._table), max(0, before))
        if count < 0:
            raise OutOfMemoryError("table of rows: no memory to drop ids")
        return count

    def _read(self, places: Array, part: int) -> Array:
        out = np.empty((places.size, self.options.width), np.float32)
        offset, size = part * self._native.form.part_bytes, SIZE * self.options.width
        functions().read_rows(address_of(places), places.size, offset, size, address_of(out))
        return out

    def _write(self, places: Array, part: int, content: Array) -> None:
        content = np.ascontiguousarray(content, np.float32)
        offset, size = part * self._native.form.part_bytes, SIZE * self.options.width
        functions().write_rows(address_of(places), places.size, offset, size, address_of(content))

    def _check(self, content: Content) -> None:
        count = content.ids.size
        shapes = {
            "rows": (count, self.options.width), "seen": (count,), "steps": (count,),
            "slots": (count, self._native.form.slots, self.options.width), "admitted": (count,),
        }  # fmt: skip
        for name, shape in shapes.items():
            got = getattr(content, name).shape
            if got != shape:
                raise ShapeError(f"table of rows: expected {name} {shape}, got {got}")


def _signed(value: int) -> int:
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >= 1 << 63 else value
