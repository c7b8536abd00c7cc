"""The base classes of all pipeline stages.

A `Stage` is a stateless description. If its elements have indices, it has a `View`; iterating it
opens a `Cursor`, which has a position and saves and restores it as `state`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from weft.host.mix import mix
from weft.pipeline.structure import stack

__all__ = ["INFINITE", "UNKNOWN", "Stage"]

Array = np.ndarray[Any, Any]
State = dict[str, Any]
INFINITE: Final = -1  # TensorFlow's numbers
UNKNOWN: Final = -2
_FAR: Final = 1 << 32


class Timing(Protocol):
    """Wraps views and cursors to measure stages."""

    def view(self, stage: Any, view: Any) -> Any:
        """A measured view."""
        ...

    def cursor(self, stage: Any, cursor: Any) -> Any:
        """A measured cursor."""
        ...


Draws = Callable[..., AbstractContextManager[Any]]
"""A context in which this thread draws from the random stream of a key of numbers."""


class Context(NamedTuple):
    """The context of an epoch: its number, and the seed for stages without one."""

    epoch: int = 0
    seed: int = 0
    timing: Timing | None = None  # measures stages, if given
    draws: Draws | None = None  # the random streams of functions, if given

    def at(self, turn: int, turns: int) -> Context:
        """The context of a repetition: its index and the number of them, -1 if endless."""
        epoch = self.epoch * turns + turn if turns >= 0 else self.epoch * _FAR + turn
        return self._replace(epoch=epoch)


class View(ABC):
    """Elements by index, for one epoch; threads may share it."""

    size: int

    @abstractmethod
    def item(self, index: int) -> Any:
        """The element at an index in [0, size)."""

    def gather(self, indices: Array) -> Any:
        """A batch of elements."""
        return stack([self.item(int(i)) for i in indices])


class Cursor(ABC):
    """A running pass over a stage's elements.

    After an error other than StopIteration it resumes after the element that failed.
    """

    def __iter__(self) -> Cursor:
        return self

    @abstractmethod
    def __next__(self) -> Any: ...

    def gather(self, count: int) -> tuple[Any, int]:
        """The next elements as a batch, up to `count`, and their number."""
        elements: list[Any] = []
        for element in self:
            elements.append(element)
            if len(elements) == count:
                break
        return (stack(elements) if elements else None), len(elements)

    def packed(self, count: int) -> tuple[Any, int]:
        """Like `gather`, but records of files may stay encoded: as `Packed`."""
        return self.gather(count)

    def next_packed(self) -> Any:
        """Like `next`, but an element that is a batch may come as from `packed`."""
        return next(self)

    def left(self) -> int:
        """The number of remaining elements, if that is known without reading them."""
        return UNKNOWN

    @abstractmethod
    def state(self) -> State:
        """The position; later changes of the cursor do not change it."""

    @abstractmethod
    def restore(self, state: State) -> None:
        """Restore a `state`; only before the first element."""

    def close(self) -> None:  # noqa: B027
        """Stop background work."""


class Stage(ABC):
    """A source of elements, or a transformation of its inputs' elements."""

    name: str  # the name in profiles, messages and states
    inputs: tuple[Stage, ...] = ()
    ahead = False  # whether its cursor works ahead, in threads or processes

    def __init_subclass__(cls) -> None:
        if "name" not in cls.__dict__:
            cls.name = cls.__name__.lower()

    @property
    def depth(self) -> int:
        """The number of stages under it; distinguishes the seeds of stages without one."""
        return sum(1 + stage.depth for stage in self.inputs)

    @property
    def streams(self) -> bool:
        """Whether it must be read in order even if there is a view."""
        return self.ahead or any(stage.streams for stage in self.inputs)

    def seed_of(self, seed: int | None, context: Context) -> int:
        """The given seed, or one derived for this stage."""
        return mix(context.seed, self.depth) if seed is None else seed

    def view(self, context: Context) -> View | None:
        """Its elements by index, if they have indices."""
        view = self.indexed(context)
        timing = context.timing
        return view if timing is None or view is None else timing.view(self, view)

    def indexed(self, context: Context) -> View | None:
        """The `view`, for subclasses to define."""
        return None

    def open(self, context: Context) -> Cursor:
        """A pass over its elements."""
        view = None if self.streams else self.view(context)
        if view is not None:
            return IndexedCursor(view)
        cursor = self.stream(context)
        return cursor if context.timing is None else context.timing.cursor(self, cursor)

    @abstractmethod
    def stream(self, context: Context) -> Cursor:
        """A pass over its elements in order, from its inputs' passes."""

    @abstractmethod
    def count(self) -> int:
        """The number of elements, INFINITE or UNKNOWN."""

    def walk(self) -> Iterator[Stage]:
        """This stage and all under it."""
        yield self
        for stage in self.inputs:
            yield from stage.walk()

    def signature(self) -> list[Any]:
        """The identity that a state must match: the names of stages, with nested inputs."""
        return [self.name, *[stage.signature() for stage in self.inputs]]


class IndexedCursor(Cursor):
    """The elements of a view in order; its state is a position."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.position = 0

    def __next__(self) -> Any:
        position = self.position
        if position >= self.view.size:
            raise StopIteration
        self.position = position + 1
        return self.view.item(position)

    def gather(self, count: int) -> tuple[Any, int]:
        """The next elements, gathered at once."""
        first = self.position
        self.position = last = max(first, min(first + count, self.view.size))
        if last == first:
            return None, 0
        return self.view.gather(np.arange(first, last)), last - first

    def left(self) -> int:
        """The remaining elements."""
        return self.view.size - self.position

    def state(self) -> State:
        """The position."""
        return {"position": self.position}

    def restore(self, state: State) -> None:
        """Set the position."""
        self.position = state["position"]


class Behind(Cursor):
    """A cursor whose position is that of its one input."""

    def __init__(self, source: Cursor) -> None:
        self.source = source

    def state(self) -> State:
        """The input's state; subclasses add fields."""
        return {"input": self.source.state()}

    def restore(self, state: State) -> None:
        """Restore the input."""
        self.source.restore(state["input"])

    def close(self) -> None:
        """Close the input."""
        self.source.close()


class Counting(Behind):
    """A cursor with one input that also counts the elements it has yielded."""

    def __init__(self, source: Cursor) -> None:
        super().__init__(source)
        self.position = 0

    def state(self) -> State:
        """The input's state and the count."""
        return {**super().state(), "position": self.position}

    def restore(self, state: State) -> None:
        """Restore the input and the count."""
        super().restore(state)
        self.position = state["position"]


class Listed(Stage):
    """A source with an index of every element."""

    def stream(self, context: Context) -> Cursor:
        """Never used: there is always a view."""
        return self.open(context)
