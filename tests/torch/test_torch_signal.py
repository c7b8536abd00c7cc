"""Windows, short-time Fourier transforms and `gradient` against PyTorch."""

import numpy as np
import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st
from strategies import at_most

torch = pytest.importorskip("torch")

import weft as wf  # noqa: E402
from tests.torch.tensor_case import agree, draw, same, seeds  # noqa: E402
from weft.errors import DTypeError, ShapeError, UserOpError  # noqa: E402

pytestmark = pytest.mark.usefixtures("interpreted")
few = at_most(4, phases=[Phase.generate])
WINDOWS = ["hann_window", "hamming_window", "blackman_window", "bartlett_window", "kaiser_window"]


@pytest.mark.parametrize("name", WINDOWS)
@given(st.integers(0, 9), st.booleans())
@few
def test_windows(name, length, periodic):
    same(getattr(wf, name)(length, periodic), getattr(torch, name)(length, periodic), atol=1e-6)
    kind = {"dtype": wf.float64}, {"dtype": torch.float64}
    same(getattr(wf, name)(length, **kind[0]), getattr(torch, name)(length, **kind[1]), 1e-9, 1e-12)


def test_windows_refuse():
    with pytest.raises(ShapeError, match="blackman_window: expected a length from 0 on, got -1"):
        wf.blackman_window(-1)
    with pytest.raises(DTypeError, match="expected a floating type, got int64"):
        wf.hann_window(3, dtype=wf.int64)


@given(
    st.integers(1, 2), st.integers(20, 40), st.sampled_from([8, 9, 16]), st.integers(2, 5),
    st.booleans(), st.booleans(),
    st.sampled_from(["reflect", "constant", "replicate", "circular"]), seeds,
)  # fmt: skip
@few
def test_short_time_transforms(count, length, n_fft, hop, normalized, onesided, mode, seed):
    x = draw((count, length), seed=seed)
    options = {
        "n_fft": n_fft, "hop_length": hop, "win_length": n_fft - 1, "normalized": normalized,
        "onesided": onesided,
    }  # fmt: skip

    def window(m):
        return m.hamming_window(n_fft - 1)

    agree(
        lambda m, x: m.stft(
            x, window=window(m), pad_mode=mode, return_complex=False, **options
        ) if m is wf else m.view_as_real(
            m.stft(x, window=window(m), pad_mode=mode, return_complex=True, **options)
        ),
        x, rtol=1e-3, atol=1e-4,
    )  # fmt: skip

    def back(m):
        whole = {**options, "win_length": n_fft, "window": m.hann_window(n_fft) + 0.1}
        found = m.stft(m.tensor(x), return_complex=True, **whole)
        return m.istft(found, length=length - n_fft, **whole)

    same(back(wf), back(torch), 1e-3, 1e-4)
    np.testing.assert_allclose(back(wf).numpy(), x[:, : length - n_fft], atol=1e-4)


@given(st.integers(20, 30), st.sampled_from([8, 9]), st.booleans(), st.booleans(), seeds)
@few
def test_complex_signals_and_windows(length, n_fft, wide, normalized, seed):
    x = draw((length,), seed=seed).astype(np.float64)
    signal = x + 1j * draw((length,), seed=seed + 1) if wide else x
    window = np.hanning(n_fft + 2)[1:-1] * np.exp(0.3j * np.arange(n_fft))

    def there_and_back(m):
        kept = {"window": m.tensor(window), "normalized": normalized}
        found = m.tensor(signal).stft(n_fft, **kept)
        return found, m.istft(found, n_fft, return_complex=True, length=length - n_fft, **kept)

    ours, theirs = there_and_back(wf), there_and_back(torch)
    same(ours, theirs, 1e-9, 1e-9)
    np.testing.assert_allclose(ours[1].numpy(), signal[: length - n_fft], atol=1e-9)


def test_inverses_of_short_time_transforms_refuse():
    found = wf.ones(30).stft(8, window=wf.hann_window(8))
    with pytest.raises(UserOpError, match="no piece weighs on some samples"):
        found.istft(8, window=wf.hann_window(8), center=False).tolist()
    with pytest.raises(ShapeError, match="4 frequencies, frames"):
        found.istft(6)
    with pytest.raises(ShapeError, match=r"istft: expected shape .* got \(0, 5, 3\)"):
        found.new_zeros((0, 5, 3)).istft(8)
    with pytest.raises(DTypeError, match="expected complex numbers, as from stft"):
        wf.istft(found.real, 8)
    with pytest.raises(DTypeError, match="pass return_complex=True"):
        found.istft(8, window=wf.ones(8) * 1j)
    with pytest.warns(UserWarning, match="zeros fill 2 samples"):
        assert found.istft(8, window=wf.ones(8), length=36).shape == (36,)


def test_short_time_transforms_refuse():
    x = wf.ones(5)
    with pytest.raises(ShapeError, match="stft: expected one or more signals of 8 samples"):
        wf.stft(x, 8, center=False)
    with pytest.raises(ShapeError, match="pad_mode: expected 'reflect', of 9 samples or more"):
        wf.stft(x, 16)
    with pytest.raises(ShapeError, match="pad_mode: expected one of constant, reflect, replicate"):
        wf.stft(x, 4, pad_mode="mirror")
    with pytest.raises(DTypeError, match="omit onesided=True"):
        wf.stft(x * 1j, 4, onesided=True)
    with pytest.raises(ShapeError, match="expected a window of 1 to 4 weights"):
        wf.stft(x, 4, window=wf.ones(6))


@given(st.integers(3, 6), st.integers(3, 6), st.sampled_from([1, 2]), seeds)
@few
def test_slopes(m, n, order, seed):
    x = draw((m, n), seed=seed)
    places = np.cumsum(draw((n,), 0.5, 2.0, seed=seed))
    agree(lambda t, x: t.gradient(x, edge_order=order), x)
    agree(lambda t, x: t.gradient(x, spacing=0.5, dim=1, edge_order=order), x)
    agree(lambda t, x: t.gradient(x, spacing=[2.0, 0.3], edge_order=order), x)
    agree(lambda t, x, p: t.gradient(x, spacing=[p], dim=1, edge_order=order), x, places, rtol=1e-3)


def test_slopes_refuse():
    for call in (
        lambda: wf.gradient(wf.ones(1)),
        lambda: wf.gradient(wf.ones(3, 3), spacing=[1.0, 2.0, 3.0]),
        lambda: wf.gradient(wf.ones(3), spacing=[wf.ones(2)]),
        lambda: wf.gradient(wf.ones(3), edge_order=3),
    ):
        with pytest.raises(ShapeError, match="gradient: expected"):
            call()
