"""Complex gradients against PyTorch's, in every API that returns them."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import weft as wf  # noqa: E402
from weft import func  # noqa: E402
from weft.errors import DTypeError, GradientError, MismatchError  # noqa: E402

BOTH = (wf, torch)


def drawn(*shape, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


A, B, V, W = drawn(3, 3), drawn(3, 3, seed=1), drawn(3, seed=2), drawn(3, seed=3)
X, Y = np.abs(V.real), W.real

CASES = {
    **{
        name: (lambda m, x, name=name: getattr(m, name)(x), V)
        for name in (
            "abs",
            "angle",
            "sgn",
            "real",
            "imag",
            "conj",
            "exp",
            "log",
            "log2",
            "log10",
            "log1p",
            "expm1",
            "sqrt",
            "rsqrt",
            "square",
            "reciprocal",
            "sin",
            "cos",
            "tan",
            "sinh",
            "cosh",
            "tanh",
            "asin",
            "acos",
            "atan",
            "asinh",
            "acosh",
            "atanh",
            "sum",
            "mean",
            "prod",
            "std",
            "var",
            "view_as_real",
            "diag",
            "sigmoid",
        )
    },
    "logcumsumexp": (lambda m, x: m.logcumsumexp(x, 0), V),
    "logsumexp": (lambda m, x: m.logsumexp(30 * x, 0), A),
    "logsumexp of all": (lambda m, x: m.logsumexp(x, (0, 1), keepdim=True), A),
    "logaddexp": (lambda m, x, y: m.logaddexp(x, y), V, W),
    "whole power": (lambda m, x: x**3, V),
    "complex power": (lambda m, x: x ** (1 + 2j), V),
    "power of a number": (lambda m, x: (2.0 + 1j) ** x, V),
    "real to a complex power": (lambda m, x: x ** (1 + 2j), X),
    "view_as_complex": (lambda m, x: m.view_as_complex(x * 1), drawn(3, 2).real),
    "rfft": (lambda m, x: m.fft.rfft(x), Y),
    "irfft": (lambda m, x: m.fft.irfft(x, n=5), V),
    "fft2": (lambda m, x: m.fft.fft2(x), A),
    "hfft": (lambda m, x: m.fft.hfft(x), V),
    "inv": (lambda m, x: m.linalg.inv(x), A),
    "det": (lambda m, x: m.linalg.det(x), A),
    "slogdet": (lambda m, x: m.linalg.slogdet(x)[0] * m.linalg.slogdet(x)[1], A),
    "cholesky": (lambda m, x: m.linalg.cholesky(x @ x.mH + m.eye(3, dtype=x.dtype)), A),
    "eigh": (lambda m, x: m.linalg.eigh(x + x.mH)[0] * m.linalg.eigh(x + x.mH)[1].abs()[0], A),
    "eigvals": (lambda m, x: (m.linalg.eigvals(x) ** 2).sum(), A),
    "svd": (lambda m, x: m.linalg.svd(x)[1] * m.linalg.svd(x)[0].abs()[0], A),
    "qr": (lambda m, x: m.linalg.qr(x)[0] + m.linalg.qr(x)[1], A),
    "pinv": (lambda m, x: m.linalg.pinv(x), A[:, :2]),
    "matrix_exp": (lambda m, x: m.linalg.matrix_exp(x), A),
    "norm": (lambda m, x: m.linalg.vector_norm(x, 3), A),
    "indexed": (lambda m, x: x[[0, 2, 0]], V),
    "changed in place": (lambda m, x: (x * 2).mul_(1j).abs(), V),
    "from real": (lambda m, x: x * (1 + 2j), X),
    "to real": (lambda m, x: x.to(m.float64) * 2, V),
    "covariances": (lambda m, x: m.cov(x), A),
    "correlations": (lambda m, x: m.corrcoef(x), A),
    **{
        f"{name} of {kinds}": (lambda m, x, y, name=name: getattr(m, name)(x, y), x, y)
        for name in ("add", "sub", "mul", "div", "pow")
        for kinds, x, y in (("both", V, W), ("real", X, W), ("complex", V, Y))
    },
    "matmul": (lambda m, x, y: x @ y, A, B),
    "vdot": (lambda m, x, y: m.vdot(x, y), V, W),
    "einsum": (lambda m, x, y: m.einsum("ij,jk->ik", x, y.conj()), A, B),
    "solve": (lambda m, x, y: m.linalg.solve(x, y), A, W),
    "complex": (lambda m, x, y: m.complex(x, y), X, Y),
    "polar": (lambda m, x, y: m.polar(x, y), X, Y),
    "cat": (lambda m, x, y: m.cat([x, y]), V, Y),
    "where": (lambda m, x, y: m.where(m.tensor([True, False, True]), x, y), V, W),
}


def weighed(m, x, turn=1.0):
    """A real number to which every part of every element counts otherwise."""
    weights = np.exp(1j * (np.arange(x.numel()) + turn)).reshape(tuple(x.shape))
    found = (x * m.tensor(weights)).sum()
    return found.real + found.imag


def slopes(m, function, arrays):
    xs = [m.tensor(a, requires_grad=True) for a in arrays]
    y = function(m, *xs)
    start = np.exp(1j * np.arange(y.numel())).reshape(tuple(y.shape))
    start = m.tensor(start if y.is_complex() else start.real)
    first = m.autograd.grad(y, xs, start, create_graph=True)
    total = sum(weighed(m, g, float(i)) for i, g in enumerate(first))
    second = [None] * len(xs)
    if total.requires_grad:
        second = m.autograd.grad(total, xs, allow_unused=True)
    zeros = [np.zeros_like(a) for a in arrays]
    return [
        zero if g is None else g.detach().resolve_conj().numpy()
        for g, zero in zip([*first, *second], zeros * 2, strict=True)
    ]


@pytest.mark.parametrize("name", ["sigmoid", "logaddexp", "logcumsumexp", "logsumexp"])
def test_logarithms_of_sums_of_far_numbers(name):
    x = np.array([1 + 2j, -3 + 0.5j, 0, 800 - 2j, -20 + 3j])
    found = []
    for m in BOTH:
        rest = {"sigmoid": (), "logaddexp": (m.tensor(x[::-1].copy()),)}.get(name, (0,))
        found.append(getattr(m, name)(m.tensor(x), *rest).resolve_conj().numpy())
    np.testing.assert_allclose(*found, rtol=1e-12)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.filterwarnings("ignore:Casting complex")
@pytest.mark.parametrize("name", CASES)
def test_first_and_second_gradients(name):
    function, *arrays = CASES[name]
    ours, theirs = [slopes(m, function, arrays) for m in BOTH]
    for x, y in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-8, atol=1e-9)


def test_intermediate_reads_give_the_same():
    found = []
    for m in BOTH:
        x, seen = m.tensor(V, requires_grad=True), []
        y = x * (2 - 1j)
        y.retain_grad()
        y.register_hook(lambda g, seen=seen: seen.append(g.clone()))
        y.register_hook(lambda g: g * 1j)
        x.register_hook(lambda g, seen=seen: seen.append(g.clone()))
        (y * y.conj() * (1 + 1j)).backward(m.tensor(W))
        found.append([x.grad, y.grad, *seen])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-12)


@pytest.mark.parametrize("m", BOTH)
def test_functions_of_ones_own_have_the_same_gradient(m):
    class Scale(m.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * y.conj(), g * x.conj()

    xs = [m.tensor(a, requires_grad=True) for a in (V, W)]
    both = []
    for function in (Scale.apply, m.mul):
        y = function(*xs) * (1 - 2j)
        found = m.autograd.grad(y.abs().sum(), xs, create_graph=True)
        both.append(found + m.autograd.grad(weighed(m, found[0]), xs))
    for x, y in zip(*both, strict=True):
        np.testing.assert_allclose(x.detach().numpy(), y.detach().numpy(), rtol=1e-9)


def test_func_has_the_conjugate():
    x = wf.tensor(V, requires_grad=True)
    (x * x).abs().sum().backward()
    slope = func.grad(lambda x: (x * x).abs().sum())(wf.tensor(V))
    np.testing.assert_allclose(x.grad.numpy(), slope.numpy().conj(), rtol=1e-12)
    inside = func.jit(lambda x: wf.autograd.grad((x * x).abs().sum(), x)[0])(x)
    np.testing.assert_allclose(x.grad.numpy(), inside.detach().numpy(), rtol=1e-12)


def test_a_complex_number_needs_a_gradient_to_start_from():
    text = "backward: expected a real scalar, got one of complex128; take its real part"
    with pytest.raises(GradientError, match=text):
        wf.tensor(1j, dtype=wf.complex128, requires_grad=True).backward()


@pytest.mark.parametrize("name", ["vjp", "jvp", "vhp", "hvp"])
def test_products_of_functions_of_complex_numbers(name):
    found = []
    for m in BOTH:
        product = getattr(m.autograd.functional, name)
        holomorphic = name in ("vjp", "jvp")
        f = (lambda x: x * x.conj() * x) if holomorphic else (lambda x: (x.abs() ** 3 * 2).sum())
        found.append(product(f, m.tensor(V), m.tensor(W))[1])
    np.testing.assert_allclose(found[0].numpy(), found[1].resolve_conj().numpy(), rtol=1e-9)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_jacobians_of_functions_of_complex_numbers(strategy):
    found = []
    for m in BOTH:
        jacobian = m.autograd.functional.jacobian
        f, x = (lambda x: x[:2] * x[1:]), m.tensor(V)
        found.append(jacobian(f, x, vectorize=True, strategy=strategy).resolve_conj().numpy())
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)


def test_hessians_pair_as_products_do():
    functional, x, v = wf.autograd.functional, wf.tensor(V), wf.tensor(W)

    def f(x):
        return (x.abs() ** 3).sum()

    hessian = functional.hessian(f, x)
    product = functional.vhp(f, x, v)[1]
    np.testing.assert_allclose(np.diag(hessian.numpy()).imag != 0, [True] * 3)
    slope = functional.vjp(lambda x: functional.vjp(f, x, create_graph=True)[1], x, v)[1]
    np.testing.assert_allclose(product.numpy(), slope.numpy(), rtol=1e-9)
    with pytest.raises(DTypeError, match="vhp: expected inputs of tensors alone, got int"):
        functional.vhp(f, (x, 2), v)


def test_differences_check_both_parts():
    z = wf.tensor(V, requires_grad=True)
    x = wf.tensor(X, requires_grad=True)
    for function in (lambda z, x: z.conj() * x, lambda z, x: (z * x).abs(), wf.mul):
        assert wf.autograd.gradcheck(function, (z, x))
        assert wf.autograd.gradgradcheck(function, (z, x))
    assert wf.autograd.gradcheck(lambda x: wf.complex(x, x * x), x)

    class Unconjugated(wf.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * g * ctx.saved_tensors[0]

    assert not wf.autograd.gradcheck(Unconjugated.apply, z, raise_exception=False)
    with pytest.raises(MismatchError, match="gradient of output 0 by input 0 differs"):
        wf.autograd.gradcheck(Unconjugated.apply, z)
    narrow = z.detach().to(wf.complex64).requires_grad_()
    with pytest.warns(UserWarning, match="expected input 0 of complex128"):
        assert not wf.autograd.gradcheck(wf.square, narrow, raise_exception=False)
