"""Index algebra: simplified expressions equal plain ones at every point, within their bounds."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.codegen.loop.index import (
    Index,
    Symbol,
    clamped,
    fixed,
    flat,
    substituted,
    unflat,
    variable,
)

Point = dict[Symbol, int]
X, Y = Symbol("x", 6), Symbol("y", 5)


def evaluate(index: Index, at: Point) -> int:
    """The definition of every atom, without any rule of simplification."""
    total = index.const
    for atom, k in index.terms:
        if atom.kind == "var":
            value = at[atom.inner]
        else:
            inner = evaluate(atom.inner, at)
            value = {
                "div": lambda i, v: i // v,
                "mod": lambda i, v: i % v,
                "clamp": lambda i, v: min(max(i, v[0]), v[1]),
            }[atom.kind](inner, atom.value)
        total += k * value
    return total


STEPS: dict[str, tuple[Callable[[Index, int], Index], Callable[[int, int], int]]] = {
    "add": (lambda i, n: i + n, lambda i, n: i + n),
    "multiply": (lambda i, n: i * n, lambda i, n: i * n),
    "divide": (lambda i, n: i // max(n, 1), lambda i, n: i // max(n, 1)),
    "remainder": (lambda i, n: i % max(n, 1), lambda i, n: i % max(n, 1)),
    "clamp": (lambda i, n: clamped(i, -1, n), lambda i, n: min(max(i, -1), max(n, -1))),
    "less x": (lambda i, n: i - variable(X) * n, lambda i, n: i),
}


@given(
    st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.integers(-3, 7)), max_size=5),
    st.integers(-4, 4),
)
def test_simplified_equals_plain(steps: list[tuple[str, int]], k: int) -> None:
    index = variable(X) * 5 + variable(Y) * k
    for x, y in itertools.product(range(6), range(5)):
        value = 5 * x + k * y
        now = index
        for name, n in steps:
            symbolic, plain = STEPS[name]
            now, value = symbolic(now, n), plain(value, n) - (x * n if name == "less x" else 0)
        assert evaluate(now, {X: x, Y: y}) == value
        assert now.low <= value <= now.high


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_flat_and_unflat_are_inverse(shape: list[int]) -> None:
    symbols = [Symbol(f"i{n}", d) for n, d in enumerate(shape)]
    index = tuple(variable(s) for s in symbols)
    assert unflat(flat(index, shape), shape) == index


def test_pieces_join_again() -> None:
    x = variable(Symbol("x", 100))
    assert x // 8 * 8 + x % 8 == x
    assert x // 8 * 24 + x % 8 * 3 == x * 3
    assert (x // 4) // 5 == x // 20
    assert (x * 12 + 7) // 4 == x * 3 + 1
    assert (x * 12 + 7) % 4 == fixed(3)


def test_bounds_decide() -> None:
    x = variable(X)
    assert x // 6 == fixed(0)
    assert x % 6 == x
    assert clamped(x + 1, 0, 6) == x + 1
    assert clamped(x, 9, 12) == fixed(9)
    assert clamped(x, 0, -1) == fixed(0)


def test_substitution_simplifies() -> None:
    x, y = variable(X), variable(Y)
    z = variable(Symbol("z", 30))
    assert substituted(x * 5 + y, {X: z // 5, Y: z % 5}, _no_scalar) == z
    assert substituted((x + 2) // 4, {X: fixed(3)}, _no_scalar) == fixed(1)


def test_products_of_variables_raise() -> None:
    with pytest.raises(TypeError, match="is not linear"):
        variable(X) * variable(Y)


def _no_scalar(expr: Any) -> Any:
    raise AssertionError(expr)
