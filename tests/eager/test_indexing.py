"""Indexing and views of tensors against NumPy's; NumPy arrays share memory as views do."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import at_most

import weft as wf
from weft.eager.record.pending.state import trace
from weft.eager.record.run import tier_choice
from weft.eager.tensor.view.view import View
from weft.errors import DTypeError, OutOfRangeError, ShapeError, SubscriptError

drawn = at_most(30)
DIMS = [(3, 4), (2, 3, 2), (5,), (2, 1, 3), (0, 2)]


@st.composite
def keys(draw, dims, advanced=True):
    """A subscript for an array of these dimensions."""
    key = []
    for d in dims[: draw(st.integers(0, len(dims)))]:
        kinds = ["slice", "whole"] + ["int"] * (d > 0) + ["array", "mask"] * (advanced and d > 0)
        kind = draw(st.sampled_from(kinds))
        if kind == "int":
            key.append(draw(st.integers(-d, d - 1)))
        elif kind == "slice":
            step = draw(st.sampled_from([1, 2, -1, -2, None]))
            bounds = draw(st.tuples(*[st.none() | st.integers(-d - 1, d + 1)] * 2))
            key.append(slice(*bounds, step))
        elif kind == "array":
            key.append(np.array(draw(st.lists(st.integers(-d, d - 1), min_size=2, max_size=2))))
        elif kind == "mask":
            key.append(np.arange(d) < 2 if d >= 2 else np.array([0, 0]))
        else:
            key.append(slice(None))
    if draw(st.booleans()):
        key.insert(draw(st.integers(0, len(key))), None)
    if draw(st.booleans()) and len(key) < 4:
        key.append(...)
    # Integers beside arrays and others: PyTorch puts the axes elsewhere than NumPy.
    kinds = {type(k) for k in key}
    assume(not ({int, np.ndarray} <= kinds and len(kinds) > 2))
    return tuple(key)


def numbers(dims):
    return np.arange(np.prod(dims), dtype=np.float32).reshape(dims)


@given(st.data())
@drawn
def test_reading(data):
    dims = data.draw(st.sampled_from(DIMS))
    a = numbers(dims)
    key = data.draw(keys(dims))
    np.testing.assert_array_equal(wf.tensor(a)[key].numpy(), a[key])
    pending = wf.tensor(a) + 1
    np.testing.assert_array_equal(pending[key].numpy(), a[key] + 1)
    leaf = wf.tensor(a, requires_grad=True)
    part = leaf[key]
    np.testing.assert_array_equal(part.numpy(force=True), a[key])
    part.sum().backward()
    expected = np.zeros(dims, np.float32)
    np.add.at(expected, key, 1)
    np.testing.assert_array_equal(leaf.grad.numpy(), expected)


@given(st.data())
@drawn
def test_assignment(data):
    dims = data.draw(st.sampled_from(DIMS))
    a = numbers(dims)
    key = data.draw(keys(dims))
    x, pending = wf.tensor(a), wf.tensor(a) * 1
    value = data.draw(st.sampled_from([7.0, "part"]))
    if isinstance(value, str):
        value = -a[key] - 1
    b = a.copy()
    b[key] = value
    for y in (x, pending):
        y[key] = wf.tensor(value) if data.draw(st.booleans()) else value
        np.testing.assert_array_equal(y.numpy(), b)


@given(st.data())
@drawn
def test_views_and_bases_see_each_other_change(data):
    """Random programs; what NumPy's basic subscripts share, tensors share."""
    draw = data.draw
    dims = draw(st.sampled_from(DIMS))
    a = numbers(dims)
    live = [(a, wf.tensor(a.copy()) if draw(st.booleans()) else wf.tensor(a) * 1)]
    for number in range(draw(st.integers(2, 6))):
        theirs, ours = live[draw(st.integers(0, len(live) - 1))]
        key = tuple([e for e in draw(keys(theirs.shape, advanced=False)) if e is not ...])
        key = (*key, ...)
        action = draw(st.sampled_from(["view", "transpose", "set", "add", "look", "scale"]))
        if action == "view":
            live.append((theirs[key], ours[key]))
        elif action == "transpose":
            live.append((theirs.T, ours.T))
        elif action == "set":
            theirs[key] = number
            ours[key] = number
        elif action == "add":
            theirs[key] += 2
            ours[key] += 2
        elif action == "scale":
            theirs *= 2
            ours *= 2
        else:
            np.testing.assert_array_equal(ours.numpy(), theirs)
    for theirs, ours in live:
        np.testing.assert_array_equal(ours.numpy(), theirs)


def test_every_way_to_write_through_a_view():
    x = wf.zeros(3, 4)
    row, column, flat, turned = x[1], x[:, 0], x.view(-1), x.t()
    row.add_(1)
    flat[11] = 9
    turned[0].mul_(5)
    x.diagonal().fill_(7)
    x.unsqueeze(0).select(2, 3)[0, 0] = 3
    x.detach()[2, 1] = 4
    expected = np.array([[7, 0, 0, 3], [5, 7, 1, 1], [0, 4, 7, 9]])
    np.testing.assert_array_equal(x.numpy(), expected)
    np.testing.assert_array_equal(row.numpy(), expected[1])
    np.testing.assert_array_equal(column.numpy(), expected[:, 0])
    np.testing.assert_array_equal(flat.numpy(), expected.reshape(-1))
    np.testing.assert_array_equal(turned.numpy(), expected.T)


def test_a_copy_is_no_view():
    x = wf.zeros(2, 3)
    for copy in (
        x.t().reshape(-1),
        x.t().contiguous(),
        x.clone(),
        x[[0, 1]],
        x[x == 0],
        x.expand(2, 2, 3).reshape(-1),
    ):
        copy.fill_(5)
    assert not x.numpy().any()
    assert x.t().is_contiguous() is False and x[:1].is_contiguous() and not x[:, :2].is_contiguous()


def test_what_lies_in_order_is_what_the_strides_say():
    x = wf.zeros(3, 4)
    assert x.t().stride() == (1, 4) and x[::2, 1:].stride() == (8, 1)
    assert wf.zeros(2, 0, 3).stride() == (3, 3, 1)
    assert x.t().t().is_contiguous() and x.t()[:, :1].is_contiguous()
    assert x.t()[:0].is_contiguous() and wf.zeros(5, 1).t().is_contiguous()
    assert x[0][0].reshape(-1).is_contiguous() and not x.expand(2, 3, 4).is_contiguous()
    x.t().unsqueeze(0).reshape(2, 2, 3)[1, 1, 2] = 7  # splits an axis: no copy
    x[0][0].reshape(-1).fill_(5)
    assert (x[2, 3].item(), x[0, 0].item(), x.sum().item()) == (7, 5, 12)


def test_a_loop_over_rows_of_a_parameter_is_one_program():
    w = wf.tensor(numbers((5, 3)), requires_grad=True)
    sizes = []
    for i in range(5):
        (w[i] * w[i]).sum().item()
        sizes.append(len(tier_choice._tiers))
    assert sizes[-1] == sizes[2]  # the third run is compiled


def test_filling_in_a_loop_and_looping():
    x = wf.zeros(40)
    for i in range(40):
        x[i] = i
    pending = wf.zeros(40) * 2
    for i in range(40):
        pending[i] = x[i]
    assert (
        [float(v) for v in pending] == list(range(40)) and len(x) == 40 and 7 in x and 41 not in x
    )


def test_a_list_of_subscripts_is_a_tuple_of_them():
    x = wf.arange(12).reshape(3, 4)
    with pytest.warns(UserWarning, match="a list of subscripts is a tuple of them here"):
        assert x[[slice(None), 1]].tolist() == [1, 5, 9]
    with pytest.warns(UserWarning, match=r"use x\[tuple\(...\)\] or a tensor"):
        assert x[[[0, 1], [1, 2]]].tolist() == [1, 6]
    with pytest.warns(UserWarning, match="as in PyTorch"):
        x[[wf.tensor([1]), wf.tensor([0])]] = 7
    assert x[1].tolist() == [7, 5, 6, 7]
    assert x[[0, 2]].shape == (2, 4)


def test_assignment_does_not_reach_what_was_computed_before():
    x = wf.tensor([1.0, 2.0, 3.0])
    y = x * 2
    x[0] = 10.0
    w = wf.ones(3, requires_grad=True)
    z = (w * x).sum()
    assert y.tolist() == [2, 4, 6]
    z.backward()
    assert w.grad.tolist() == [10, 2, 3]


@pytest.mark.parametrize(
    "use, error, text",
    [
        (lambda x: x[4], OutOfRangeError, "index 4 is out of bounds"),
        (lambda x: (x * 1)[0, 3], OutOfRangeError, r"expected -2 <= index < 2 on axis 1, got 3"),
        (lambda x: x[0, 0, 0], OutOfRangeError, "too many indices"),
        (lambda x: x["a"], SubscriptError, "expected integers, slices"),
        (lambda x: x[0.0], IndexError, "expected integers, slices"),
        (lambda x: x[wf.ones(2)], IndexError, "expected integers, slices"),
        (lambda x: x[wf.tensor([True])], OutOfRangeError, "expected a mask of shape"),
        (lambda x: x.__setitem__(0, np.ones(3)), ShapeError, "could not broadcast"),
        (lambda x: (x * 1).__setitem__(0, np.ones(3)), ShapeError, "broadcast"),
        (lambda x: x.view(5), ShapeError, r"expected a shape of 6 elements .* got \(5,\)"),
        (lambda x: x.permute(0, 0), ShapeError, "expected an order of all 2 dims"),
        (lambda x: x.expand(4, 2), ShapeError, "does not broadcast"),
        (lambda x: len(wf.tensor(1.0)), DTypeError, "has no length"),
    ],
)
def test_errors(use, error, text):
    wf.synchronize()  # an assignment is made at once where nothing is pending
    with pytest.raises(error, match=text):
        use(wf.tensor(numbers((3, 2))))


def test_a_part_that_is_changed_in_place_is_put_back_once(monkeypatch):
    counted = []
    put = View.put
    monkeypatch.setattr(View, "put", lambda self, lazy: (counted.append(1), put(self, lazy))[1])
    x = wf.arange(6.0)
    x[1:3] += 10
    assert counted == [1]
    assert x.tolist() == [0, 11, 12, 3, 4, 5]
    part = x[1:3]
    x += 1
    x[2:4] = part  # of another position
    assert x.tolist() == [1, 12, 12, 13, 5, 6]


def test_a_new_small_tensor_is_written_into_at_once():
    wf.synchronize()
    x = wf.zeros(6, dtype=wf.int64)
    x[1:4] = wf.tensor([1, 2, 3])
    x[4:] = -1
    assert not trace.now.pending
    assert x.tolist() == [0, 1, 2, 3, -1, -1]
    x = wf.ones(3)
    y = x + 1  # which reads the old value
    x[:2] = 5.0
    assert (x.tolist(), y.tolist()) == ([5.0, 5.0, 1.0], [2.0, 2.0, 2.0])
    x, y, z = wf.zeros(3), wf.ones(3), wf.zeros(2)
    y[1:] = 4.0  # alone: x and z stay pending
    assert len(trace.now.pending) == 2 and y.tolist() == [1.0, 4.0, 4.0]
    x[0] = 2.0
    z[:] = x.sum()
    assert (x.tolist(), z.tolist()) == ([2.0, 0.0, 0.0], [2.0, 2.0])
    x = wf.zeros(2)
    bad = wf.arange(3).index_select(0, wf.tensor([7]))
    x[:1] = 3.0  # behind a line that fails
    with pytest.raises(OutOfRangeError):
        bad.tolist()
    assert x.tolist() == [0.0, 0.0]
