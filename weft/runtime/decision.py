"""Decisions: the few integers among what follows from feeds that a program's shapes depend on.

Where an array is as long as the longest of many lengths that are fed, a program is made for each
longest length, not for each set of lengths. What is longest, a small program computes before the
step. Which value is asked for next may depend on the values before it: decisions are a tree.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from weft.ir.node import TensorType, Value
from weft.passes.specialize import ValuesNeededError
from weft.passes.step import Request, Step
from weft.runtime.executable import Executable
from weft.runtime.finish import finish, specialized
from weft.runtime.memory.state import State

Array = np.ndarray[Any, Any]
MOST: Final = 1024  # after one decision; forgotten all at once, so that nothing is kept in order


class Decision:
    """What must be known next for the shapes of a step.

    Args:
        needed: what the pass that gives each value its shape asked for.
    """

    def __init__(self, needed: ValuesNeededError, request: Request, threads: int) -> None:
        self.values = needed.values
        self.after: dict[Hashable, Decision] = {}
        places = {value: i for i, value in enumerate(request.feeds)}
        self._feeds = [places.get(value) for value in self.values]
        self._program: Executable | None = None
        if None in self._feeds:
            self._program = finish(needed.step, threads)

    def known(self, arrays: Sequence[Array], state: State) -> list[Array]:
        """The values, for these feeds."""
        found = [] if self._program is None else self._program.run(arrays, state)
        return [
            np.asarray(found[i]) if place is None else arrays[place]
            for i, place in enumerate(self._feeds)
        ]


class Decisions:
    """The decisions of a function.

    Attributes:
        first: by the shapes of feeds; empty where values decide nothing, as steps ask.
    """

    def __init__(self, request: Request, threads: int) -> None:
        self.request, self.threads = request, threads
        self.first: dict[Hashable, Decision] = {}

    def values(
        self, shapes: Hashable, arrays: Sequence[Array], state: State
    ) -> tuple[Hashable, ...]:
        """What is decided for these feeds, as a key."""
        key: list[Hashable] = []
        decision = self.first.get(shapes)
        while decision is not None:
            key.append(_key(decision.known(arrays, state)))
            decision = decision.after.get(key[-1])
        return tuple(key)

    def specialized(
        self,
        shapes: Hashable,
        variables: Mapping[str, TensorType],
        arrays: Sequence[Array],
        state: State,
    ) -> Step:
        """The step for feeds like these.

        Args:
            variables: types of variables whose declared shape leaves something open.
        """
        places, key = self.first, shapes

        def decide(needed: ValuesNeededError) -> dict[Value, Array]:
            nonlocal places, key
            decision = places.get(key)
            if decision is None:
                if len(places) >= MOST:
                    places.clear()
                decision = places[key] = Decision(needed, self.request, self.threads)
            found = decision.known(arrays, state)
            places, key = decision.after, _key(found)
            return dict(zip(decision.values, found, strict=True))

        return specialized(self.request, arrays, variables, decide)


def _key(arrays: Sequence[Array]) -> Hashable:
    return tuple([array.tobytes() for array in arrays])
