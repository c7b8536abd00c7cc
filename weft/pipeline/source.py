"""Sources: arrays, sequences, and iterables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from weft.errors import DataError, ShapeError
from weft.pipeline.saved_state import Held
from weft.pipeline.stage import UNKNOWN, Array, Context, Cursor, Listed, Stage, State, View
from weft.pipeline.structure import leaves, map_leaves


class Slices(Listed):
    """The rows of arrays in memory (or in a memory map): element i is row i of each array."""

    name = "from_tensor_slices"

    def __init__(self, arrays: Any) -> None:
        self.arrays = map_leaves(_array, arrays)
        columns = leaves(self.arrays)
        counts = sorted({len(x) if x.ndim else -1 for x in columns})
        if len(counts) != 1 or counts[0] < 0:
            shapes = [x.shape for x in columns]
            raise ShapeError(
                f"from_tensor_slices: expected arrays with the same first dimension, got {shapes}"
            )
        self.size = counts[0]

    def indexed(self, context: Context) -> View:
        """Rows by index."""
        return _Rows(self.arrays, self.size)

    def count(self) -> int:
        """The first dimension."""
        return self.size


def _array(x: Any) -> Array:
    """A read-only view: an element changed in place would change the data set."""
    array = np.asarray(x)
    if array.dtype.kind == "U":
        array = array.astype(object)
    shown = array.view()
    shown.flags.writeable = False
    return shown


class _Rows(View):
    def __init__(self, arrays: Any, size: int) -> None:
        self.arrays = arrays
        self.size = size

    def item(self, index: int) -> Any:
        return map_leaves(lambda x: x[index], self.arrays)

    def gather(self, indices: Array) -> Any:
        # every index is in range; without the check, rows are written in place
        return map_leaves(lambda x: x.take(indices, 0, mode="clip"), self.arrays)


class Items(Listed):
    """Any object with `__getitem__` and a length, such as a list or a user's dataset."""

    name = "from_sequence"

    def __init__(self, items: Sequence[Any]) -> None:
        self.items = items

    def indexed(self, context: Context) -> View:
        """Items by index."""
        return _Items(self.items)

    def count(self) -> int:
        """The sequence's length."""
        return len(self.items)


class _Items(View):
    def __init__(self, items: Any) -> None:
        self.items = items
        self.size = len(items)

    def item(self, index: int) -> Any:
        try:
            return self.items[index]
        except StopIteration as error:
            raise DataError(f"element {index}: its source raised StopIteration") from error
        except Exception as error:
            error.add_note(f"raised by element {index} of the source")
            raise


class Made(Stage):
    """The elements of a function that returns an iterable, such as a generator.

    Its state is a count, and a resumed pass drops that many elements; if the iterator has
    `state_dict` and `load_state_dict`, these are used instead.
    """

    name = "from_generator"

    def __init__(self, make: Callable[[], Iterable[Any]], count: int = UNKNOWN) -> None:
        self.make = make
        self._count = count

    def stream(self, context: Context) -> Cursor:
        """Call the function."""
        return _Made(self.make)

    def count(self) -> int:
        """The given size, or UNKNOWN."""
        return self._count


class _Made(Cursor):
    def __init__(self, make: Callable[[], Iterable[Any]]) -> None:
        self.make = make
        self.position = 0
        self.running: Iterator[Any] | None = None

    def _opened(self) -> Iterator[Any]:
        if self.running is None:
            made: Any = self.make()
            if not hasattr(made, "__iter__"):
                got = type(made).__name__
                raise DataError(f"from_generator: expected something to iterate, got {got}")
            self.running = iter(made)
        return self.running

    def __next__(self) -> Any:
        position = self.position
        self.position = position + 1
        try:
            return next(self._opened())
        except StopIteration:
            self.position = position
            raise
        except Exception as error:
            error.add_note(f"raised by from_generator at element {position}")
            raise

    def state(self) -> State:
        """The count, and the iterator's own state if it has one."""
        own: Any = getattr(self.running, "state_dict", None)
        return {"position": self.position, **({"own": Held([own()])} if own else {})}

    def restore(self, state: State) -> None:
        """Resume after the elements that were yielded."""
        running: Any = self._opened()
        if "own" in state:
            own = state["own"]
            running.load_state_dict(own[0] if isinstance(own, Held) else own)
        for _ in range(0 if "own" in state else state["position"]):
            next(running, None)
        self.position = state["position"]

    def close(self) -> None:
        """Let a generator run its `finally` blocks."""
        close: Any = getattr(self.running, "close", None)
        if close:
            close()


class Numbers(Listed):
    """Integers, as in Python's `range`."""

    name = "range"

    def __init__(self, numbers: range) -> None:
        self.numbers = numbers

    def indexed(self, context: Context) -> View:
        """Integers by index."""
        return _Numbers(self.numbers)

    def count(self) -> int:
        """The number of integers."""
        return len(self.numbers)


class _Numbers(View):
    def __init__(self, numbers: range) -> None:
        self.numbers = numbers
        self.size = len(numbers)

    def item(self, index: int) -> Any:
        return np.int64(self.numbers[index])

    def gather(self, indices: Array) -> Any:
        return self.numbers.start + indices * self.numbers.step
