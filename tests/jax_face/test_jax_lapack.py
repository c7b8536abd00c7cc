"""What LAPACK cannot compute is NaN under JAX's names, as in JAX, and an error under others."""

import numpy as np
import pytest

import weft.jax as jax
import weft.jax.numpy as jnp
import weft.jax.scipy.linalg as scipy_linalg
from weft import numpy as wnp

INDEFINITE = jnp.array([[1.0, 2.0], [2.0, 1.0]])
BOTH = jnp.stack([INDEFINITE, jnp.eye(2) * 4])
SINGULAR = jnp.array([[1.0, 2.0], [2.0, 4.0]])
NAN = [[np.nan, 0], [np.nan, np.nan]]


@pytest.mark.parametrize("cholesky", [jnp.linalg.cholesky, jax.jit(jnp.linalg.cholesky),
                                      jax.vmap(jnp.linalg.cholesky)])  # fmt: skip
def test_only_the_matrix_that_fails_is_nan(cholesky: object) -> None:
    assert callable(cholesky)
    np.testing.assert_array_equal(cholesky(BOTH), [NAN, [[2, 0], [0, 2]]])


def test_gradient_of_the_matrix_that_does_not_fail() -> None:
    g = jax.grad(lambda a: jnp.nansum(jnp.linalg.cholesky(a)))(BOTH)
    np.testing.assert_allclose(g, [np.full((2, 2), np.nan), np.full((2, 2), 0.25)])


def test_singular_systems_divide_by_zero() -> None:
    lower = jnp.array([[0.0, 0.0], [1.0, 2.0]])
    b = jnp.array([1.0, 2.0])
    assert scipy_linalg.solve_triangular(lower, b, lower=True).tolist() == [np.inf, -np.inf]
    assert jnp.linalg.inv(SINGULAR).tolist() == [[-np.inf, np.inf], [np.inf, -np.inf]]
    assert np.isnan(scipy_linalg.solve(INDEFINITE, b, assume_a="pos")).all()


@pytest.mark.parametrize("name", ["svd", "svdvals", "pinv", "eig", "eigvals", "cond"])
def test_factors_of_nan_are_nan(name: str) -> None:
    found = getattr(jnp.linalg, name)(INDEFINITE.at[0, 0].set(jnp.nan))
    assert all([np.isnan(x).all() for x in jax.tree.leaves(found)])


def test_numpy_names_raise() -> None:
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        _ = wnp.linalg.cholesky(wnp.asarray(INDEFINITE.array)).array
