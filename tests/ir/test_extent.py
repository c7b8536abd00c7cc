"""Extents: arithmetic on symbolic sizes, and guards."""

from __future__ import annotations

import doctest
from operator import and_, lshift, or_, rshift, xor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.ir import extent
from weft.ir.extent import Extents, assume, largest, multiple, pinned, same, smallest

SIZES = st.integers(1, 500)


def test_the_example_of_the_module_runs():
    assert doctest.testmod(extent).failed == 0


@given(SIZES, SIZES, st.integers(1, 30), st.integers(1, 30))
def test_what_was_computed_for_some_sizes_is_known_for_others(n, other, a, b):
    def numbers(n):
        return [a * n + b, n * n - n, -(-n // a), (n + b) % a, smallest(n, 50), largest(b, n) * n]

    extents = Extents()
    found = numbers(extents.base(n))
    places = [extents.number_of(x) for x in found]
    values = extents.values([other])
    assert [int(x) for x in found] == numbers(n)
    assert [values[place] for place in places] == numbers(other)


@given(SIZES, SIZES, st.integers(0, 500))
def test_sizes_are_admitted_of_which_the_same_was_found(n, other, limit):
    def asked(n):
        return [n > limit, n * 2 <= limit, n == limit, bool(n % 3)]

    extents = Extents()
    found = asked(extents.base(n))
    assert found == asked(n)
    assert extents.admits(extents.values([other])) == (asked(other) == found)


def test_products_are_divided_by_factors_for_all_sizes():
    extents = Extents()
    n = extents.base(7)
    assert same(12 * n // 4, 3 * n) and same(n * 12 % 4, 0) and same(n // 2 * 6 // 6, n // 2)
    assert not same(6 * n // 4, n) and not same(6 * n % 4, 0)


class _Shift:
    """Something that numbers can be added to."""

    def __radd__(self, n):
        return f"shift by {n}"


def test_what_computes_with_numbers_computes_with_sizes():
    assert Extents().base(64) + _Shift() == "shift by 64"
    with pytest.raises(TypeError):
        Extents().base(64) - _Shift()


def test_what_holds_for_all_sizes_is_not_asked():
    extents = Extents()
    n = extents.base(64)
    assert same(n * 2, n * 2) and multiple(n, 1)
    assert not same(n, 64) and not multiple(n, 8)
    assert n == n and n + 0 is n and n * 1 is n and n - n == 0
    assert extents.admits(extents.values([7]))


def test_a_number_that_code_depends_on_admits_no_other():
    extents = Extents()
    n = extents.base(64)
    assert pinned(n) == 64
    assume(n > 3)
    assert extents.admits(extents.values([64])) and not extents.admits(extents.values([65]))


def test_extents_of_different_programs_are_different():
    one, other = Extents().base(5), Extents().base(5)
    assert one != other and one == 5 and str(one) == str(other)


@pytest.mark.parametrize("operation", [and_, or_, xor, lshift, rshift, pow])
def test_what_would_hold_for_one_size_raises(operation):
    n = Extents().base(64)
    with pytest.raises(TypeError):
        operation(n, 3)
    with pytest.raises(TypeError):
        [0] * n


@pytest.mark.parametrize("use", [range, "abc".__mul__, [*range(99)].__getitem__, hex, chr])
def test_who_takes_it_for_a_plain_number_serves_that_one_only(use):
    extents = Extents()
    n = extents.base(64)
    assert isinstance(n, int) and use(n) == use(64)
    admitted = [m for m in (63, 64, 65) if extents.admits(extents.values([m]))]
    assert admitted == [64]


@pytest.mark.parametrize(
    "use", [int, float, lambda n: n / 2, lambda n: n * 0.5, lambda n: n < 70.5]
)
def test_fractions_are_results_unless_a_program_is_planned(use):
    for planning in (False, True):
        extents = Extents()
        extents.planning = planning
        assert use(extents.base(64)) == use(64)
        assert extents.admits(extents.values([65])) == planning
