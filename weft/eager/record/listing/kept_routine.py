"""Routines on disk: the next process reads those of a recording instead of writing them again.

Each recording that needed new ones has a file in the code cache. What a call computes must have a
text: an operation, or a function of Weft's own, with attributes and types.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from weft.codegen.target import portable
from weft.eager.record.pending.lazy import Record
from weft.ir.extent import Extents
from weft.ir.node import TensorType
from weft.library.case import Made
from weft.library.form import UnsizedError
from weft.library.form_text import NoTextError
from weft.library.function_text import NoFunctionTextError, text_of_value
from weft.library.routine_data import as_data, from_data
from weft.runtime.compilation import compiler
from weft.runtime.compilation.cache import digest
from weft.runtime.compilation.pack import origin

MOST_FILES: Final = 256  # that one process writes
_written: Final[list[str]] = []
_open: Final[list[Shelf]] = []


def text_of_call(called: Any, types: Sequence[TensorType], static: dict[str, Any]) -> str | None:
    """What tells a call from others; `None` if that has no text."""
    if any([kind.__class__ is not TensorType for kind in types]):
        return None
    try:
        attrs = [f"{key}={text_of_value(value)}" for key, value in static.items()]
        name = text_of_value(called)
    except NoFunctionTextError:
        return None
    given = ",".join([f"{kind.dtype.name}{kind.shape}" for kind in types])
    return f"{name}({given}){{{','.join(attrs)}}}"


class Shelf:
    """The routines of a recording that are on disk, and those to be kept there."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._records = records
        self._key: str | None = None
        self._found: dict[str, Any] = {}
        self._new: dict[str, Any] = {}

    def made(self, text: str, extents: Extents | None, write: Callable[[], Made]) -> Made:
        """The routine of this text, from disk or written.

        Raises:
            UnsizedError: there is none for sizes like these.
        """
        if self._key is None:
            self._read()
        data = self._found.get(text)
        if data is None:
            return self._added(text, extents, write)
        if not data:
            raise UnsizedError
        if extents is not None:
            extents.restored(data["state"])
        return from_data(data, portable(), extents)

    def _read(self) -> None:
        plans = dict.fromkeys([record.plan for record in self._records])
        texts = [text_of_call(p.pattern.called, p.given, p.static) or p.name for p in plans]
        python = f"{sys.version_info[:3]} numpy-{np.__version__}"
        target = portable()
        self._key = digest("routines", origin(target), python, repr(target), *texts)
        data = compiler.cache().load(self._key)
        self._found = {} if data is None else json.loads(data)

    def _added(self, text: str, extents: Extents | None, write: Callable[[], Made]) -> Made:
        try:
            made = write()
        except UnsizedError:
            self._new[text] = {}
            raise
        with contextlib.suppress(NoTextError):
            state = None if extents is None else extents.state
            self._new[text] = {**as_data(made), "state": state}
        return made

    def keep(self) -> None:
        """Stores what is new."""
        if self._new and self._key is not None and len(_written) < MOST_FILES:
            _written.append(self._key)
            text = json.dumps({**self._found, **self._new}, separators=(",", ":"))
            compiler.cache().store({self._key: text.encode()})


@contextlib.contextmanager
def shelf_of(records: Sequence[Record]) -> Iterator[None]:
    """Inside, routines of these records are read from disk, and written there."""
    shelf = Shelf(records)
    _open.append(shelf)
    try:
        yield
    finally:
        _open.remove(shelf)
    shelf.keep()


def kept(text: str | None, extents: Extents | None, write: Callable[[], Made]) -> Made:
    """The routine of a call with this text; it is written if it is not on disk."""
    return _open[-1].made(text, extents, write) if text and _open else write()
