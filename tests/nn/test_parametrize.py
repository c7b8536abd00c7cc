"""Parametrizations: parameters computed from other parameters."""

import copy
import pickle

import numpy as np
import pytest

import weft as wf
from weft import nn
from weft.errors import ShapeError
from weft.nn.utils import parametrizations, parametrize


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).mT

    def right_inverse(self, x):
        return x.triu()


class Doubled(nn.Module):
    def forward(self, x):
        return 2 * x

    def right_inverse(self, x):
        return x / 2


class Longer(nn.Module):
    def forward(self, x):
        return wf.cat([x, x])


def layer_of(*modules, name="weight"):
    wf.manual_seed(0)
    layer = nn.Linear(3, 3)
    for module in modules:
        parametrize.register_parametrization(layer, name, module)
    return layer


def test_a_value_is_computed_from_the_original_and_trains_it():
    layer = layer_of(Symmetric())
    original = layer.parametrizations.weight.original
    layer(wf.ones(2, 3)).sum().backward()
    assert isinstance(layer, nn.Linear) and type(layer).__name__ == "ParametrizedLinear"
    assert isinstance(original, nn.Parameter) and original.grad.tolist()[2][:2] == [0, 0]
    assert sorted(layer.state_dict()) == ["bias", "parametrizations.weight.original"]
    optimizer = wf.optim.SGD(layer.parameters(), lr=0.1)
    optimizer.step()
    assert wf.equal(layer.weight, layer.weight.mT)


def test_several_one_after_the_other_and_assignment():
    layer = layer_of(Symmetric(), Doubled())
    layer.weight = wf.eye(3)
    assert layer.weight.tolist() == np.eye(3).tolist()
    assert layer.parametrizations.weight.original.tolist() == (np.eye(3) / 2).tolist()
    assert parametrize.is_parametrized(layer) and parametrize.is_parametrized(layer, "weight")
    assert not parametrize.is_parametrized(layer, "bias")


@pytest.mark.parametrize("leave", [True, False])
def test_removing_gives_the_class_and_the_parameter_back(leave):
    layer = layer_of(Doubled())
    original, value = layer.parametrizations.weight.original, layer.weight.tolist()
    before = original.tolist()
    parametrize.remove_parametrizations(layer, "weight", leave_parametrized=leave)
    assert type(layer) is nn.Linear and layer.weight is original
    assert layer.weight.tolist() == (value if leave else before)
    assert [name for name, _ in layer.named_parameters()] == ["bias", "weight"]


def test_copies_are_their_own():
    layer = layer_of(Doubled())
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        parametrize.remove_parametrizations(other, "weight")
        assert type(other) is nn.Linear and parametrize.is_parametrized(layer)
        assert np.allclose(other.weight.numpy(force=True), layer.weight.numpy(force=True))


def test_cached_values_are_computed_once():
    layer = layer_of(Doubled())
    with parametrize.cached():
        assert layer.weight is layer.weight
    assert layer.weight is not layer.weight
    assert parametrize.type_before_parametrizations(layer) is nn.Linear


def test_buffers_and_other_shapes():
    norm = nn.BatchNorm1d(3)
    parametrize.register_parametrization(norm, "running_mean", Longer(), unsafe=True)
    assert norm.running_mean.shape == (6,)
    assert "parametrizations.running_mean.original" in dict(norm.named_buffers())


def test_weight_norm_keeps_the_weight_and_trains_lengths():
    layer = nn.Conv1d(2, 3, 2)
    before = layer.weight.numpy(force=True).copy()
    parametrizations.weight_norm(layer)
    held = layer.parametrizations.weight
    np.testing.assert_allclose(layer.weight.numpy(force=True), before, rtol=1e-6)
    assert held.original0.shape == (3, 1, 1) and held.original1.shape == (3, 2, 2)
    layer(wf.ones(1, 2, 4)).square().sum().backward()
    assert held.original0.grad is not None and held.original1.grad is not None
    parametrize.remove_parametrizations(layer, "weight")
    np.testing.assert_allclose(layer.weight.numpy(force=True), before, rtol=1e-6)


def test_spectral_norm_makes_the_largest_singular_value_1():
    layer = parametrizations.spectral_norm(nn.Linear(4, 3), n_power_iterations=20)
    top = np.linalg.svd(layer.weight.numpy(force=True))[1][0]
    assert top == pytest.approx(1.0, abs=1e-5)
    layer.eval()
    layer(wf.ones(1, 4)).sum().backward()
    assert layer.parametrizations.weight.original.grad is not None


@pytest.mark.parametrize("kind", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("shape", [(3, 3), (5, 2), (2, 4)])
@pytest.mark.parametrize("free", [True, False])
def test_orthogonal(kind, shape, free):
    wf.manual_seed(1)
    layer = nn.Linear(*shape, dtype=wf.float64)
    parametrizations.orthogonal(layer, orthogonal_map=kind, use_trivialization=free)

    def error():
        w = layer.weight.numpy(force=True)
        w = w if w.shape[0] >= w.shape[1] else w.T
        return np.abs(w.T @ w - np.eye(w.shape[1])).max()

    assert error() < 1e-9
    layer(wf.ones(2, shape[0], dtype=wf.float64)).square().sum().backward()
    wf.optim.SGD(layer.parameters(), lr=0.1).step()
    assert error() < 1e-9
    if free:
        q = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 5)))[0][:, : min(shape)]
        q = q[: max(shape)] if max(shape) == 5 else np.linalg.qr(q[: max(shape)])[0]
        target = q if shape[1] >= shape[0] else q.T
        layer.weight = wf.tensor(target)
        np.testing.assert_allclose(layer.weight.numpy(force=True), target, atol=1e-9)


ERRORS = [
    (lambda: layer_of(Longer()), ValueError, "Longer: expected float32 of shape"),
    (lambda: layer_of(Doubled(), name="weigth"), ValueError, "no parameter or buffer 'weigth'"),
    (
        lambda: parametrize.remove_parametrizations(nn.Linear(1, 1), "weight"),
        ValueError,
        "'weight' has no parametrization",
    ),
    (
        lambda: parametrize.remove_parametrizations(
            parametrizations.weight_norm(nn.Linear(1, 1)), "weight", leave_parametrized=False
        ),
        ValueError,
        "several originals",
    ),
    (lambda: parametrizations.orthogonal(nn.Linear(2, 2), "bias"), ShapeError, "expected matrices"),
    (
        lambda: parametrizations.orthogonal(nn.Linear(2, 2), orthogonal_map="qr"),
        ValueError,
        "expected orthogonal_map matrix_exp, cayley, householder",
    ),
    (
        lambda: parametrizations.spectral_norm(nn.Linear(2, 2), n_power_iterations=0),
        ValueError,
        "expected n_power_iterations from 1",
    ),
]


@pytest.mark.parametrize(("run", "kind", "text"), ERRORS)
def test_errors(run, kind, text):
    with pytest.raises(kind, match=text):
        run()


class Pair(nn.Module):
    def forward(self, x, y):
        return x + y

    def right_inverse(self, x):
        return x, wf.zeros_like(x)


class Giving(nn.Module):
    """Its `right_inverse` returns the original value."""

    def __init__(self, give):
        super().__init__()
        self.give = give

    def forward(self, x):
        return x.float()

    def right_inverse(self, x):
        return self.give(x)


WRONG = [
    (lambda x: None, [], "a tensor or a sequence of tensors, got NoneType"),
    (lambda x: (None, x), [], "a tensor or a sequence of tensors, got NoneType"),
    (lambda x: x.to(wf.int32), [], "right_inverse: expected float32"),
    (lambda x: (x, x), [Doubled()], "right_inverse: expected one tensor"),
    (lambda x: x[:-1], [Doubled()], "right_inverse: expected float32 of shape"),
    (lambda x: x.to(wf.int32), [Doubled()], "right_inverse: expected float32"),
]


@pytest.mark.parametrize(("give", "before", "text"), WRONG)
def test_what_right_inverse_gives_is_checked(give, before, text):
    layer = layer_of(*before)
    with pytest.raises(ValueError, match=text):
        parametrize.register_parametrization(layer, "weight", Giving(give))
    assert parametrize.is_parametrized(layer) == bool(before)


def test_what_right_inverse_gives_for_an_assigned_value_is_checked():
    layer = layer_of()
    parametrize.register_parametrization(layer, "weight", Giving(lambda x: x))
    layer.parametrizations.weight[0].give = lambda x: (x, x)
    with pytest.raises(ValueError, match="expected one tensor"):
        layer.weight = wf.eye(3)
    layer.parametrizations.weight[0].give = lambda x: x.double()
    with pytest.raises(ValueError, match="expected float32"):
        layer.weight = wf.eye(3)


def test_the_original_is_the_parameter_that_an_optimizer_may_have():
    layer = nn.Linear(3, 3)
    weight = layer.weight
    parametrize.register_parametrization(layer, "weight", Doubled())
    assert layer.parametrizations.weight.original is weight


def test_values_cannot_be_assigned_where_right_inverse_says_so():
    layer = parametrizations.orthogonal(nn.Linear(3, 3), use_trivialization=False)
    with pytest.raises(NotImplementedError):
        layer.weight = wf.eye(3)


def test_transfer_shares_the_originals():
    source, target = layer_of(Pair(), Doubled()), nn.Linear(3, 3)
    source.more = nn.Parameter(wf.ones(2))
    parametrize.register_parametrization(source, "more", Doubled())
    assert parametrize.transfer_parametrizations_and_params(source, target) is target
    assert target.weight.tolist() == source.weight.tolist()
    assert target.more.tolist() == source.more.tolist()
    held = target.parametrizations.weight
    assert held.original1 is source.parametrizations.weight.original1
    parametrize.remove_parametrizations(target, "weight")
    assert parametrize.is_parametrized(source, "weight")
    assert parametrize.transfer_parametrizations_and_params(nn.Linear(1, 1), target) is target
