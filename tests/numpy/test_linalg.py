"""Factorizations against NumPy, their gradients against finite differences."""

import numpy as np
import pytest

import weft.numpy as wnp
from tests.numpy.numpy_case import check_gradient, same
from weft import func
from weft.errors import ShapeError
from weft.numpy import linalg

RNG = np.random.default_rng(0)


def matrix(*shape, dtype="float64"):
    x = RNG.normal(size=shape)
    return (x + 1j * RNG.normal(size=shape) if dtype == "complex128" else x).astype(dtype)


def positive(*shape, dtype="float64"):
    x = matrix(*shape, dtype=dtype)
    return x @ np.conj(np.swapaxes(x, -1, -2)) + 2 * np.eye(shape[-1])


DTYPES = ["float64", "complex128"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lead", [(), (2,)])
def test_of_square_matrices(lead, dtype):
    a, b = positive(*lead, 3, 3, dtype=dtype), matrix(*lead, 3, 2, dtype=dtype)
    same(linalg.inv(a), np.linalg.inv(a))
    same(linalg.det(a), np.linalg.det(a))
    same(tuple(linalg.slogdet(a)), tuple(np.linalg.slogdet(a)))
    same(linalg.solve(a, b), np.linalg.solve(a, b))
    same(linalg.cholesky(a), np.linalg.cholesky(a))
    same(linalg.cholesky(a, upper=True), np.conj(np.swapaxes(np.linalg.cholesky(a), -1, -2)))
    same(linalg.eigvalsh(a), np.linalg.eigvalsh(a))
    same(linalg.matrix_power(a, 3), np.linalg.matrix_power(a, 3))
    same(linalg.matrix_power(a, -2), np.linalg.matrix_power(a, -2))
    w, v = linalg.eigh(a)
    same(v * w[..., None, :] @ linalg.matrix_transpose(v.conj()), a)
    w, v = linalg.eig(a)
    same(wnp.asarray(a, dtype="complex128") @ v, v * w[..., None, :])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (3, 3), (2, 4, 3)])
def test_of_any_matrices(shape, dtype):
    a = matrix(*shape, dtype=dtype)
    u, s, vh = linalg.svd(a, full_matrices=False)
    same(u * s[..., None, :] @ vh, a)
    same(s, np.linalg.svd(a, compute_uv=False))
    same(linalg.svdvals(a), np.linalg.svd(a, compute_uv=False))
    q, r = linalg.qr(a)
    same(q @ r, a)
    same(linalg.pinv(a), np.linalg.pinv(a))
    same(linalg.matrix_rank(a), np.linalg.matrix_rank(a))
    for ord in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        same(linalg.matrix_norm(a, ord=ord), np.linalg.norm(a, ord, axis=(-2, -1)))
    for ord in (0, 1, 2, 3, np.inf, -np.inf):
        same(linalg.vector_norm(a, axis=-1, ord=ord), np.linalg.norm(a, ord, axis=-1))
    same(linalg.norm(a), np.linalg.norm(a))
    same(linalg.norm(a, axis=-1, keepdims=True), np.linalg.norm(a, axis=-1, keepdims=True))
    same(linalg.trace(a), np.trace(a, axis1=-2, axis2=-1))
    same(linalg.diagonal(a, offset=1), np.diagonal(a, 1, -2, -1))
    assert [y.shape for y in linalg.svd(a)] == [y.shape for y in np.linalg.svd(a)]
    assert [y.shape for y in linalg.qr(a, mode="complete")] == [
        y.shape for y in np.linalg.qr(a, "complete")
    ]


def hermitian(function):
    """A function of Hermitian matrices, made from any matrix."""

    def run(x):
        both = x + wnp.matrix_transpose(wnp.conj(x))
        return function(both * 0.5)

    return run


def fixed(function):
    """Results that do not depend on the phases of vectors."""

    def run(x):
        w, v = function(x)
        return w, wnp.abs(v)

    return run


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lead", [(), (2,)])
def test_gradients_of_square_matrices(lead, dtype):
    a, b = positive(*lead, 3, 3, dtype=dtype), matrix(*lead, 3, 2, dtype=dtype)
    check_gradient(linalg.inv, a)
    check_gradient(linalg.det, a, tolerance=1e-5)
    check_gradient(lambda x: tuple(linalg.slogdet(x)), a)
    check_gradient(linalg.solve, a, b)
    check_gradient(lambda x: linalg.matrix_power(x, -2), a)
    check_gradient(hermitian(linalg.cholesky), a)
    check_gradient(hermitian(linalg.eigvalsh), a)
    check_gradient(hermitian(lambda x: linalg.eigvalsh(x, "U")), a)
    check_gradient(hermitian(fixed(linalg.eigh)), a)
    check_gradient(fixed(linalg.eig), a)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (3, 3), (2, 4, 3)])
def test_gradients_of_any_matrices(shape, dtype):
    a = matrix(*shape, dtype=dtype)
    check_gradient(linalg.svdvals, a)
    check_gradient(lambda x: tuple(map(wnp.abs, linalg.svd(x, full_matrices=False))), a)
    check_gradient(linalg.pinv, a)
    for ord in ("fro", "nuc", 1, 2, np.inf):
        check_gradient(lambda x, ord=ord: linalg.matrix_norm(x, ord=ord), a)
    if dtype == "float64":
        check_gradient(lambda x: tuple(linalg.qr(x)), a)
        check_gradient(lambda x: linalg.vector_norm(x, axis=-1, ord=3), a)


def test_second_derivatives():
    a, b = positive(3, 3), matrix(3)
    for function in (linalg.inv, linalg.det, hermitian(linalg.cholesky), linalg.pinv):
        check_gradient(
            lambda x, f=function: func.grad(lambda z: wnp.sum(f(z) ** 2))(x), a, tolerance=1e-4
        )
    check_gradient(lambda x: func.grad(lambda z: wnp.sum(linalg.solve(z, b)))(x), a)


def test_a_singular_matrix_has_a_gradient_of_its_determinant():
    a = np.array([[1.0, 2.0], [2.0, 4.0]])
    g = func.grad(linalg.det)(wnp.asarray(a))
    np.testing.assert_allclose(g.numpy(), [[4, -2], [-2, 1]], atol=1e-12)


def test_batches_run_under_vmap():
    a = positive(4, 3, 3)
    found = func.vmap(linalg.inv)(wnp.asarray(a))
    same(found, np.linalg.inv(a))


def test_other_products():
    a, b, c = matrix(2, 3), matrix(3, 4), matrix(4)
    same(linalg.multi_dot([a, b, c]), a @ b @ c)
    same(linalg.cond(positive(3, 3) * 0 + np.diag([1.0, 2, 4])), np.float64(4.0))
    x, y = matrix(3, 2), matrix(3, 2)
    same(linalg.cross(x, y, axis=0), np.cross(x, y, axis=0))
    limits = np.array([1e-3, 2.0])
    same(linalg.pinv(np.stack([a, a]), rtol=limits), np.linalg.pinv(np.stack([a, a]), rtol=limits))


def test_errors_say_what_is_expected():
    with pytest.raises(ShapeError, match=r"inv: expected square matrices, got shape \(2, 3\)"):
        linalg.inv(matrix(2, 3))
    with pytest.raises(ShapeError, match=r"solve: expected right sides of 3 rows, got shape \(2,"):
        linalg.solve(positive(3, 3), matrix(2, 3))
    with pytest.raises(ShapeError, match="matrix_norm: expected fro, nuc, 1, 2, inf or less"):
        linalg.matrix_norm(matrix(2, 3), ord=5)
    with pytest.raises(ShapeError, match=r"trace: expected matrices, got shape \(3,\)"):
        linalg.trace(matrix(3))
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        linalg.inv(np.zeros((2, 2))).tolist()
    with pytest.raises(linalg.LinAlgError, match="Singular matrix"):
        linalg.inv(np.zeros((2, 2))).tolist()
