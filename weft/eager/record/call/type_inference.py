"""Infers result types of calls without checking them anew for every new size.

If only sizes differ from earlier calls, types are derived once from sizes that are symbolic
(`weft.ir.extent`). The result is a formula that holds for all sizes that pass the guards collected
on the way.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, Final, Generic, TypeVar

from weft.eager.record.call.size_formula import Formula, Sizes, SymbolicSizes, is_usual
from weft.errors import WeftError
from weft.ir.node import TensorType

P = TypeVar("P")
Derive = Callable[[Sizes], Sequence[TensorType]]

PATIENCE: Final = 3  # calls with other sizes before a formula pays; it takes as long as a few
MOST_FORMULAS: Final = 8  # for each set of plain sizes: sizes equal, 1, above a limit, ...
WIDTHS: Final = 32  # sets of the sizes that stay plain, such as axes
VARIES: Final = 3  # different values of an attribute before it counts as a size
MOST_SIZES: Final = 64  # if there are more, those that never change are not made symbolic


class _Known(Generic[P]):
    """What is known for one set of the sizes that stay plain."""

    __slots__ = ("formulas", "missed", "tries")

    def __init__(self) -> None:
        self.formulas: list[tuple[Formula, P]] = []  # the latest first
        self.missed = 0
        self.tries = MOST_FORMULAS


class Family(Generic[P]):
    """What is known of calls that differ only in sizes.

    Sizes are those of the inputs' shapes, then the integers among attributes. Those that no formula
    suits stay plain: attributes that do not change, and what is used as a plain number, as axes
    are.
    """

    __slots__ = ("_careful", "_met", "_pins", "_plain", "_ranks", "_state")

    def __init__(self, count: int, ranks: int) -> None:
        """For so many sizes, of which the first `ranks` are those of shapes."""
        self._ranks = ranks
        self._careful = ranks > MOST_SIZES  # whether sizes that do not change stay plain
        self._met: list[set[int]] = [set() for _ in range(count)]
        self._pins: list[set[int]] = [set() for _ in range(count)]
        self._state = self._begun()

    def _begun(self) -> tuple[Sizes, Callable[[Sizes], Any], dict[Any, _Known[P]]]:
        """The symbolic positions, the plain sizes, and what is known for these: nothing yet."""
        varying = [len(met) >= VARIES for met in self._met]
        symbolic: list[int] = []
        plain: list[int] = []
        for i, varies in enumerate(varying):
            usable = varies or (i < self._ranks and not self._careful)
            is_number = len(self._pins[i] - {0, 1}) > 1
            (symbolic if usable and not is_number else plain).append(i)
        return tuple(symbolic), itemgetter(*plain) if plain else _nothing, {}

    def find(
        self, given: Sequence[TensorType], sizes: Sizes
    ) -> tuple[tuple[TensorType, ...], P] | None:
        """The result types, and what was learned with their formula; `None` if unknown."""
        _, plain, cases = self._state  # read once: another thread may replace it
        known = cases.get(plain(sizes))
        if known is None:
            return None
        for formula, pattern in known.formulas:
            try:
                types = formula(given, sizes)
            except ZeroDivisionError:
                continue
            if types is not None:
                return types, pattern
        return None

    def learn(
        self, given: Sequence[TensorType], sizes: Sizes, types: Sequence[TensorType], pattern: P,
        derive: Derive,
    ) -> None:  # fmt: skip
        """Remember the result types for sizes not covered yet.

        Args:
            pattern: what `find` returns for all sizes of the same formula.
            derive: derives the types for sizes, some of which are symbolic.
        """
        self._meet(sizes)
        symbolic, plain, cases = self._state
        if len(cases) >= WIDTHS:
            cases.clear()
        known = cases.setdefault(plain(sizes), _Known())
        known.missed += 1
        if known.missed <= PATIENCE or not (symbolic and known.tries and is_usual(types)):
            return
        known.tries -= 1
        symbols = SymbolicSizes(sizes, symbolic)
        found = _formula(symbols, given, types, derive)
        if found is None:
            self._careful = True
        else:
            known.formulas.insert(0, (found, pattern))
            for i, value in symbols.pinned():
                self._pins[i].add(value)
        self._refresh()

    def _meet(self, sizes: Sizes) -> None:
        """Find the sizes that vary."""
        for i, (met, size) in enumerate(zip(self._met, sizes, strict=True)):
            if len(met) < VARIES:
                met.add(size)
                if len(met) == VARIES and i >= self._ranks:
                    self._pins = [set() for _ in sizes]  # perhaps pinned to this one
        self._refresh()

    def _refresh(self) -> None:
        """Start anew if other sizes are symbolic now."""
        state = self._begun()
        if state[0] != self._state[0]:
            self._state = state


def _formula(
    symbols: SymbolicSizes, given: Sequence[TensorType], types: Sequence[TensorType], derive: Derive
) -> Formula | None:
    """A formula that gives these types for types of the inputs."""
    with contextlib.suppress(*_REFUSALS):
        # It may have been written for integers and use one in a way that extents do not support
        found = symbols.formula(given, derive(symbols.sizes))
        return found if found(given, symbols.plain) == tuple(types) else None
    return None


def _nothing(sizes: Sizes) -> None:
    """For no positions what `itemgetter` is for some."""
    del sizes


_REFUSALS: Final = (
    WeftError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError, AssertionError,
    RuntimeError,  # a generator that ended too early
)  # fmt: skip
