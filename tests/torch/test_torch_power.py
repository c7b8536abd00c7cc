"""Gradients of powers at all special points of base and exponent, as in PyTorch."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import weft as wf  # noqa: E402
from weft import config  # noqa: E402

BASES = [-3.0, -2.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.0, np.inf, -np.inf, np.nan]
EXPONENTS = [-3.0, -2.0, -1.5, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, np.inf, -np.inf]
X, Y = (a.ravel() for a in np.meshgrid(BASES, [*EXPONENTS, np.nan]))


@pytest.mark.parametrize("compiled", [False, True])
def test_slopes_by_both(compiled):
    def slopes(m):
        x, y = (m.tensor(a, requires_grad=True) for a in (X, Y))
        m.pow(x, y).sum().backward()
        return np.stack([x.grad.numpy(), y.grad.numpy()])

    with config.override(compile=compiled):
        np.testing.assert_allclose(slopes(wf), slopes(torch), rtol=1e-12)


@pytest.mark.parametrize("base", BASES)
def test_slope_of_a_number_to_a_power(base):
    def slope(m):
        y = m.tensor(EXPONENTS, dtype=m.float64, requires_grad=True)
        (base**y).sum().backward()
        return y.grad.numpy()

    np.testing.assert_allclose(slope(wf), slope(torch), rtol=1e-12)
