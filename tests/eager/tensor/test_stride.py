"""`as_strided`, and tensors resized in place."""

import numpy as np
import pytest

import weft as wf
from weft.errors import GradientError, OutOfRangeError, ShapeError


def test_as_strided_is_a_view_of_the_memory():
    x = wf.arange(12.0)
    part = x[2:].view(5, 2)
    found = part.as_strided((2, 2), (3, 1))
    memory = np.lib.stride_tricks.as_strided(np.arange(12.0)[2:], (2, 2), (24, 8))
    np.testing.assert_array_equal(found.numpy(), memory)
    assert found.storage_offset() == 2 and found.stride() == (3, 1) and found._base is x
    found.zero_()
    assert x.tolist() == [0, 1, 0, 0, 4, 0, 0, 7, 8, 9, 10, 11]
    x.add_(1)
    assert found.tolist() == [[1, 1], [1, 1]] and x.as_strided((), ()).item() == 1


def test_gradients_add_up_where_elements_repeat():
    x = wf.ones(4, requires_grad=True)
    windows = wf.as_strided(x, (3, 2), (1, 1))
    (windows * wf.tensor([[1.0], [10.0], [100.0]])).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [1, 11, 110, 100]
    y = (x * 1).as_strided_((2,), (2,))
    assert y.shape == (2,) and y.tolist() == [1, 1]


def test_compiled():
    @wf.compile
    def step(x):
        x.as_strided((2,), (2,)).mul_(2)
        return x + 1

    assert step(wf.ones(4)).tolist() == [3, 2, 3, 2]


def test_resize_keeps_what_there_is():
    x = wf.tensor([[1, 2], [3, 4]])
    assert x.resize_(3).tolist() == [1, 2, 3]
    assert x.resize_as_(wf.zeros(2, 2)).tolist() == [[1, 2], [3, 0]]
    view = wf.arange(4)[:2]
    assert view.resize_(1, 2).shape == (1, 2)


ERRORS = [
    (lambda: wf.ones(3).as_strided((2,), (3,)), OutOfRangeError, "positions from 0 to 2"),
    (lambda: wf.ones(3).as_strided((2,), ()), ShapeError, "a stride for each size"),
    (lambda: wf.ones(3).as_strided((3,), (0,)).add_(1), ShapeError, "several of its elements"),
    (lambda: wf.ones(3)[:2].resize_(3), ShapeError, "a view keeps its number"),
    (lambda: wf.ones(3, requires_grad=True).resize_(2), GradientError, "resize_"),
    (lambda: (wf.ones(3, requires_grad=True) * 2).resize_(2), GradientError, "keeps its size"),
    (lambda: wf.ones(2, 2, 2).H, ShapeError, "expected a matrix, got rank 3"),
]


@pytest.mark.parametrize(("run", "kind", "text"), ERRORS)
def test_errors(run, kind, text):
    with pytest.raises(kind, match=text):
        run()


def test_windows_share_memory():
    x = wf.zeros(7)
    windows = x.unfold(0, 2, 3)
    x[3] = 5.0
    assert windows.tolist() == [[0.0, 0.0], [5.0, 0.0]]
    windows[1, 1] = 7.0
    assert x.tolist() == [0.0, 0.0, 0.0, 5.0, 7.0, 0.0, 0.0]
    assert windows[1].storage_offset() == 3


def test_windows_that_overlap_are_not_changed():
    with pytest.raises(ShapeError, match=r"in-place change of unfold: .* clone\(\) it first"):
        wf.zeros(4).unfold(0, 2, 1).add_(1.0)


def test_a_view_taken_again_under_no_grad_keeps_its_gradient():
    x = wf.ones(3).requires_grad_()
    y = x * 1.0
    view = y.view(-1)
    y.neg_()
    with wf.no_grad():
        assert view.tolist() == [-1.0, -1.0, -1.0]
    view.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [-1.0, -1.0, -1.0]


def test_a_view_made_under_no_grad_stays_without_gradient():
    y = wf.ones(3).requires_grad_() * 1.0
    with wf.no_grad():
        view = y.view(-1)
    y.neg_()
    assert view.tolist() == [-1.0, -1.0, -1.0] and not view.requires_grad


@pytest.mark.parametrize(
    "change",
    [
        lambda y, x: y.__setitem__(0, x),
        lambda y, x: y.add_(x),
        lambda y, x: y.mul_(x),
        lambda y, x: y.copy_(x),
    ],
)
def test_what_was_looked_at_before_a_tracked_change(change):
    """Filling a tensor and printing it on the way leaves gradients as they were."""
    slopes = []
    for looks in (False, True):
        x = wf.tensor(2.0, requires_grad=True)
        y = wf.ones(3)
        for factor in (1.0, 3.0):
            if looks:
                y.tolist()
            change(y, x * factor)
        if looks:
            y.tolist()
        y.sum().backward()
        slopes.append(x.grad)
    assert slopes[0].item() == slopes[1].item() != 0.0


def test_parts_of_what_repeats_elements_may_be_changed():
    leaf = wf.tensor([[1.0], [2.0]], requires_grad=True)
    column = leaf.clone()
    wide = column.expand(2, 3)
    wide[:, 1] *= 5
    wide[0, 2] += 1
    assert wide.tolist() == [[6, 6, 6], [10, 10, 10]] and column.tolist() == [[6], [10]]
    wide.sum().backward()
    assert leaf.grad.tolist() == [[15], [15]]
    row = wf.tensor([1.0, 2.0])
    rows = row.expand(3, 2)
    rows[1].add_(1)
    rows.t()[0, 2] = 9
    assert row.tolist() == [9, 3] and rows.tolist() == [[9, 3]] * 3
    windows = wf.arange(4).unfold(0, 2, 1)
    windows[1].zero_()
    assert windows.tolist() == [[0, 0], [0, 0], [0, 3]]
    for change in (
        lambda: wide[:, 0:2].zero_(),
        lambda: windows[:2].zero_(),
        lambda: rows.add_(1),
        lambda: rows.detach()[0].add_(1),
    ):
        with pytest.raises(ShapeError, match=r"one element of the tensor that it shows"):
            change()
    assert row.tolist() == [9, 3]


@pytest.mark.parametrize("base", [wf.arange(20.0), wf.from_numpy(np.arange(20.0))])
def test_a_view_with_a_gradient_of_its_own_passes_it_through_strides(base):
    x = base[5:15].requires_grad_()
    for part, slope in ((x, [0, 0, 1, 1]), (x[2:].detach().requires_grad_(), [1, 1, 0, 0])):
        found = part.as_strided((2, 1), (1, 1), 7)
        assert found.tolist() == [[7], [8]]
        found.sum().backward()
        assert part.grad.tolist() == [*slope, *[0] * (part.numel() - 4)]
    assert x.as_strided((3,), (1,)).sum().item() == 5 + 6 + 7
