"""Pruning beside PyTorch's."""

import numpy as np
import pytest

import weft as wf
from weft import nn

torch = pytest.importorskip("torch")
__import__("torch.nn.utils.prune")


def both(make):
    ours, theirs = make(nn), make(torch.nn)
    theirs.load_state_dict({k: torch.tensor(v.numpy()) for k, v in ours.state_dict().items()})
    return ours, theirs


def same(ours, theirs):
    expected = {k: v.numpy() for k, v in theirs.state_dict().items()}
    actual = {k: v.numpy() for k, v in ours.state_dict().items()}
    assert list(actual) == list(expected)
    for name, value in expected.items():
        np.testing.assert_array_equal(actual[name], value)


CHAINS = {
    "least": [("l1_unstructured", (0.3,)), ("l1_unstructured", (4,))],
    "slices": [("ln_structured", (0.5, 2, 0)), ("ln_structured", (1, 1, -1))],
    "mixed": [("ln_structured", (1, float("inf"), 1)), ("l1_unstructured", (0.5,))],
    "none": [("identity", ()), ("l1_unstructured", (0,)), ("l1_unstructured", (1.0,))],
}


@pytest.mark.parametrize("steps", CHAINS.values(), ids=CHAINS)
def test_one_parameter(steps):
    pair = both(lambda nn: nn.Conv2d(3, 4, 2))
    for name, args in steps:
        for lib, module in zip((nn, torch.nn), pair, strict=True):
            getattr(lib.utils.prune, name)(module, "weight", *args)
        same(*pair)
        np.testing.assert_array_equal(*[m.weight.detach().numpy() for m in pair])
    for lib, module in zip((nn, torch.nn), pair, strict=True):
        lib.utils.prune.remove(module, "weight")
    same(*pair)


def test_several_parameters_as_one():
    pair = both(lambda nn: nn.Sequential(nn.Linear(5, 4), nn.Linear(4, 3)))
    for amount in (0.4, 3):
        for lib, m in zip((nn, torch.nn), pair, strict=True):
            lib.utils.prune.global_unstructured(
                [(m[0], "weight"), (m[1], "weight"), (m[0], "bias")],
                lib.utils.prune.L1Unstructured,
                amount=amount,
            )
        same(*pair)


def test_scores_and_masks():
    layer = nn.Linear(3, 2, bias=False)
    nn.utils.prune.l1_unstructured(
        layer, "weight", 2, importance_scores=wf.tensor([[5.0, 1, 4], [3, 2, 6]])
    )
    assert layer.weight_mask.tolist() == [[1, 0, 1], [1, 0, 1]]
    nn.utils.prune.custom_from_mask(layer, "weight", wf.tensor([[0, 1, 1], [1, 1, 1]]))
    assert layer.weight_mask.tolist() == [[0, 0, 1], [1, 0, 1]]
    assert layer.weight.tolist() == (layer.weight_orig * layer.weight_mask).tolist()


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_what_is_drawn(dim):
    wf.manual_seed(3)
    layer = nn.Conv1d(4, 6, 8)
    nn.utils.prune.random_structured(layer, "weight", 0.5, dim)
    zeros = (layer.weight_mask == 0).numpy()
    others = tuple(d for d in range(3) if d != dim % 3)
    assert zeros.all(axis=others).sum() == zeros.shape[dim] // 2
    assert zeros.any(axis=others).sum() == zeros.shape[dim] // 2
    nn.utils.prune.random_unstructured(layer, "bias", 2)
    assert (layer.bias_mask == 0).sum() == 2


def test_only_what_is_left_is_trained():
    layer = nn.Linear(3, 1, bias=False)
    weight = layer.weight
    nn.utils.prune.custom_from_mask(layer, "weight", wf.tensor([[1.0, 0.0, 1.0]]))
    assert next(layer.parameters()) is weight and nn.utils.prune.is_pruned(nn.Sequential(layer))
    with wf.no_grad():
        weight.fill_(2)
    y = layer(wf.tensor([[1.0, 10.0, 100.0]]))
    y.backward()
    assert y.item() == 202 and weight.grad.tolist() == [[1, 0, 100]]
    nn.utils.prune.remove(layer, "weight")
    assert layer.weight is weight and weight.tolist() == [[2, 0, 2]]
    assert not nn.utils.prune.is_pruned(layer)


@pytest.mark.parametrize("amount", [-1, 1.5, "many"])
def test_amounts(amount):
    for lib in (nn, torch.nn):
        with pytest.raises((ValueError, TypeError)) as caught:
            lib.utils.prune.L1Unstructured(amount)
        assert issubclass(caught.type, TypeError if amount == "many" else ValueError)


def test_faults():
    layer = nn.Linear(2, 2)
    prune = nn.utils.prune
    with pytest.raises(ValueError, match="of at most 4"):
        prune.l1_unstructured(layer, "weight", 5)
    assert [name for name, _ in layer.named_parameters()] == ["weight", "bias"]
    with pytest.raises(ValueError, match="rank 2"):
        prune.ln_structured(layer, "bias", 1, 2, 0)
    with pytest.raises(IndexError, match="dimension"):
        prune.ln_structured(layer, "weight", 1, 2, 2)
    with pytest.raises(ValueError, match="is not pruned"):
        prune.remove(layer, "weight")
    with pytest.raises(wf.errors.ShapeError, match="expected scores"):
        prune.l1_unstructured(layer, "weight", 1, importance_scores=wf.ones(3))
    with pytest.raises(TypeError, match="unstructured method"):
        prune.global_unstructured([(layer, "weight")], prune.RandomStructured, amount=1)
    prune.identity(layer, "weight")
    with pytest.raises(ValueError, match="of at most"):
        prune.l1_unstructured(layer, "weight", 5)
    assert next(iter(layer._forward_pre_hooks.values())).PRUNING_TYPE == "unstructured"
