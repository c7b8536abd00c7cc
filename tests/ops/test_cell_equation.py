"""The equations of recurrent cells, on NumPy arrays, against the papers' formulas."""

from itertools import permutations

import numpy as np

from weft.ops.sequence import cell_equation

RNG = np.random.default_rng(0)
GATES = dict(zip("ifnorz", RNG.standard_normal((6, 4, 3)), strict=True))
C, H = RNG.standard_normal((2, 4, 3))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_an_order_says_what_each_part_is():
    i, f, n, o = (GATES[name] for name in "ifno")
    c = sigmoid(f) * C + sigmoid(i) * np.tanh(n)
    for order in permutations("ifno"):
        parts = [GATES[name] for name in order]
        out = cell_equation.lstm(parts, C, "".join(order), sigmoid, np.tanh)
        np.testing.assert_array_equal(out, (sigmoid(o) * np.tanh(c), c))


def test_gates_see_the_cell_through_peepholes():
    i, f, n, o = (GATES[name] for name in "ifno")
    w = list(RNG.standard_normal((3, 3)))
    h, c = cell_equation.lstm(
        [i, n, f, o], C, "info", sigmoid, np.tanh, 1.0, w, lambda x: np.clip(x, -0.5, 0.5)
    )
    before = sigmoid(f + w[0] * C + 1) * C + sigmoid(i + w[1] * C) * np.tanh(n)
    np.testing.assert_array_equal(c, np.clip(before, -0.5, 0.5))
    np.testing.assert_array_equal(h, sigmoid(o + w[2] * c) * np.tanh(c))


def test_the_reset_gate_applies_before_or_after_the_matmul():
    xs, w = [GATES[name] for name in "zrn"], RNG.standard_normal((3, 9))
    hs = np.split(H @ w, 3, axis=1)
    z, r = sigmoid(xs[0] + hs[0]), sigmoid(xs[1] + hs[1])
    after = cell_equation.gru(xs, hs, H, "zrn", sigmoid, np.tanh)
    np.testing.assert_array_equal(after, z * H + (1 - z) * np.tanh(xs[2] + r * hs[2]))
    before = cell_equation.gru(
        xs, hs[:2], H, "zrn", sigmoid, np.tanh, lambda reset: (reset * H) @ w[:, 6:]
    )
    np.testing.assert_array_equal(before, z * H + (1 - z) * np.tanh(xs[2] + (r * H) @ w[:, 6:]))


def test_both_roundings_are_the_same_formula():
    z = sigmoid(GATES["z"])
    as_pytorch = cell_equation.mixed(z, H, C, by_difference=True)
    np.testing.assert_array_equal(as_pytorch, C + z * (H - C))
    np.testing.assert_allclose(as_pytorch, cell_equation.mixed(z, H, C), rtol=1e-12, atol=1e-12)
