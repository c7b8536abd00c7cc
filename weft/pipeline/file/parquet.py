"""Rows of Parquet files by index: the files' metadata locates row groups."""

from __future__ import annotations

import bisect
import itertools
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from weft.errors import DataError
from weft.formats.parquet import ParquetFile
from weft.pipeline.stage import Array, Context, Listed, View
from weft.pipeline.structure import joined, map_leaves, stack_column

KEPT_BYTES: Final = 256 << 20


class Groups:
    """The row groups of several files as one table; the most recently read are cached.

    Args:
        paths: the files, which have the same columns.
        columns, defaults: as in `ParquetFile`.
        kept_bytes: memory for cached row groups; at least one is kept.

    Raises:
        DataError: a file is damaged, or its columns have other types than the first file's.
    """

    def __init__(
        self, paths: Sequence[str], columns: Sequence[str] | None = None,
        defaults: Mapping[str, Any] | None = None, kept_bytes: int = KEPT_BYTES,
    ) -> None:  # fmt: skip
        self.files = [ParquetFile(path, columns, defaults) for path in paths]
        for file in self.files[1:]:
            _refuse_other(file, self.files[0])
        self.places = [(file, g) for file in self.files for g in range(file.groups)]
        self.ends = list(itertools.accumulate(file.rows[g] for file, g in self.places))
        self.kept_bytes = kept_bytes
        self._kept: OrderedDict[int, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def rows(self) -> int:
        """The number of rows of all files."""
        return self.ends[-1] if self.ends else 0

    def start(self, group: int) -> int:
        """The index of a row group's first row."""
        return self.ends[group - 1] if group else 0

    def columns(self, group: int) -> Any:
        """A row group; safe to call from several threads."""
        with self._lock:
            cached = self._kept.get(group)
            if cached is not None:
                self._kept.move_to_end(group)
                return cached[0]
        file, number = self.places[group]
        read, size = file.read(number)
        map_leaves(_protect, read)
        with self._lock:
            self._kept[group] = read, size
            while len(self._kept) > 1 and sum(n for _, n in self._kept.values()) > self.kept_bytes:
                self._kept.popitem(last=False)
        return read


def _protect(array: Array) -> None:
    """Make arrays read-only: an element changed in place would change other passes."""
    array.flags.writeable = False


def _refuse_other(file: ParquetFile, first: ParquetFile) -> None:
    for name, dtype in first.types.items():
        got = file.types.get(name)
        if got != dtype:
            text = f"expected column {name!r} of type {dtype} as in {first.path}, got {got}"
            raise DataError(f"{file.path}: {text}")


class Table(Listed):
    """Rows as dicts: element i is row i over all files; or row groups as dicts of arrays."""

    def __init__(self, groups: Groups, whole: bool = False) -> None:
        what = f"{len(groups.places)} row groups" if whole else f"{groups.rows} rows"
        self.name = f"parquet({len(groups.files)} files, {what})"
        self.groups = groups
        self.paths = [file.path for file in groups.files]
        self.whole = whole

    def indexed(self, context: Context) -> View | None:
        """Rows, or row groups, by index."""
        return _Whole(self.groups) if self.whole else _Rows(self.groups)

    def count(self) -> int:
        """The number given in the files' metadata."""
        return len(self.groups.places) if self.whole else self.groups.rows


class _Whole(View):
    def __init__(self, groups: Groups) -> None:
        self.groups = groups
        self.size = len(groups.places)

    def item(self, index: int) -> Any:
        return self.groups.columns(index)


class _Rows(View):
    def __init__(self, groups: Groups) -> None:
        self.groups = groups
        self.size = groups.rows

    def item(self, index: int) -> Any:
        group = bisect.bisect_right(self.groups.ends, index)
        row = index - self.groups.start(group)
        return map_leaves(lambda column: column[row], self.groups.columns(group))

    def gather(self, indices: Array) -> Any:
        """Several rows at once; each row group is looked up once."""
        groups = self.groups
        numbers = np.searchsorted(groups.ends, indices, "right")
        parts: list[Any] = []
        places: list[Array] = []
        for group in np.unique(numbers).tolist():
            places.append(np.flatnonzero(numbers == group))
            rows = indices[places[-1]] - groups.start(group)
            columns = groups.columns(group)
            parts.append(map_leaves(lambda column, rows=rows: column[rows], columns))
        return joined(parts, lambda columns, where: _merged(columns, places, where))


def _merged(parts: Sequence[Array], places: Sequence[Array], name: str) -> Any:
    """One array with each part's rows at their places; lists must have equal lengths."""
    merged = np.empty((sum(map(len, places)), *parts[0].shape[1:]), parts[0].dtype)
    for part, where in zip(parts, places, strict=True):
        merged[where] = part
    if merged.dtype == object and isinstance(merged[0], np.ndarray):
        return stack_column(merged.tolist(), name)
    return merged
