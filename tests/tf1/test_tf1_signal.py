"""Complex numbers and `tf.signal`: values by NumPy and SciPy, gradients by differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.fft

import weft.tf1 as tf
from weft.errors import ArgumentError, DTypeError

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((2, 30))
Z = RANDOM.standard_normal((2, 3, 6)) + 1j * RANDOM.standard_normal((2, 3, 6))
FRAMES = np.stack([X[:, i : i + 8] for i in range(0, 23, 3)], 1)
HANN = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(8) / 8)
signal = tf.signal


def there_and_back(x: Any) -> Any:
    window = signal.inverse_stft_window_fn(2)
    return signal.inverse_stft(signal.stft(x, 8, 2), 8, 2, window_fn=window)[:, 6:-6]


CASES: dict[str, tuple[Callable[..., Any], Any, Any]] = {
    "parts": (lambda x: tf.complex(tf.cos(x), 2 * x) * 1j, X, 1j * np.cos(X) - 2 * X),
    "abs": (lambda z: tf.abs(z) + tf.angle(z), Z, np.abs(Z) + np.angle(Z)),
    "quotient": (lambda z: (z + 1j) / tf.conj(z), Z, (Z + 1j) / Z.conj()),
    "cast": (lambda z: tf.cast(z, tf.float64), Z, Z.real),
    "adjoint": (lambda z: tf.matmul(z, z, adjoint_b=True), Z, Z @ Z.conj().transpose(0, 2, 1)),
    "norm": (tf.norm, Z, np.linalg.norm(Z) + 0j),
    "distance": (lambda z: tf.squared_difference(z, 1j), Z, np.abs(Z - 1j) ** 2 + 0j),
    "mean": (lambda z: tf.reduce_mean(tf.exp(z), 1), Z, np.exp(Z).mean(1)),
    "fft": (signal.fft, Z, np.fft.fft(Z)),
    "ifft2d": (tf.spectral.ifft2d, Z, np.fft.ifft2(Z)),
    "rfft": (lambda x: signal.rfft(x, [20]), X, np.fft.rfft(X, 20)),
    "irfft": (lambda z: signal.irfft(z, [9]), Z, np.fft.irfft(Z, 9)),
    "irfft, even": (signal.irfft, Z, np.fft.irfft(Z)),
    "shift": (lambda z: signal.ifftshift(signal.fftshift(z), axes=[1]), Z,
              np.fft.ifftshift(np.fft.fftshift(Z), axes=1)),
    "frame": (lambda x: signal.frame(x, 8, 3), X, FRAMES),
    "stft": (lambda x: signal.stft(x, 8, 3), X, np.fft.rfft(FRAMES * HANN)),
    "inverse stft": (there_and_back, X, X[:, 6:-6]),
    "overlap": (lambda x: signal.overlap_and_add(signal.frame(x, 2, 2), 2), X, X),
    "mfcc": (lambda x: signal.mfccs_from_log_mel_spectrograms(tf.reshape(x, [2, -1, 10])), X,
             scipy.fft.dct(X.reshape(2, 3, 10)) / np.sqrt(20)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("known", [True, False])
def test_values_and_gradients(name: str, known: bool) -> None:
    function, array, wanted = CASES[name]
    shape = array.shape if known else (None, *array.shape[1:-1], None)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(array.dtype, shape)
        y = function(x)
        weights = np.cos(np.arange(wanted.size)).reshape(wanted.shape)
        total = tf.reduce_sum(tf.real(y) * weights)
        if y.dtype.is_complex:
            total += tf.reduce_sum(tf.imag(y) * np.flip(weights))
        found, gradient = session.run([y, tf.gradients(total, x)[0]], {x: array})
        np.testing.assert_allclose(found, wanted, 1e-9, 1e-9)
        change = np.cos(3.0 * np.arange(array.size)).reshape(array.shape).astype(array.dtype)
        change = change * (1 + 2j) if array.dtype.kind == "c" else change
        ends = [session.run(total, {x: array + step * change}) for step in (1e-6, -1e-6)]
        by_difference = (ends[0] - ends[1]) / 2e-6
        # As in TensorFlow: the gradient of abs(z) ** 2 is 2 z.
        np.testing.assert_allclose((gradient.conj() * change).sum().real, by_difference, 1e-5, 1e-5)


@pytest.mark.parametrize("kind", [1, 2, 3, 4])
@pytest.mark.parametrize("norm", [None, "ortho"])
def test_cosine_transforms(kind: int, norm: str | None) -> None:
    if kind == 1 and norm:
        with pytest.raises(ArgumentError, match="not for type 1"):
            signal.dct(tf.constant(X), type=1, norm=norm)
        return
    with tf.Graph().as_default(), tf.Session() as session:
        for n in (None, 7, 40):
            found = session.run(signal.dct(tf.constant(X), type=kind, n=n, norm=norm))
            np.testing.assert_allclose(found, scipy.fft.dct(X, kind, n, norm=norm), 1e-9, 1e-9)
        inverse = session.run(signal.idct(signal.dct(tf.constant(X), type=2, norm=norm), norm=norm))
        np.testing.assert_allclose(inverse, X if norm else 60 * X, 1e-9, 1e-9)


def test_mel_filters_are_triangles_of_equal_width_on_the_mel_scale() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        found = session.run(signal.linear_to_mel_weight_matrix(10, 257, 16000, 80.0, 7600.0))
    hertz = np.linspace(0, 8000, 257)
    peaks = 1127 * np.log(1 + hertz[found.argmax(0)] / 700)
    np.testing.assert_allclose(np.diff(peaks), np.diff(peaks).mean(), rtol=0.2)
    assert found.min() == 0
    assert not found[hertz < 80].any()
    assert not found[hertz > 7600].any()


def test_wrong_types() -> None:
    with pytest.raises(DTypeError, match="FFT: expected complex numbers, got float64"):
        signal.fft(tf.constant(X))
    with pytest.raises(DTypeError, match=r"expected float32, got .*complex"):
        tf.constant(1j, tf.float32)
    with tf.Graph().as_default():
        v = tf.Variable([1j])
        loss = tf.abs(v[0])
        told = r"expected variables of floating types, got .*complex"
        with pytest.raises(DTypeError, match=told):
            tf.train.AdamOptimizer().minimize(loss, var_list=[v])


def test_kernels_compute_what_is_real_around_complex_numbers() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [4, 64])
        w = tf.Variable(tf.ones([33, 5]))
        loss = tf.reduce_sum(tf.matmul(tf.abs(tf.spectral.rfft(tf.tanh(x))), w))
        train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
        session.run(tf.global_variables_initializer())
        given = {x: RANDOM.standard_normal((4, 64))}
        before = session.run(loss, given)
        assert session.run([train, loss], given)[1] == before
        assert session.run(loss, given) < before
        calls = session.explain(train, given).blueprint.calls
        names = [placed.launch.kernel.name for placed in calls]
        assert "matmul" in " ".join(names)
        assert names.count("host_call") == 2  # the transform, abs
