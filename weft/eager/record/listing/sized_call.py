"""Routines of calls that differ in sizes alone: made once for two sizes, then for all others."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Final

from weft.errors import WeftError
from weft.ir.extent import Extents
from weft.library.case import Case, Made
from weft.library.form import UnsizedError
from weft.library.formula import Choice, DecidedError, Formula, packed

Sizes = tuple[int, ...]
ATTEMPTS: Final = 4  # at a routine for many sizes; some functions need the numbers themselves
MOST_CASES: Final = 16
MOST_SEEN: Final = 8
MOST_OWN: Final = 64


Make = Callable[[Sizes], Made]
"""Makes the routine for these sizes, some of which may be extents."""


class SizedCall:
    """What is known of a call at several sizes.

    Attributes:
        choice: its cases, of which the stitcher chooses one.
    """

    def __init__(self) -> None:
        self._seen: list[Sizes] = []  # the latest last
        self._cases: list[Case] = []
        self._own: dict[Sizes, Case] = {}  # for one size each
        self._attempts = ATTEMPTS
        self._offered = True
        self.choice: Final = Choice()

    def at(self, sizes: Sizes, make: Make, alone: bool = False) -> Case:
        """The case for these sizes.

        Args:
            alone: make no case for other sizes, too.
        """
        found = self._known(sizes)
        if found is not None:
            return found
        if self._attempts and not alone:
            for other in self._alike(sizes):
                case = self._made(other, sizes, make)
                if case is not None:
                    return case
        if not alone:
            self._seen = [*self._seen, sizes][-MOST_SEEN:]
        formula = Formula()
        for place, size in enumerate(sizes):
            formula.admit(place, size)
        case = Case(make(sizes), formula)
        case.expect(packed(sizes))
        self._offered = False
        if len(self._own) >= MOST_OWN:
            del self._own[next(iter(self._own))]
        self._own[sizes] = case
        self._offer(len(sizes))
        return case

    def _known(self, sizes: Sizes) -> Case | None:
        """The case for these sizes, if there is one."""
        if not (self._cases or self._own):
            return None
        if not self._offered:  # Ctrl-C came between
            self._offer(len(sizes))
        given = packed(sizes)
        for case in (*self._cases, *self._own.values()):
            if case.holds(given):
                return case
        return None

    def _offer(self, size_count: int) -> None:
        found = [*self._cases, *self._own.values()]
        values = max([case.value_count for case in found])
        self.choice.fill([case.table for case in found], size_count, values)
        self._offered = True

    def _alike(self, sizes: Sizes) -> list[Sizes]:
        """What was seen, from which these sizes differ where they may: the most similar, if any."""
        places = range(len(sizes))
        pairs = [([i for i in places if seen[i] != sizes[i]], seen) for seen in self._seen]
        suited = [
            (len(apart), seen)
            for apart, seen in reversed(pairs)
            if apart and all([sizes[i] > 1 and seen[i] > 1 for i in apart])
        ]
        return [min(suited)[1]] if suited else []

    def _made(self, other: Sizes, sizes: Sizes, make: Make) -> Case | None:
        """The case for these sizes and more, if there is one; uses up an attempt."""
        self._attempts -= 1
        with contextlib.suppress(*_REFUSALS):
            case = _for_many([other, sizes], make)
            if case.holds(packed(sizes)):
                case.expect(packed(sizes))
                self._offered = False
                self._cases.insert(0, case)
                self._attempts += len(self._cases) < MOST_CASES
                self._offer(len(sizes))
                return case
        return None


def _for_many(seen: Sequence[Sizes], make: Make) -> Case:
    """A case with extents for the sizes that differ.

    Raises:
        UnsizedError: there is none.
    """
    extents = Extents()
    bases: dict[Sizes, tuple[int, int]] = {}  # the first place and the extent, by what was seen
    given: list[int] = []
    fixed: list[tuple[int, int]] = []
    same: list[tuple[int, int]] = []
    for place, column in enumerate(zip(*seen, strict=True)):
        if len(set(column)) == 1:
            fixed.append((place, column[0]))
            given.append(column[0])
            continue
        if column not in bases:
            bases[column] = place, extents.base(column[-1])
            if not bases[column][1] > 1:  # a guard: a size of 1 would broadcast
                raise UnsizedError
        else:
            same.append((place, bases[column][0]))
        given.append(bases[column][1])
    if not bases:
        raise UnsizedError
    made = make(tuple(given))
    formula = Formula(extents.state, [place for place, _ in bases.values()])
    for place, size in fixed:
        formula.admit(place, size)
    for place, other in same:
        formula.equate(place, other)
    formula.guard()
    return Case(made, formula)


_REFUSALS: Final = (
    UnsizedError, WeftError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError,
    RuntimeError, AssertionError, DecidedError,
)  # fmt: skip
