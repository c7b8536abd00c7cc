"""Shuffling and repeating."""

from __future__ import annotations

from typing import Any

from weft.errors import ArgumentError
from weft.host.mix import mix
from weft.pipeline.permutation import Permutation
from weft.pipeline.saved_state import Held
from weft.pipeline.stage import (
    INFINITE,
    Array,
    Behind,
    Context,
    Cursor,
    Stage,
    State,
    View,
)


class Shuffle(Stage):
    """Elements in another order each epoch.

    If elements have indices, the order is a permutation of all of them, and `buffer` is not used.
    Otherwise each element is drawn from a buffer, as in TensorFlow.
    """

    def __init__(
        self, source: Stage, buffer: int, seed: int | None = None, every: bool = True
    ) -> None:
        if buffer < 1:
            raise ArgumentError(f"shuffle: expected a buffer of 1 element or more, got {buffer}")
        self.inputs = (source,)
        self.buffer = buffer
        self.seed = seed
        self.every = every  # whether each epoch has its own order

    def indexed(self, context: Context) -> View | None:
        """The input's elements by permuted indices."""
        view = self.inputs[0].view(context)
        if view is None:
            return None
        seed = self.seed_of(self.seed, context)
        return _Permuted(view, Permutation(view.size, seed, context.epoch if self.every else 0))

    def stream(self, context: Context) -> Cursor:
        """Elements drawn from a buffer."""
        seed = mix(self.seed_of(self.seed, context), context.epoch if self.every else 0)
        return _Buffer(self.inputs[0].open(context), self.buffer, seed)

    def count(self) -> int:
        """The input's size."""
        return self.inputs[0].count()


class _Permuted(View):
    def __init__(self, view: View, order: Permutation) -> None:
        self.view = view
        self.order = order
        self.size = view.size

    def item(self, index: int) -> Any:
        return self.view.item(self.order[index])

    def gather(self, indices: Array) -> Any:
        return self.view.gather(self.order.take(indices))


class _Buffer(Behind):
    """Draw t takes a place that is a function of the seed and t, so draws can be replayed."""

    def __init__(self, source: Cursor, size: int, seed: int) -> None:
        super().__init__(source)
        self.size = size
        self.seed = seed
        self.draws = 0
        self.held: list[Any] = []
        self.ended = False

    def __next__(self) -> Any:
        held = self.held
        while not self.ended and len(held) < self.size:
            try:
                held.append(next(self.source))
            except StopIteration:
                self.ended = True
        if not held:
            raise StopIteration
        place = mix(self.seed, self.draws) % len(held)
        self.draws += 1
        held[place], held[-1] = held[-1], held[place]
        return held.pop()

    def state(self) -> State:
        own = {"draws": self.draws, "held": Held(self.held), "ended": self.ended}
        return {**super().state(), **own}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.draws, self.held, self.ended = state["draws"], list(state["held"]), state["ended"]


class Repeat(Stage):
    """All elements again and again; earlier stages see each repetition as a new epoch."""

    def __init__(self, source: Stage, turns: int = -1) -> None:
        self.inputs = (source,)
        self.turns = max(turns, -1)

    def indexed(self, context: Context) -> View | None:
        """Elements by index, if there are finitely many."""
        first = self.inputs[0].view(context.at(0, self.turns)) if self.turns > 0 else None
        return None if first is None else _Repeated(self.inputs[0], context, self.turns, first)

    def stream(self, context: Context) -> Cursor:
        """The input is reopened for each repetition."""
        return _Repeat(self.inputs[0], context, self.turns)

    def count(self) -> int:
        """The input's size times the repetitions."""
        count = self.inputs[0].count()
        if self.turns == 0 or count == 0:
            return 0
        if count < 0:
            return count
        return INFINITE if self.turns < 0 else count * self.turns


class _Repeated(View):
    def __init__(self, source: Stage, context: Context, turns: int, first: View) -> None:
        self.source, self.context, self.turns = source, context, turns
        self.size = first.size * turns
        self.each = first.size
        self.last = 0, first

    def _turn(self, turn: int) -> View:
        number, view = self.last
        if number != turn:
            view = self.source.view(self.context.at(turn, self.turns))
            assert view is not None
            self.last = turn, view
        return view

    def item(self, index: int) -> Any:
        return self._turn(index // self.each).item(index % self.each)

    def gather(self, indices: Array) -> Any:
        turn = int(indices[0]) // self.each
        if int(indices.min()) // self.each == int(indices.max()) // self.each:
            return self._turn(turn).gather(indices - turn * self.each)
        return super().gather(indices)


class _Repeat(Cursor):
    def __init__(self, source: Stage, context: Context, turns: int) -> None:
        self.source, self.context, self.turns = source, context, turns
        self._begin(0)

    def _begin(self, turn: int) -> None:
        self.turn = turn
        self.given = False  # whether this repetition has yielded: an empty one ends the pass
        self.running = self.source.open(self.context.at(turn, self.turns))

    def __next__(self) -> Any:
        while self.turn != self.turns:
            try:
                element = next(self.running)
                self.given = True
                return element
            except StopIteration:
                if not self._goes_on():
                    break
        raise StopIteration

    def _goes_on(self) -> bool:
        """Start the next repetition, if there is one and the last was not empty."""
        self.running.close()
        if not self.given or self.turn + 1 == self.turns:
            self.turn = self.turns = max(self.turn, 0)
            return False
        self._begin(self.turn + 1)
        return True

    def gather(self, count: int) -> tuple[Any, int]:
        """A batch; if it lies within one repetition, the input gathers it at once."""
        if self.turn != self.turns and self.running.left() >= count:
            self.given = True
            return self.running.gather(count)
        return super().gather(count)

    def state(self) -> State:
        own = {"turn": self.turn, "turns": self.turns, "given": self.given}
        return {**own, "input": self.running.state()}

    def restore(self, state: State) -> None:
        self.turns = state["turns"]
        if state["turn"] != self.turn and state["turn"] != self.turns:
            self.running.close()
            self._begin(state["turn"])
        self.turn, self.given = state["turn"], state["given"]
        if self.turn != self.turns:
            self.running.restore(state["input"])

    def close(self) -> None:
        self.running.close()
