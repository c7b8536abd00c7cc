"""Gradients of branches and loops against unrolled ones: second order, nested, random programs."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import at_most

import weft as wf
from weft import config, func


def unrolled(f: Any, init: Any, xs: Any, reverse: bool = False) -> tuple[Any, Any]:
    """What `wf.scan` computes, in Python."""
    rows: list[Any] = []
    for x in reversed(list(xs)) if reverse else xs:
        init, y = f(init, x)
        rows.append(y)
    return init, wf.stack(rows[::-1] if reverse else rows)


def slopes(f: Callable[..., Any], *args: Any) -> list[np.ndarray]:
    """Gradients by all arguments, and gradients of their squares."""
    places = tuple(range(len(args)))
    first = func.grad(f, argnums=places)

    def squares(*args: Any) -> Any:
        return sum((g * g).sum() for g in first(*args))

    second = func.grad(squares, argnums=places)
    return [g.numpy() for g in (*first(*args), *second(*args))]


def same(found: list[np.ndarray], expected: list[np.ndarray]) -> None:
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9 * max(1.0, np.abs(b).max(initial=0)))


def lstm(c: Any, x: Any, w: Any, u: Any, b: Any) -> Any:
    h, s = c
    i, f, g, o = (x @ w + h @ u.T + b).chunk(4, -1)
    s = wf.sigmoid(f) * s + wf.sigmoid(i) * wf.tanh(g)
    h = wf.sigmoid(o) * wf.tanh(s)
    return (h, s), h * h


LOOPS: tuple[dict[str, Any], ...] = (
    {},
    {"reverse": True},
    {"rematerialize": 1},
    {"rematerialize": 3},
    {"rematerialize": 2, "reverse": True},
)


def cell(loop: Any, kept: dict[str, Any]) -> list[np.ndarray]:
    """The slopes of a cell in a loop."""
    wf.manual_seed(0)
    double = {"dtype": wf.float64}
    xs, w, u = wf.randn(7, 2, 3, **double), wf.randn(3, 16, **double), wf.randn(16, 4, **double)
    b, h = wf.randn(16, **double), wf.randn(2, 4, **double)

    def loss(xs: Any, w: Any, u: Any, b: Any, h: Any) -> Any:
        (_, s), ys = loop(lambda c, x: lstm(c, x, w, u, b), (h, h * 0), xs, **kept)
        return (ys * ys).sum() + s.sum()

    return slopes(loss, xs, w, u, b, h)


@functools.cache
def unrolled_cell(reverse: bool) -> list[np.ndarray]:
    return cell(unrolled, {"reverse": reverse})


@pytest.mark.parametrize("options", LOOPS)
def test_a_cell_with_weights_from_outside(options: dict[str, Any]) -> None:
    same(cell(wf.scan, options), unrolled_cell(options.get("reverse", False)))


def test_nested_three_deep() -> None:
    """A branch in a loop that ends by itself in a scan."""

    def inner(i: Any, x: Any, w: Any) -> Any:
        return wf.cond(i < 2, lambda: wf.tanh(x * w), lambda: x + w.sin())

    def plain(x: Any, w: Any) -> Any:
        total = x * 0
        for t in range(3):
            y = x + t
            for i in range(4):
                if y.sum().item() > 40:
                    break
                y = wf.tanh(y * w) if i < 2 else y + w.sin()
            x, total = y * 0.5, total + y * t
        return (total * x).sum()

    def looped(x: Any, w: Any) -> Any:
        def step(x: Any, t: Any) -> Any:
            def holds(s: Any) -> Any:
                return (s[0] < 4) & (s[1].sum() <= 40)

            def turn(s: Any) -> Any:
                return s[0] + 1, inner(s[0], s[1], w)

            _, y = wf.while_loop(holds, turn, (0, x + t), maximum=6)
            return y * 0.5, y * t

        end, ys = wf.scan(step, x, wf.arange(3).double())
        return (ys.sum(0) * end).sum()

    wf.manual_seed(1)
    x, w = wf.randn(3, dtype=wf.float64), wf.randn(3, dtype=wf.float64)
    assert abs(plain(x, w).item() - looped(x, w).item()) < 1e-9
    same(slopes(looped, x, w), slopes(plain, x, w))


def test_parameters_get_gradients() -> None:
    w = wf.ones(2, requires_grad=True)
    total, _ = wf.scan(lambda c, x: (c + (w * x).sum(), None), 0.0, wf.tensor([1.0, 2.0]))
    total.backward()
    assert w.grad is not None
    assert w.grad.tolist() == [3.0, 3.0]


def test_a_while_loop_of_any_number_of_turns() -> None:
    def f(x: Any, w: Any) -> Any:
        return wf.while_loop(lambda s: s[1].sum() < 9, lambda s: (s[0] + 1, s[1] * w + x), (0, x))[
            1
        ]

    def plain(x: Any, w: Any) -> Any:
        y = x
        while y.sum().item() < 9:
            y = y * w + x
        return y

    x, w = wf.tensor([0.5, 0.7], dtype=wf.float64), wf.tensor([1.1, 1.3], dtype=wf.float64)
    first, second = (lambda *xs: f(*xs).sum()), (lambda *xs: plain(*xs).sum())
    expected = slopes(second, x, w)
    for compile in (False, True):
        with config.override(compile=compile):
            same(slopes(first, x, w), expected)
            same(slopes(first, x * 20, w), slopes(second, x * 20, w))  # no iteration
    third = [
        func.grad(lambda x, f=f: (func.hessian(f)(x, w) ** 2).sum())(x) for f in (first, second)
    ]
    same([third[0].numpy()], [third[1].numpy()])


UNARY = (wf.tanh, wf.sin, lambda x: x * x, lambda x: x * 0.5, wf.sigmoid)
BINARY = (lambda a, b: a + b, lambda a, b: a * b, lambda a, b: a - b.cos(), lambda a, b: a @ b)


@at_most(12)
@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 9), st.integers(0, 9)), min_size=1,
                max_size=7), st.integers(0, 5), st.booleans(), st.integers(0, 3))  # fmt: skip
def test_drawn_bodies(
    program: list[tuple[int, int, int]], length: int, reverse: bool, rematerialize: int
) -> None:
    """Bodies of random operations on two carried values, a slice and a captured one."""

    def body(w: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            values = [*c, x, w]
            for op, a, b in program:
                a, b = values[a % len(values)], values[b % len(values)]
                found = UNARY[op](a) if op < 5 else BINARY[op - 5](a, b)
                values.append(wf.tanh(found))
            return (values[-1], values[-1 - len(program) // 2]), values[len(values) // 2]

        return step

    def loss(loop: Any, options: dict[str, Any]) -> Any:
        def run(a: Any, b: Any, xs: Any, w: Any) -> Any:
            (p, q), ys = loop(body(w), (a, b), xs, reverse=reverse, **options)
            return (p * 2 + q).sum() + (ys * ys).sum()

        return run

    wf.manual_seed(length)
    a, b, w = (wf.randn(3, 3, dtype=wf.float64) for _ in range(3))
    xs = wf.randn(length, 3, 3, dtype=wf.float64)
    plain = loss(unrolled if length else lambda f, c, xs, **_: (c, xs), {})
    found = slopes(loss(wf.scan, {"rematerialize": rematerialize}), a, b, xs, w)
    same(found, slopes(plain, a, b, xs, w))


def test_compiled_gradients_of_a_carry_that_is_kept_at_each_turn() -> None:
    w, xs = wf.randn(4, 4), wf.randn(5, 2, 4)

    def loss(run: Callable[..., Any], w: Any, xs: Any) -> Any:
        def cell(h: Any, x: Any) -> tuple[Any, Any]:
            h = wf.tanh(h @ w + x)
            return h, h.sum()

        h, sums = run(cell, wf.zeros(2, 4), xs)
        return (h * h).sum() + (sums * sums).sum()

    expected = [g.numpy() for g in func.grad(lambda *a: loss(unrolled, *a), (0, 1))(w, xs)]
    with config.override(compile=True):
        found = [g.numpy() for g in func.grad(lambda *a: loss(wf.scan, *a), (0, 1))(w, xs)]
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
