"""Functions along an axis on scalars, empty indices and bools, as in PyTorch."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import weft as wf  # noqa: E402
from tests.torch.tensor_case import as_array  # noqa: E402

CASES = {
    "gather": lambda m, x: m.gather(x, 0, m.tensor(0)),
    "gather_many": lambda m, x: m.gather(x, 0, m.tensor([0, 0])),
    "gather_nothing": lambda m, x: m.gather(x, 0, m.zeros((2, 0), dtype=m.int64)),
    "index_select": lambda m, x: m.index_select(x, 0, m.tensor([0])),
    "scatter": lambda m, x: m.scatter(x, 0, m.tensor(0), m.tensor(5.0)),
    "scatter_add": lambda m, x: m.scatter_add(x, -1, m.tensor([0]), m.tensor([5.0])),
    "index_add": lambda m, x: m.index_add(x, 0, m.tensor([0]), m.tensor(5.0), alpha=2),
    "index_copy": lambda m, x: m.index_copy(x, 0, m.tensor([0]), m.tensor(5.0)),
    "index_fill": lambda m, x: m.index_fill(x, 0, m.tensor(0), 5.0),
    "quantile": lambda m, x: m.quantile(x, 0.5, dim=0),
    "squeeze": lambda m, x: m.squeeze(x.reshape(1, 1), ()),
}


@pytest.mark.parametrize("name", CASES)
def test_a_scalar_is_a_row_of_one(name):
    expected = CASES[name](torch, torch.tensor(3.0))
    found = CASES[name](wf, wf.tensor(3.0))
    assert tuple(found.shape) == tuple(expected.shape)
    assert np.array_equal(as_array(found), as_array(expected))


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["sum", "prod", "amax", "amin"])
def test_bools_are_combined(reduce, include_self):
    rng = np.random.default_rng(0)
    x, source = rng.random((3, 4)) > 0.5, rng.random((2, 4)) > 0.5
    index = rng.integers(0, 3, (2, 4))

    def run(m):
        arrays = (m.from_numpy(a) for a in (index, source))
        return m.from_numpy(x).scatter_reduce(0, *arrays, reduce, include_self=include_self)

    assert np.array_equal(as_array(run(wf)), as_array(run(torch)))


@pytest.mark.parametrize("name", ["fmax", "fmin", "heaviside"])
def test_two_bools(name):
    x, y = np.array([True, True, False, False]), np.array([True, False, True, False])
    found, expected = (getattr(m, name)(m.from_numpy(x), m.from_numpy(y)) for m in (wf, torch))
    assert found.dtype == wf.bool_
    assert np.array_equal(as_array(found), as_array(expected))


def test_a_sequence_in_the_order_that_sorts_it():
    rng = np.random.default_rng(0)
    x, values = rng.random((3, 7)).astype("f"), rng.random((3, 5)).astype("f")
    order = x.argsort(1)

    def run(m):
        return m.searchsorted(*map(m.from_numpy, (x, values)), sorter=m.from_numpy(order))

    assert np.array_equal(as_array(run(wf)), as_array(run(torch)))


def test_the_gradient_of_a_pixel_goes_to_all_that_were_put_there():
    x = np.array([[[1.0, 2.0, 2.0]]], "f")
    index = np.array([[[0, 3, 3]]])

    def run(m):
        given = m.from_numpy(x.copy()).requires_grad_()
        nn = m.nn.functional
        y = nn.max_unpool1d(given, m.from_numpy(index), 2, 1)
        (y * m.arange(1.0, 5.0)).sum().backward()
        return given.grad

    assert np.array_equal(as_array(run(wf)), as_array(run(torch)))


@pytest.mark.parametrize(
    "key",
    [
        (slice(None), [0, 1], None, 0), (0, slice(None), [0, 1]), ([0, 1], slice(None), 0),
        (..., [1, 0], 0), (slice(None), 0, [1, 1]),
    ],
)  # fmt: skip
def test_integers_come_before_arrays_of_indices(key):
    x = np.arange(24.0).reshape(2, 3, 4)
    assert np.array_equal(as_array(wf.from_numpy(x)[key]), as_array(torch.from_numpy(x)[key]))
