"""Value-dependent functions with static result shapes: `vmap` equals a loop."""

import numpy as np
import pytest

import weft as wf

torch = pytest.importorskip("torch")

X = np.random.default_rng(0).uniform(-2, 2, (3, 4, 4)).astype(np.float32)
MAPPED = {
    "histc": lambda m, x: m.histc(x, 5),
    "histc between limits": lambda m, x: m.histc(x, 5, -1, 2),
    "histogram": lambda m, x: m.histogram(x, 4),
    "histogram of a range": lambda m, x: m.histogram(x, 4, range=(-1.0, 1.0), density=True),
    "histogram of limits": lambda m, x: m.histogram(x, m.tensor([-1.0, 0.5, 2.0]), weight=x * x),
    "histogram of own limits": lambda m, x: m.histogram(x, m.sort(x[0])[0]),
    "masked_scatter": lambda m, x: m.masked_scatter(x, x > 0, x * 10),
    "masked_scatter of a row": lambda m, x: m.masked_scatter(x, x[0] > 0, x * 10),
    "nonzero_static": lambda m, x: m.nonzero_static(x > 1, size=5),
    "nonzero_static filled": lambda m, x: (x > 0).nonzero_static(size=16, fill_value=7),
    "take_along_dim": lambda m, x: m.take_along_dim(x, m.argsort(x[1]).reshape(2, 2)),
    "geqrf": lambda m, x: m.geqrf(x),
    "lstsq": lambda m, x: m.linalg.lstsq(x[:, :2], x[:, 2:], driver="gelsd"),
}


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("name", MAPPED)
@pytest.mark.parametrize("tracked", [False, True])
def test_examples_are_computed_as_in_a_loop(name, tracked):
    def found(m):
        x = m.tensor(X, requires_grad=tracked)
        one = MAPPED[name]
        many = m.func.vmap(lambda x: one(m, x))(x)
        return many if isinstance(many, tuple) else (many,)

    x = wf.tensor(X)
    rows = [MAPPED[name](wf, x[i]) for i in range(3)]
    loop = (
        [wf.stack([*parts]) for parts in zip(*rows, strict=True)]
        if isinstance(rows[0], tuple)
        else [wf.stack(rows)]
    )
    for ours, theirs, each in zip(found(wf), found(torch), loop, strict=True):
        np.testing.assert_allclose(ours.detach().numpy(), each.numpy(), rtol=2e-5, atol=2e-6)
        if name != "geqrf":  # signs may differ
            np.testing.assert_allclose(
                ours.detach().numpy(), theirs.detach().numpy(), rtol=2e-4, atol=2e-5
            )


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_gradients_of_scattered_examples():
    def slopes(m):
        x = m.tensor(X, requires_grad=True)
        y = m.func.vmap(lambda x: m.masked_scatter(x, x > 0, x * x))(x)
        (y * m.tensor(X[::-1].copy())).sum().backward()
        return x.grad.numpy()

    np.testing.assert_allclose(slopes(wf), slopes(torch), rtol=1e-5)


def test_what_has_no_gradient_raises_in_the_backward_pass():
    x = wf.tensor(X, requires_grad=True)
    found = wf.func.vmap(lambda x: wf.geqrf(x)[0] + x)(x)
    with pytest.raises(wf.errors.UndefinedRuleError, match="geqrf: has no gradient"):
        found.sum().backward()
        x.grad.tolist()


def test_what_does_not_fit_raises_when_it_is_known():
    x = wf.tensor(X)
    with pytest.raises(wf.errors.WeftError, match="expected 0 <= index < 4, got 4"):
        wf.func.vmap(lambda x: wf.masked_scatter(x, x > -9, x[0]))(x).tolist()
    with pytest.raises(wf.errors.ShapeError, match="finite limits"):
        wf.histc(wf.tensor([1.0, float("nan")])).tolist()
    for m in (wf, torch):
        with pytest.raises(RuntimeError):
            m.gradient(m.ones(3, 3), spacing=[0.1], dim=(1, 0))


TURNED = {
    "unsqueeze_": lambda x: x.unsqueeze_(0),
    "squeeze_": lambda x: x.unsqueeze_(1).squeeze_(),
    "t_": lambda x: x.t_().mul_(2),
    "added": lambda x: x.unsqueeze_(0).add_(1),
    "within": lambda x: (x.add_(1).unsqueeze_(-1), x)[1],
    "other": lambda x: (x.unsqueeze_(0).mul_(3), x * 1)[1],
}


@pytest.mark.parametrize("name", TURNED)
@pytest.mark.parametrize("dim", [0, -1])
def test_arguments_that_functions_turn_in_place(name, dim):
    def found(m):
        x = m.tensor(X.copy())[:, :2].clone()
        y = m.func.vmap(TURNED[name], dim)(x)
        return y.tolist(), x.tolist()

    ours, theirs = found(wf), found(torch)
    assert ours[0] == theirs[0]
    if dim == 0:  # else PyTorch moves the axis of examples, too
        assert ours[1] == theirs[1]


def test_arguments_that_all_examples_share_are_turned_once():
    def found(m):
        x, y = m.tensor(X[0]), m.ones(3)
        z = m.func.vmap(m.func.vmap(lambda x, y: x.unsqueeze_(0) * 1, (0, None)), (None, 0))(x, y)
        return z.tolist()

    assert found(wf) == found(torch)


def test_arguments_that_traced_functions_turn_in_place():
    for turn in TURNED.values():
        x, y = wf.tensor(X[0, :2].copy()), wf.tensor(X[0, :2].copy())
        assert wf.func.jit(turn)(x).tolist() == turn(y).tolist()
        assert x.tolist() == y.tolist()
    base = wf.arange(4.0)
    row = base[:2]
    wf.func.jit(TURNED["added"])(row)
    assert row.tolist() == [[1, 2]] and base.tolist() == [1, 2, 2, 3]
    with pytest.raises(wf.errors.ShapeError, match=r"clone\(\) it first"):
        wf.func.jit(TURNED["t_"])(wf.zeros(4, 3)[:2])
