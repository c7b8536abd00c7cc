"""Elements kept after the first pass: in memory, or in a file for later processes, too."""

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
    """Where elements are kept, in their order."""

    complete: bool

    def __len__(self) -> int: ...

    def get(self, number: int) -> Any:
        """An element that is kept."""
        ...

    def add(self, element: Any) -> None:
        """Keep the next element."""
        ...

    def finish(self) -> None:
        """There are no more."""
        ...


class Memory:
    """Elements in a list."""

    def __init__(self) -> None:
        self.elements: list[Any] = []
        self.complete = False

    def __len__(self) -> int:
        return len(self.elements)

    def get(self, number: int) -> Any:
        """An element that is kept."""
        return self.elements[number]

    def add(self, element: Any) -> None:
        """Keep the next element."""
        self.elements.append(element)

    def finish(self) -> None:
        """There are no more."""
        self.complete = True


class File:
    """Elements in a file, which gets its name when it is complete.

    It has a first line, the encoded elements, their end offsets (int64), and how many there are.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.part = self.path.with_name(f"{self.path.name}.{os.getpid()}.part")
        self.lock = threading.Lock()  # of the file's position
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
                raise DataError(f"{self.path}: expected a cache of elements, got {shown!r}")
            stream.seek(size - 8)
            count = int.from_bytes(stream.read(8), "little")
            if not 0 < count <= (size - len(MAGIC) - 8) // 8:
                raise DataError(f"{self.path}: expected a whole cache of elements; remove it")
            stream.seek(size - 8 - 8 * count)
            return np.frombuffer(stream.read(8 * count), "<i8").tolist()

    def __len__(self) -> int:
        return len(self.ends) - 1

    def get(self, number: int) -> Any:
        """An element that is kept."""
        with self.lock:
            self.stream.seek(self.ends[number])
            return decode(self.stream.read(self.ends[number + 1] - self.ends[number]))

    def add(self, element: Any) -> None:
        """Keep the next element."""
        with self.lock:
            if len(self.ends) == 1:
                self.stream.close()
                self.stream = open(self.part, "w+b")  # noqa: SIM115
                self.stream.write(MAGIC)
            self.stream.seek(self.ends[-1])
            self.stream.write(encode(element))
            self.ends.append(self.stream.tell())

    def finish(self) -> None:
        """Write the index and give the file its name."""
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
            self.part.unlink(missing_ok=True)


class Cache(Stage):
    """The elements of the first epoch in all epochs; what is random under it is so once."""

    ahead = True  # elements come in order, and a resumed pass fills it again

    def __init__(self, source: Stage, path: str | Path = "") -> None:
        self.inputs = (source,)
        self.path = path
        self.store: Store = File(path) if path else Memory()
        self.kept: dict[int, Any] = {}  # elements by number
        self.lock = threading.Lock()

    @property
    def by_number(self) -> bool:
        """Whether elements are kept by number, as they are asked for."""
        return not self.path and not self.inputs[0].streams

    @property
    def streams(self) -> bool:
        """Where the input has numbers, so has this."""
        return not self.by_number

    def indexed(self, context: Context) -> View | None:
        """Elements by number, where the input has them and memory keeps them."""
        if not self.by_number:
            return None
        view = self.inputs[0].view(context._replace(epoch=0))
        return None if view is None else _Kept(view, self.kept)

    def stream(self, context: Context) -> Cursor:
        """Elements in order, the input's where they are not kept."""
        return _Cache(self, context._replace(epoch=0))

    def count(self) -> int:
        """The input's."""
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
    """Its state is a position; elements before it that are not kept are made again."""

    def __init__(self, stage: Cache, context: Context) -> None:
        self.stage = stage
        self.context = context
        self.position = 0
        self.source: Cursor | None = None
        self.read = 0

    def __next__(self) -> Any:
        stage, store = self.stage, self.stage.store
        with stage.lock:  # of several passes, one adds
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
