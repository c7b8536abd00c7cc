"""Finds three sizes with the same operations, from which a program for many sizes is made.

One size may need other operations than twice that size: a mask may be padded below 64 words and
sliced above, a table may end. The expanded graphs show this before passes have run, so the largest
size with the same operations is found by them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from weft.eager.record.expansion import Expanded
from weft.errors import WeftError
from weft.ir.node import Node, Value
from weft.passes.sized import sized
from weft.passes.step import Step
from weft.transform.resize import Fit, Sizes, UnfitError

HALVINGS: Final = 5  # share of the range between alike and different sizes
UNSUITED: Final = (
    UnfitError, WeftError, TypeError, ValueError, AssertionError, ArithmeticError, LookupError,
    AttributeError, RuntimeError,
)  # fmt: skip
"""Errors of code that was written for integers and gets extents."""


class Probe:
    """Steps for sizes near those at hand; each is expanded and simplified once.

    Args:
        expanded_at: the graph for other sizes; raises `UnfitError` if there is none.
        step_of: its simplified step.
    """

    def __init__(
        self,
        fit: Fit,
        expanded_at: Callable[[Sizes], Expanded],
        step_of: Callable[[Expanded], Step],
    ) -> None:
        self._fit = fit
        self._expanded_at = expanded_at
        self._step_of = step_of
        self._expanded: dict[Sizes, tuple[Expanded, object] | None] = {}
        self._steps: dict[Sizes, Step] = {}

    def samples(
        self, sizes: Sizes, smallest: Sizes, largest: Sizes, rooms: Sequence[float]
    ) -> list[tuple[Sizes, Step]]:
        """Steps for three sizes: what they have in common holds for all sizes between first and
        last.

        Args:
            sizes: the current ones.
            smallest: the smallest so far.
            largest: the largest so far.
            rooms: factors by which the last may exceed the current sizes, the largest first.

        Raises:
            UnfitError: they have different operations.
        """
        here = self._at(sizes)
        if here is None:
            raise UnfitError
        wiring = here[1]
        for most in self._ends(wiring, largest, rooms):
            for probes in self._fit.probes(smallest, most):
                if all(self._is_like(wiring, bases) for bases in probes):
                    with contextlib.suppress(*UNSUITED):
                        samples = [(s, self._step(s)) for s in map(self._fit.sizes, probes)]
                        sized(samples)
                        return samples
        raise UnfitError

    def _ends(self, wiring: object, largest: Sizes, rooms: Sequence[float]) -> Iterator[Sizes]:
        """The largest alike bases to plan for; searched first near where they begin to differ."""
        other: float | None = None
        for room in rooms:
            most = self._fit.beyond(largest, room)
            if not self._is_like(wiring, most):
                other = room
                continue
            if other is not None:
                yield self._last(wiring, largest, room, other)
                other = None
            yield most

    def _last(self, wiring: object, largest: Sizes, like: float, other: float) -> Sizes:
        """The last bases that are alike, by bisection between alike ones and different ones."""
        for _ in range(HALVINGS):
            middle = (like + other) / 2
            if self._is_like(wiring, self._fit.beyond(largest, middle)):
                like = middle
            else:
                other = middle
        return self._fit.beyond(largest, like)

    def _is_like(self, wiring: object, bases: Sizes) -> bool:
        with contextlib.suppress(UnfitError):
            found = self._at(self._fit.sizes(bases))
            return found is not None and found[1] == wiring
        return False

    def _at(self, sizes: Sizes) -> tuple[Expanded, object] | None:
        if sizes not in self._expanded:
            self._expanded[sizes] = None
            with contextlib.suppress(*UNSUITED):
                found = self._expanded_at(sizes)
                self._expanded[sizes] = found, _wiring(found)
        return self._expanded[sizes]

    def _step(self, sizes: Sizes) -> Step:
        found = self._steps.get(sizes)
        if found is None:
            expanded = self._at(sizes)
            if expanded is None:
                raise UnfitError
            found = self._steps[sizes] = self._step_of(expanded[0])
        return found


def _wiring(expanded: Expanded) -> object:
    """The operations and edges that outputs depend on."""
    needed: set[Node] = {y.node for y in expanded.outputs}
    for node in reversed(expanded.graph.nodes):
        if node in needed:
            needed.update([x.node for x in node.inputs])
    number: dict[Node, int] = {}
    found: list[Any] = []

    def places(values: Sequence[Value]) -> list[tuple[int, int]]:
        return [(number[x.node], x.index) for x in values]

    for node in expanded.graph.nodes:
        if node in needed:
            found.append((node.op, places(node.inputs), list(node.attrs)))
            number[node] = len(number)
    return found, places(expanded.outputs)
