"""Random programs of views and in-place changes: every live tensor equals PyTorch's."""

import numpy as np
import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st
from strategies import at_most

torch = pytest.importorskip("torch")

import weft as wf  # noqa: E402
from tests.torch.tensor_case import agree, as_array, draw  # noqa: E402

pytestmark = pytest.mark.usefixtures("interpreted")


def key_for(dims, draw):
    """A subscript of integers, slices, `None` and `...` for these dimensions."""
    key = []
    for d in dims[: draw(st.integers(0, len(dims)))]:
        kind = draw(st.sampled_from(["int", "slice", "whole"]))
        if kind == "int" and d:
            key.append(draw(st.integers(-d, d - 1)))
        elif kind == "slice":
            key.append(slice(draw(st.integers(-d, d)), None, draw(st.integers(1, 2))))
        else:
            key.append(slice(None))
    if draw(st.booleans()):
        key.insert(draw(st.integers(0, len(key))), None)
    return tuple(key) or (...,)


def a_view(dims, draw):
    """A function that gives a view of a tensor."""
    rank, key = len(dims), key_for(dims, draw)
    options = [
        lambda x: x[key],
        lambda x: x.unsqueeze(0),
        lambda x: x.squeeze(),
    ]
    if rank:
        axis = draw(st.integers(0, rank - 1))
        perm = draw(st.permutations(range(rank)))
        options += [
            lambda x: x.permute(*perm),
            lambda x: x.transpose(0, axis),
            lambda x: x.select(axis, 0) if dims[axis] else x[...],
            lambda x: x.narrow(axis, 0, dims[axis] // 2),
            lambda x: x.chunk(2, axis)[0],
            lambda x: x.view(-1) if x.is_contiguous() else x[...],
            lambda x: x.view(*dims[:axis], 1, *dims[axis:]) if x.is_contiguous() else x[...],
            lambda x: x.detach(),
            lambda x: x.data,
        ]
    if rank > 1:
        options.append(lambda x: x.diagonal(0, 0, 1))
    return draw(st.sampled_from(options))


def a_change(dims, draw, value):
    """A function that changes a tensor in place; `value` has its dtype."""
    key = key_for(dims, draw)
    options = [
        lambda m, x: x.add_(value), lambda m, x: x.mul_(value), lambda m, x: x.zero_(),
        lambda m, x: x.fill_(value), lambda m, x: x.__setitem__(key, value),
        lambda m, x: x.__setitem__(key, x[key] * 2), lambda m, x: x.add_(x),
        lambda m, x: x.__iadd__(value), lambda m, x: x.__getitem__(key).mul_(3),
        lambda m, x: x.copy_(m.ones_like(x)), lambda m, x: x.clamp_(-2, 2.5),
        lambda m, x: x.masked_fill_(x > 1, value), lambda m, x: x.neg_(),
        lambda m, x: x.__setitem__(x < 0, value),
    ]  # fmt: skip
    return draw(st.sampled_from(options))


@given(st.data())
@at_most(60, phases=[Phase.generate])
def test_programs_of_views_and_changes(data):
    draw = data.draw
    dims = draw(st.sampled_from([(3, 4), (2, 3, 2), (4,), (2, 1, 3), (0, 2)]))
    start = np.arange(np.prod(dims), dtype=np.float32).reshape(dims) / 4 - 1
    live = [(torch.tensor(start), wf.tensor(start))]
    for step in range(draw(st.integers(2, 8))):
        theirs, ours = live[draw(st.integers(0, len(live) - 1))]
        kind = draw(st.sampled_from(["view", "view", "change", "change", "use", "look"]))
        if kind == "view":
            view = a_view(tuple(theirs.shape), draw)
            live.append((view(theirs), view(ours)))
        elif kind == "change":
            change = a_change(tuple(theirs.shape), draw, float(step) - 2.5)
            change(torch, theirs)
            change(wf, ours)
        elif kind == "use":
            # PyTorch's result has the strides of its input, Weft's is contiguous.
            live.append(((theirs * 2 + 1).contiguous(), ours * 2 + 1))
        else:
            np.testing.assert_array_equal(as_array(ours), as_array(theirs))
    for theirs, ours in live:
        assert tuple(ours.shape) == tuple(theirs.shape)
        assert ours.is_contiguous() == theirs.is_contiguous()
        np.testing.assert_allclose(as_array(ours), as_array(theirs), rtol=1e-6)


@given(st.data())
@at_most(40, phases=[Phase.generate])
def test_gradients_of_programs_with_changes(data):
    """Linear changes of views of an inner value: what flows back to the leaf is PyTorch's."""
    draw = data.draw
    start = np.arange(12, dtype=np.float32).reshape(3, 4) / 4 - 1
    leaf = torch.tensor(start, requires_grad=True)
    live, steps = [leaf * 1], []
    try:
        for number in range(draw(st.integers(1, 6))):
            place = draw(st.integers(0, len(live) - 1))
            x = live[place]
            dims, value = tuple(x.shape), float(number) - 2.5
            is_view = draw(st.booleans())
            step = a_view(dims, draw) if is_view else a_linear_change(dims, draw, value)
            steps.append((place, is_view, step))
            found = step(x)
            live += [found] if is_view else []
        expected = total(live)
        expected.backward()
    except RuntimeError:
        return  # PyTorch raises for some changes of views that one call made
    ours = wf.tensor(start, requires_grad=True)
    mine = [ours * 1]
    for place, is_view, step in steps:
        found = step(mine[place])
        mine += [found] if is_view else []
    for x, y in zip(mine, live, strict=True):
        assert x.requires_grad == y.requires_grad
        np.testing.assert_allclose(as_array(x), as_array(y), rtol=1e-6)
    total(mine).backward()
    np.testing.assert_allclose(ours.grad.numpy(), leaf.grad.numpy(), rtol=1e-5)


def total(tensors):
    return sum([(x * (i + 1)).sum() for i, x in enumerate(tensors) if x.requires_grad])


def a_linear_change(dims, draw, value):
    """A function that changes a tensor in place, differentiably in PyTorch."""
    key = key_for(dims, draw)
    options = [
        lambda x: x.add_(value), lambda x: x.mul_(value), lambda x: x.zero_(), lambda x: x.neg_(),
        lambda x: x.__setitem__(key, value), lambda x: x[key].mul_(2),
        lambda x: x.__setitem__(key, x[key].clone() * 3), lambda x: x.add_(x.clone()),
        lambda x: x.masked_fill_(x > 0, 1.0), lambda x: x.fill_(value),
    ]  # fmt: skip
    return draw(st.sampled_from(options))


def test_changing_a_leaf_that_needs_a_gradient_raises():
    w = wf.ones(3, requires_grad=True)
    for change in (lambda: w.add_(1), lambda: w[0].zero_(), lambda: w.__setitem__(0, 1.0)):
        with pytest.raises(RuntimeError, match="inside no_grad"):
            change()
    with wf.no_grad():
        w.add_(1)
        w[0] = 5
    w.data.mul_(2)
    assert w.requires_grad and w.is_leaf and w.tolist() == [10, 4, 4]


SHAPED = [
    lambda m, x: x.unsqueeze_(1).squeeze_(1).t_().transpose_(0, 1),
    lambda m, x: x.t_().zero_(),
    lambda m, x: x[1:].unsqueeze_(0).add_(1),
    lambda m, x: x.t()[1:].t_().mul_(2),
    lambda m, x: x.index_put_((m.tensor([0, 1]), m.tensor([2, 2])), m.tensor(9.0)),
    lambda m, x: x.index_put_((m.tensor([1, 1]),), m.tensor(9.0), accumulate=True),
    lambda m, x: x.scatter_reduce_(0, m.tensor([[0, 1]]), m.ones(1, 2), "sum"),
    lambda m, x: x.scatter_(1, m.tensor([[2], [0], [1]]), 7.0),
    lambda m, x: x.masked_scatter_(x > 0, m.arange(12.0)),
    lambda m, x: x.index_add_(0, m.tensor([0, 0]), m.ones(2, 4)),
    lambda m, x: x.addmm_(m.ones(3, 2), m.ones(2, 4), beta=2),
    lambda m, x: x.tril_().cumsum_(1),
]


@pytest.mark.parametrize("number", range(len(SHAPED)))
def test_changes_of_shape_and_at_positions(number):
    def run(m, x):
        x = x.detach().clone()
        y = SHAPED[number](m, x)
        return x, y, x + 1

    agree(run, draw((3, 4)), grad=False)


def trained(m, make):
    """A leaf that is a view, trained; the contents of its base; whether it is a leaf."""
    base = m.tensor([0.3, -0.5, 0.7], requires_grad=True) * 2
    leaf = make(base).requires_grad_()
    optimizer = m.optim.Adam([leaf], lr=0.1)
    gradients = []
    for _ in range(5):
        optimizer.zero_grad()
        (leaf * leaf).sum().backward()
        gradients.append(leaf.grad.tolist())
        optimizer.step()
    return [*gradients, base.tolist(), leaf.tolist(), [leaf.is_leaf]]


@pytest.mark.parametrize(
    "make", [lambda x: x.detach(), lambda x: x.detach()[1:], lambda x: x.data.view(3, 1)]
)
def test_views_that_are_leaves_are_trained(make):
    found, expected = trained(wf, make), trained(torch, make)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_a_leaf_stays_one_when_its_base_changes():
    for m in (wf, torch):
        x = m.ones(3)
        leaf = x.detach().requires_grad_()
        seen = []
        leaf.register_hook(lambda g, seen=seen: seen.append(g.tolist()))
        x.mul_(2)
        with m.no_grad():
            leaf.add_(1)
        assert leaf.requires_grad
        assert leaf.is_leaf
        assert not x.requires_grad
        leaf.square().sum().backward()
        assert leaf.grad.tolist() == [6, 6, 6]
        assert seen == [[6, 6, 6]]
        assert x.tolist() == [3, 3, 3]


@pytest.mark.parametrize(
    "turn",
    [
        lambda x: x.t_(),
        lambda x: x.unsqueeze_(0),
        lambda x: x.t_().unsqueeze_(1),
        lambda x: x.as_strided_((2, 1), (1, 1)),
        lambda x: x.add_(1).t_().mul_(2),
    ],
)
def test_views_of_a_tensor_that_turns_in_place_show_what_they_did(turn):
    def found(m):
        x = m.arange(4.0).reshape(2, 2).clone()
        row, plain, flat = x[0], x.detach(), x.view(-1)
        turn(x)
        shown = [v.tolist() for v in (row, plain, flat, x)]
        row.add_(10)
        flat[2] = -1
        x.mul_(3)
        plain[1, 1] = 7
        return shown, [v.tolist() for v in (row, plain, flat, x, x[0])], x.stride()

    assert found(wf) == found(torch)
