"""Quantiles with gradients or `vmap`, as in PyTorch."""

import numpy as np
import pytest

import weft as wf

torch = pytest.importorskip("torch")

METHODS = ["linear", "lower", "higher", "nearest", "midpoint"]
AXES = [{}, {"dim": 1}, {"dim": 0, "keepdim": True}]
names = pytest.mark.parametrize("name", ["quantile", "nanquantile"])


@names
@pytest.mark.parametrize("parts", [[0.3, 0.77], 0.4])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("axes", AXES)
def test_gradients_by_the_parts(name, parts, method, axes):
    last = np.nan if name == "nanquantile" else 9

    def found(m):
        rows = [[1.0, 5, 2, 7], [3, 8, 4, last], [2, 2, 9, 1]]
        x = m.tensor(rows, dtype=m.float64, requires_grad=True)
        q = m.tensor(parts, dtype=m.float64, requires_grad=True)
        y = getattr(m, name)(x, q, interpolation=method, **axes)
        y.square().sum().backward()
        slope = m.zeros_like(q) if q.grad is None else q.grad
        return [v.detach().numpy() for v in (y, x.grad, slope)]

    for ours, theirs in zip(found(wf), found(torch), strict=True):
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@names
@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_parts_of_examples(name):
    x, q = np.arange(12.0).reshape(3, 4), np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.9]])
    for chosen in (q, q[:, 0]):
        ours, theirs = (
            m.func.vmap(getattr(m, name))(m.tensor(x), m.tensor(chosen)).numpy()
            for m in (wf, torch)
        )
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    x[1, 1] = np.nan
    ours = wf.func.vmap(getattr(wf, name))(wf.tensor(x), wf.tensor(q)).numpy()
    assert np.isnan(ours[1]).all() == (name == "quantile") and not np.isnan(ours[::2]).any()


@names
def test_parts_outside_raise_when_they_are_known(name):
    x = wf.ones(2, 3)
    with pytest.raises(wf.errors.OutOfRangeError, match="from 0 to 1, got 1 other"):
        wf.func.vmap(getattr(wf, name))(x, wf.tensor([0.5, 1.5])).tolist()
    with pytest.raises(wf.errors.OutOfRangeError, match="from 0 to 1, got 1 other"):
        getattr(wf, name)(x, wf.tensor([-1.0], requires_grad=True)).tolist()
    q = wf.tensor(0.5, dtype=wf.float64, requires_grad=True)
    assert getattr(wf, name)(x, q).dtype is wf.float32
