"""Routines of calls that differ in sizes alone: made once for two sizes, then for all others."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from weft.errors import WeftError
from weft.ir.extent import Extents
from weft.ir.extent_function import evaluation
from weft.library.form import UnsizedError
from weft.library.routine import Placed, Routine

Sizes = tuple[int, ...]
ATTEMPTS: Final = 4  # at a routine for many sizes; some functions need the numbers themselves
MOST_CASES: Final = 16
MOST_SEEN: Final = 8


class Made(NamedTuple):
    """A routine, and what is known of its results.

    Attributes:
        found: which is which, where that is not plain.
        rows: whether one would be row-sparse if it were not made dense.
    """

    routine: Routine
    found: tuple[int, ...] = ()
    rows: bool = False


class Ready:
    """The same at concrete sizes."""

    def __init__(self, made: Made, numbers: Sequence[int] = ()) -> None:
        self.routine, self.found, self.rows = made
        self._numbers = numbers

    @functools.cached_property
    def placed(self) -> Placed:
        """Its launches.

        Raises:
            CompileError: there is no kernel for something.
        """
        return self.routine.at(self._numbers)


Make = Callable[[Sizes], Made]
"""Makes the routine for these sizes, some of which may be extents."""


class SizedCall:
    """What is known of a call at several sizes."""

    def __init__(self) -> None:
        self._seen: list[Sizes] = []  # the latest last
        self._cases: list[_Case] = []
        self._attempts = ATTEMPTS

    def at(self, sizes: Sizes, make: Make) -> Ready:
        """The routine for these sizes."""
        for case in self._cases:
            found = case.at(sizes)
            if found is not None:
                return found
        if self._attempts:
            for other in self._alike(sizes):
                found = self._made(other, sizes, make)
                if found is not None:
                    return found
        self._seen = [*self._seen, sizes][-MOST_SEEN:]
        return Ready(make(sizes))

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

    def _made(self, other: Sizes, sizes: Sizes, make: Make) -> Ready | None:
        """The routine for these sizes and more, if there is one; uses up an attempt."""
        self._attempts -= 1
        with contextlib.suppress(*_REFUSALS):
            case = _Case([other, sizes], make)
            found = case.at(sizes)
            if found is not None:
                self._cases.insert(0, case)
                self._attempts += len(self._cases) < MOST_CASES
                return found
        return None


class _Case:
    """A routine with extents for the sizes that differ, valid where its guards hold.

    Raises:
        UnsizedError: there is none.
    """

    def __init__(self, seen: Sequence[Sizes], make: Make) -> None:
        self._extents = Extents()
        self._fixed: list[tuple[int, int]] = []  # positions, and the sizes there
        self._bases: dict[Sizes, list[int]] = {}  # positions by the sizes that were seen there
        given: list[int] = []
        extents: dict[Sizes, int] = {}
        for place, column in enumerate(zip(*seen, strict=True)):
            if len(set(column)) == 1:
                self._fixed.append((place, column[0]))
                given.append(column[0])
                continue
            if column not in extents:
                extents[column] = self._extents.base(column[-1])
                if not extents[column] > 1:  # a guard: a size of 1 would broadcast
                    raise UnsizedError
            self._bases.setdefault(column, []).append(place)
            given.append(extents[column])
        if not extents:
            raise UnsizedError
        self._made = make(tuple(given))
        self._numbers = evaluation(self._extents, self._made.routine.extents)

    def at(self, sizes: Sizes) -> Ready | None:
        """The routine for these sizes; `None` if it does not hold for them."""
        if any([sizes[place] != size for place, size in self._fixed]):
            return None
        values: list[int] = []
        for first, *others in self._bases.values():
            value = sizes[first]
            if any([sizes[place] != value for place in others]):
                return None
            values.append(value)
        try:
            numbers = self._numbers(values)
        except ZeroDivisionError:
            return None
        if numbers is None:
            return None
        return Ready(self._made, numbers)


_REFUSALS: Final = (
    UnsizedError, WeftError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError,
    RuntimeError, AssertionError,
)  # fmt: skip
