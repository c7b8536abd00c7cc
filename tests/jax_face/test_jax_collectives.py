"""Collectives along the named axis of `vmap`."""

import numpy as np
import pytest

import weft as wf
import weft.jax as jax
import weft.jax.numpy as jnp
from weft.errors import ArgumentError
from weft.jax import lax

X = np.arange(12, dtype="f").reshape(4, 3) ** 1.5
M = np.arange(32, dtype="f").reshape(4, 4, 2)


@pytest.mark.parametrize(
    ("f", "x", "expected"),
    [
        (lambda v: v - lax.pmean(v, "i"), X, X - X.mean(0)),
        (lambda v: v / lax.psum(v, "i") * lax.psum(1, "i"), X, 4 * X / X.sum(0)),
        (lambda v: (lax.pmax(v, "i"), lax.pmin(v, "i"))[0], X, [X.max(0)] * 4),
        (lambda v: lax.all_gather(v, "i", axis=1), X, [X.T] * 4),
        (lambda v: lax.all_gather(v, "i", tiled=True), X, [X.ravel()] * 4),
        (lambda v: lax.ppermute(v, "i", [(i, (i + 1) % 4) for i in range(4)]), X, np.roll(X, 1, 0)),
        (lambda v: lax.pshuffle(v, "i", [2, 0, 1, 3]), X, X[[2, 0, 1, 3]]),
        (lambda v: lax.pbroadcast(v, "i", 2), X, X[[2] * 4]),
        (lambda v: v[0] + lax.axis_index("i"), X, X[:, 0] + np.arange(4)),
        (lambda v: lax.all_to_all(v, "i", 0, 0), M, M.transpose(1, 0, 2)),
        (lambda v: lax.all_to_all(v, "i", 0, 0, tiled=True), M, M.transpose(1, 0, 2)),
        (lambda v: lax.psum_scatter(v, "i"), M, M.sum(0)),
        (jax.grad(lambda v: (lax.psum(v, "i") ** 2).sum()), X, [8 * X.sum(0)] * 4),
        (lambda v: lax.fori_loop(0, 2, lambda _, a: a + lax.psum(v, "i"), v), X, X + 2 * X.sum(0)),
        (
            jax.vmap(lambda v: lax.psum(v, ("i", "j")) + lax.axis_index("j"), axis_name="j"),
            X, [X.sum() + np.arange(3)] * 4,
        ),
        (jax.vmap(lambda v: lax.psum(v, "i"), axis_name="i"), X, X.sum(1)[:, None]),
    ],
)  # fmt: skip
def test_values_along_the_axis(f, x, expected):
    found = jax.vmap(f, axis_name="i")(x)
    np.testing.assert_allclose(found, np.broadcast_to(expected, found.shape), rtol=1e-5)
    again = jax.jit(jax.vmap(f, axis_name="i"))(x)
    np.testing.assert_allclose(again, found, rtol=1e-5)


def test_a_batch_normalized_along_the_axis_has_the_gradient_of_the_whole():
    def along(x):
        def one(h):
            h = h - lax.pmean(h, "i")
            return (h / jnp.sqrt(lax.pmean(h * h, "i") + 1)) ** 3

        return jax.vmap(one, axis_name="i")(x).sum()

    def whole(x):
        h = x - x.mean(0)
        return ((h / jnp.sqrt((h * h).mean(0) + 1)) ** 3).sum()

    np.testing.assert_allclose(jax.grad(along)(X), jax.grad(whole)(X), rtol=1e-3, atol=1e-4)


def test_a_jitted_function_is_traced_for_each_size_of_an_axis():
    f = jax.jit(lambda v: v * lax.axis_size("i"))
    assert [jax.vmap(f, axis_name="i")(jnp.ones(n)).sum().item() for n in (2, 3)] == [4, 9]
    with pytest.raises(ArgumentError, match="vmap around it"):
        f(1.0)


@pytest.mark.parametrize(("axes", "rows"), [({"in_axes": 0}, 1), ({"in_dims": 0}, 3)])
def test_keyword_arguments_are_mapped_as_without_a_name(axes, rows):
    x = wf.arange(3.0)
    found = wf.func.vmap(lambda x, k: wf.func.psum(x, "i") * k, axis_name="i", **axes)(x, k=x)
    assert found.reshape(-1, 3).tolist() == [[0, 3, 6]] * rows


def test_pmap_in_one_process():
    step = jax.pmap(
        lambda w, x, n: w - lax.pmean(x * n, "d"), axis_name="d", in_axes=(None, 0, None),
        static_broadcasted_argnums=2,
    )  # fmt: skip
    np.testing.assert_allclose(step(jnp.ones(3), X[:1], 2), 1 - 2 * X[:1])
