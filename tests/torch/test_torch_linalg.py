"""Linear algebra against PyTorch: values, dtypes, shapes and gradients."""

import math

import numpy as np
import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st
from strategies import at_most

torch = pytest.importorskip("torch")

import weft as wf  # noqa: E402
from tests.torch.tensor_case import agree, seeds  # noqa: E402
from weft.errors import (  # noqa: E402
    DTypeError,
    GraphError,
    OutOfRangeError,
    ShapeError,
    UserOpError,
)

pytestmark = [
    pytest.mark.usefixtures("interpreted"),
    pytest.mark.filterwarnings("ignore::UserWarning"),  # of names PyTorch calls old
]
few = at_most(2, phases=[Phase.generate])
leads = st.sampled_from([(), (2,), (2, 1), (0,)])
sizes = st.integers(1, 4)


def matrix(seed, *shape):
    """Matrices whose singular values lie between 1 and 2, well apart."""
    *lead, m, n = shape
    rng = np.random.default_rng(seed)
    u, _, vh = np.linalg.svd(rng.normal(size=(*lead, m, n)), full_matrices=False)
    return u * np.linspace(2, 1, min(m, n)) @ vh


def positive(seed, *shape):
    x = matrix(seed, *shape)
    return x @ np.swapaxes(x, -1, -2)


def close(function, *arrays, **options):
    agree(function, *arrays, rtol=1e-6, atol=1e-7, **options)


SQUARE = {
    "inv": lambda m, x: (m.linalg.inv(x), m.inverse(x), x.inverse()),
    "inv_ex": lambda m, x: m.linalg.inv_ex(x).inverse,
    "det": lambda m, x: (m.linalg.det(x), m.det(x), x.det()),
    "slogdet": lambda m, x: (*m.linalg.slogdet(x), *x.slogdet()),
    "logdet": lambda m, x: m.logdet(m.matmul(x, x)) + m.matmul(x, x).logdet(),
    "matrix_exp": lambda m, x: (m.linalg.matrix_exp(x * 3), x.matrix_exp()),
    "matrix_power": lambda m, x: [m.linalg.matrix_power(x, n) for n in (-3, 0, 1, 5)],
    "lu_factor": lambda m, x: m.linalg.lu_factor(x),
    "lu_factor_ex": lambda m, x: m.linalg.lu_factor_ex(x),
    "lu": lambda m, x: (m.linalg.lu(x), m.lu_unpack(*x.lu())),
    "cond": lambda m, x: [m.linalg.cond(x, p) for p in (None, 2, -2)],
    "vander": lambda m, x: m.linalg.vander(x, N=3),
}
SYMMETRIC = {
    "cholesky": lambda m, x: (m.linalg.cholesky(x), m.cholesky(x, upper=True), x.cholesky()),
    "cholesky_ex": lambda m, x: (m.linalg.cholesky_ex(x), m.linalg.cholesky_ex(x, upper=True)),
    "eigvalsh": lambda m, x: (m.linalg.eigvalsh(x), m.linalg.eigvalsh(x, UPLO="U")),
    "eigh": lambda m, x: (m.linalg.eigh(x)[0], m.linalg.eigh(x, "U")[1].abs()),
    "pinv": lambda m, x: m.linalg.pinv(x, hermitian=True),
    "matrix_rank": lambda m, x: m.linalg.matrix_rank(x, hermitian=True),
}
ANY = {
    "svdvals": lambda m, x: m.linalg.svdvals(x),
    "svd": lambda m, x: [y.abs() for y in (*m.linalg.svd(x, full_matrices=False), *m.svd(x))],
    "qr": lambda m, x: [
        y.abs() for y in (*m.linalg.qr(x), *m.qr(x), m.linalg.qr(x.detach(), "r")[1])
    ],
    "pinv": lambda m, x: (m.linalg.pinv(x), m.linalg.pinv(x, rtol=0.6, atol=0.1), x.pinverse()),
    "matrix_rank": lambda m, x: [
        m.linalg.matrix_rank(x, **how) for how in ({}, {"rtol": 0.7}, {"atol": 1.4}, {"tol": 1.4})
    ],
    "lu": lambda m, x: m.linalg.lu(x),
    "diagonal": lambda m, x: m.linalg.diagonal(x, offset=1),
}


@pytest.mark.parametrize("name", SQUARE)
@given(leads, sizes, seeds)
@few
def test_of_square_matrices(name, lead, n, seed):
    close(SQUARE[name], matrix(seed, *lead, n, n))


@given(leads, sizes, st.sampled_from(["fro", "nuc", 1, -1, math.inf]), seeds)
@few
def test_conditions(lead, n, p, seed):
    close(lambda m, x: m.linalg.cond(x, p), matrix(seed, *lead, n, n), grad=False)


@pytest.mark.parametrize("name", SYMMETRIC)
@given(leads, sizes, seeds)
@few
def test_of_symmetric_matrices(name, lead, n, seed):
    close(SYMMETRIC[name], positive(seed, *lead, n, n))


@pytest.mark.parametrize("name", ANY)
@given(leads, sizes, sizes, seeds)
@few
def test_of_any_matrices(name, lead, rows, columns, seed):
    close(ANY[name], matrix(seed, *lead, rows, columns))


@given(leads, sizes, sizes, seeds)
@few
def test_equations(lead, n, k, seed):
    a, b = matrix(seed, *lead, n, n), matrix(seed + 1, *lead, n, k)
    close(lambda m, a, b: m.linalg.solve(a, b), a, b)
    close(lambda m, a, b: m.linalg.solve_ex(a, b), a, b)
    close(lambda m, a, b: m.linalg.solve(a, b.mT, left=False), a, b)
    close(lambda m, a, b: m.linalg.solve(a, b[..., 0]), a, b)
    close(lambda m, a, b: m.linalg.lu_solve(*m.linalg.lu_factor(a), b), a, b)
    close(lambda m, a, b: m.linalg.lu_solve(*m.linalg.lu_factor(a), b, adjoint=True), a, b)
    close(lambda m, a, b: m.linalg.lu_solve(*m.lu(a), b.mT, left=False), a, b)
    close(lambda m, a, b: b.lu_solve(*a.lu()), a, b)
    square = positive(seed, *lead, n, n)
    close(lambda m, a, b: m.cholesky_solve(b, m.linalg.cholesky(a)), square, b)
    close(lambda m, a: m.cholesky_inverse(m.cholesky(a, upper=True), upper=True), square)


@given(leads, sizes, sizes, st.booleans(), st.booleans(), seeds)
@few
def test_triangles(lead, n, k, upper, unit, seed):
    a, b = matrix(seed, *lead, n, n) + np.eye(n) * 2, matrix(seed + 1, *lead, n, k)
    how = {"upper": upper, "unitriangular": unit}
    close(lambda m, a, b: m.linalg.solve_triangular(a, b, **how), a, b)
    close(lambda m, a, b: m.linalg.solve_triangular(a, b.mT, left=False, **how), a, b)
    close(lambda m, a, b: b.triangular_solve(a, transpose=True, **how), a, b)


@given(st.sampled_from([(), (2,)]), sizes, sizes, sizes, seeds)
@few
def test_least_squares(lead, rows, columns, k, seed):
    a, b = matrix(seed, *lead, rows, columns), matrix(seed + 1, *lead, rows, k)
    close(lambda m, a, b: m.linalg.lstsq(a, b).solution, a, b)
    for driver in ("gelsy", "gelsd", "gelss"):
        close(lambda m, a, b, d=driver: m.linalg.lstsq(a, b, driver=d), a, b, grad=False)


@pytest.mark.parametrize("driver", ["gels", "gelsd", "gelss"])
def test_what_least_squares_leave(driver):
    """Distances of complex numbers are real, and limits are each driver's own."""
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=(4, 2)) + 1j * rng.normal(size=(4, 2)) for _ in range(2))
    for rcond in (None, -1, *(() if driver == "gelss" else (1.0,)), 0.01):
        for parts in ((a, b), (a.real, b.real)):
            close(
                lambda m, a, b, r=rcond: m.linalg.lstsq(a, b, rcond=r, driver=driver)[:2],
                *parts, grad=False,
            )  # fmt: skip


@given(leads, sizes, sizes, st.booleans(), seeds)
@few
def test_norms(lead, rows, columns, keep, seed):
    a = matrix(seed, *lead, rows, columns)
    for ord in ("fro", "nuc", 2, -2, 1, -1, math.inf, -math.inf):
        close(lambda m, x, o=ord: m.linalg.matrix_norm(x, o, keepdim=keep), a)
    for ord in (2, 1, 0, 0.5, 3, -1, math.inf, -math.inf):
        close(lambda m, x, o=ord: m.linalg.vector_norm(x, o, dim=-1, keepdim=keep), a)
        close(lambda m, x, o=ord: m.linalg.norm(x, o, dim=-1, keepdim=keep), a)
    close(lambda m, x: m.linalg.norm(x, "nuc", dim=(-1, -2), keepdim=keep), a)
    close(lambda m, x: (m.linalg.norm(x), m.linalg.norm(x, dim=-1), m.dist(x, x * 2, 3)), a)
    close(lambda m, x: m.linalg.norm(x, dtype=m.float64), a.astype("float32"))
    square = matrix(seed, rows, columns)
    close(lambda m, x: (x.norm("nuc"), m.norm(x, 3, dim=0), m.nuclear_norm(x)), square)
    close(lambda m, x: m.renorm(x, 2, 0, 1.3), square)
    close(lambda m, x: m.linalg.vector_norm(x, 0.5), np.array([0.0, 2.0, 0.0]))


@given(sizes, sizes, sizes, sizes, seeds)
@few
def test_products(i, j, k, n, seed):
    a, b, c = matrix(seed, i, j), matrix(seed, j, k), matrix(seed, k, n)
    close(lambda m, a, b, c: m.linalg.multi_dot((a, b, c)), a, b, c)
    close(lambda m, a, b, c: m.linalg.multi_dot((a[0], b, c[:, 0])), a, b, c)
    close(lambda m, a, b: m.linalg.vecdot(a, b[:, :1].mT), a, b)
    x, y = matrix(seed, n, 3), matrix(seed + 1, 1, 3)
    close(lambda m, x, y: m.linalg.cross(x, y), x, y)
    whole = matrix(seed, 6, 6).reshape(2, 3, 3, 2)
    close(lambda m, x: m.linalg.tensorinv(x), whole)
    close(lambda m, x, y: m.linalg.tensorsolve(x, y), whole, matrix(seed, 2, 3))
    turned = matrix(seed, 6, 6).reshape(2, 6, 3)
    close(lambda m, x, y: m.linalg.tensorsolve(x, y, dims=(0,)), turned, matrix(seed, 1, 6)[0])


@given(leads, sizes, sizes, seeds)
@few
def test_reflections(lead, m, n, seed):
    a = matrix(seed, *lead, m, n)

    def again(w, x):
        reflections, scale = w.geqrf(x)
        k = min(m, n)
        return w.linalg.householder_product(reflections[..., :k], scale)

    close(again, a, grad=False)
    found, scale = torch.geqrf(torch.tensor(a))
    k = min(m, n)
    given = found[..., :k].numpy(), scale.numpy()
    close(lambda w, x, t: w.orgqr(x, t), *given)


@given(leads, st.integers(1, 6), st.booleans(), st.booleans(), seeds)
@at_most(12, phases=[Phase.generate])
def test_symmetric_factors(lead, n, wide, hermitian, seed):
    a = np.random.default_rng(seed).normal(size=(*lead, n, n))
    a = a + 1j * matrix(seed + 1, *lead, n, n) if wide else a
    b = matrix(seed + 2, *lead, n, 2).astype(a.dtype)
    turned = np.swapaxes(a, -1, -2)
    whole = a + (turned.conj() if hermitian else turned)

    def factors(m, a):
        found = m.linalg.ldl_factor_ex(a, hermitian=hermitian)
        return found.LD.tril(), found.pivots, found.info

    def solved(m, a, b):
        found = m.linalg.ldl_factor(a, hermitian=hermitian)
        return m.linalg.ldl_solve(found.LD, found.pivots, b, hermitian=hermitian)

    close(factors, whole, grad=False)
    close(solved, whole, b, grad=False)
    right = wf.tensor(b, requires_grad=True)
    weights = wf.tensor(matrix(seed, *lead, n, 2))
    (solved(wf, wf.tensor(whole), right) * weights).sum().abs().backward()
    other = torch.tensor(b, requires_grad=True)
    solution = torch.linalg.solve(torch.tensor(whole), other)
    (solution * torch.tensor(weights.numpy())).sum().abs().backward()
    np.testing.assert_allclose(right.grad.numpy(), other.grad.numpy(), rtol=1e-5, atol=1e-7)


def test_symmetric_factors_broadcast():
    a, b = wf.tensor(positive(0, 3, 3)), wf.tensor(matrix(1, 4, 3, 2))
    found = wf.linalg.ldl_solve(*wf.linalg.ldl_factor(a), b)
    np.testing.assert_allclose((a @ found).numpy(), b.numpy())


@given(leads, st.integers(1, 4), st.integers(1, 4), st.booleans(), st.booleans(), seeds)
@at_most(8, phases=[Phase.generate])
def test_products_with_reflections(lead, m, n, left, transpose, seed):
    values = matrix(seed, *lead, m, n) + 1j * matrix(seed + 1, *lead, m, n)
    other = matrix(seed, *lead, m, 3) if left else matrix(seed, *lead, 3, m)
    a, tau = (x.numpy() for x in torch.geqrf(torch.tensor(values)))
    how = {"left": left, "transpose": transpose}
    close(lambda w, *xs: w.ormqr(*xs, **how), a, tau, other.astype(a.dtype), grad=False)
    real = [x.numpy() for x in torch.geqrf(torch.tensor(values.real))]
    close(lambda w, a, t, c: w.ormqr(a, t, c, **how), *real, other)


@pytest.mark.parametrize("shape", [(7, 4), (4, 7), (2, 5, 5)])
def test_few_of_the_singular_values(shape):
    *lead, m, n = shape
    a = wf.tensor(matrix(0, *lead, m, 2) @ matrix(1, *lead, 2, n))
    for count in (2, 4):
        u, s, v = wf.svd_lowrank(a, count)
        assert u.shape == (*lead, m, count) and v.shape == (*lead, n, count)
        np.testing.assert_allclose((u * s.unsqueeze(-2) @ v.mT).numpy(), a.numpy(), atol=1e-9)
        np.testing.assert_allclose(s[..., :2].numpy(), wf.linalg.svdvals(a)[..., :2].numpy())
    u, s, v = wf.pca_lowrank(a)
    centered = a - a.mean(-2, keepdim=True)
    np.testing.assert_allclose((u * s.unsqueeze(-2) @ v.mT).numpy(), centered.numpy(), atol=1e-9)
    less = wf.svd_lowrank(a, 3, M=a / 2).S
    np.testing.assert_allclose(less[..., 0].numpy(), wf.linalg.svdvals(a)[..., 0].numpy() / 2)


def test_eigenvalues_of_any_matrix_are_complex():
    a = matrix(0, 3, 3)
    w, v = wf.linalg.eig(wf.tensor(a))
    assert w.dtype.name == "complex128" and wf.linalg.eigvals(wf.tensor(a)).shape == (3,)
    np.testing.assert_allclose(a @ v.numpy(), v.numpy() * w.numpy(), atol=1e-9)


def test_what_does_not_exist_is_said():
    singular = wf.tensor([[[1.0, 2.0], [2.0, 4.0]], [[1.0, 0.0], [0.0, 1.0]]])
    found = wf.linalg.inv_ex(singular)
    assert found.info.tolist() == [2, 0] and found.inverse[0].isinf().all()
    assert wf.linalg.cond(singular, 1)[0].item() == math.inf
    assert wf.linalg.solve_ex(singular, singular).info.tolist() == [2, 0]
    assert wf.linalg.cholesky_ex(singular * -1).info.tolist() == [1, 1]
    with pytest.raises(UserOpError, match=r"^inv: Singular matrix, .* pinv\(\) takes any, inv_ex"):
        print(wf.linalg.inv(singular))
    with pytest.raises(UserOpError, match=r"^solve: Singular matrix: .* lstsq\(\) takes any"):
        print(wf.linalg.solve(singular, singular))
    with pytest.raises(wf.linalg.LinAlgError, match="not positive definite"):
        wf.linalg.cholesky_ex(singular * -1, check_errors=True)[0].numpy()


ERRORS = [
    (lambda: wf.linalg.inv(wf.ones(2, 3)), ShapeError, r"inv: expected square matrices"),
    (lambda: wf.linalg.det(wf.arange(4).reshape(2, 2)), DTypeError, "det: expected floating"),
    (lambda: wf.ones(2, 2).half().inverse(), DTypeError, "inv: expected float32 or float64"),
    (lambda: wf.linalg.solve(wf.eye(3), wf.ones(2, 2)), ShapeError, "right sides of 3 rows"),
    (lambda: wf.linalg.eigh(wf.eye(2), "X"), DTypeError, "expected UPLO of 'L' or 'U', got 'X'"),
    (lambda: wf.linalg.qr(wf.eye(2), "all"), DTypeError, "qr: expected mode of 'reduced'"),
    (lambda: wf.ones(2).topk(1, True), DTypeError, "topk: expected integers k, dim, got 1"),
    (lambda: wf.nansum(wf.ones(2) * 1j), DTypeError, "nansum: expected real numbers, got complex"),
    (lambda: wf.linalg.lstsq(wf.eye(2), wf.eye(2).double()), DTypeError, "float32 and float64"),
    (lambda: wf.linalg.lstsq(wf.eye(2), wf.eye(2), driver="x"), DTypeError, "gelsy, gels, gelsd"),
    (lambda: wf.linalg.lu_factor(wf.eye(2), pivot=False), DTypeError, "expected pivot=True"),
    (lambda: wf.linalg.matrix_norm(wf.eye(2), 3), DTypeError, "expected ord of fro, nuc, 2"),
    (
        lambda: wf.linalg.matrix_norm(wf.eye(2), 1, (0, 0)),
        ShapeError,
        "expected two different dims",
    ),
    (lambda: wf.linalg.norm(wf.ones(1, 1, 1), 2), ShapeError, "expected dim beside ord"),
    (lambda: wf.linalg.vector_norm(wf.ones(2), "fro"), DTypeError, "expected a number, got 'fro'"),
    (lambda: wf.norm(wf.ones(2), "x"), DTypeError, "a number, 'fro' or 'nuc', got 'x'"),
    (lambda: wf.linalg.multi_dot([wf.eye(2)]), ShapeError, "expected two or more matrices"),
    (lambda: wf.linalg.tensorinv(wf.ones(2, 3)), ShapeError, "tensorinv: expected as many"),
    (lambda: wf.linalg.tensorsolve(wf.ones(2, 3), wf.ones(2)), ShapeError, "3 right sides"),
    (lambda: wf.orgqr(wf.ones(2, 3), wf.ones(2)), ShapeError, "rows >= columns >= scales"),
    (lambda: wf.renorm(wf.ones(2, 2), 0, 0, 1), DTypeError, "expected p above 0"),
    (lambda: wf.svd_lowrank(wf.ones(2, 3), 3), ShapeError, "expected q from 0 to 2 and niter"),
    (lambda: wf.ormqr(wf.eye(3), wf.ones(3), wf.ones(2, 3)), ShapeError, "matrices of m rows"),
    (lambda: wf.linalg.multi_dot([wf.eye(2), wf.eye(2).double()]), DTypeError, "one dtype"),
    (
        lambda: wf.linalg.multi_dot([wf.eye(2)] * 2, out=wf.empty(0, dtype=wf.float64)),
        DTypeError,
        "multi_dot: out: expected a tensor of float32, got float64",
    ),
    (lambda: wf.linalg.pinv(wf.eye(2), rcond=wf.tensor(1j)), DTypeError, "expected real numbers"),
    (lambda: wf.linalg.cross(wf.ones(3), wf.ones(2, 3)), ShapeError, "tensors of one rank"),
    (lambda: wf.linalg.cross(wf.ones(3), wf.ones(3), dim=1), OutOfRangeError, "-1 <= dim < 1"),
    (lambda: wf.vdot(wf.ones(1), wf.ones(3)), ShapeError, "vdot: expected vectors of one length"),
    (lambda: wf.outer(wf.ones(2, 2), wf.ones(3)), ShapeError, "outer: expected tensors of ranks 1"),
    (lambda: wf.tensordot(wf.eye(2), wf.eye(2), -1), ShapeError, "expected 0 to 2 axes"),
    (lambda: wf.einsum(". ..", wf.ones(2)), GraphError, "the points of an ellipsis side by side"),
    (lambda: wf.einsum("aa", wf.ones(2, 3)), ShapeError, "'a', which an operand has twice, got 2"),
    (lambda: wf.einsum(wf.ones(2), [52]), GraphError, "axes numbered from 0 to 51, got 52"),
    (
        lambda: wf.addr(wf.eye(2).int(), wf.ones(2).int(), wf.ones(2).int(), beta=2.0),
        DTypeError,
        "addr: beta: expected a number like elements of int32, got 2.0",
    ),
    (
        lambda: wf.addr(wf.eye(2), wf.ones(2), wf.ones(2), alpha=True),
        DTypeError,
        "addr: alpha: expected a number like elements of float32, got True",
    ),
    (lambda: wf.linalg.vector_norm(wf.ones(0), -1), ShapeError, "no elements have no -1-norm"),
    (lambda: wf.norm(wf.ones(2, 0), math.inf, 1), ShapeError, "no elements have no inf-norm"),
    (lambda: wf.linalg.norm(wf.ones(1, 1, 1), None, (0, 1, 2)), ShapeError, "one or two dims"),
    (lambda: wf.lu_unpack(wf.eye(2), wf.tensor([1, 2])), DTypeError, "expected pivots of int32"),
    (
        lambda: wf.linalg.lu_solve(wf.eye(2), wf.tensor([1, 3]).int(), wf.eye(2)).tolist(),
        UserOpError,
        "pivots: .* expected pivots from 1 to 2, as lu_factor gives",
    ),
    (lambda: wf.renorm(wf.ones(2), 2, 0, 1), ShapeError, "renorm: expected rank 2 or more"),
]


@pytest.mark.parametrize(("run", "kind", "text"), ERRORS)
def test_errors_say_what_is_expected(run, kind, text):
    with pytest.raises(kind, match=text):
        run()


def test_no_gradient_of_a_square_orthogonal_factor_of_tall_matrices():
    a = wf.tensor(matrix(0, 5, 3), requires_grad=True)
    wf.linalg.qr(a, mode="complete").R.sum().backward()
    with pytest.raises(GraphError, match=r"qr: no gradient of mode 'complete'.* got 5 rows and 3"):
        print(a.grad)


def test_factors_of_singular_matrices_that_are_not_square():
    for a in (np.ones((2, 3)), np.ones((4, 2)), np.zeros((2, 2, 3))):
        close(lambda m, x: m.linalg.lu_factor_ex(x)[:2], a, grad=False)


PHASES = {
    "svd": lambda a: wf.linalg.svd(a, full_matrices=False)[0],
    "eig": lambda a: wf.linalg.eig(a)[1],
    "eigh": lambda a: wf.linalg.eigh(a + a.mH)[1],
}


@pytest.mark.parametrize("name", PHASES)
def test_no_gradient_where_phases_of_vectors_matter(name):
    values = matrix(0, 3, 3) + 1j * matrix(1, 3, 3)
    a = wf.tensor(values, requires_grad=True)
    PHASES[name](a).sum().abs().backward()
    with pytest.raises(UserOpError, match=f"^{name}: .* depends on the phases of vectors"):
        print(a.grad)
    a = wf.tensor(values, requires_grad=True)
    PHASES[name](a).abs().sum().backward()
    assert a.grad.abs().sum() > 0


def test_gradients_where_there_may_be_none():
    def solved(m, a, b):
        return m.linalg.solve_ex(a, b).result

    close(solved, matrix(0, 2, 3, 3), matrix(1, 2, 3, 1))
    close(lambda m, a: m.linalg.cholesky_ex(a @ a.mT).L, matrix(0, 2, 3, 3))


def test_matrices_without_elements():
    for p in (None, "fro", 1):
        close(lambda m, x, p=p: m.linalg.cond(x, p), np.zeros((2, 0, 0)), grad=False)
    close(lambda m, x: m.linalg.vector_norm(x, -1, dim=1), np.zeros((0, 2)), grad=False)


def test_norms_of_complex_numbers_into_what_is_there():
    x, out = wf.tensor([3 + 4j]), wf.empty(0)
    assert wf.linalg.norm(x, out=out) is out and out.item() == 5
    assert wf.linalg.vector_norm(x, dtype=wf.complex128).dtype is wf.float64


def test_eigenvalues_into_wider_numbers():
    out = wf.empty(0, dtype=wf.complex128), wf.empty(0, dtype=wf.complex128)
    assert wf.linalg.eig(wf.eye(2), out=out)[0].tolist() == [1, 1]


def test_names_of_numpy():
    x = wf.ones(2, 3)
    assert wf.linalg.norm(x, 2, axis=0).shape == (3,)
    assert wf.linalg.vector_norm(x, axis=1, keepdims=True).shape == (2, 1)


def test_products_of_small_integers():
    x, w = np.int8([[100, 3]]), np.int8([[2, 1], [-1, 5]])
    agree(lambda m, x, w: m.nn.functional.linear(x, w, w[0]), x, w, grad=False)


def test_results_of_no_elements_into_views():
    x = wf.ones(2, 3)
    out = x.T
    wf.mm(wf.ones(0, 2), wf.ones(2, 4), out=out)
    assert out.shape == (0, 4) and out.tolist() == [] and x.sum().item() == 6
    assert x[0, 0].resize_(3, 0).shape == (3, 0)


@pytest.mark.parametrize("dtype", ["float64", "uint8", "int16", "bool"])
@pytest.mark.parametrize("beta", [0, 1, 2])
def test_products_of_vectors_keep_the_element_type(dtype, beta):
    x, a, b = np.eye(2, 3), np.array([1, 0]), np.array([0, 1, 1])
    agree(lambda m, *xs: m.addr(*xs, beta=beta), *[v.astype(dtype) for v in (x, a, b)], grad=False)
