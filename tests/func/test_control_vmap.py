"""Branches and loops under `vmap`: what an example does not take leaves no trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from drawn_control import check

import weft as wf
from weft import config, func
from weft.errors import DivisionError, OutOfRangeError

TABLE = wf.tensor([0.5, 1.5, -1.0, 2.0, 3.0])
NEXT = wf.tensor([2, 5, 3, 1, 5])
LEFT_OUT = {
    "log": lambda x: func.cond(x > 0, wf.log, lambda x: x * 0, x),
    "root": lambda x: func.cond(x > 0, wf.sqrt, lambda x: x * 2, x),
    "inverse": lambda x: func.cond(x != 0, lambda x: 1 / x, lambda x: x, x),
    "overflow": lambda x: func.cond(x < 1, lambda x: wf.exp(x * 1e4), lambda x: x, x),
    "captured": lambda x: func.cond(x > 0, lambda: wf.log(x), lambda: x * 3),
    "switch": lambda x: func.switch((x > 0).long() + (x > 1).long(), [wf.sin, wf.log, wf.sqrt], x),
    "nested": lambda x: func.cond(
        x > 0, lambda x: func.cond(x > 1, lambda x: wf.log(x - 1), wf.log, x), wf.sin, x
    ),
    "in scan": lambda x: func.scan(
        lambda c, t: (func.cond(c > 0, lambda c: wf.sqrt(c) * t, lambda c: c - t, c), None),
        x, TABLE,
    )[0],
    "while": lambda x: func.while_loop(lambda c: c > 1, lambda c: wf.sqrt(c - 1), x),
    "factor": lambda x: func.cond(
        x > 0, lambda x: wf.linalg.cholesky(x * wf.eye(2)).sum(), lambda x: x, x
    ),
}  # fmt: skip
POINTS = wf.tensor([2.5, 0.0, -1.0, 1.0, 30.0])


@pytest.mark.parametrize("name", LEFT_OUT)
def test_gradients_are_those_of_what_is_taken(name: str) -> None:
    f = LEFT_OUT[name]
    many = func.vmap(f)

    def loss(v: Any) -> Any:
        return many(v).sum()

    expected = wf.stack([func.grad(f)(x) for x in POINTS]).numpy()
    assert np.isfinite(expected).all()
    leaf = POINTS.clone().requires_grad_()
    loss(leaf).backward()
    for found in (
        func.grad(loss)(POINTS), func.jit(func.grad(loss))(POINTS), leaf.grad,
        func.jacrev(many)(POINTS).diagonal(), func.jacfwd(many)(POINTS).diagonal(),
        func.vmap(func.grad(f))(POINTS),
    ):  # fmt: skip
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5)
    second = wf.stack([func.grad(func.grad(f))(x) for x in POINTS]).numpy()
    found = func.grad(lambda v: func.grad(loss)(v).sum())(POINTS)
    np.testing.assert_allclose(found.numpy(), second, rtol=1e-4)


@pytest.mark.parametrize("shape", [(), (3, 3)])
def test_gradients_of_what_all_examples_share(shape: tuple[int, ...]) -> None:
    w = wf.full(shape, 2.0)
    xs = wf.tensor([[2.0, 1.0, 3.0], [-1.0, 0.0, 2.0], [0.0, 0.0, 0.0]])

    def f(x: Any, w: Any) -> Any:
        return func.cond(
            x[0] > 0, lambda x: ((x ** (w - 1)) ** w).sum(), lambda x: (x * w).sum(), x
        )

    found = func.grad(lambda w: func.vmap(f, (0, None))(xs, w).sum())(w)
    expected = func.grad(lambda w: f(xs[0], w) + f(xs[1], w) + f(xs[2], w))(w)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5)
    none = func.grad(
        lambda w: func.vmap(
            lambda x: func.cond(x > 9, lambda x: x * wf.sqrt(w), lambda x: x + w, x)
        )(wf.ones(4)).sum()
    )(w * 0)
    np.testing.assert_array_equal(none.numpy(), np.full(shape, 4.0))


def test_derivatives_of_gradients_of_loops_that_end_apart() -> None:
    def f(x: Any, w: Any) -> Any:
        return func.while_loop(lambda c: c > 1, lambda c: wf.sqrt(c - 1) * w, x)

    xs, w = wf.tensor([0.5, 1.0, 3.0, 30.0]), wf.tensor(1.0)
    found = func.grad(lambda w: func.vmap(func.grad(f), (0, None))(xs, w).sum())(w)
    expected = sum([func.grad(lambda w, x=x: func.grad(f)(x, w))(w).item() for x in xs])
    assert found.item() == pytest.approx(expected, rel=1e-4)


def gcd(a: Any, b: Any) -> Any:
    return func.while_loop(lambda c: c[1] != 0, lambda c: (c[1], c[0] % c[1]), (a, b))[0]


def walk(p: Any) -> Any:
    """How many links lead to the end of a chain."""
    return func.while_loop(lambda c: c[0] < 5, lambda c: (NEXT[c[0]], c[1] + 1), (p, 0))[1]


def inside(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda i: func.cond(i < 5, function, lambda i: i * -1.0, i)


def classified(i: Any) -> Any:
    return wf.nn.functional.cross_entropy(TABLE, i)


INSIDE = {
    "index": inside(lambda i: TABLE[i]),
    "captured": lambda i: func.cond(i < 5, lambda: TABLE[i], lambda: TABLE[0]),
    "take_along_dim": inside(lambda i: wf.take_along_dim(TABLE, i.reshape(1), 0)[0]),
    "scatter": inside(lambda i: wf.zeros(5).scatter(0, i.reshape(1), wf.ones(1)).sum()),
    "index_put": inside(lambda i: TABLE.clone().index_put((i,), wf.ones(())).sum()),
    "embedding": inside(lambda i: wf.nn.functional.embedding(i, TABLE.reshape(5, 1)).sum()),
    "cross_entropy": inside(classified),
    "quotient": inside(lambda i: (12 // (5 - i)).float()),
    "remainder": inside(lambda i: (12 % (5 - i)).float()),
    "power": inside(lambda i: ((5 - i) ** (5 - i)).float()),
    "switch": lambda i: func.switch(i, [lambda: TABLE[i + 1], lambda: TABLE[i], lambda: TABLE[2]]),
    "nested": inside(lambda i: func.cond(i > 2, lambda i: TABLE[i], lambda i: TABLE[i + 2], i)),
    "endless": inside(lambda i: func.while_loop(lambda c: c != 5, lambda c: c + 1, i) * 1.0),
    "count": lambda i: func.fori_loop(0, i % 6, lambda k, c: c + TABLE[k], 0.0),
    "walk": walk,
}


@pytest.mark.parametrize("name", INSIDE)
def test_what_is_not_taken_raises_nothing(name: str) -> None:
    f, numbers = INSIDE[name], [3, 9, 0, 5, 11] if name != "walk" else [3, 0, 4, 5, 1]
    expected = [f(wf.tensor(i)).item() for i in numbers]
    for many in (
        func.vmap(f),
        func.jit(func.vmap(f)),
        func.vmap(lambda i: func.vmap(f)(i[None])[0]),
    ):
        assert many(wf.tensor(numbers)).tolist() == pytest.approx(expected)
    if name not in ("switch", "count", "walk"):  # in which some example is always inside
        out = func.vmap(f)(wf.tensor([7, 9])).tolist()
        assert out == [f(wf.tensor(i)).item() for i in (7, 9)]


def test_a_gradient_reads_no_index_of_what_is_not_taken() -> None:
    def loss(t: Any) -> Any:
        return func.vmap(lambda i: func.cond(i < 5, lambda: wf.log(t[i]), lambda: t[0] * 0))(
            wf.tensor([4, 9, 0])
        ).sum()

    assert func.grad(loss)(TABLE).tolist() == pytest.approx([2.0, 0.0, 0.0, 0.0, 1 / 3])


def test_what_is_taken_raises() -> None:
    with pytest.raises(OutOfRangeError, match="got 9"):
        func.vmap(lambda i: func.cond(i < 10, lambda: TABLE[i], lambda: TABLE[0]))(
            wf.tensor([3, 9, 12])
        ).numpy()
    with pytest.raises(DivisionError, match="other than 0"):
        func.vmap(lambda i: func.cond(i < 5, lambda: 3 // i, lambda: i))(wf.tensor([7, 0])).numpy()
    assert func.vmap(gcd)(wf.tensor([12, 7, 100]), wf.tensor([18, 3, 75])).tolist() == [6, 1, 25]


def test_a_loop_without_turns_raises_nothing() -> None:
    at = wf.tensor(9)
    f = lambda c: func.while_loop(lambda c: c < 0, lambda c: c + TABLE[at], c)  # noqa: E731
    assert f(wf.tensor(1.0)).item() == 1
    assert func.jit(f)(wf.tensor(1.0)).item() == 1
    assert func.cond(at < 5, lambda: TABLE[at], lambda: wf.tensor(2.0)).item() == 2


def test_examples_draw_numbers_of_their_own() -> None:
    def turns(x: Any) -> Any:
        return func.while_loop(lambda _: wf.rand(()) < 0.9, lambda c: c + 1, x)

    def last(x: Any) -> Any:
        return func.while_loop(lambda c: c[0] < x, lambda c: (c[0] + 1, wf.rand(())), (0.0, x))[1]

    wf.manual_seed(0)
    found = func.vmap(turns, randomness="different")(wf.zeros(400)).numpy()
    assert len({*found}) > 10
    assert 6 < found.mean() < 12  # a geometric distribution: 9 on average
    assert len({*func.vmap(last, randomness="different")(wf.ones(40) * 3).tolist()}) == 40
    assert len({*func.vmap(last, randomness="same")(wf.ones(40) * 3).tolist()}) == 1


def test_parts_that_do_not_depend_on_the_batch() -> None:
    def f(x: Any) -> Any:
        return func.while_loop(
            lambda c: c[1] < 9, lambda c: (c[0], c[1] * 2, c[2]), (wf.tensor(7.0), x, 3)
        )

    shared, many, number = func.vmap(f, out_axes=(None, 0, None))(wf.tensor([1.0, 5.0]))
    assert (shared.item(), many.tolist(), number.item()) == (7.0, [16.0, 10.0], 3)


@pytest.mark.parametrize("seed", range(2))
def test_drawn_programs(seed: int) -> None:
    with config.override(compile=seed == 1):
        check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 40))
def test_many_drawn_programs(seed: int) -> None:
    with config.override(compile=seed % 5 == 0):
        check(seed, depth=1 + seed % 2)
