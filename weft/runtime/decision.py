"""Decisions: the few integers computed from feeds on which a program's shapes depend.

If an array is as long as the longest of many fed lengths, a program is compiled for each longest
length, not for each set of lengths. A small program computes it before the step. Which value is
needed next may depend on the values before it: decisions form a tree.
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
MOST: Final = 1024  # after one decision; cleared all at once, so that no order is kept


class Decision:
    """The next values that the shapes of a step depend on.

    Args:
        needed: the values that `specialize` asked for.
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
        first: first decision by the shapes of feeds; empty if values decide nothing, which steps
            test.
    """

    def __init__(self, request: Request, threads: int) -> None:
        self.request, self.threads = request, threads
        self.first: dict[Hashable, Decision] = {}

    def values(
        self, shapes: Hashable, arrays: Sequence[Array], state: State
    ) -> tuple[Hashable, ...]:
        """The decided values for these feeds, as a key."""
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
        """The specialized step for such feeds.

        Args:
            variables: types of variables whose declared shape is partly unknown.
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
