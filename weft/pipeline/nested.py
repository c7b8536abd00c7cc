"""Pipelines made from elements: flattened, or interleaved."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from weft.errors import ArgumentError, DataError
from weft.host.mix import mix
from weft.pipeline.call import called, title
from weft.pipeline.mapping import AUTOTUNE
from weft.pipeline.prefetching import Prefetch
from weft.pipeline.stage import UNKNOWN, Behind, Context, Cursor, Stage, State

# interleaved pipelines; a constant, so the order does not depend on processors
CYCLE: Final = 4


class FlatMap(Stage):
    """The elements of the pipelines that a function makes from elements, one after the other."""

    name = "flat_map"

    def __init__(self, source: Stage, function: Callable[..., Any]) -> None:
        self.inputs = (source,)
        self.function = function

    def stream(self, context: Context) -> Cursor:
        """Elements in order."""
        return _Interleave(self.inputs[0].open(context), self.function, context, 1, 1, self.name)

    def count(self) -> int:
        """UNKNOWN."""
        return UNKNOWN


class Interleave(Stage):
    """Elements of `cycle` such pipelines in turn, `block` at a time.

    With threads, each pipeline is read ahead by its own thread; the order is the same.
    """

    def __init__(
        self, source: Stage, function: Callable[..., Any], cycle: int | None = None, block: int = 1,
        threads: int | None = None,
    ) -> None:  # fmt: skip
        cycle = CYCLE if cycle is None or cycle == AUTOTUNE else cycle
        if cycle < 1 or block < 1:
            text = f"cycle_length and block_length of 1 or more, got {cycle} and {block}"
            raise ArgumentError(f"interleave: expected {text}")
        self.inputs = (source,)
        self.function = function
        self.cycle, self.block = cycle, block
        self.ahead = threads is not None

    def stream(self, context: Context) -> Cursor:
        """Elements in order."""
        source = self.inputs[0].open(context)
        return _Interleave(
            source, self.function, context, self.cycle, self.block, self.name, self.ahead
        )

    def count(self) -> int:
        """UNKNOWN."""
        return UNKNOWN


class _Slot:
    """An open pipeline: the element that it was made from, and its cursor."""

    def __init__(self, ordinal: int, cursor: Cursor) -> None:
        self.ordinal = ordinal
        self.cursor = cursor


class _Interleave(Behind):
    """Its state is the input's before the oldest open pipeline, and the open pipelines' states."""

    def __init__(
        self, source: Cursor, function: Callable[..., Any], context: Context, cycle: int,
        block: int, what: str, ahead: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(source)
        self.function, self.context, self.block = function, context, block
        self.what, self.ahead = what, ahead
        self.slots: list[_Slot | None] = [None] * cycle
        # slot: the current one; block: elements taken from it; element: index in the input
        self.at = 0
        self.given = 0  # elements of its block
        self.read = 0  # elements of the input
        self.ended = False
        self.marks: deque[tuple[int, State]] = deque()

    def __next__(self) -> Any:
        while not self.ended or any(self.slots):
            slot = self.slots[self.at]
            if slot is None:
                self._fill()
                continue
            try:
                element = next(slot.cursor)
            except StopIteration:
                slot.cursor.close()
                self.slots[self.at] = None
                self._advance()
            else:
                self.given += 1
                if self.given == self.block:
                    self._advance()
                return element
        raise StopIteration

    def _advance(self) -> None:
        self.at = (self.at + 1) % len(self.slots)
        self.given = 0

    def _fill(self) -> None:
        """Open the pipeline of the next element in the current slot."""
        if self.ended:
            self._advance()
            return
        self.marks.append((self.read, self.source.state()))
        live = [slot.ordinal for slot in self.slots if slot is not None]
        while len(self.marks) > 1 and self.marks[1][0] <= min(live, default=self.read):
            self.marks.popleft()
        ordinal = self.read
        self.read += 1  # also if the element raises an error
        try:
            element = next(self.source)
        except StopIteration:
            self.ended, self.read = True, ordinal
            return
        self.slots[self.at] = _Slot(ordinal, self._opened(element, ordinal))

    def _opened(self, element: Any, ordinal: int) -> Cursor:
        made = called(self.function, element, self.what, ordinal)
        stage: Any = getattr(made, "stage", None)
        if not isinstance(stage, Stage):
            raise DataError(
                f"{self.what}: expected {title(self.function)} to return a dataset, "
                f"got {type(made).__name__} for element {ordinal}"
            )
        stage = Prefetch(stage, 2 * self.block) if self.ahead else stage
        return stage.open(self.context._replace(seed=mix(self.context.seed, ordinal)))

    def state(self) -> State:
        first, before = self.marks[0] if self.marks else (self.read, self.source.state())
        slots = [None if s is None else [s.ordinal, s.cursor.state()] for s in self.slots]
        own = {"first": first, "read": self.read, "at": self.at, "given": self.given}
        return {"input": before, "slots": slots, "ended": self.ended, **own}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.at, self.given, self.ended = state["at"], state["given"], state["ended"]
        open_slots = {slot[0]: (i, slot[1]) for i, slot in enumerate(state["slots"]) if slot}
        for ordinal in range(state["first"], state["read"]):
            self.marks.append((ordinal, self.source.state()))
            try:
                element = next(self.source)
            except Exception:  # it was raised before the state was taken
                continue
            if ordinal in open_slots:
                place, inner = open_slots[ordinal]
                cursor = self._opened(element, ordinal)
                cursor.restore(inner)
                self.slots[place] = _Slot(ordinal, cursor)
        self.read = state["read"]

    def close(self) -> None:
        for slot in self.slots:
            if slot is not None:
                slot.cursor.close()
        super().close()
