"""Queues with an order of their own: at random, or by priority."""

from __future__ import annotations

import heapq
import itertools
import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from weft.errors import ArgumentError
from weft.host.mix import mix
from weft.ops.resource.spec import ResourceSpec
from weft.resource.base import register
from weft.resource.component import Element
from weft.resource.queue import Queue


@register("RandomShuffleQueueV2")
class RandomShuffleQueue(Queue):
    """Each dequeue draws from all elements that are there; at least a minimum is kept.

    With the option `steady`, it draws from the oldest of them only, as many as surely are there:
    then the draws follow from the seed and the order of the enqueues, not from how fast these are.
    """

    title = "RandomShuffleQueue"

    def __init__(self, spec: ResourceSpec) -> None:
        super().__init__(spec)
        self._elements: list[Element] = []
        self._keep: Final[int] = spec.option("min_after_dequeue", 0)
        self._steady: Final[bool] = spec.option("steady", False)
        if self._keep < 0 or 0 <= self.capacity <= self._keep:
            text = f"min_after_dequeue {self._keep} must be >= 0 and < capacity {self.capacity}"
            raise ArgumentError(f"RandomShuffleQueue '{self.name}': {text}")
        seeds: Sequence[int] | None = spec.option("random_seeds")
        self._seeds: Final = (secrets.randbits(64),) if seeds is None else tuple(seeds)
        self._draws = itertools.count(1)

    def check_same(self, spec: ResourceSpec) -> None:
        """Refuse a call that means another queue; one without seeds takes those that are."""
        if spec.option("random_seeds") is None:
            free = ("random_seeds", "steady")
            mine = {name: self.spec.option(name) for name in free}
            options = [(name, mine.get(name, value)) for name, value in spec.options]
            spec = replace(spec, options=tuple(options))
        super().check_same(spec)

    @property
    def size(self) -> int:
        """The number of elements."""
        return len(self._elements)

    def put(self, element: Element) -> None:
        """Add an element."""
        self._elements.append(element)

    def ready(self, left: int) -> int:
        """How many may be taken: not the minimum that is kept until the queue is closed."""
        if self.closed:
            return self.size
        whole = self._steady and self._keep + left <= self.capacity
        free = self.size - self._keep
        return free if not whole or free >= left else 0

    def take(self, left: int) -> Element:
        """Draw an element."""
        size = min(self._window(left), self.size)
        place, end = mix(*self._seeds, next(self._draws)) % size, size - 1
        last = self._elements.pop(end)
        if place == end:
            return last
        found, self._elements[place] = self._elements[place], last
        return found

    def _window(self, left: int) -> int:
        if not self._steady:
            return self.size
        return self._keep + (left if self._keep + left <= self.capacity else 1)

    def put_back(self, elements: Sequence[Element]) -> None:
        """Return elements."""
        self._elements.extend(reversed(elements))


@register("PriorityQueueV2")
class PriorityQueue(Queue):
    """The smallest priority first; the first component, of type int64, is the priority.

    Elements of the same priority leave in the order in which they came.
    """

    title = "PriorityQueue"

    def __init__(self, spec: ResourceSpec) -> None:
        super().__init__(spec)
        self._heap: list[tuple[int, int, Element]] = []
        self._serial = itertools.count()
        if self.components.names[0] != "int64":
            raise ArgumentError(
                "PriorityQueue priority index component must be type int64, but dtype is: "
                f"{self.components.names[0]}"
            )
        if self.components.shapes is not None and self.components.shapes[0] != ():
            raise ArgumentError(
                "PriorityQueue priority index component must be a scalar, but shape is: "
                f"{self.components.shapes[0]}"
            )

    @property
    def size(self) -> int:
        """The number of elements."""
        return len(self._heap)

    def put(self, element: Element) -> None:
        """Add an element."""
        if element[0].ndim:
            shape = list(element[0].shape)
            raise ArgumentError(
                f"Expected the priority element to be a scalar, but received shape: {shape}"
            )
        heapq.heappush(self._heap, (int(element[0]), next(self._serial), element))

    def ready(self, left: int) -> int:
        """Batches are taken at once, so that they are sorted."""
        return self.size if self.size >= left else 0

    def take(self, left: int) -> Element:
        """Remove the element of smallest priority."""
        del left
        return heapq.heappop(self._heap)[2]

    def put_back(self, elements: Sequence[Element]) -> None:
        """Batches are taken at once: a dequeue that waits holds none."""
        for element in elements:
            self.put(element)
