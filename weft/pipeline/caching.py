"""Caches of elements: in memory, or in a file that later processes read too."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

from weft.errors import DataError
from weft.pipeline.encoding import decode, encode
from weft.pipeline.stage import Context, Cursor, Stage, State, View

MAGIC: Final = b"weft cache 1\n"


class Store(Protocol):
    """Where cached elements are stored, in order."""

    complete: bool

    def __len__(self) -> int: ...

    def get(self, number: int) -> Any:
        """A cached element."""
        ...

    def add(self, element: Any) -> None:
        """Append an element."""
        ...

    def finish(self) -> None:
        """Mark the cache complete."""
        ...


class Memory:
    """Elements in a list."""

    def __init__(self) -> None:
        self.elements: list[Any] = []
        self.complete = False

    def __len__(self) -> int:
        return len(self.elements)

    def get(self, number: int) -> Any:
        """A cached element."""
        return self.elements[number]

    def add(self, element: Any) -> None:
        """Append an element."""
        self.elements.append(element)

    def finish(self) -> None:
        """Mark the cache complete."""
        self.complete = True


class File:
    """Elements in a file, which is renamed to its final name when it is complete.

    A first line, the encoded elements, their end offsets (int64), and the number of elements.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.owner = os.getpid()
        self.part = self.path.with_name(f"{self.path.name}.{self.owner}.part")
        self.lock = threading.Lock()  # guards the file's position
        self.complete = self.path.exists()
        self.ends: list[int] = self._read_ends() if self.complete else [len(MAGIC)]
        self.stream = open(self.path if self.complete else os.devnull, "rb")  # noqa: SIM115

    def _read_ends(self) -> list[int]:
        data = self.path.read_bytes() if self.path.stat().st_size < 64 else b""
        with self.path.open("rb") as stream:
            magic = stream.read(len(MAGIC))
            size = stream.seek(0, os.SEEK_END)
            if magic != MAGIC or size < len(MAGIC) + 16:
                shown = (data or magic)[:20]
                raise DataError(f"{self.path}: expected a cache file, got {shown!r}")
            stream.seek(size - 8)
            count = int.from_bytes(stream.read(8), "little")
            if not 0 < count <= (size - len(MAGIC) - 8) // 8:
                raise DataError(f"{self.path}: the cache file is incomplete or damaged; remove it")
            stream.seek(size - 8 - 8 * count)
            return np.frombuffer(stream.read(8 * count), "<i8").tolist()

    def __len__(self) -> int:
        return len(self.ends) - 1

    def get(self, number: int) -> Any:
        """A cached element."""
        with self.lock:
            self.stream.seek(self.ends[number])
            return decode(self.stream.read(self.ends[number + 1] - self.ends[number]))

    def add(self, element: Any) -> None:
        """Append an element."""
        with self.lock:
            if len(self.ends) == 1:
                self.stream.close()
                self.stream = open(self.part, "w+b")  # noqa: SIM115
                self.stream.write(MAGIC)
            self.stream.seek(self.ends[-1])
            self.stream.write(encode(element))
            self.ends.append(self.stream.tell())

    def finish(self) -> None:
        """Write the index and rename the file."""
        with self.lock:
            if len(self.ends) > 1:
                self.stream.seek(self.ends[-1])
                self.stream.write(np.array(self.ends, "<i8").tobytes())
                self.stream.write(len(self.ends).to_bytes(8, "little"))
                self.stream.flush()
                os.fsync(self.stream.fileno())
                self.part.replace(self.path)
            self.complete = True

    def __del__(self) -> None:
        stream = getattr(self, "stream", None)
        if stream is not None:
            stream.close()
            if os.getpid() == self.owner:  # a forked process leaves its parent's file alone
                self.part.unlink(missing_ok=True)


class Cache(Stage):
    """The elements of the first epoch in all epochs, with the random choices made then."""

    ahead = True  # elements arrive in order, and a resumed pass fills the cache again

    def __init__(self, source: Stage, path: str | Path = "") -> None:
        self.inputs = (source,)
        self.path = path
        self.store: Store = File(path) if path else Memory()
        self.kept: dict[int, Any] = {}  # elements by index
        self.lock = threading.Lock()

    @property
    def by_number(self) -> bool:
        """Whether elements are cached by index, on demand."""
        return not self.path and not self.inputs[0].streams

    @property
    def streams(self) -> bool:
        """There are indices if the input has them."""
        return not self.by_number

    def indexed(self, context: Context) -> View | None:
        """Elements by index, if the input has indices and the cache is in memory."""
        if not self.by_number:
            return None
        view = self.inputs[0].view(context._replace(epoch=0))
        return None if view is None else _Kept(view, self.kept)

    def stream(self, context: Context) -> Cursor:
        """Elements in order; those that are not cached come from the input."""
        return _Cache(self, context._replace(epoch=0))

    def count(self) -> int:
        """The input's size."""
        return len(self.store) if self.store.complete else self.inputs[0].count()


class _Kept(View):
    def __init__(self, view: View, kept: dict[int, Any]) -> None:
        self.view = view
        self.kept = kept
        self.size = view.size

    def item(self, index: int) -> Any:
        if index not in self.kept:
            self.kept[index] = self.view.item(index)
        return self.kept[index]


class _Cache(Cursor):
    """Its state is a position; uncached elements before it are computed again."""

    def __init__(self, stage: Cache, context: Context) -> None:
        self.stage = stage
        self.context = context
        self.position = 0
        self.source: Cursor | None = None
        self.read = 0

    def __next__(self) -> Any:
        stage, store = self.stage, self.stage.store
        with stage.lock:  # of several passes, only one fills the cache
            while self.position >= len(store):
                if store.complete:
                    raise StopIteration
                self._add(store)
            self.position += 1
            return store.get(self.position - 1)

    def _add(self, store: Store) -> None:
        if self.source is None:
            self.source = self.stage.inputs[0].open(self.context)
        try:
            element = next(self.source)
        except StopIteration:
            store.finish()
            self.source.close()
            return
        self.read += 1
        if self.read > len(store):
            store.add(element)

    def state(self) -> State:
        return {"position": self.position}

    def restore(self, state: State) -> None:
        for _ in range(state["position"]):
            next(self, None)

    def close(self) -> None:
        if self.source is not None:
            self.source.close()
