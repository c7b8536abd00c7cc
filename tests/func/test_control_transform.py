"""Forward mode, batching and checkpoints through branches and loops."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft as wf
from weft import func


def scanned(x: Any, w: Any) -> Any:
    def step(c: Any, t: Any) -> Any:
        h = wf.tanh(c[0] * w + t)
        return (h, c[1] + 1), h * x

    (h, n), ys = wf.scan(step, (x, 0), wf.arange(4.0).double())
    return ys.sum(0) + h * n


def branched(x: Any, w: Any) -> Any:
    return wf.switch(
        (x.sum() > 0).long() + (x.sum() > 1).long(),
        [lambda a: a * w, lambda a: wf.sin(a), lambda a: a * 0 + 1],
        x,
    )


def ended(x: Any, w: Any) -> Any:
    """Another number of turns for each example."""
    _, y = wf.while_loop(
        lambda s: s[1].sum() < 4, lambda s: (s[0] + 1, s[1] + w * w + 0.2), (0, x), maximum=40
    )
    return y * y


def nested(x: Any, w: Any) -> Any:
    return wf.map(
        lambda i: scanned(x * i, w).sum() + ended(branched(x, w), w), wf.arange(3.0).double()
    )


FUNCTIONS = (scanned, branched, ended, nested)
wf.manual_seed(5)
X = wf.randn(6, 3, dtype=wf.float64)
W = wf.randn(3, dtype=wf.float64)


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_tangents_are_gradients_along_a_direction(f: Callable[..., Any]) -> None:
    x, t = X[1], X[2]
    value, tangent = func.jvp(f, (x, W), (t, W * 2))
    close(value, f(x, W))
    rows = func.jacobian(f, argnums=(0, 1))(x, W)
    close(tangent, rows[0] @ t + rows[1] @ (W * 2))
    again, second = func.jvp(lambda x: func.jvp(f, (x, W), (t, W))[1], (x,), (t,))
    close(again, rows[0] @ t + rows[1] @ W)
    assert np.isfinite(second.numpy()).all()


@pytest.mark.parametrize("f", FUNCTIONS)
def test_a_batch_is_its_examples(f: Callable[..., Any]) -> None:
    many = func.vmap(f, in_axes=(0, None))(X, W)
    close(many, wf.stack([f(x, W) for x in X]))
    crossed = func.vmap(f, in_axes=(None, 0))(X[0], X)
    close(crossed, wf.stack([f(X[0], w) for w in X]))
    slope = func.grad(lambda x, w: f(x, w).sum(), argnums=(0, 1))
    for found, rows in zip(
        func.vmap(slope, in_axes=(0, None))(X, W),
        zip(*[slope(x, W) for x in X], strict=True),
        strict=True,
    ):
        close(found, wf.stack(list(rows)))


@pytest.mark.parametrize("f", FUNCTIONS)
def test_a_checkpoint_gives_the_same(f: Callable[..., Any]) -> None:
    def loss(g: Any) -> Any:
        return func.grad(lambda x: (g(x, W) * W).sum())(X[3])

    close(loss(func.checkpoint(f)), loss(f))
    close(func.jit(f)(X[3], W), f(X[3], W))


def test_automatic_casts_leave_the_carry_its_type() -> None:
    w = wf.randn(3, 3)
    with wf.autocast("cpu", dtype=wf.bfloat16):
        h, ys = wf.scan(lambda h, _: (h @ w, h @ w), wf.ones(2, 3), length=3)
    assert h.dtype is wf.float32
    assert ys.dtype is wf.bfloat16
