"""Decisions: the few integers computed from feeds on which a program's shapes depend.

If an array is as long as the longest of many fed lengths, a program is compiled for each longest
length, not for each set of lengths. A small program computes it before the step. Which value is
needed next may depend on the values before it: decisions form a tree.

If other ranks or Python have to be called for that, the small program makes these calls and all
that come before them in the graph. Their results are fed to the step, which does not call again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from weft.ir.node import TensorType, Value
from weft.passes.specialize import ValuesNeededError
from weft.passes.step import Request, Step
from weft.runtime.executable import Executable
from weft.runtime.finish import finish, specialized
from weft.runtime.memory.distant import Distant
from weft.runtime.memory.state import State

Array = np.ndarray[Any, Any]
MOST: Final = 1024  # after one decision; cleared all at once, so that no order is kept


class Decision:
    """The next values that the shapes of a step depend on.

    Args:
        needed: the values that `specialize` asked for.

    Attributes:
        values: of the user's graph.
        acts: whether others are called.
    """

    def __init__(self, needed: ValuesNeededError, request: Request, threads: int) -> None:
        self.values = needed.values
        self.after: dict[Hashable, Decision] = {}
        places = {value: i for i, value in enumerate(request.feeds)}
        self._feeds = [places.get(value) for value in self.values]
        self._program: Executable | None = None
        self.acts: Final = bool(needed.effects)
        if None in self._feeds or self.acts:
            self._program = finish(needed.step, threads)

    def known(self, arrays: Sequence[Array], state: State) -> tuple[list[Array], list[Array]]:
        """The values for these feeds, and the results of the calls that were made for them."""
        near = State() if isinstance(state, Distant) else state  # it reads none of other processes
        found = [] if self._program is None else self._program.run(arrays, near)
        values = [
            np.asarray(found[i]) if place is None else arrays[place]
            for i, place in enumerate(self._feeds)
        ]
        return values, list(map(np.asarray, found[len(self.values) :]))


class Answers:
    """The decided values of one run; each decision is computed once, as it may call others.

    Args:
        given: the feeds.
        announce: called before the first call of others.

    Attributes:
        arrays: the feeds of the step: the given ones, and the results of calls made already.
        called: whether others have been called.
    """

    def __init__(
        self, given: Sequence[Array], state: State, announce: Callable[[], None]
    ) -> None:  # fmt: skip
        self.given = self.arrays = given
        self.state: Final = state
        self.called = False
        self._announce = announce
        self._found: dict[tuple[Value, ...], list[Array]] = {}

    def of(self, decision: Decision) -> list[Array]:
        """The values of a decision."""
        found = self._found.get(decision.values)
        if found is None:
            if decision.acts and not self.called:
                self.called = True
                self._announce()
            found, made = decision.known(self.arrays, self.state)
            self._found[decision.values] = found
            self.arrays = [*self.arrays, *made]
        return found


class Decisions:
    """The decisions of a function.

    Attributes:
        first: first decision by the shapes of feeds; empty if values decide nothing, which steps
            test.
    """

    def __init__(self, request: Request, threads: int) -> None:
        self.request, self.threads = request, threads
        self.first: dict[Hashable, Decision] = {}

    def values(self, shapes: Hashable, answers: Answers) -> tuple[Hashable, ...]:
        """The decided values of this run, as a key."""
        key: list[Hashable] = []
        decision = self.first.get(shapes)
        while decision is not None:
            key.append(_key(answers.of(decision)))
            decision = decision.after.get(key[-1])
        return tuple(key)

    def specialized(
        self,
        shapes: Hashable,
        variables: Mapping[str, TensorType],
        answers: Answers,
    ) -> Step:
        """The specialized step for such feeds.

        Args:
            variables: types of variables whose declared shape is partly unknown.
            answers: what is decided in this run; asked for what is not decided yet.
        """
        places, key = self.first, shapes

        def decide(needed: ValuesNeededError) -> dict[Value, Array]:
            nonlocal places, key
            decision = places.get(key)
            if decision is None:
                if len(places) >= MOST:
                    places.clear()
                decision = places[key] = Decision(needed, self.request, self.threads)
            found = answers.of(decision)
            places, key = decision.after, _key(found)
            return dict(zip(decision.values, found, strict=True))

        return specialized(self.request, answers.given, variables, decide)


def _key(arrays: Sequence[Array]) -> Hashable:
    return tuple([array.tobytes() for array in arrays])
