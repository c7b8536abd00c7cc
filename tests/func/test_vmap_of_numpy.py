"""NumPy and LAPACK functions under `vmap`: all examples in one call equal a loop."""

import numpy as np
import pytest

import weft as wf
from weft import func
from weft.ops.boundary.host import Host

rng = np.random.default_rng(0)
A = wf.tensor(rng.normal(size=(5, 2, 3, 3)))
P = A @ A.mT + wf.eye(3, dtype=wf.float64)
B = wf.tensor(rng.normal(size=(2, 3, 1)))
L = wf.linalg

FUNCTIONS = {
    "inv": (L.inv, A), "det": (L.det, A), "slogdet": (L.slogdet, A), "pinv": (L.pinv, A),
    "exp": (L.matrix_exp, A), "lu": (L.lu_factor, A),
    "tall": (lambda a: L.lu_factor(a[..., :2]), A),
    "qr": (L.qr, A), "svd": (L.svd, A), "svdvals": (L.svdvals, A), "eigh": (L.eigh, P),
    "eigvalsh": (L.eigvalsh, P), "cholesky": (L.cholesky, P), "cholesky_ex": (L.cholesky_ex, P),
    "solve": (lambda a: L.solve(a, B), A), "solve_ex": (lambda a: L.solve_ex(a, B), A),
    "right": (lambda b: L.solve(A[0], b), wf.tensor(rng.normal(size=(5, 3, 1)))),
    "fft": (lambda a: wf.fft.fft(a, dim=0).abs(), A),
    "rfftn": (lambda a: wf.fft.rfftn(a, (5, 3), (0, 2)).abs(), A),
    "irfft": (lambda a: wf.fft.irfft(a, 6, 1), A),
    "lstsq": (lambda a: L.lstsq(a[..., :2], B)[0], A),
    "isin": (lambda a: wf.isin(a, a[0, 0]), A),
    "gcd": (lambda a: wf.gcd((a * 10).long(), wf.tensor(6)), A),
}  # fmt: skip
SLOPES = {
    "inv": L.inv, "det": L.det, "pinv": lambda a: L.pinv(a[..., :2]),
    "solve": lambda a: L.solve(a, B), "tall": lambda a: L.lu_factor(a[..., :2])[0],
    "wide": lambda a: L.lu_factor(a[:, :2])[0], "svdvals": lambda a: L.svdvals(a)[..., 0],
    "solve_ex": lambda a: L.solve_ex(a, B)[0], "rfft": lambda a: wf.fft.rfft(a, 5).abs(),
    "cholesky_ex": lambda a: L.cholesky_ex(a @ a.mT + wf.eye(3, dtype=wf.float64))[0],
}  # fmt: skip


def parts(y):
    return [z.numpy() for z in (y if isinstance(y, tuple) else (y,))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_vmap_equals_a_loop(name):
    function, x = FUNCTIONS[name]
    each = zip(*[parts(function(part)) for part in x], strict=True)
    for found, wanted in zip(parts(func.vmap(function)(x)), each, strict=True):
        np.testing.assert_allclose(found, np.stack(wanted), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", SLOPES)
def test_gradients_of_many_at_once(name):
    slope = func.grad(lambda a: (SLOPES[name](a) ** 2).sum())
    wanted = np.stack([slope(part).numpy() for part in A])
    np.testing.assert_allclose(func.vmap(slope)(A).numpy(), wanted, rtol=1e-8, atol=1e-9)
    whole = func.grad(lambda x: (func.vmap(SLOPES[name])(x) ** 2).sum())(A)
    np.testing.assert_allclose(whole.numpy(), wanted, rtol=1e-8, atol=1e-9)


def test_many_are_one_call(monkeypatch):
    calls = []
    plain = Host.__call__
    monkeypatch.setattr(Host, "__call__", lambda self, *xs: (calls.append(1), plain(self, *xs))[1])
    func.vmap(L.inv)(A).numpy()
    assert len(calls) == 1


def test_keyword_arguments_are_mapped_as_in_jax_or_shared_as_in_pytorch():
    x, w = wf.ones(2, 3), wf.ones(2, 3)

    def f(x, *, w, name):
        assert name == "a"
        return (x * w).sum()

    assert func.vmap(f)(x, w=w, name=np.str_("a")).tolist() == [3, 3]
    assert func.vmap(f, in_dims=0)(x, w=w, name="a").tolist() == [6, 6]
    assert func.vmap(f, out_dims=0)(x, w=w, name="a").tolist() == [6, 6]
