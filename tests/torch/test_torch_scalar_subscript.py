"""A scalar integer tensor is an integer in a subscript, computed or not, as in PyTorch."""

import pytest
import torch

import weft as wf


def largest(m, place):
    """The index of the largest element, which is not computed yet."""
    return m.argmax(m.nn.functional.one_hot(m.tensor(place), 3).float())


KEYS = [
    lambda m: (slice(None), largest(m, 1)), lambda m: (largest(m, 2),),
    lambda m: (largest(m, 1), slice(None), m.tensor([0, 2])),
    lambda m: (m.tensor([0, 1]), slice(None), largest(m, 1)),
    lambda m: (slice(None), largest(m, 0), m.tensor([0, 2])),
    lambda m: (largest(m, 1), None, m.tensor([1])), lambda m: (..., largest(m, 1)),
    lambda m: (largest(m, 0), largest(m, 1), largest(m, 2)),
    lambda m: (largest(m, 1), m.tensor([0, 1]), slice(1, 3)),
    lambda m: (-largest(m, 1), slice(None), 0), lambda m: (largest(m, 1), m.arange(4) > 1),
    lambda m: (largest(m, 1), ..., m.tensor([0, 2])),
]  # fmt: skip
VALUES = [
    lambda m, shape: m.full(shape, -1), lambda m, shape: m.full(shape, 2.5), lambda m, shape: 7,
    lambda m, shape: m.tensor(3),
]  # fmt: skip


def results(m, key, value):
    x = m.arange(48.0).reshape(3, 4, 4)
    part = x[key(m)]
    try:
        x[key(m)] = value(m, tuple(part.shape))
    except (IndexError, RuntimeError, TypeError):  # index arrays take values of the same type only
        return part.tolist(), None
    return part.tolist(), x.tolist()


@pytest.mark.parametrize("key", KEYS)
def test_reads_and_assignments(key):
    for value in VALUES:
        for _ in range(3):
            assert results(wf, key, value) == results(torch, key, value)


def test_gradients_of_assignments():
    def gradients(m):
        x, w = m.zeros(3, 2, requires_grad=True), m.ones(2, requires_grad=True)
        y = x * 3
        y[largest(m, 1)] = w * 2
        y[:, largest(m, 0)] = m.full((3,), -1)
        (y * y + y).sum().backward()
        return x.grad.tolist(), w.grad.tolist()

    for _ in range(3):
        assert gradients(wf) == gradients(torch)
