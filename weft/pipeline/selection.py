"""Selection: take, skip, shard, filter, take_while; and enumeration."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.errors import ArgumentError
from weft.pipeline.call import called
from weft.pipeline.stage import (
    INFINITE,
    UNKNOWN,
    Array,
    Context,
    Counting,
    Cursor,
    Stage,
    State,
    View,
)


class Span(Stage):
    """Elements `start`, `start + step`, ... below `stop`: take, skip and shard."""

    def __init__(
        self, source: Stage, name: str, start: int, stop: int | None = None, step: int = 1
    ) -> None:
        if start < 0 or step < 1 or start >= step > 1:
            raise ArgumentError(f"{name}: expected 0 <= index < num_shards, got {start} of {step}")
        self.inputs = (source,)
        self.name = f"{name}({start}, {stop}, {step})"
        self.start, self.stop, self.step = start, stop, step

    def indexed(self, context: Context) -> View | None:
        """The input's elements by shifted indices."""
        view = self.inputs[0].view(context)
        return None if view is None else _Span(view, self._range(view.size))

    def _range(self, size: int) -> range:
        return range(self.start, size if self.stop is None else min(self.stop, size), self.step)

    def stream(self, context: Context) -> Cursor:
        """Elements in between are read and dropped."""
        return _SpanCursor(self.inputs[0].open(context), self)

    def count(self) -> int:
        """The number of elements."""
        count = self.inputs[0].count()
        if count == INFINITE and self.stop is not None:
            return len(range(self.start, self.stop, self.step))
        return count if count < 0 else len(self._range(count))


class _Span(View):
    def __init__(self, view: View, numbers: range) -> None:
        self.view = view
        self.numbers = numbers
        self.size = len(numbers)

    def item(self, index: int) -> Any:
        return self.view.item(self.numbers[index])

    def gather(self, indices: Array) -> Any:
        return self.view.gather(self.numbers.start + indices * self.numbers.step)


class _SpanCursor(Counting):
    """The count is the number of elements read."""

    def __init__(self, source: Cursor, span: Span) -> None:
        super().__init__(source)
        self.span = span

    def __next__(self) -> Any:
        span = self.span
        while span.stop is None or self.position < span.stop:
            position = self.position
            self.position += 1
            element = next(self.source)
            if position >= span.start and (position - span.start) % span.step == 0:
                return element
        raise StopIteration


class Enumerate(Stage):
    """Pairs of an index and an element."""

    def __init__(self, source: Stage, start: int = 0) -> None:
        self.inputs = (source,)
        self.start = start

    def indexed(self, context: Context) -> View | None:
        """Pairs by index."""
        view = self.inputs[0].view(context)
        return None if view is None else _Numbered(view, self.start)

    def stream(self, context: Context) -> Cursor:
        """Pairs in order."""
        return _NumberedCursor(self.inputs[0].open(context), self.start)

    def count(self) -> int:
        """The input's size."""
        return self.inputs[0].count()


class _Numbered(View):
    def __init__(self, view: View, start: int) -> None:
        self.view = view
        self.start = start
        self.size = view.size

    def item(self, index: int) -> Any:
        return np.int64(self.start + index), self.view.item(index)

    def gather(self, indices: Array) -> Any:
        return self.start + indices, self.view.gather(indices)


class _NumberedCursor(Counting):
    def __init__(self, source: Cursor, start: int) -> None:
        super().__init__(source)
        self.start = start

    def __next__(self) -> Any:
        number = self.start + self.position
        self.position += 1
        return np.int64(number), next(self.source)


class Filter(Stage):
    """The elements for which a function is true."""

    def __init__(self, source: Stage, function: Any) -> None:
        self.inputs = (source,)
        self.function = function

    def stream(self, context: Context) -> Cursor:
        """Elements in order."""
        return _Filter(self.inputs[0].open(context), self.function)

    def count(self) -> int:
        """UNKNOWN, unless the input is empty."""
        return 0 if self.inputs[0].count() == 0 else UNKNOWN


class _Filter(Counting):
    def __init__(self, source: Cursor, function: Any) -> None:
        super().__init__(source)
        self.function = function

    def __next__(self) -> Any:
        while True:
            element = next(self.source)
            position = self.position
            self.position += 1
            if bool(called(self.function, element, "filter", position)):
                return element


class TakeWhile(Stage):
    """The elements before the first for which a function is false."""

    name = "take_while"

    def __init__(self, source: Stage, function: Any) -> None:
        self.inputs = (source,)
        self.function = function

    def stream(self, context: Context) -> Cursor:
        """Elements in order."""
        return _TakeWhile(self.inputs[0].open(context), self.function)

    def count(self) -> int:
        """UNKNOWN, unless the input is empty."""
        return 0 if self.inputs[0].count() == 0 else UNKNOWN


class _TakeWhile(Counting):
    def __init__(self, source: Cursor, function: Any) -> None:
        super().__init__(source)
        self.function = function
        self.ended = False

    def __next__(self) -> Any:
        if self.ended:
            raise StopIteration
        element = next(self.source)
        position = self.position
        self.position += 1
        self.ended = not called(self.function, element, "take_while", position)
        if self.ended:
            raise StopIteration
        return element

    def state(self) -> State:
        return {**super().state(), "ended": self.ended}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.ended = state["ended"]
