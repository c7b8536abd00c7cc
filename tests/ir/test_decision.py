"""Decisions on extents: guards by functions."""

from __future__ import annotations

import doctest

from hypothesis import given
from hypothesis import strategies as st

from weft.ir import decision as module
from weft.ir.decision import decision
from weft.ir.extent import Extents

SIZES = st.integers(1, 60)


@decision
def kind(rows: int, columns: int) -> int:
    return (rows**2 % 7 < columns) + 2 * (rows in (3, 4, 50))


def test_the_example_of_the_module_runs() -> None:
    assert doctest.testmod(module).failed == 0


@given(SIZES, SIZES, st.integers(0, 8))
def test_sizes_are_admitted_for_which_the_decision_is_the_same(
    n: int, other: int, columns: int
) -> None:
    extents = Extents()
    assert kind(extents.base(n), columns) == kind(n, columns)
    same = kind(other, columns) == kind(n, columns)
    assert extents.admits(extents.values([other])) == same


def test_a_decision_holds_when_it_is_restored() -> None:
    extents = Extents()
    rows, columns = extents.base(3), extents.base(5)
    found = kind(rows * 2, columns)
    again = Extents()
    for size in (3, 5):
        again.base(size)
    again.restored(extents.state)
    for rows, columns in ((3, 5), (4, 1), (25, 2)):
        admitted = again.admits(again.values([rows, columns]))
        assert admitted == (kind(rows * 2, columns) == found)
        assert admitted == (again.admitted([rows, columns]) is not None)
