"""Cases: a routine for all sizes that pass a formula, as the stitcher's table."""

from __future__ import annotations

import ctypes
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from weft.codegen.driver import list_layout
from weft.library.formula import Formula, OfSizes, Tables
from weft.library.routine import Part, Routine
from weft.library.workspace import reserve
from weft.runtime.memory.address import address_of

MOST_SCRATCH: Final = 64  # pieces of scratch memory of a group


class Made(NamedTuple):
    """A routine, and what is known of its results.

    Attributes:
        found: which is which, where that is not plain.
        rows: whether one would be row-sparse if it were not made dense.
    """

    routine: Routine
    found: tuple[int, ...] = ()
    rows: bool = False


class Layout(NamedTuple):
    """What a list relies on of a routine."""

    results: tuple[int, ...]
    reads: frozenset[int]
    found: tuple[int, ...]
    calls: bool
    fails: bool
    updates: frozenset[tuple[int, int]]


_layouts: Final[dict[Layout, int]] = {}
_shown: Final[WeakValueDictionary[int, Case]] = WeakValueDictionary()


class Case(OfSizes):
    """A routine for all sizes that pass a formula.

    Attributes:
        layout: the number of its layout; equal layouts have equal numbers.
        table: the address of its table.
    """

    def __init__(self, made: Made, formula: Formula) -> None:
        self.routine, self.found, self.rows = routine, found, _ = made
        layout = Layout(
            routine.results, routine.reads, found, routine.calls, routine.fails, routine.updates
        )  # fmt: skip
        self.layout: Final = _layouts.setdefault(layout, len(_layouts))
        self._tables = tables = Tables()
        self._sizes = [
            [formula.number(n) for n in part.sizes] if isinstance(part, Part) else []
            for part in routine.parts
        ]
        parts = (list_layout.Part * len(routine.parts))()
        for row, part, sizes in zip(parts, routine.parts, self._sizes, strict=True):
            if isinstance(part, Part):
                row.entry = part.entry.choice.address
            row.sizes, row.size_count = tables.add(sizes)
            row.buffers, row.buffer_count = tables.add(part.buffers)
        constants = tables.add([address_of(x) for x in routine.constants])
        temporaries = tables.add([formula.number(n) for n in routine.temporaries])
        self._formula = formula.table()
        tables.keep(parts)
        most = max([len(part.buffers) for part in routine.parts], default=0)
        most = max([most, *map(len, self._sizes)])
        buffers = (routine.constants, routine.temporaries, routine.results)
        reserve(most + MOST_SCRATCH + routine.inputs + sum(map(len, buffers)))
        self._struct = list_layout.Case(
            self._formula.address, self.layout, ctypes.addressof(parts), len(parts), *constants,
            *temporaries,
        )  # fmt: skip
        self.table: Final = ctypes.addressof(self._struct)
        _shown[self.table] = self

    def expect(self, sizes: bytes) -> None:
        """Offers the variants that are there for these sizes: else stitching begins again for each.

        Args:
            sizes: for which it holds.
        """
        values = self._formula.values(sizes)
        for part, own in zip(self.routine.parts, self._sizes, strict=True):
            if values is not None and isinstance(part, Part):
                part.entry.expect(tuple([values[i] for i in own]))

    def part_at(self, number: int, sizes: bytes) -> tuple[Part, tuple[int, ...]]:
        """A part, and its sizes where the call has these sizes."""
        values, part = self._formula.values(sizes), self.routine.parts[number]
        assert values is not None and isinstance(part, Part)
        return part, tuple([values[i] for i in self._sizes[number]])


def case_at(address: int) -> Case:
    """The case with this table."""
    return _shown[address]
