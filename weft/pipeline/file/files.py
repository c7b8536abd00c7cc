"""Files read one after the other, each by its own cursor."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from weft.errors import DataError, DTypeError
from weft.formats.packed import Packed
from weft.ops.refusal import shown
from weft.pipeline.stage import UNKNOWN, Context, Cursor, Stage, State
from weft.pipeline.structure import joined

__all__ = ["Files", "found_paths"]

Name = str | bytes | os.PathLike[str]


def name_of(path: Any, what: str) -> str:
    """A file name as a string.

    Raises:
        DTypeError: it is not a file name.
    """
    if not isinstance(path, str | bytes | os.PathLike):
        got = f"{shown(path)} of type {type(path).__name__}"
        text = "files to be names, patterns, paths, lists of these or a dataset of names"
        raise DTypeError.here(f"{what}: expected {text}, got {got}")
    return os.fsdecode(path)


def found_paths(patterns: Any, what: str) -> list[str]:
    """The files that match names or patterns such as `train-*.tfrecord`, sorted per pattern.

    Raises:
        DataError: a pattern matches nothing.
        DTypeError: one is not a file name.
    """
    matches: list[str] = []
    for pattern in _listed(patterns):
        name = name_of(pattern, what)
        paths = matching_files(name)
        if not paths:
            raise DataError(f"{what}: expected files that match {name!r}, found none")
        matches += paths
    return matches


def matching_files(patterns: Any) -> list[str]:
    """The files that match any of the names or patterns, sorted per pattern."""
    names = map(os.fsdecode, _listed(patterns))
    return [
        path
        for name in names
        for path in ([name] if Path(name).exists() else sorted(glob.glob(name)))
    ]


def _listed(patterns: Any) -> Any:
    return patterns if isinstance(patterns, list | tuple | np.ndarray) else [patterns]


class Files(Stage):
    """The elements that `reader` yields for each file, one file after the other."""

    def __init__(
        self, paths: Sequence[Name], reader: Callable[[str], Cursor], name: str = "files"
    ) -> None:
        self.paths = [name_of(path, name) for path in paths]
        self.reader = reader
        self.name = f"{name}({len(self.paths)})"

    def stream(self, context: Context) -> Cursor:
        """Elements in order."""
        return _Files(self)

    def count(self) -> int:
        """UNKNOWN."""
        return UNKNOWN


class _Files(Cursor):
    """Its state is the index of the file, and the state within it."""

    def __init__(self, stage: Files) -> None:
        self.stage = stage
        self.number = 0
        self.reader: Cursor | None = None

    def _opened(self) -> Cursor | None:
        paths = self.stage.paths
        if self.reader is None and self.number < len(paths):
            path = paths[self.number]
            try:
                self.reader = self.stage.reader(path)
            except FileNotFoundError:
                self.number += 1
                raise DataError(f"{path}: there is no such file") from None
        return self.reader

    def _next_file(self) -> None:
        if self.reader is not None:
            self.reader.close()
        self.reader = None
        self.number += 1

    def __next__(self) -> Any:
        while (reader := self._opened()) is not None:
            try:
                return next(reader)
            except StopIteration:
                self._next_file()
        raise StopIteration

    def gather(self, count: int) -> tuple[Any, int]:
        parts, total = self._parts(count, lambda reader, missing: reader.gather(missing))
        if len(parts) < 2:
            return (parts[0] if parts else None), total
        return joined(parts, lambda column, where: np.concatenate(column)), total

    def packed(self, count: int) -> tuple[Any, int]:
        parts, total = self._parts(count, lambda reader, missing: reader.packed(missing))
        if not all([isinstance(part, Packed) for part in parts]):
            return joined(parts, lambda column, where: np.concatenate(column)), total
        return (Packed.joined(parts) if parts else None), total

    def _parts(
        self, count: int, take: Callable[[Cursor, int], tuple[Any, int]]
    ) -> tuple[list[Any], int]:
        """Up to that many elements, grouped by file, and their number."""
        parts: list[Any] = []
        total = 0
        while total < count and (reader := self._opened()) is not None:
            part, number = take(reader, count - total)
            if number:
                parts.append(part)
                total += number
            else:
                self._next_file()
        return parts, total

    def state(self) -> State:
        return {"file": self.number, "at": None if self.reader is None else self.reader.state()}

    def restore(self, state: State) -> None:
        self.number = state["file"]
        if state["at"] is not None:
            reader = self._opened()
            assert reader is not None
            reader.restore(state["at"])

    def close(self) -> None:
        if self.reader is not None:
            self.reader.close()
