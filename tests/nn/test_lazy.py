"""Lazy modules, whose parameters get their shapes from the first input."""

import copy
import pickle

import pytest

import weft as wf
from weft import nn
from weft.errors import StateError, UnknownShapeError
from weft.nn.layer.lazy import LazyModuleMixin


class Scale(LazyModuleMixin):
    def __init__(self):
        super().__init__()
        self.factor = nn.UninitializedParameter()
        self.register_buffer("shift", nn.UninitializedBuffer(dtype=wf.float64))

    def initialize_parameters(self, input, *, power=1):
        self.factor.materialize(input.shape[-1])
        self.shift.materialize((2, input.shape[-1]))
        nn.init.constant_(self.factor, 2 * power)
        nn.init.zeros_(self.shift)

    def forward(self, input, *, power=1):
        return input * self.factor**power


def test_a_module_of_ones_own():
    scale = Scale()
    assert scale.has_uninitialized_params()
    factor, shift = scale.factor, scale.shift
    assert repr(factor) == "<UninitializedParameter>" and factor.is_leaf and factor.requires_grad
    assert scale(wf.ones(3), power=2).tolist() == [16, 16, 16]  # keywords arrive as well
    assert scale.factor is factor and type(factor) is nn.Parameter and factor.requires_grad
    assert scale.shift is shift and shift.dtype == wf.float64 and shift.shape == (2, 3)
    assert not shift.requires_grad and type(scale) is Scale
    scale(wf.ones(3)).sum().backward()
    assert factor.grad.tolist() == [1, 1, 1]
    nn.init.constant_(factor, 5)  # ... and only the first call initializes
    assert scale(wf.ones(3)).tolist() == [5, 5, 5]


def test_no_value_is_no_number():
    p = nn.UninitializedParameter()
    empty = wf.empty(0)
    assert (empty + empty).shape == wf.tanh(empty).shape == (0,)  # plans for empty tensors
    for use in (
        lambda: p + p, lambda: wf.tanh(p), lambda: wf.zeros_like(p), lambda: p.shape,
        lambda: p.tolist(), lambda: p @ p, lambda: wf.cat([p, p]), lambda: nn.functional.relu(p),
        lambda: nn.functional.linear(p, p), lambda: p.sum(),
    ):  # fmt: skip
        with pytest.raises(UnknownShapeError, match=r"materialize\(shape\)"):
            use()
    for part in (nn.utils.weight_norm, nn.utils.spectral_norm):
        layer = nn.LazyLinear(3)
        with pytest.raises(ValueError, match="no value"):
            part(layer)
        assert layer.has_uninitialized_params()


def test_types_and_flags_outlast_the_first_input():
    layer = nn.LazyConv2d(4, 3).double().requires_grad_(False)
    layer(wf.ones(1, 2, 5, 5, dtype=wf.float64))
    assert layer.weight.dtype == layer.bias.dtype == wf.float64
    assert layer.weight.shape == (4, 2, 3, 3) and not layer.weight.requires_grad


def test_states():
    full = nn.Linear(4, 3)
    lazy = nn.LazyLinear(3)
    with pytest.raises(StateError, match="weight: expected a value \\(3, 4\\), got an uninit"):
        full.load_state_dict(lazy.state_dict())
    nn.LazyLinear(3).load_state_dict(lazy.state_dict())
    lazy.load_state_dict(full.state_dict())
    assert not lazy.has_uninitialized_params() and type(lazy) is nn.LazyLinear
    x = wf.randn(2, 4)
    assert lazy(x).tolist() == full(x).tolist()
    assert type(lazy) is nn.Linear and lazy.in_features == 4


@pytest.mark.parametrize("again", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies(again):
    layer = again(nn.LazyBatchNorm1d(affine=True))
    assert type(layer) is nn.LazyBatchNorm1d and layer.has_uninitialized_params()
    layer(wf.randn(5, 3))
    after = again(layer)
    assert type(after) is nn.BatchNorm1d
    assert after.running_mean.tolist() == layer.running_mean.tolist()


def test_an_optimizer_may_come_first():
    layer = nn.LazyLinear(1)
    optimizer = wf.optim.Adam(layer.parameters())
    layer(wf.ones(2, 3)).sum().backward()
    before = layer.weight.tolist()
    optimizer.step()
    assert layer.weight.tolist() != before


def test_what_is_left_uninitialized_is_said():
    class Half(Scale):
        def initialize_parameters(self, input):
            self.factor.materialize(3)

    with pytest.raises(StateError, match="Half: initialize_parameters has left"):
        Half()(wf.ones(3))


def test_parameters_that_wait_have_the_type_that_is_asked_for():
    layer = nn.LazyBatchNorm1d(device="cpu", dtype=wf.float64)
    for name in ("weight", "bias", "running_mean", "running_var"):
        assert getattr(layer, name).dtype == wf.float64


def test_another_type_before_the_first_input():
    layer = nn.LazyConv1d(3, 2).double()
    layer(wf.ones(1, 2, 5, dtype=wf.float64)).sum().backward()
    assert layer.weight.dtype == layer.weight.grad.dtype == wf.float64


def test_what_fills_data_too_early_is_without_effect():
    q = nn.LazyLinear(1)
    assert q.weight.data.normal_(0, 0.01).shape == (0,)
    q.bias.data.zero_()
    q(wf.ones(2, 3))
    assert q.weight.data.fill_(2.0).shape == (1, 3) and q.weight.tolist() == [[2.0, 2.0, 2.0]]
