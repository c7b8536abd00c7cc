"""Parameters and buffers share memory with the tensor that they are made from."""

import numpy as np
import pytest

import weft as wf
from weft import nn


@pytest.mark.parametrize("kind", [nn.Parameter, nn.Buffer])
@pytest.mark.parametrize("pending", [False, True])
def test_changes_of_either_are_seen_in_both(kind, pending):
    start = wf.arange(4.0)
    row = start[1:3]
    start.add_(1)
    if not pending:
        start.tolist()
    made = kind(start)
    assert made.tolist() == [1, 2, 3, 4]
    start[0] = 9
    row.mul_(2)
    assert made.tolist() == [9, 4, 6, 4]
    with wf.no_grad():
        made.neg_()
    assert start.tolist() == [-9, -4, -6, -4] and row.tolist() == [-4, -6]
    assert not start.requires_grad and start.data_ptr() == made.data_ptr()
    with wf.no_grad():
        made[2] = 0
        row[0] = 1
    assert start.tolist() == made.tolist() == [-9, 1, 0, -4]


def test_training_is_seen_in_the_tensor():
    weights = wf.tensor([[1.0, 2.0], [3.0, 4.0]])
    layer = nn.Embedding.from_pretrained(weights, freeze=False)
    optimizer = wf.optim.SGD(layer.parameters(), lr=1.0)
    for _ in range(4):
        before = weights.clone()
        layer(wf.tensor([1])).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        assert (before - weights).tolist() == [[0, 0], [1, 1]]
    assert layer.weight.tolist() == weights.tolist() == [[1, 2], [-1, 0]]


def test_rows_are_shortened_in_the_tensor():
    weights = wf.tensor([[3.0, 4.0], [0.3, 0.4]])
    layer = nn.Embedding.from_pretrained(weights, max_norm=1.0)
    np.testing.assert_allclose(layer(wf.tensor([0])).numpy(), [[0.6, 0.8]], rtol=1e-5)
    np.testing.assert_allclose(weights.numpy(), [[0.6, 0.8], [0.3, 0.4]], rtol=1e-5)


def test_a_view_or_what_needs_a_gradient_is_copied():
    base = wf.arange(4.0)
    of_view = nn.Parameter(base[:2])
    leaf = wf.ones(2, requires_grad=True)
    of_leaf = nn.Parameter(leaf)
    base.zero_()
    with wf.no_grad():
        of_leaf.zero_()
    assert of_view.tolist() == [0, 1] and leaf.tolist() == [1, 1] and leaf.is_leaf


def test_new_data_ends_the_sharing():
    start = wf.ones(2)
    made = nn.Parameter(start)
    made.data = wf.zeros(2)
    assert start.tolist() == [1, 1]
    start.add_(1)
    assert made.tolist() == [0, 0] and start.tolist() == [2, 2]


def test_memory_from_outside_is_shared_by_all():
    array = np.ones(2, np.float32)
    start = wf.from_numpy(array)
    made = nn.Parameter(start)
    with wf.no_grad():
        made.add_(1)
    assert start.tolist() == array.tolist() == [2, 2]
    array[0] = 7
    assert made.tolist() == start.tolist() == [7, 2]
