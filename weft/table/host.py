"""The tables of a process by name, and what they are asked in messages."""

from __future__ import annotations

import itertools
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from weft.errors import ArgumentError, ExistsError, ShapeError, StateError
from weft.table.embedding_table import Content, EmbeddingTable, TableOptions
from weft.table.group import TableGroup
from weft.table.grouping import Ids

Array = np.ndarray[Any, Any]


class Reply(NamedTuple):
    """The answer to a request: plain values, and arrays."""

    head: dict[str, Any]
    arrays: list[Array]


class UnknownGroupError(StateError):
    """The process does not know a group of tables: it has started anew since they were opened."""


class TableHost:
    """The tables of a process. Whoever names one first makes it, and all others share it.

    Args:
        threads: how many a call may use; by default as many as pay.
    """

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads
        self._tables: dict[str, EmbeddingTable] = {}
        self._groups: dict[int, TableGroup] = {}
        self._numbers = itertools.count(secrets.randbits(52))
        self._opening = threading.Lock()
        self._lock = threading.Lock()
        self._methods: Final[
            dict[str, Callable[[TableGroup, Mapping[str, Any], list[Array]], Reply]]
        ]
        self._methods = {
            "lookup": self._lookup, "update": self._update, "export": self._export,
            "load": self._load, "drop": self._drop, "clear": self._clear, "sizes": self._sizes,
        }  # fmt: skip

    def open(self, tables: Sequence[tuple[str, Mapping[str, Any]]]) -> int:
        """The number of a group of tables, given as names and records of options.

        Raises:
            ExistsError: a table of that name has other options.
        """
        with self._opening:
            found = [self._table(name, TableOptions.of(record)) for name, record in tables]
            number = next(self._numbers)
            self._groups[number] = TableGroup(found, self._lock, self._threads)
            return number

    def call(self, method: str, head: Mapping[str, Any], arrays: list[Array]) -> Reply:
        """Does what a message asks.

        Args:
            method: `open`, or one of a group of tables, whose number is in `head`.

        Raises:
            UnknownGroupError: there is no such group.
        """
        if method == "open":
            return Reply({"group": self.open(head["tables"])}, [])
        group = self.group(head["group"])
        do = self._methods.get(method)
        if do is None:
            raise ArgumentError(
                f"tables: expected one of {', '.join(self._methods)}, got {method!r}"
            )
        return do(group, head, arrays)

    def group(self, number: int) -> TableGroup:
        """The group of this number.

        Raises:
            UnknownGroupError: there is none.
        """
        found = self._groups.get(number)
        if found is None:
            raise UnknownGroupError(f"tables: there is no group {number}")
        return found

    def _table(self, name: str, options: TableOptions) -> EmbeddingTable:
        table = self._tables.get(name)
        if table is None:
            return self._tables.setdefault(name, EmbeddingTable(options))
        if table.options != options:
            raise ExistsError(
                f"table {name!r}: it exists with other options: expected {table.options}, "
                f"got {options}"
            )
        return table

    def _lookup(self, group: TableGroup, head: Mapping[str, Any], arrays: list[Array]) -> Reply:
        ids, seen = _ids(group, arrays), arrays[2] if len(arrays) > 2 else None
        if seen is not None and not (_is_list(seen, ids.ids.size) and (seen > 0).all()):
            raise ShapeError(f"tables: expected a count above 0 for each of {ids.ids.size} ids")
        return Reply({}, group.lookup(ids, seen, bool(head["insert"])))

    def _update(self, group: TableGroup, head: Mapping[str, Any], arrays: list[Array]) -> Reply:
        count = group.update(_ids(group, arrays), arrays[2:], head["rates"])
        return Reply({"updated": count}, [])

    def _export(self, group: TableGroup, head: Mapping[str, Any], arrays: list[Array]) -> Reply:
        table = group.tables[head["table"]]
        with self._lock:
            return Reply({"updates": table.updates}, list(table.export()))

    def _load(self, group: TableGroup, head: Mapping[str, Any], arrays: list[Array]) -> Reply:
        table = group.tables[head["table"]]
        content = Content(*arrays)
        table.check(content)
        with self._lock:
            table.clear()
            table.load(content)
            table.state.updates = head["updates"]
        return Reply({}, [])

    def _drop(self, group: TableGroup, head: Mapping[str, Any], arrays: list[Array]) -> Reply:
        with self._lock:
            dropped = [table.drop(table.updates - head["age"]) for table in group.tables]
        return Reply({"dropped": dropped}, [])

    def _clear(self, group: TableGroup, head: Mapping[str, Any], arrays: list[Array]) -> Reply:
        with self._lock:
            for table in group.tables:
                table.clear()
        return Reply({}, [])

    def _sizes(self, group: TableGroup, head: Mapping[str, Any], arrays: list[Array]) -> Reply:
        with self._lock:
            sizes = [[len(t), t.rows, t.nbytes, t.updates] for t in group.tables]
        return Reply({"sizes": sizes}, [])


def _ids(group: TableGroup, arrays: Sequence[Array]) -> Ids:
    """The ids of a message. Native code trusts them, so a malformed message must not get there.

    Raises:
        ShapeError: they are not one list for each table.
    """
    tables = len(group.tables)
    if len(arrays) < 2 or not _is_list(arrays[1], tables + 1) or not _is_list(arrays[0], None):
        raise ShapeError(f"tables: expected ids, and where those of {tables} tables begin")
    ids, bounds = arrays[0], arrays[1]
    if bounds[0] != 0 or bounds[-1] != ids.size or (np.diff(bounds) < 0).any():
        raise ShapeError(f"tables: expected ranges of {ids.size} ids, got {bounds.tolist()[:20]}")
    return Ids(ids, bounds)


def _is_list(array: Array, size: int | None) -> bool:
    """Whether an array is a list of 64-bit integers, of this size if it is told."""
    fits = array.dtype == np.int64 and array.ndim == 1 and array.flags.c_contiguous
    return fits and size in (None, array.size)
