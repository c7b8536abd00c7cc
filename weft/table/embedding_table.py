"""A table of rows by id in this process: what it is, what it has."""

from __future__ import annotations

import ctypes
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
from weft.table.native import functions, row_functions
from weft.table.optimizer import SGD, RowOptimizer, optimizer_of

Array = np.ndarray[Any, Any]
BLOCK_BYTES: Final = 1 << 12
MOST_BLOCK_BYTES: Final = 1 << 22
"""Memory that a part of a table asks for at once for rows: at first, and at most."""
MOST_WIDTH: Final = 1024
"""Loops over a row are unrolled."""
_MIX: Final = 0x9E3779B97F4A7C15
_NEVER: Final = 1 << 62


@dataclass(frozen=True)
class TableOptions:
    """What a table is; tables of one name must agree in it.

    Attributes:
        width: numbers of a row, up to 1024.
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
        if self.width > MOST_WIDTH:
            raise ArgumentError.here(
                f"table of rows: expected a width of at most {MOST_WIDTH}, got {self.width}"
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
        rest = {name: int(record[name]) for name in ("width", "seed", "admit", "expire")}
        return cls(first=first, optimizer=optimizer, **rest)


class Content(NamedTuple):
    """What a table has: one row of each array belongs to an id."""

    ids: Array  # int64
    rows: Array  # float32, (ids, width)
    slots: Array  # float32, (ids, slots, width)
    seen: Array  # int64: how often each was looked up
    steps: Array  # int64: after how many updates each was looked up last
    admitted: Array  # bool: which have a row


class EmbeddingTable:
    """Rows by id. Rows never move, and the index grows a sixteenth at a time.

    Calls must not overlap: see `weft.table.group.TableGroup`, which looks up and updates.

    Args:
        options: what the table is.
    """

    def __init__(self, options: TableOptions) -> None:
        self.options: Final = options
        self.native: Final = row_functions(options.width, options.optimizer, options.first)
        size = self.native.form.row_bytes
        self.state: Final = Table(
            row_bytes=size, block_rows=max(8, BLOCK_BYTES // size),
            most_rows=max(8, MOST_BLOCK_BYTES // size), fill=self.native.fill,
            seed=_signed(options.seed * _MIX), admit=options.admit,
        )  # fmt: skip
        self.address: Final = ctypes.addressof(self.state)
        weakref.finalize(self, _free, self.state)

    def __len__(self) -> int:
        """How many ids have been seen, those without a row included."""
        return sum([part.used for part in self.state.parts])

    @property
    def rows(self) -> int:
        """How many ids have a row."""
        return sum([part.rows for part in self.state.parts])

    @property
    def updates(self) -> int:
        """How many there were."""
        return self.state.updates

    @property
    def nbytes(self) -> int:
        """The memory of the table: its index, and the rows in use."""
        index = sum([32 * (part.mask + 1) for part in self.state.parts if part.entries])
        return index + self.rows * self.native.form.row_bytes

    def count_update(self) -> None:
        """Counts an update, and drops what has expired by then, now and then."""
        self.state.updates += 1
        expire = self.options.expire
        if expire and self.updates % max(1, expire // 8) == 0:
            self.drop(self.updates - expire)

    def drop(self, before: int) -> int:
        """Drops the ids that were last looked up before so many updates; how many.

        Args:
            before: a number of updates.
        """
        count = functions().drop(self.address, max(0, before))
        if count < 0:
            raise OutOfMemoryError("table of rows: no memory to drop ids")
        return count

    def export(self) -> Content:
        """What the table has, ids ascending."""
        count, width = len(self), self.options.width
        found = [np.empty(count, np.int64) for _ in range(4)]
        functions().collect(self.address, ctypes.byref(Collect(*map(address_of, found))))
        order = np.argsort(found[0], kind="stable")
        ids, places, seen, steps = (x[order] for x in found)
        kept = [self._read(places, 1 + slot) for slot in range(self.native.form.slots)]
        slots = np.stack(kept, 1) if kept else np.empty((count, 0, width), np.float32)
        return Content(ids, self._read(places, 0), slots, seen, steps, places != 0)

    def load(self, content: Content) -> None:
        """Adds ids with their rows, or replaces them.

        Args:
            content: as `export` gives it, of any ids, all different.
        """
        self.check(content)
        try:
            for admitted in (True, False):
                chosen = np.flatnonzero(content.admitted == admitted)
                self.state.admit = 1 if admitted else _NEVER
                places = self._insert(content, chosen)
                if admitted:
                    self._write(places, 0, content.rows[chosen])
                    for slot in range(self.native.form.slots):
                        self._write(places, 1 + slot, content.slots[chosen, slot])
        finally:
            self.state.admit = self.options.admit

    def clear(self) -> None:
        """Drops all ids, and gives the memory back."""
        functions().clear(self.address)
        self.state.updates = 0

    def check(self, content: Content) -> None:
        """Require that content is of a table like this one."""
        count, width = content.ids.size, self.options.width
        shapes = {
            "rows": (count, width), "seen": (count,), "steps": (count,),
            "slots": (count, self.native.form.slots, width), "admitted": (count,),
        }  # fmt: skip
        for name, shape in shapes.items():
            got = getattr(content, name).shape
            if got != shape:
                raise ShapeError(f"table of rows: expected {name} {shape}, got {got}")
        if (content.seen < 1).any():
            raise ArgumentError("table of rows: expected ids that were seen at least once")

    def _insert(self, content: Content, chosen: Array) -> Array:
        ids, seen, steps = (
            np.ascontiguousarray(x[chosen], np.int64)
            for x in (content.ids, content.seen, content.steps)
        )
        places, bounds = np.empty(ids.size, np.int64), np.array([0, ids.size], np.int64)
        table = ctypes.c_int64(self.address)
        asked = Search(
            ctypes.addressof(table), 1, address_of(bounds),
            address_of(ids), address_of(places), address_of(seen), address_of(steps), 0, PARTS, 1,
        )  # fmt: skip
        searched(asked, self)
        return places

    def _read(self, places: Array, part: int) -> Array:
        out = np.empty((places.size, self.options.width), np.float32)
        offset, size = part * self.native.form.part_bytes, SIZE * self.options.width
        functions().read_rows(address_of(places), places.size, offset, size, address_of(out))
        return out

    def _write(self, places: Array, part: int, content: Array) -> None:
        content = np.ascontiguousarray(content, np.float32)
        offset, size = part * self.native.form.part_bytes, SIZE * self.options.width
        functions().write_rows(address_of(places), places.size, offset, size, address_of(content))


def searched(asked: Search, table: EmbeddingTable) -> None:
    """Searches tables, of which this is one.

    Raises:
        OutOfMemoryError: there is no memory for more rows.
    """
    if functions().search(ctypes.byref(asked)):
        raise OutOfMemoryError(
            f"table of rows: no memory for more than {len(table)} ids of "
            f"{table.native.form.row_bytes} bytes"
        )


def _free(state: Table) -> None:
    functions().clear(ctypes.byref(state))


def _signed(value: int) -> int:
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >= 1 << 63 else value
