"""Queues of elements between steps: first in, first out."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

import numpy as np

from weft.errors import ArgumentError, CancelledError, EndOfDataError
from weft.ops.resource.spec import ResourceSpec
from weft.resource.attempt import Attempt, Blocking, Progress
from weft.resource.base import Array, Cancellation, register
from weft.resource.component import Components, Element

Method = Callable[[Sequence[Array], Mapping[str, Any], Cancellation], list[Array]]


class Dequeue(Attempt):
    """Takes elements one after the other, as they come.

    Args:
        queue: from which it takes.
        count: how many.
        smaller: whether fewer will do once the queue is closed.
        join: makes the result.
    """

    __slots__ = ("join", "left", "smaller", "taken")

    def __init__(
        self, queue: Queue, count: int, smaller: bool,
        join: Callable[[list[Element]], list[Array]],
    ) -> None:  # fmt: skip
        super().__init__("Dequeue", lambda: queue.try_dequeue(self), lambda: queue.take_back(self))
        self.left, self.smaller, self.join = count, smaller, join
        self.taken: list[Element] = []


class Queue(Blocking):
    """Elements between steps. What is full lets enqueues wait, what is empty dequeues.

    Attributes:
        capacity: the most elements; without limit if negative.
        components: what each element consists of.
        closed: whether it accepts no more elements.
    """

    family = what = "queue"
    title: ClassVar[str]

    def __init__(self, spec: ResourceSpec) -> None:
        super().__init__(spec, lines=2)
        self._enqueues, self._dequeues = self.lines[0], self.lines[1]
        self.capacity: Final[int] = spec.option("capacity", -1)
        self.components: Final = Components.of(spec)
        self.closed = False
        self._methods: dict[str, Method] = {
            "enqueue": lambda xs, _, cancel: self._add([self.components.element(xs)], cancel),
            "enqueue_many": lambda xs, _, cancel: self._add(self.components.rows(xs), cancel),
            "maybe_enqueue": self._maybe("enqueue"),
            "maybe_enqueue_many": self._maybe("enqueue_many"),
            "dequeue": self._dequeue,
            "dequeue_many": self._dequeue_many,
            "dequeue_up_to": self._dequeue_many,
            "size": lambda *_: [np.array(self.size, np.int32)],
            "is_closed": lambda *_: [np.array(self.closed)],
            "close": self._close,
        }

    def call(
        self, method: str, inputs: Sequence[Array], options: Mapping[str, Any],
        cancel: Cancellation,
    ) -> list[Array]:  # fmt: skip
        """Enqueue, dequeue, close, or tell about the queue."""
        found = self._methods.get(method)
        if found is None:
            known = ", ".join(self._methods)
            raise ArgumentError(f"{self.title}: expected one of {known}, got {method!r}")
        if method == "dequeue_up_to":
            options = {**options, "smaller": True}
        return found(inputs, options, cancel)

    # what a kind of queue does its own way
    @property
    def size(self) -> int:
        """The number of elements."""
        raise NotImplementedError

    def put(self, element: Element) -> None:
        """Add an element."""
        raise NotImplementedError

    def take(self, left: int) -> Element:
        """Remove the next element; `left` are still to be taken, this one included."""
        raise NotImplementedError

    def put_back(self, elements: Sequence[Element]) -> None:
        """Return elements that were taken last, in their order."""
        raise NotImplementedError

    def ready(self, left: int) -> int:
        """How many elements may be taken now, if `left` are wanted."""
        del left
        return self.size

    def room(self, rest: deque[Element]) -> int:
        """How many of the elements that wait may be added now."""
        return len(rest) if self.capacity < 0 else min(self.capacity - self.size, len(rest))

    pads: ClassVar[bool] = False
    needs_shapes: ClassVar[bool] = True  # for batches

    # enqueues
    def _add(self, elements: list[Element], cancel: Cancellation) -> list[Array]:
        rest = deque(elements)

        def run() -> Progress:
            if self.closed:
                raise CancelledError(f"{self.title} '{self.name}' is closed.")
            room = self.room(rest)
            for _ in range(room):
                self.put(rest.popleft())
            if not rest:
                return Progress.COMPLETE
            return Progress.SOME if room > 0 else Progress.NONE

        return self.attempt(self._enqueues, Attempt("Enqueue", run), cancel) if elements else []

    def _maybe(self, method: str) -> Method:
        """The same, of what the first input says is wanted: all or nothing, or a flag a row."""

        def add(
            inputs: Sequence[Array], options: Mapping[str, Any], cancel: Cancellation
        ) -> list[Array]:
            keep, *rest = inputs
            if keep.ndim == 0:
                return self._methods[method](rest, options, cancel) if keep else []
            if method == "enqueue" or any(len(x) != len(keep) for x in rest if x.ndim):
                text = f"expected a flag for each row, got {len(keep)}"
                raise ArgumentError(f"{self.title} '{self.name}': {text}")
            return self._methods[method]([x[keep] for x in rest if x.ndim], options, cancel)

        return add

    # dequeues
    def _dequeue(
        self, inputs: Sequence[Array], options: Mapping[str, Any], cancel: Cancellation
    ) -> list[Array]:
        del inputs, options
        wanted = Dequeue(self, 1, False, lambda taken: list(taken[0]))
        return self.attempt(self._dequeues, wanted, cancel)

    def _dequeue_many(
        self, inputs: Sequence[Array], options: Mapping[str, Any], cancel: Cancellation
    ) -> list[Array]:
        count = int(inputs[0])
        if count < 0:
            raise ArgumentError(f"DequeueManyOp requested {count} < 0 elements")
        if self.components.shapes is None and self.needs_shapes:
            raise ArgumentError(
                f"{self.title}'s DequeueMany and DequeueUpTo require the components to have "
                "specified shapes."
            )
        if count == 0:
            return self.components.batch([], self.pads)
        wanted = Dequeue(
            self, count, options.get("smaller", False),
            lambda taken: self.components.batch(taken, self.pads),
        )  # fmt: skip
        return self.attempt(self._dequeues, wanted, cancel)

    def try_dequeue(self, wanted: Dequeue) -> Progress:
        """Take what is ready.

        Raises:
            EndOfDataError: the queue is closed and has too few elements.
        """
        if self.closed and self.size < wanted.left:
            self.take_back(wanted)
            if not (wanted.smaller and self.size):
                numbers = f"(requested {wanted.left}, current size {self.size})"
                text = f"is closed and has insufficient elements {numbers}"
                raise EndOfDataError(f"{self.title} '{self.name}' {text}")
            wanted.left = min(wanted.left, self.size)
        count = min(self.ready(wanted.left), wanted.left)
        for _ in range(count):
            wanted.taken.append(self.take(wanted.left))
            wanted.left -= 1
        if wanted.left == 0:
            wanted.result = wanted.join(wanted.taken)
            return Progress.COMPLETE
        return Progress.SOME if count > 0 else Progress.NONE

    def take_back(self, wanted: Dequeue) -> None:
        """Return what a dequeue has taken so far."""
        self.put_back(wanted.taken)
        wanted.left += len(wanted.taken)
        wanted.taken = []

    # closing
    def _close(
        self, inputs: Sequence[Array], options: Mapping[str, Any], cancel: Cancellation
    ) -> list[Array]:
        del inputs
        if options.get("cancel_pending_enqueues"):
            with self.lock:
                self.closed = True
                self._enqueues.cancel_all()
                self.flush()
            return []

        def run() -> Progress:  # after the enqueues that wait
            if self.closed:
                raise CancelledError(f"Queue '{self.name}' is already closed.")
            self.closed = True
            return Progress.COMPLETE

        return self.attempt(self._enqueues, Attempt("Enqueue", run), cancel)


@register("FIFOQueueV2")
class FIFOQueue(Queue):
    """First in, first out."""

    title = "FIFOQueue"

    def __init__(self, spec: ResourceSpec) -> None:
        super().__init__(spec)
        self._elements: deque[Element] = deque()

    @property
    def size(self) -> int:
        """The number of elements."""
        return len(self._elements)

    def put(self, element: Element) -> None:
        """Add an element at the end."""
        self._elements.append(element)

    def take(self, left: int) -> Element:
        """Remove the first element."""
        del left
        return self._elements.popleft()

    def put_back(self, elements: Sequence[Element]) -> None:
        """Return elements to the front."""
        self._elements.extendleft(reversed(elements))


@register("PaddingFIFOQueueV2")
class PaddingFIFOQueue(FIFOQueue):
    """First in, first out; elements of different sizes are padded with zeros in batches."""

    title = "PaddingFIFOQueue"
    pads = True

    def __init__(self, spec: ResourceSpec) -> None:
        super().__init__(spec)
        if len(self.components.shapes or ()) != len(self.components.dtypes):
            raise ArgumentError(
                "PaddingFIFOQueue: Shapes must be provided for all components, but received "
                f"{len(self.components.dtypes)} dtypes and "
                f"{len(self.components.shapes or ())} shapes."
            )
