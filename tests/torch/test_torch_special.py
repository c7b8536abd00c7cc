"""Special functions and Fourier transforms against PyTorch."""

import numpy as np
import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st
from strategies import at_most

torch = pytest.importorskip("torch")
pytest.importorskip("scipy")

import weft as wf  # noqa: E402
from tests.torch.tensor_case import agree, draw, seeds, shapes  # noqa: E402
from weft.errors import DTypeError, ShapeError  # noqa: E402

pytestmark = pytest.mark.usefixtures("interpreted")
few = at_most(2, phases=[Phase.generate])


POSITIVE = [
    "digamma", "psi", "entr", "erf", "erfc", "erfcx", "exp2", "expit", "expm1", "gammaln", "i0",
    "i0e", "i1", "i1e", "log1p", "log_ndtr", "ndtr", "sinc",
]  # fmt: skip
WITHOUT_GRADIENT = [
    "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "modified_bessel_i0", "modified_bessel_i1",
    "modified_bessel_k0", "modified_bessel_k1", "round",
]  # fmt: skip


@pytest.mark.parametrize("name", [*POSITIVE, *WITHOUT_GRADIENT, "erfinv", "logit", "ndtri"])
@given(shapes, seeds)
@few
def test_functions_of_one_number(name, shape, seed):
    inner = name in ("erfinv", "logit", "ndtri")
    x = draw(shape, 0.1, 0.9 if inner else 3.0, seed)
    agree(lambda t, x: getattr(t.special, name)(x), x, grad=name not in WITHOUT_GRADIENT)
    if not inner and name != "round":
        whole = np.random.default_rng(seed).integers(1, 4, shape)
        agree(lambda t, x: getattr(t.special, name)(x), whole, grad=False)


@given(shapes, seeds)
@few
def test_functions_of_two_numbers(shape, seed):
    a, x = draw(shape, 0.5, 3.0, seed), draw(shape, 0.3, 2.0, seed + 1)
    for name in ("gammainc", "gammaincc"):
        agree(lambda t, a, x, f=name: getattr(t.special, f)(a, x), a, x, grad=False)
        agree(lambda t, x, f=name: getattr(t.special, f)(t.tensor(1.5), x), x)
    agree(lambda t, a, x: (t.igamma(a, x), t.igammac(a, x)), a, x, grad=False)
    agree(lambda t, a, x: (t.special.xlogy(a, x), t.special.xlog1py(a, x)), a, x)
    agree(lambda t, a, x: t.special.zeta(a + 1, x), a, x, grad=False)
    agree(lambda t, x: t.special.zeta(t.tensor(2.5), x), x)
    agree(lambda t, x: (t.special.multigammaln(x, 2), t.mvlgamma(x, 3)), x + 2)
    agree(lambda t, x: t.special.polygamma(2, x), x)


POLYNOMIALS = [name for name in wf.special.__all__ if "polynomial" in name]


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials(name):
    x, n = np.float64([[-1.0, -0.4, 0.0], [0.3, 1.0, 1.7]]), np.arange(-1, 9).reshape(-1, 1, 1)
    agree(lambda t, x, n: getattr(t.special, name)(x, n), x, n, grad=False)
    agree(lambda t, x: getattr(t.special, name)(x, 2.7), np.float32(x), grad=False)
    agree(lambda t, n: getattr(t.special, name)(0.3, n), np.int64([3, 0, 1]), grad=False)
    assert len(POLYNOMIALS) == 12


def test_special_functions_write_to_tensors():
    for m in (torch, wf):
        out = m.zeros(2)
        m.special.xlog1py(m.ones(2), m.zeros(2), out=out.fill_(5))
        assert out.tolist() == [0, 0]
        m.special.laguerre_polynomial_l(m.ones(2), 1, out=out.fill_(5))
        assert out.tolist() == [0, 0]
        assert m.igamma(m.ones(2), m.zeros(2), out=out.fill_(5)) is out and out.tolist() == [0, 0]


def test_logarithms_of_complex_numbers_near_1():
    x = np.array([1e-19 + 1e-18j, 1e-8 - 1e-5j, 0.3 + 0.2j, -0.4 + 0.1j, 3 - 4j, 0j])
    for dtype, rtol in (("complex128", 1e-14), ("complex64", 1e-6)):
        ours, theirs = (m.log1p(m.tensor(x.astype(dtype))).numpy() for m in (wf, torch))
        for part in ("real", "imag"):
            np.testing.assert_allclose(getattr(ours, part), getattr(theirs, part), rtol)


def test_entropies_at_and_below_0():
    agree(lambda t, x: t.special.entr(x), np.float32([-1, 0, 0.5]), grad=False)


@given(st.integers(1, 5), st.integers(1, 5), st.sampled_from([None, "ortho", "forward"]), seeds)
@few
def test_transforms(m, n, norm, seed):
    x = draw((m, n), seed=seed).astype(np.float64)
    for name in ("fft", "ifft", "rfft", "ihfft"):
        agree(lambda t, x, f=name: size_of(getattr(t.fft, f)(x, None, 0, norm)), x)
        agree(lambda t, x, f=name: size_of(getattr(t.fft, f)(x, 3, -1, norm)), x)
    for name in ("irfft", "hfft"):
        agree(lambda t, x, f=name: getattr(t.fft, f)(t.fft.fft(x), 4, 0, norm), x)
    for name in ("fft2", "ifft2", "rfft2"):
        agree(lambda t, x, f=name: size_of(getattr(t.fft, f)(x, norm=norm)), x)
    for name in ("fftn", "ifftn", "rfftn"):
        agree(lambda t, x, f=name: size_of(getattr(t.fft, f)(x, (3,), (0,), norm)), x)
    agree(lambda t, x: t.fft.irfft2(t.fft.fft2(x), (3, 4), norm=norm), x)
    agree(lambda t, x: t.fft.irfftn(t.fft.fftn(x), (3, 4), (1, 0), norm), x)
    for name in ("ihfft2", "ihfftn"):
        agree(lambda t, x, f=name: size_of(getattr(t.fft, f)(x, norm=norm)), x)
    z = x + 1j * draw((m, n), seed=seed + 1)
    agree(lambda t, z: t.fft.hfft2(z, (4, 4), norm=norm), z, grad=False)
    agree(lambda t, z: t.fft.hfftn(z, (5,), (0,), norm=norm), z, grad=False)
    agree(lambda t, x: t.fft.hfftn(t.fft.fft(x), (3, 4), norm=norm), x)
    agree(lambda t, x: (t.fft.fftshift(x), t.fft.ifftshift(x, 0)), x)
    agree(lambda t, x: (t.fft.fftfreq(n, 0.5), t.fft.rfftfreq(n, d=2)), x, grad=False)


def test_transforms_refuse():
    x = wf.ones(2, 3)
    with pytest.raises(DTypeError, match="fft: there are no complex numbers of half precision"):
        wf.fft.fft(x.half())
    with pytest.raises(DTypeError, match="rfftn: expected real numbers, got complex64"):
        wf.fft.rfftn(x * 1j)
    with pytest.raises(ShapeError, match="fft2: expected different dims"):
        wf.fft.fft2(x, dim=(1, -1))
    with pytest.raises(ShapeError, match="fftn: expected a size of 1 or more for each"):
        wf.fft.fftn(x, (2, 3, 4))
    with pytest.raises(ShapeError, match="irfftn: expected one axis or more"):
        wf.fft.irfftn(x, dim=())
    with pytest.raises(DTypeError, match="fftfreq: expected a floating type, got int64"):
        wf.fft.fftfreq(3, dtype=wf.int64)


def test_transforms_into_what_is_there():
    out = wf.empty(0, dtype=wf.complex64)
    assert wf.fft.fft(wf.ones(3), out=out) is out and out.tolist() == [3, 0, 0]


def size_of(x):
    """The sizes of complex numbers, squared, as PyTorch and Weft both can differentiate them."""
    return x.abs().square()


def test_integers_are_of_the_default_type():
    assert wf.fft.fft(wf.arange(4)).dtype.name == "complex64"
    assert wf.fft.fftfreq(4).dtype is wf.float32


def test_errors_say_what_is_expected():
    with pytest.raises(DTypeError, match="multigammaln: expected p of at least 1, got 0"):
        wf.mvlgamma(wf.ones(1), 0)
