"""Names of `jax.scipy`, `jax.image` and `jax.numpy.linalg`, beside SciPy and NumPy."""

import numpy as np
import pytest
import scipy.linalg
import scipy.ndimage
import scipy.special
import scipy.stats

import weft.jax as jax
import weft.jax.numpy as jnp
from weft.jax.experimental.sparse import BCOO
from weft.jax.scipy import linalg, special, stats
from weft.jax.scipy.ndimage import map_coordinates
from weft.jax.scipy.sparse.linalg import bicgstab, cg

R = np.random.default_rng(0)
X, Y = R.random((2, 5)) + 0.3
A, B = R.normal(size=(4, 4)), R.normal(size=(6, 4))
S = A @ A.T + np.eye(4)


@pytest.fixture(autouse=True)
def wide():
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize(
    ("name", "xs"),
    [
        ("factorial", (X * 3,)), ("comb", (X + 4, Y)),
        ("poch", (X, Y)), ("rel_entr", (X, Y)), ("kl_div", (X, Y)), ("boxcox", (X, Y)),
        ("boxcox1p", (X, 0 * Y)), ("expi", (X,)), ("exp1", (X,)), ("dawsn", (X,)), ("spence", (X,)),
        ("expn", (np.arange(1.0, 6), X)), ("hyp1f1", (X, Y, X)), ("hyp2f1", (X, Y, Y + 1, X / 4)),
        ("owens_t", (X, Y)),
    ],
)  # fmt: skip
def test_special_functions_and_their_slopes(name, xs):
    ours, theirs = getattr(special, name), getattr(scipy.special, name)
    np.testing.assert_allclose(ours(*xs), theirs(*xs), rtol=1e-10)
    step = 1e-6
    found = jax.grad(lambda x: ours(*xs[:-1], x).sum())(jnp.asarray(xs[-1]))
    expected = (theirs(*xs[:-1], xs[-1] + step) - theirs(*xs[:-1], xs[-1] - step)) / (2 * step)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


def test_linear_algebra():
    for name, args in {
        "sqrtm": (S,), "polar": (A,), "circulant": (X,), "hadamard": (4,), "pascal": (4,),
        "helmert": (3,), "hilbert": (3,), "hessenberg": (A,),
    }.items():  # fmt: skip
        found, expected = getattr(linalg, name)(*args), getattr(scipy.linalg, name)(*args)
        for x, y in zip(
            *[v if isinstance(v, tuple) else (v,) for v in (found, expected)], strict=True
        ):
            np.testing.assert_allclose(x, y, atol=1e-10)
    values = linalg.eigh_tridiagonal(X, Y[:4], eigvals_only=True)
    np.testing.assert_allclose(values, scipy.linalg.eigvalsh_tridiagonal(X, Y[:4]), rtol=1e-10)
    found, expected = jnp.linalg.lstsq(B, np.ones(6)), np.linalg.lstsq(B, np.ones(6), rcond=None)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(jnp.ravel(x), np.ravel(y), rtol=1e-9)
    np.testing.assert_allclose(jnp.abs(jnp.linalg.qr(B, "r")), np.abs(np.linalg.qr(B, "r")))
    whole = np.eye(6).reshape(2, 3, 6) + 0.1
    np.testing.assert_allclose(
        jnp.linalg.tensorsolve(whole, np.ones((2, 3))),
        np.linalg.tensorsolve(whole, np.ones((2, 3))),
    )


def test_iterative_solvers_and_their_gradients():
    found = cg(lambda v: {"x": S @ v["x"]}, {"x": X[:4]}, tol=1e-12)[0]
    np.testing.assert_allclose(found["x"], np.linalg.solve(S, X[:4]), rtol=1e-8)
    whole = S + A / 2
    value, slope = jax.value_and_grad(lambda b: bicgstab(whole, b, tol=1e-12)[0].sum())(X[:4])
    np.testing.assert_allclose(value, np.linalg.solve(whole, X[:4]).sum(), rtol=1e-8)
    np.testing.assert_allclose(slope, np.linalg.solve(whole.T, np.ones(4)), rtol=1e-6)


@pytest.mark.parametrize("mode", ["constant", "mirror"])
def test_coordinates_between_elements(mode):
    x, places = R.random((5, 7)), [R.random(30) * 4, R.random(30) * 6]
    for order in (0, 1):
        found = map_coordinates(x, places, order, mode)
        wanted = scipy.ndimage.map_coordinates(x, places, order=order, mode=mode)
        np.testing.assert_allclose(found, wanted, rtol=1e-10)


def test_resized_images():
    x = np.arange(12.0).reshape(2, 6)
    half = jax.image.resize(x, (2, 3), "linear", antialias=False)
    np.testing.assert_allclose(half, (x[:, ::2] + x[:, 1::2]) / 2)
    np.testing.assert_array_equal(jax.image.resize(x, (4, 6), "nearest"), np.repeat(x, 2, 0))
    for method in ("linear", "cubic", "lanczos3", "lanczos5"):
        wide = jax.image.resize(np.ones((3, 4)), (5, 3), method)
        np.testing.assert_allclose(wide, np.ones((5, 3)), rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "shapes"), [("beta", (2.0, 3.0)), ("gamma", (2.5,)), ("chi2", (3.0,))]
)
def test_densities_outside_their_support_and_at_a_place(name, shapes):
    x = np.float32([-1.0, 0.25, 0.5, 1.75, 3.0, 9.0])
    for place in ((), (1.0, 2.0)):
        for of in ("logpdf", "pdf", "cdf"):
            found = getattr(getattr(stats, name), of)(x, *shapes, *place)
            wanted = getattr(getattr(scipy.stats, name), of)(x, *shapes, *place)
            np.testing.assert_allclose(found, wanted, 2e-5, 1e-6)
    slope = jax.grad(lambda x: getattr(stats, name).logpdf(x, *shapes).sum())(jnp.asarray(x))
    assert np.isfinite(slope.array).all() and slope[0] == 0
    mass = stats.poisson.logpmf(np.float32([-1.0, 1.5, 2.0]), 2.0)
    np.testing.assert_allclose(mass, scipy.stats.poisson.logpmf([-1.0, 1.5, 2.0], 2.0), 1e-5)


def test_sparse_arrays_multiply_solve_and_have_gradients():
    dense = jnp.array([[2.0, 1.0, 0.0], [1.0, 3.0, 0.0], [0.0, 0.0, 4.0]])
    x = jnp.arange(1.0, 4.0)
    for held in (BCOO.fromdense(dense), jax.jit(lambda m: BCOO.fromdense(m, nse=7))(dense)):
        np.testing.assert_array_equal(held.todense(), dense)
        np.testing.assert_array_equal(jax.jit(lambda m, x: m @ x)(held, x), dense @ x)
        np.testing.assert_array_equal(x @ (2 * held.T), 2 * x @ dense.T)
        np.testing.assert_allclose(cg(held, x)[0], np.linalg.solve(dense, x), 1e-5)
        slope = jax.grad(lambda x, m=held: ((m @ x) ** 2).sum())(x)
        np.testing.assert_allclose(slope, 2 * dense.T @ (dense @ x))
    twice = BCOO((jnp.array([1.0, 2.0]), jnp.array([[0, 1], [0, 1]])), shape=(1, 2))
    assert twice.todense().tolist() == [[0, 3]] and twice.nse == 2
    slope = jax.grad(lambda d: (BCOO((d, twice.indices), shape=(1, 2)) @ x[:2]).sum())(twice.data)
    assert slope.tolist() == [2, 2]
