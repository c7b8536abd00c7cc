"""Initializers: ranges, variances, and reproducibility by seed."""

import math

import numpy as np
import pytest

import weft as wf
from weft import nn
from weft.errors import ShapeError, WeftError
from weft.nn import init

SHAPE = (64, 32, 3, 3)
FAN_IN, FAN_OUT = 32 * 9, 64 * 9


def drawn(function, *args, shape=SHAPE, **kwargs):
    x = wf.tensor(np.empty(shape, np.float32))
    assert function(x, *args, **kwargs) is x
    return x.numpy()


@pytest.mark.parametrize(
    ("function", "options", "bound", "std"),
    [
        (init.uniform_, {"a": -2, "b": 4}, 4, 6 / math.sqrt(12)),
        (init.normal_, {"mean": 0.0, "std": 3}, None, 3),
        (init.xavier_uniform_, {"gain": 2}, 2 * math.sqrt(6 / (FAN_IN + FAN_OUT)), None),
        (init.xavier_normal_, {}, None, math.sqrt(2 / (FAN_IN + FAN_OUT))),
        (init.kaiming_uniform_, {"nonlinearity": "relu"}, math.sqrt(6 / FAN_IN), None),
        (init.kaiming_uniform_, {"a": math.sqrt(5)}, math.sqrt(1 / FAN_IN), None),
        (init.kaiming_normal_, {"mode": "fan_out", "a": 1}, None, math.sqrt(1 / FAN_OUT)),
        (init.trunc_normal_, {"std": 0.5, "a": -1, "b": 1}, 1, 0.5 * 0.8796),
    ],
)
def test_spread(function, options, bound, std):
    wf.manual_seed(0)
    x = drawn(function, **options)
    if bound is not None:
        assert 0.99 * bound < np.abs(x).max() <= bound
    if std is None:
        std = bound / math.sqrt(3)
    assert x.std() == pytest.approx(std, rel=0.02)


def test_a_seed_determines_the_values():
    def values(seed):
        wf.manual_seed(seed)
        return nn.Linear(3, 4).weight.detach().numpy()

    np.testing.assert_array_equal(values(1), values(1))
    assert (values(1) != values(2)).any()
    given = [wf.Generator().manual_seed(5) for _ in range(2)]
    a, b = (drawn(init.normal_, generator=g) for g in given)
    np.testing.assert_array_equal(a, b)


def test_plain_values():
    assert (drawn(init.constant_, 7) == 7).all()
    assert drawn(init.ones_).all() and not drawn(init.zeros_).any()
    np.testing.assert_array_equal(drawn(init.eye_, shape=(2, 3)), np.eye(2, 3))
    x = drawn(init.dirac_, 2, shape=(4, 3, 3))
    assert x.sum() == 4 and x[0, 0, 1] == x[3, 1, 1] == 1
    x = drawn(init.sparse_, 0.25, shape=(8, 5))
    assert ((x == 0).sum(0) == 2).all()


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 2, 3)])
def test_orthogonal(shape):
    x = drawn(init.orthogonal_, 2.0, shape=shape).reshape(shape[0], -1)
    product = x @ x.T if x.shape[0] <= x.shape[1] else x.T @ x
    np.testing.assert_allclose(product, 4 * np.eye(min(x.shape)), atol=1e-5)


def test_a_leaf_stays_one():
    p = nn.Parameter(np.zeros(3, np.float32))
    init.ones_(p)
    (p * 2).sum().backward()
    assert p.grad.tolist() == [2, 2, 2]


def test_faults():
    with pytest.raises(ShapeError, match="rank 2 or more"):
        drawn(init.xavier_uniform_, shape=(3,))
    with pytest.raises(ValueError, match="expected one of leaky_relu"):
        init.calculate_gain("step")
    with pytest.raises(ValueError, match="expected a number as slope, got True"):
        init.calculate_gain("leaky_relu", True)
    with pytest.warns(UserWarning, match="without elements"):
        drawn(init.kaiming_uniform_, shape=(0, 3))
    with pytest.raises(ValueError, match="fan_in or fan_out"):
        drawn(init.kaiming_normal_, mode="fan")
    with pytest.raises(WeftError, match="hold 5% of the distribution"):
        drawn(init.trunc_normal_, a=5.0, b=6.0)
    assert init.calculate_gain("tanh") == 5 / 3
