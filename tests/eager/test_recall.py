"""Calls that are recorded at once are those that the function would record."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft as wf
from weft.eager.functions.recall import call as call_memory
from weft.eager.functions.recall import memory
from weft.eager.functions.recall.call import Calls, Shape
from weft.eager.functions.recall.memory import Memory
from weft.eager.tensor.view.view import View
from weft.errors import WeftError
from weft.ir.node import TensorType
from weft.nn import functional as F

CALLS: list[Callable[[Any], Any]] = [
    lambda x: x.sum(), lambda x: x.sum(1), lambda x: x.sum(dim=1, keepdim=True), lambda x: x.max(),
    lambda x: wf.sum(x, 0), lambda x: x @ x.T, lambda x: wf.matmul(x, x[1:].T),
    lambda x: F.softmax(x, -1), lambda x: F.linear(x, x, x[:, 0]), lambda x: x[1:],
    lambda x: x[:, 1:3], lambda x: x[..., None], lambda x: x.reshape(-1), lambda x: x.t() * 2,
    lambda x: x.clamp(0, 1), lambda x: x.clamp(0.0, 1.0), lambda x: F.layer_norm(x, x.shape[1:]),
    lambda x: x.view(2, -1, 5).permute(2, 0, 1).exp() if len(x) == 4 else x.view(-1).permute(0),
    lambda x: x.mean(0).std(), lambda x: x.flatten().unsqueeze(0), lambda x: F.leaky_relu(x, 0.1),
    lambda x: x.t()[1:].t().reshape(-1), lambda x: x[:, 1:].reshape((*x.size()[:1], -1)),
    lambda x: wf.cat([x, x * 2], 1), lambda x: wf.cat((x.t(), x[:1].t()), dim=-1),
    lambda x: x.split(2, dim=0)[0].chunk(2, 1)[1], lambda x: x.view(wf.Size((1, x.numel())))[0],
]  # fmt: skip


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ways are written as soon as a call is known."""
    monkeypatch.setattr(memory, "MOST_WATCHED", 1)


@pytest.fixture
def unknown(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From then on no call is recorded at once."""

    def forget() -> None:
        way = property(lambda self: None, lambda self, way: None)
        monkeypatch.setattr(Memory, "way", way, raising=False)

    return forget


@pytest.mark.parametrize("call", CALLS)
def test_values_and_gradients_are_the_same(
    call: Callable[[Any], Any], unknown: Callable[[], None]
) -> None:
    rng = np.random.default_rng(0)
    shapes = [(4, 5)] * 4 + [(n, n + 1) for n in range(4, 12)]
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]

    def results() -> list[Any]:
        found: list[Any] = []
        for computed in (True, False):
            for array in arrays:
                x = wf.tensor(array)
                x = x if computed else (x * 1).requires_grad_()
                y = call(x)
                found.append((y.dtype, y.shape, y.detach().tolist()))
                if not computed:
                    (y * y).sum().backward()
                    found.append(x.grad.tolist())
        return found

    quick = results()
    unknown()
    assert quick == results()


def test_views_still_write_through() -> None:
    for _ in range(5):
        x = wf.zeros(2, 3)
        for view in (x[1:], x.reshape(-1), x.t(), x[:, 1:]):
            view.add_(1)
        assert x.tolist() == [[2, 3, 3], [3, 4, 4]]


def test_permuted_views_of_views_write_through_and_are_not_shown_in_wrong_order() -> None:
    for _ in range(4):
        x = wf.arange(12.0)
        y = x.view(3, 4).permute(1, 0)
        assert wf.zeros(4, 3).view(12).shape == (12,)  # remembered, for tensors in order alone
        with pytest.raises(WeftError, match="do not lie in memory"):
            y.view(12)
        assert (y.reshape(12) == x.view(3, 4).T.reshape(12)).all()
        y[0] = -1.0
        x[5] = 9.0
        assert x.tolist() == [-1, 1, 2, 3, -1, 9, 6, 7, -1, 9, 10, 11]
        assert y[1].tolist() == [1, 9, 9]


def test_views_of_lent_memory_see_changes_as_long_as_others_can_make_them() -> None:
    for _ in range(6):
        array = np.zeros((2, 3), np.uint8)
        y = wf.from_numpy(array).view(2, 3, 1).permute(2, 0, 1)
        array[0, 1] = 5
        z = y.contiguous().to(wf.float32).div(255)
        array[0, 1] = 7
        assert y[0, 0, 1] == 7 and float(z[0, 0, 1]) == pytest.approx(5 / 255)
        del array
        y[0, 0, 0] = 3
        assert y.flatten().tolist() == [3, 7, 0, 0, 0, 0]


def test_views_of_memory_that_nobody_else_has_are_read_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken: list[View] = []
    take = View.take
    monkeypatch.setattr(View, "take", lambda view: (taken.append(view), take(view))[1])
    base = wf.from_numpy(np.arange(6, dtype=np.uint8))
    y = base.view(2, 3, 1).permute(2, 0, 1)
    assert y.sum() == 15 and y.max() == 5 and not taken
    lent = base.numpy()
    lent[0] = 9
    assert y.max() == 9 and taken
    base[1] = 8
    assert y[0, 0].tolist() == [9, 8, 2]


def test_views_of_views_write_through_and_are_read_again() -> None:
    for number in range(6):
        x = wf.zeros(4, 6) * 1
        part, turned = x[1:].t()[2:], x.t().split(3)[1]
        x.add_(number)
        assert part.tolist() == [[number] * 3] * 4 and turned.tolist() == [[number] * 4] * 3
        part.t()[0].mul_(3)
        assert x[1].tolist() == [number] * 2 + [3 * number] * 4
        assert turned.t()[1].tolist() == [3 * number] * 3
        shared = x.numpy()
        last = turned.t()[3:]
        shared[3] = 7  # without notice
        assert last.tolist() == [[7] * 3]


def test_whether_a_view_fits_is_asked_of_each_layout() -> None:
    for _ in range(4):
        x = wf.zeros(4, 6) * 1
        rows, columns = x[:2], x.t()[:4].t()[:2]  # both of shape (2, ...)
        assert rows.view(-1).shape == (12,) and rows.reshape(12).window is not None
        assert columns.reshape(8).window is None
        with pytest.raises(WeftError, match="view: the elements"):
            columns.view(-1)
        square = wf.zeros(4, 4) * 1
        assert square[:].view(16).shape == (16,)
        with pytest.raises(WeftError, match="view: the elements"):
            square.t()[:].view(16)


def test_joined_lists_of_other_lengths_and_kinds() -> None:
    x, y = wf.ones(2, 3), wf.zeros(1, 3)
    for n in range(1, 6):
        assert wf.cat([x, y, wf.ones(n, 3)]).shape == (3 + n, 3)
        assert wf.cat([x, y.to(wf.int64)]).dtype is wf.float32
        assert wf.cat((wf.ones(n), wf.ones(0))).shape == (n,)
        with pytest.raises(WeftError):
            wf.cat([x, wf.ones(2, n + 3)])
    with pytest.raises(WeftError):
        wf.ones(2, 3).view((2.0, 3))  # type: ignore[arg-type]  # equals (2, 3)


def test_what_depends_on_more_than_types_is_asked_each_time() -> None:
    x = wf.ones(2, 3)
    for _ in range(5):
        assert x.contiguous() is x
        assert x.t().contiguous() is not x
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            F.softmax(x)
        assert F.dropout(wf.ones(100), 0.5).tolist() != F.dropout(wf.ones(100), 0.5).tolist()
        assert len(seen) in (0, 1)
    i = wf.ones(2, dtype=wf.int64)
    for dtype in (wf.float32, wf.float64, wf.float32):
        wf.set_default_dtype(dtype)
        try:
            assert (i.mean(dtype=dtype).dtype, (i / 2).dtype) == (dtype, dtype)
        finally:
            wf.set_default_dtype(wf.float32)
    counts = wf.tensor([1, 2])
    assert wf.arange(2).repeat_interleave(counts).tolist() == [0, 1, 1]
    counts.add_(1)
    assert wf.arange(2).repeat_interleave(counts).tolist() == [0, 0, 1, 1, 1]


def test_parts_of_computed_tensors_follow_their_shapes() -> None:
    for shape in [(2, 3, 4)] * 6 + [(2, 3), (4,), (3, 3, 5)]:
        a = np.arange(np.prod(shape)).reshape(shape)
        x = wf.tensor(a)
        pairs = [(x.narrow(-1, -2, 2), a[..., -2:]), (x.select(-1, 1), a[..., 1]), (x[-1], a[-1])]
        for found, expected in pairs:
            assert found.tolist() == expected.tolist()


def test_arguments_that_are_equal_are_not_the_same() -> None:
    x = wf.tensor([1, 2, 3])
    for _ in range(4):
        assert x.clamp(min=2).dtype is wf.int64
        assert x.clamp(min=2.0).dtype is wf.float32
        assert x.sum(0).shape == () and x.sum(0, True).shape == (1,)
        assert (wf.tensor([1.0]) * -0.0).tolist() == [0.0]
        with wf.autocast(wf.bfloat16):
            assert (wf.ones(2, 2) @ wf.ones(2, 2)).dtype is wf.bfloat16
        assert (wf.ones(2, 2) @ wf.ones(2, 2)).dtype is wf.float32


def test_other_sizes_that_do_not_fit_are_refused() -> None:
    for n in range(3, 12):
        a, b = wf.ones(2, n, 4), wf.ones(2, 4, n)
        assert wf.bmm(a, b).shape == (2, n, n) and (a @ b).shape == (2, n, n)
        assert (a @ b[:1]).shape == (2, n, n)
        wrong: tuple[tuple[Callable[..., Any], tuple[Any, ...]], ...] = (
            (wf.bmm, (a, wf.ones(1, 4, n))), (wf.matmul, (a, wf.ones(2, 5, n))), (wf.sum, (a, 3)),
            (F.linear, (a, wf.ones(7, n + 5))), (wf.Tensor.reshape, (a, -1, 7, 11)),
        )  # fmt: skip
        for call, arguments in wrong:
            called: Any = call
            with pytest.raises(WeftError, match="expected"):
                called(*arguments)
        assert F.linear(a, wf.ones(7, 4)).shape == (2, n, 7)


@pytest.mark.parametrize("sizeless", [False, True])
def test_what_is_remembered_is_bounded_and_keeps_its_types(
    sizeless: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_memory, "MOST_CALLS", 8)
    plan = wf.tanh(wf.ones(3)).shown.record.plan
    calls = Calls(Shape(2, (), (0,), ((("x", 0),),)))
    for i in range(1, 50):
        kind = TensorType(wf.float32, (i,))  # nobody else refers to it, and `id` is a key
        calls.learn([kind], [float(i)], (wf.Tensor, (plan,), (), None), sizeless)
        assert sizeless or sys.getrefcount(kind) > 2
        assert sizeless or calls.find([kind], [float(i)], wf.Tensor)[1] == (plan,)
    assert len(calls._sized if sizeless else calls._found) <= 8  # pyright: ignore[reportPrivateUsage]
