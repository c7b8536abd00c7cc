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


NAN, INF = np.nan, np.inf
ROWS = np.array([[NAN, -INF], [NAN, NAN], [1.0, NAN]], np.float32)
POLYNOMIAL = np.array([1, 2, 3], np.int32)
CUBE = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
AS_JAX = {  # as JAX 0.10 gives them
    "of nothing but NaN": (lambda: jnp.nanargmax(ROWS, axis=1), np.int32([0, -1, 0])),
    "smallest": (lambda: jnp.nanargmin(ROWS, 1, keepdims=True), np.int32([[1], [-1], [0]])),
    "close integers": (lambda: jnp.nanargmin(np.int32([16777217, 16777216])), np.int32(1)),
    "small integers": (lambda: jnp.cumsum(np.int8([100, 100])), np.int8([100, -56])),
    "their method": (lambda: jnp.array([100, 100], np.int8).cumprod(), np.int8([100, 16])),
    "conditions": (lambda: jnp.nancumsum(np.array([True, True])), np.int32([1, 2])),
    "without NaN": (lambda: jnp.nancumprod(ROWS, axis=1), np.float32([[1, -INF], [1, 1], [1, 1]])),
    "wider": (
        lambda: jnp.nancumsum(np.float16([4e4, 4e4]), dtype=np.float32), np.float32([4e4, 8e4]),
    ),
    "percentile": (lambda: jnp.nanpercentile(np.float32([1, NAN, 3]), 50), np.float32(2)),
    "union": (
        lambda: jnp.union1d(np.int32([3, 1, 2]), np.int32([2, 5]), size=6, fill_value=9),
        np.int32([1, 2, 3, 5, 9, 9]),
    ),
    "vecmat": (
        lambda: jnp.vecmat(np.complex64([1 + 1j, 2]), np.complex64([[1, 2], [3, 4j]])),
        np.complex64([7 - 1j, 2 + 6j]),
    ),
    "along": (lambda: jnp.apply_along_axis(lambda v: v[:1] + 1, -2, CUBE), CUBE[:, :1] + 1),
    "along, of two axes": (
        lambda: jnp.apply_along_axis(lambda v: jnp.outer(v, v), 1, CUBE[0]),
        np.einsum("ij,ik->ijk", CUBE[0], CUBE[0]),
    ),
    "over": (
        lambda: jnp.apply_over_axes(jnp.sum, CUBE, [0, 2]), CUBE.sum((0, 2), keepdims=True),
    ),
    "triangle": (lambda: jnp.triu_indices_from(CUBE[0], 1)[1], np.int32([1, 2, 3, 2, 3, 3])),
    "sum": (lambda: jnp.polyadd(POLYNOMIAL, np.int32([1])), np.int32([1, 2, 4])),
    "difference": (lambda: jnp.polysub(POLYNOMIAL, 1.5), np.float32([1, 2, 1.5])),
    "derivative": (lambda: jnp.polyder(POLYNOMIAL), np.float32([2, 2])),
    "integral": (
        lambda: jnp.polyint(POLYNOMIAL, 2, np.int32([1, 2])),
        np.float32([1 / 12, 1 / 3, 1.5, 1, 2]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", AS_JAX)
def test_values_and_types_are_jaxs(name):
    call, wanted = AS_JAX[name]
    found = call()
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-6)


def test_what_is_known_of_arrays_and_traces():
    x = jnp.ones((2, 3))
    assert (x.aval.shape, x.is_fully_addressable, x.is_deleted()) == ((2, 3), True, False)
    assert x.addressable_data(0) is x and x.unsafe_buffer_pointer() != 0
    assert jax.config.x64_enabled is False
    traced = jax.make_jaxpr(lambda a, b: a * b + 1)(1.0, jnp.ones(2))
    assert traced.jaxpr is traced and traced.eqns
    assert [t.shape for t in traced.in_avals] == [(), (2,)]  # not the 1, which is in the graph
    assert [t.shape for t in traced.out_avals] == [(2,)]
    calls = []
    twice = jax.jit(lambda a: calls.append(a) or a * 2)
    twice(1.0), twice(2.0)
    twice.clear_cache()
    assert twice(3.0).item() == 6.0 and len(calls) == 2
