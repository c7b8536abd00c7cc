"""Arguments of JAX's functions work or raise; distributions agree with SciPy's."""

import numpy as np
import pytest
from scipy import stats as scipy_stats

import weft.jax as jax
import weft.jax.numpy as jnp
from weft.errors import WeftError
from weft.jax import random
from weft.jax.scipy import linalg, stats

SKEW = np.array([[2.0, 1.0], [-0.5, 3.0]], np.float32)


def test_the_symmetric_part_is_meant_unless_a_triangle_is():
    whole = np.linalg.eigvalsh((SKEW + SKEW.T) / 2)
    assert jnp.linalg.eigvalsh(SKEW).array == pytest.approx(whole, rel=1e-5)
    upper = np.linalg.eigvalsh(SKEW, UPLO="U")
    found = jnp.linalg.eigvalsh(SKEW, UPLO="U", symmetrize_input=False)
    assert found.array == pytest.approx(upper, rel=1e-5)
    assert (
        jnp.linalg.cholesky(SKEW)[1, 0] != jnp.linalg.cholesky(SKEW, symmetrize_input=False)[1, 0]
    )
    lower = linalg.solve(SKEW, jnp.ones(2), assume_a="pos", lower=True)
    read = np.array([[2.0, -0.5], [-0.5, 3.0]])
    assert lower.array == pytest.approx(np.linalg.solve(read, np.ones(2)), rel=1e-5)


def test_holomorphic_derivatives_and_sizes_of_axes():
    assert jax.grad(lambda z: z**3, holomorphic=True)(1 + 2j).item() == pytest.approx(-9 + 12j)
    with pytest.raises(TypeError, match="holomorphic"):
        jax.grad(lambda z: z.real, holomorphic=True)(1 + 2j)
    rows = jax.vmap(lambda x: x + 1, in_axes=None, axis_size=3)(jnp.zeros(2))
    assert rows.shape == (3, 2)
    with pytest.raises(WeftError, match="one length"):
        jax.vmap(lambda x: x, axis_size=3)(jnp.zeros(2))


@pytest.mark.parametrize(
    "call",
    [
        lambda: jnp.dot(jnp.ones(2), jnp.ones(2), precision="nonsense"),
        lambda: jnp.array([1.0], order="X"),
        lambda: jax.device_put(1.0, "gpu"),
        lambda: jax.make_mesh((2,), ("x",)),
        lambda: random.bernoulli(random.PRNGKey(0), mode="high"),
        lambda: linalg.solve(SKEW, jnp.ones(2), assume_a="any"),
        lambda: jax.grad(lambda x: x, reduce_axes=("i",)),
        lambda: jax.nn.softmax(jnp.ones(2), initial=1.0),
    ],
)
def test_what_is_not_followed_raises(call):
    with pytest.raises(WeftError, match="expected"):
        call()


@pytest.mark.parametrize("name", ["laplace", "logistic", "cauchy", "expon", "gumbel_r", "gumbel_l"])
def test_distributions_with_a_location_and_a_scale(name):
    ours, theirs = getattr(stats, name), getattr(scipy_stats, name)
    x = np.array([-1.5, 0.3, 1.0, 2.5], np.float32)
    for of in ("logpdf", "pdf", "cdf", "sf", "logcdf", "logsf"):
        wanted = getattr(theirs, of)(x, 0.2, 1.5)
        assert getattr(ours, of)(x, 0.2, 1.5).array == pytest.approx(wanted, rel=2e-5, abs=1e-6)
    q = np.array([0.1, 0.5, 0.9], np.float32)
    assert ours.ppf(q, 0.2, 1.5).array == pytest.approx(theirs.ppf(q, 0.2, 1.5), rel=1e-5, abs=1e-6)
    assert ours.isf(q).array == pytest.approx(theirs.isf(q), rel=1e-5, abs=1e-6)


def test_probabilities_of_counts():
    k = np.arange(4)
    for ours, theirs in ((stats.geom, scipy_stats.geom), (stats.bernoulli, scipy_stats.bernoulli)):
        assert ours.pmf(k, 0.3).array == pytest.approx(theirs.pmf(k, 0.3), rel=1e-5)
    x = np.array([0.5, 2.0], np.float32)
    assert stats.pareto.pdf(x, 1.5).array == pytest.approx(scipy_stats.pareto.pdf(x, 1.5), rel=1e-5)
