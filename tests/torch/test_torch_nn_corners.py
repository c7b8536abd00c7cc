"""Corners of layers and losses that PyTorch's own tests look into, beside PyTorch."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
prune = pytest.importorskip("torch.nn.utils.prune")

import weft as wf  # noqa: E402
from weft.nn.utils import prune as own_prune  # noqa: E402

BOTH = (wf, torch)


def alike(run, atol=1e-6):
    """The values of `run(wf)` are those of `run(torch)`."""
    mine, theirs = ([np.asarray(x.detach()) for x in run(m)] for m in BOTH)
    for x, y in zip(mine, theirs, strict=True):
        assert x.shape == y.shape
        np.testing.assert_allclose(x, y, atol=atol)


def refused(run, kind=RuntimeError):
    """Both refuse it."""
    for m in BOTH:
        with pytest.raises(kind):
            run(m)


def numbers(m, *shape, seed=0, dtype="float32"):
    return m.tensor(np.random.default_rng(seed).normal(size=shape).astype(dtype))


@pytest.mark.parametrize("given", ["both", "k", "v"])
def test_keys_and_values_of_attention_that_are_not_projected(given):
    def run(m):
        x = numbers(m, 3, 2, 6)
        static = {"static_k": numbers(m, 4, 5, 3, seed=1), "static_v": numbers(m, 4, 5, 3, seed=2)}
        if given != "both":
            static = {f"static_{given}": numbers(m, 4, 3, 3, seed=1)}
        y, weights = m.nn.functional.multi_head_attention_forward(
            x, x, x, 6, 2, numbers(m, 18, 6), None, None, None, False, 0.0, numbers(m, 6, 6), None,
            **static,
        )  # fmt: skip
        return y, weights

    alike(run)


def test_keys_of_attention_that_do_not_fit():
    def forward(m, shape, bias=None):
        x = m.ones(3, 2, 6)
        m.nn.functional.multi_head_attention_forward(
            x, x, x, 6, 2, m.ones(18, 6), None, bias, bias, False, 0.0, m.ones(6, 6), None,
            static_k=m.ones(*shape), static_v=m.ones(*shape),
        )  # fmt: skip

    for shape in ((4, 5, 2), (3, 5, 3)):
        refused(lambda m, s=shape: forward(m, s), (AssertionError, ValueError))
    refused(lambda m: forward(m, (4, 5, 3), m.ones(1, 1, 6)), (AssertionError, ValueError))


@pytest.mark.parametrize("name", ["RNNCell", "LSTMCell", "GRUCell"])
def test_states_of_cells_do_not_broadcast(name):
    def run(m, *shape):
        state = m.ones(*shape)
        cell = getattr(m.nn, name)(2, 3)
        cell(m.ones(4, 2), (state, state) if name == "LSTMCell" else state)

    for shape in ((1, 3), (4, 1), (3,)):
        refused(lambda m, s=shape: run(m, *s))


def test_weights_of_recurrent_layers_may_be_computed_from_others():
    def run(m):
        layer = m.nn.LSTM(3, 2)
        for i, weight in enumerate(layer.parameters()):
            weight.data = numbers(m, *weight.shape, seed=i)
        pruning = own_prune if m is wf else prune
        pruning.l1_unstructured(layer, "weight_ih_l0", 0.5)
        pruned = sum(not isinstance(w, m.nn.Parameter) for w in layer._flat_weights)
        y, (h, _) = layer(numbers(m, 4, 1, 3))
        pruning.remove(layer, "weight_ih_l0")
        assert pruned == 1 and len(layer._flat_weights) == 4
        return y, h, layer.weight_ih_l0

    alike(run)


def test_lists_of_tensors_of_one_element():
    for given in ([[1.0]], [[1.0], [2.0]], [[[1.0]]], [1.0, [2.0]]):
        alike(lambda m, g=given: [m.tensor([m.tensor(x) for x in g])])
