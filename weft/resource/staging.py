"""Staging areas: a step leaves there what a later one takes."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final

from weft.errors import ArgumentError
from weft.ops.resource.spec import ResourceSpec
from weft.resource.attempt import Attempt, Line, Progress
from weft.resource.base import Array, Cancellation, register
from weft.resource.component import Element
from weft.resource.queue import FIFOQueue


@register("Stage")
class StagingArea(FIFOQueue):
    """A queue that may also be limited in bytes, looked into and emptied; it is never closed."""

    title = "StagingArea"
    what = "staging area"

    def __init__(self, spec: ResourceSpec) -> None:
        super().__init__(spec)
        self._limit: Final[int] = spec.option("memory_limit", 0)
        self._peeks = Line[Attempt]()
        self.lines.append(self._peeks)
        self._methods |= {"peek": self._peek, "clear": lambda *_: self._clear()}
        for method in ("close", "is_closed", "enqueue_many", "dequeue_many", "dequeue_up_to"):
            del self._methods[method]

    def room(self, rest: deque[Element]) -> int:
        """How many elements may be added now."""
        if not super().room(rest):
            return 0
        used = sum(map(_bytes, self._elements)) if self._limit else 0
        return int(not self._limit or used + _bytes(rest[0]) <= self._limit)

    def _add(self, elements: list[Element], cancel: Cancellation) -> list[Array]:
        size = sum(map(_bytes, elements))
        if 0 < self._limit < size:
            raise ArgumentError(
                f"Attempted to insert tensors with combined size of '{size}' bytes into Staging "
                f"Area with a memory limit of '{self._limit}'."
            )
        return super()._add(elements, cancel)

    def _peek(
        self, inputs: Sequence[Array], options: Mapping[str, Any], cancel: Cancellation
    ) -> list[Array]:
        del options
        index = int(inputs[0])
        if index < 0:
            raise ArgumentError(f"{self.title} '{self.name}': expected an index >= 0, got {index}")

        def run() -> Progress:
            if self.size <= index:
                return Progress.NONE
            attempt.result = [x.copy() for x in self._elements[index]]
            return Progress.COMPLETE

        attempt = Attempt("Peek", run)
        return self.attempt(self._peeks, attempt, cancel)

    def _clear(self) -> list[Array]:
        with self.lock:
            self._elements.clear()
            self.flush()
        return []


def _bytes(element: Element) -> int:
    return sum([x.nbytes for x in element])
