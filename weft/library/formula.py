"""Numbers that follow from sizes, as instructions of the stitcher (`weft.codegen.driver`)."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from weft.codegen.driver import list_layout as layout
from weft.ir.extent import DECISIONS, Extent
from weft.runtime.execution import driver
from weft.runtime.memory.address import address_of

Table = np.ndarray[Any, Any]

_COMPUTED: Final = {
    "+": layout.ADD, "-": layout.SUBTRACT, "*": layout.MULTIPLY, "//": layout.DIVIDE,
    "%": layout.REMAINDER, "min": layout.LEAST, "max": layout.MOST,
}  # fmt: skip
_CHECKED: Final = {"==": layout.EQUAL, "<": layout.LESS, "<=": layout.AT_MOST}


class DecidedError(Exception):
    """A number is decided by a function of Python."""


class Formula:
    """Values that follow from sizes, and checks that these pass; of which the table is made.

    Args:
        state: what is known of the extents among the numbers, as `Extents.state`.
        places: for each base size its place among the sizes.
    """

    def __init__(self, state: Mapping[str, Any] | None = None, places: Sequence[int] = ()) -> None:
        self._code: list[tuple[int, int, int, int]] = []
        self._count = 0
        self._known: dict[tuple[int, int, int], int] = {}
        self._values: dict[int, int] = {}  # by the index of an extent
        self._places = places
        self._state: Mapping[str, Any] = state or {"made": (), "least": (), "guards": ()}
        self._made: Sequence[tuple[str, int, int]] = self._state["made"]

    def guard(self) -> None:
        """Adds the guards on extents."""
        for index, least in self._state["least"]:
            self._check(layout.LESS, self.extent(index), self.number(least), False)
        for kind, a, b, expected in self._state["guards"]:
            self._check(_CHECKED[kind], self.extent(a), self.extent(b), expected)

    def number(self, value: int) -> int:
        """The place of a number, plain or an extent, among the values."""
        if isinstance(value, Extent):
            return self.extent(value.index)
        return self._value(layout.NUMBER, value, 0)

    def extent(self, index: int) -> int:
        """The place of an extent among the values.

        Raises:
            DecidedError: it needs Python.
        """
        found = self._values.get(index)
        if found is None:
            kind, a, b = self._made[index]
            if kind == "base":
                found = self._value(layout.BASE, self._places[a], 0)
            elif kind == "number":
                found = self.number(a)
            elif kind in DECISIONS:
                raise DecidedError
            else:
                found = self._value(_COMPUTED[kind], self.extent(a), self.extent(b))
            self._values[index] = found
        return found

    def admit(self, place: int, size: int) -> None:
        """Admits no other size at a place."""
        self._code.append((layout.IS, place, size, 1))

    def equate(self, place: int, other: int) -> None:
        """Admits only equal sizes at two places."""
        self._code.append((layout.SAME, place, other, 1))

    def _check(self, kind: int, a: int, b: int, expected: bool) -> None:
        self._code.append((kind, a, b, int(expected)))

    def _value(self, kind: int, a: int, b: int) -> int:
        found = self._known.get((kind, a, b))
        if found is None:
            found = self._known[kind, a, b] = self._count
            self._code.append((kind, a, b, 1))
            self._count += 1
        return found

    def table(self) -> FormulaTable:
        """All that was added so far."""
        return FormulaTable(self._code, self._count)


class FormulaTable:
    """A formula's table, which does not change.

    Attributes:
        count: how many values it gives.
    """

    def __init__(self, code: Sequence[tuple[int, int, int, int]], count: int) -> None:
        self._code = numbers(code)
        self.count: Final = count
        self._table = layout.Formula(address_of(self._code), len(code))
        self.address: Final = ctypes.addressof(self._table)

    def values(self, sizes: bytes) -> list[int] | None:
        """The values for some sizes; `None` if a check fails."""
        found = np.zeros(self.count, np.int64)
        if not driver.entries().evaluate(self.address, sizes, address_of(found)):
            return None
        return found.tolist()


def packed(sizes: Sequence[int]) -> bytes:
    """Sizes as native code takes them."""
    return np.array(sizes, np.int64).tobytes()


def numbers(rows: Sequence[Any]) -> Table:
    """A table of 64-bit numbers."""
    return np.array(rows, np.int64)


class Tables:
    """Tables of 64-bit numbers that native code refers to, as long as these are there."""

    def __init__(self) -> None:
        self._kept: list[Any] = []

    def add(self, rows: Sequence[Any]) -> tuple[int, int]:
        """The address of a table, and how many rows it has."""
        self._kept.append(numbers(rows))
        return address_of(self._kept[-1]), len(rows)

    def keep(self, table: object) -> None:
        """Keeps another one, too."""
        self._kept.append(table)


class OfSizes:
    """What may be chosen for the sizes that pass a formula."""

    _formula: FormulaTable

    @property
    def value_count(self) -> int:
        """How many values its table has."""
        return self._formula.count

    def holds(self, sizes: bytes) -> bool:
        """Whether it is for these sizes."""
        return self._formula.values(sizes) is not None


class Choice:
    """A table of what may be chosen; see `weft.codegen.driver.list_layout`."""

    def __init__(self) -> None:
        self._table = layout.Choice()
        self._kept: list[Any] = []
        self.address: Final = ctypes.addressof(self._table)

    def fill(self, items: Sequence[int], size_count: int, value_count: int) -> None:
        """Sets the addresses of the items, which are for so many sizes and have so many values."""
        known = np.zeros((layout.REMEMBERED, 3), np.int64)
        room = np.zeros((len(known), size_count + value_count), np.int64)
        known[:, 1] = address_of(room) + np.arange(len(known)) * room.strides[0]
        known[:, 2] = known[:, 1] + 8 * size_count
        table, offered = self._table, numbers(items)
        self._kept.append((known, room, offered))  # Ctrl-C may come between any two lines
        table.count = 0
        table.items, table.size_count = address_of(offered), size_count
        table.known = address_of(known)
        table.count = len(items)
        del self._kept[:-1]
