"""What is said to hold for all sizes does, and equal extents are one."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import at_most

from weft.ir.extent import Extent, Extents, certain, largest, same, smallest, tuned

LEAST = (1, 2, 0)
COMPARED = {"<": operator.lt, "<=": operator.le, "==": operator.eq}
OPERATIONS = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv,
    "%": operator.mod, "min": smallest, "max": largest,
}  # fmt: skip
LEAVES = st.one_of(st.sampled_from("kmn"), st.integers(-3, 9))
FORMULAS = st.recursive(
    LEAVES, lambda inner: st.tuples(st.sampled_from(sorted(OPERATIONS)), inner, inner), max_leaves=6
)


def value(formula: Any, sizes: Mapping[str, int]) -> int:
    """A formula in numbers or extents."""
    if isinstance(formula, tuple):
        kind, a, b = formula
        return OPERATIONS[kind](value(a, sizes), value(b, sizes))
    return sizes[formula] if isinstance(formula, str) else formula


@at_most(300)
@given(FORMULAS, FORMULAS, st.lists(st.tuples(*[st.integers(n, n + 9) for n in LEAST]), min_size=8))
def test_comparisons_that_are_certain_hold(a: Any, b: Any, others: list[tuple[int, ...]]) -> None:
    extents = Extents()
    sizes = {
        d: extents.base(n + 5, least) for d, n, least in zip("kmn", (1, 2, 3), LEAST, strict=True)
    }
    try:
        x, y = value(a, sizes), value(b, sizes)
    except ZeroDivisionError:
        return
    for other in others:
        numbers = dict(zip("kmn", other, strict=True))
        try:
            p, q = value(a, numbers), value(b, numbers)
            values = extents.values(other)
        except ZeroDivisionError:
            continue
        for found, number in ((x, p), (y, q)):
            assert (values[found.index] if type(found) is Extent else found) == number
        for kind, compare in COMPARED.items():
            known = certain(kind, x, y)
            assert known is None or known is compare(p, q)


def sizes() -> tuple[Extents, int, int]:
    extents = Extents()
    return extents, extents.base(100, 1), extents.base(7, 1)


def test_what_is_equal_is_one_extent() -> None:
    _, m, n = sizes()
    assert m * n is n * m
    assert 32 * m * n // (n * 8) is 4 * m
    assert type((m + 3) - m) is int
    assert 12 * m % 4 == 0
    assert smallest(n - 1, n) is n - 1
    assert same((m - 1) * n, m * n - n)


def test_guards_are_what_is_not_certain() -> None:
    extents, m, n = sizes()
    assert m > 0 and m * n >= n and -(-m // 16) >= 1 and n - 1 != n
    assert not extents.state["guards"]
    assert not extents.admits(extents.values([0, 7]))
    assert m > n
    assert len(extents.state["guards"]) == 1


def test_what_decides_speed_alone_is_no_guard() -> None:
    extents, m, _ = sizes()
    assert tuned("<", m, 1000)
    larger = [2000, 7]
    assert extents.admits(extents.values(larger))
    assert not extents.state["guards"] and extents.state["tuned"]


def test_a_number_that_is_no_size_is_refused() -> None:
    _, m, _ = sizes()
    with pytest.raises(TypeError, match="no operation for symbolic sizes"):
        _ = [0] * m
