"""Gradient clipping, parameter vectors, sequence padding, weight norm."""

import math

import numpy as np
import pytest

import weft as wf
from weft import nn
from weft.errors import GradientError, ShapeError
from weft.nn import utils


def parameters(*arrays):
    found = []
    for array in arrays:
        p = nn.Parameter(np.zeros_like(array))
        p.grad = wf.tensor(array)
        found.append(p)
    return found


A = np.array([[3.0, -4.0]], np.float32)
B = np.array([12.0], np.float32)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, math.inf])
def test_norm_of_gradients(p):
    both = np.concatenate([A.ravel(), B])
    norm = np.linalg.norm(both, p)
    given = [*parameters(A, B), nn.Parameter(B)]
    total = utils.clip_grad_norm_(given, norm / 2, norm_type=p)
    assert total.item() == pytest.approx(norm)
    np.testing.assert_allclose(given[0].grad.numpy(), A / 2, rtol=1e-5)
    assert utils.clip_grad_norm_(given, 100).item() < 100
    np.testing.assert_allclose(given[1].grad.numpy(), B / 2, rtol=1e-5)
    assert utils.get_total_norm([wf.tensor(A)]).item() == 5


def test_norms_of_nothing_and_of_what_is_not_finite():
    assert utils.clip_grad_norm_([], 1.0).item() == 0
    with pytest.raises(GradientError, match="the norm of the gradients is nan"):
        utils.clip_grad_norm_(parameters(A * np.nan), 1.0, error_if_nonfinite=True)


def test_values_of_gradients():
    p, q = parameters(A, B)
    utils.clip_grad_value_([p, q], 3.5)
    assert p.grad.tolist() == [[3, -3.5]] and q.grad.tolist() == [3.5]


def test_vectors():
    layer = nn.Linear(2, 3)
    vector = utils.parameters_to_vector(layer.parameters())
    assert vector.shape == (9,) and vector.requires_grad
    utils.vector_to_parameters(wf.arange(9.0), layer.parameters())
    assert layer.bias.tolist() == [6, 7, 8] and layer.weight.requires_grad
    layer(wf.ones(1, 2)).sum().backward()
    assert layer.bias.grad.tolist() == [1, 1, 1]
    with pytest.raises(ShapeError, match="a vector of 9 elements, got"):
        utils.vector_to_parameters(wf.ones(4), layer.parameters())


def test_sequences():
    x = [wf.ones(2, 3), wf.ones(4, 3)]
    y = utils.rnn.pad_sequence(x, padding_value=-1.0)
    assert y.shape == (4, 2, 3) and y[2:, 0].tolist() == [[-1.0] * 3] * 2
    left = utils.rnn.pad_sequence(x, batch_first=True, padding_side="left")
    assert left[0, :, 0].tolist() == [0, 0, 1, 1]
    with pytest.raises(ShapeError, match="entries of one shape"):
        utils.rnn.pad_sequence([wf.ones(1, 2), wf.ones(1, 3)])


def test_weight_norm():
    layer = nn.Linear(3, 2)
    x, before = wf.ones(1, 3), layer.weight.detach().numpy().copy()
    y = layer(x).detach().numpy()
    assert utils.weight_norm(layer) is layer
    assert list(layer.state_dict()) == ["bias", "weight_g", "weight_v"]
    assert layer.weight_g.shape == (2, 1)
    np.testing.assert_allclose(layer(x).detach().numpy(), y, rtol=1e-5)
    layer(x).sum().backward()
    assert layer.weight_g.grad is not None and layer.weight_v.grad is not None
    utils.remove_weight_norm(layer)
    np.testing.assert_allclose(layer.weight.detach().numpy(), before, rtol=1e-5)
    with pytest.raises(ValueError, match="there is none of 'weight' in Linear"):
        utils.remove_weight_norm(layer)


def test_spectral_norm():
    layer = utils.spectral_norm(nn.Linear(3, 4))
    for _ in range(3):
        layer(wf.ones(1, 3)).sum().backward()
    largest = np.linalg.svd(layer.weight.detach().numpy(), compute_uv=False)[0]
    assert largest == pytest.approx(1, rel=1e-4)
    utils.remove_spectral_norm(layer.eval())
    assert sorted(layer.state_dict()) == ["bias", "weight"]


def test_a_packed_sequence_that_has_the_type_already():
    packed = nn.utils.rnn.pack_sequence([wf.tensor([1.0, 2.0]), wf.tensor([3.0])])
    assert packed.to("cpu") is packed.float() is packed
    assert packed.long().data.dtype == wf.int64 and packed.long().batch_sizes is packed.batch_sizes
    with pytest.raises(RuntimeError, match="expected several sequences, got int"):
        nn.utils.rnn.pad_sequence(5)
