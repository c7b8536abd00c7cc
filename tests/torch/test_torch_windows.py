"""`weft.signal.windows`, compared with PyTorch's."""

import numpy as np
import pytest

import weft as wf

torch = pytest.importorskip("torch")

WINDOWS = {
    "bartlett": {}, "blackman": {}, "cosine": {}, "exponential": {"tau": 1.7},
    "gaussian": {"std": 2.5}, "general_cosine": {"a": [0.4, 0.5, 0.1]},
    "general_hamming": {"alpha": 0.6}, "hamming": {}, "hann": {}, "kaiser": {"beta": 5.0},
    "nuttall": {},
}  # fmt: skip
names = pytest.mark.parametrize("name", WINDOWS)


@names
@pytest.mark.parametrize("sym", [True, False])
@pytest.mark.parametrize("length", [0, 1, 2, 7, 12])
def test_weights(name, sym, length):
    ours, theirs = (
        getattr(m.signal.windows, name)(length, sym=sym, dtype=m.float64, **WINDOWS[name]).numpy()
        for m in (wf, torch)
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-15)
    assert getattr(wf.signal.windows, name)(3, **WINDOWS[name]).dtype is wf.float32


def test_a_center_and_gradients():
    for m in (wf, torch):
        found = m.signal.windows.exponential(4, center=1, sym=False, requires_grad=True)
        np.testing.assert_allclose(found.tolist(), np.exp([-1, 0, -1, -2]), rtol=1e-6)
        assert found.requires_grad


REFUSED = [
    *[(name, (-1,), WINDOWS[name]) for name in WINDOWS],
    ("hann", (3,), {"dtype": "int64"}),
    ("hann", (3,), {"dtype": "bfloat16"}),
    ("exponential", (3,), {"tau": 0}),
    ("exponential", (3,), {"center": 1}),
    ("gaussian", (3,), {"std": -1}),
    ("kaiser", (3,), {"beta": -1}),
    ("general_cosine", (3,), {"a": []}),
    ("general_cosine", (3,), {"a": 1}),
]


@pytest.mark.parametrize("name, args, options", REFUSED)
def test_errors(name, args, options):
    for m in (torch, wf):
        given = {**options}
        if "dtype" in given:
            given["dtype"] = getattr(m, given["dtype"])
        with pytest.raises((ValueError, TypeError)):
            getattr(m.signal.windows, name)(*args, **given)
