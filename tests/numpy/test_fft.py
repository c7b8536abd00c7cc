"""Fourier transforms against NumPy, their gradients against finite differences."""

import numpy as np
import pytest

import weft.numpy as wnp
from tests.numpy.numpy_case import check_gradient, same
from weft.errors import ShapeError
from weft.numpy import fft

RNG = np.random.default_rng(0)
REAL = RNG.normal(size=(3, 4, 5))
WHOLE = REAL + 1j * RNG.normal(size=(3, 4, 5))
NORMS = [None, "ortho", "forward"]
ONE = [("fft", WHOLE), ("ifft", WHOLE), ("rfft", REAL), ("irfft", WHOLE), ("hfft", WHOLE),
       ("ihfft", REAL), ("fft", REAL)]  # fmt: skip
MANY = [("fftn", WHOLE), ("ifftn", WHOLE), ("rfftn", REAL), ("irfftn", WHOLE), ("fft2", WHOLE),
        ("ifft2", WHOLE), ("rfft2", REAL), ("irfft2", WHOLE)]  # fmt: skip


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("name", "x"), ONE, ids=[n for n, _ in ONE])
def test_along_one_axis(name, x, norm):
    for options in ({}, {"axis": 1}, {"n": 3, "axis": 0}, {"n": 7}, {"n": 6}):
        given = {**options, "norm": norm}
        same(getattr(fft, name)(x, **given), getattr(np.fft, name)(x, **given))
        check_gradient(lambda z, g=given: getattr(fft, name)(z, **g), x)


@pytest.mark.parametrize(("name", "x"), MANY, ids=[n for n, _ in MANY])
def test_along_several_axes(name, x):
    for options in ({}, {"axes": (1, 0)}, {"s": (3, 6), "axes": (0, 2)}):
        for norm in NORMS:
            given = {**options, "norm": norm}
            same(getattr(fft, name)(x, **given), getattr(np.fft, name)(x, **given))
        check_gradient(lambda z, o=options: getattr(fft, name)(z, **o), x)


def test_single_precision_stays():
    assert fft.fft(wnp.ones(3, dtype="float32")).dtype is wnp.complex64
    assert fft.irfft(wnp.ones(3, dtype="complex64")).dtype is wnp.float32
    assert fft.fft(wnp.ones(3, dtype="int32")).dtype is wnp.complex128


@pytest.mark.parametrize("n", [4, 5])
def test_frequencies(n):
    same(fft.fftfreq(n, d=0.5), np.fft.fftfreq(n, 0.5))
    same(fft.rfftfreq(n), np.fft.rfftfreq(n))
    x = np.arange(float(n * 3)).reshape(n, 3)
    for axes in (None, 0, (0, 1)):
        same(fft.fftshift(x, axes=axes), np.fft.fftshift(x, axes))
        same(fft.ifftshift(x, axes=axes), np.fft.ifftshift(x, axes))


def test_errors_say_what_is_expected():
    with pytest.raises(ShapeError, match="fft: expected a size of 1 or more for each of axes"):
        fft.fft(REAL, n=0)
    with pytest.raises(ValueError, match="fft: expected norm backward, ortho or forward, got 'x'"):
        fft.fft(REAL, norm="x")
    with pytest.raises(TypeError, match="rfft: expected real numbers, got complex128"):
        fft.rfft(WHOLE)
