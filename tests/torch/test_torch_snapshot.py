"""Shared memory overwritten at any line: values are those of line-by-line execution."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import at_most

import weft as wf
from weft import config
from weft.eager.record.memory import memory_pool, snapshot
from weft.eager.record.pending.state import trace

torch = pytest.importorskip("torch")


@pytest.fixture(params=[False, True], autouse=True)
def compiled(request):
    with config.override(compile=request.param):
        yield


@pytest.fixture
def copies(monkeypatch):
    """The shapes of what was copied."""
    found: list[tuple[int, ...]] = []

    def copied(array, dtype):
        found.append(array.shape)
        return memory_pool.copied(array, dtype)

    monkeypatch.setattr(snapshot, "copied", copied)
    return found


def _filled(n: int, value: float) -> np.ndarray:
    return np.full(n, value, np.float32)


# Training on a buffer that is filled again


def _trained(lib, order: str, momentum: float, looks: int) -> list[float]:
    w = lib.tensor([1.0, -2.0], requires_grad=True)
    update = lib.optim.SGD([w], lr=0.1, momentum=momentum)
    batch, place = np.zeros(2, np.float32), np.zeros(1, np.int64)
    for step in range(7):
        batch[:], place[:] = [step, 1 - step], step % 2
        x, i = lib.from_numpy(batch), lib.from_numpy(place)
        if order == "before":
            update.zero_grad()
        loss = (w * x * x)[i].sum() + (w * x).sum()
        loss.backward()
        batch[:], place[:] = 7.0, 0
        update.step()
        if order == "after":
            update.zero_grad()
        if looks and step % looks == 0:
            loss.item()
    return w.tolist()


@pytest.mark.parametrize("order", ["before", "after"])
@pytest.mark.parametrize("looks", [0, 1, 3])
def test_a_batch_may_be_filled_again_at_once(order, looks):
    found = _trained(wf, order, 0.5, looks)
    np.testing.assert_allclose(found, _trained(torch, order, 0.5, looks), 1e-5)


@pytest.mark.parametrize("looks", [False, True])
def test_a_batch_is_copied_once_an_iteration(copies, looks):
    batch, w = np.zeros((64, 32), np.float32), wf.ones(32, requires_grad=True)
    update = wf.optim.SGD([w], lr=0.1)
    for step in range(6):
        batch[:] = step
        loss = ((wf.from_numpy(batch) @ w - wf.from_numpy(batch)[:, 0]) ** 2).mean()
        loss.backward()
        update.step()
        if looks:
            loss.item()
    assert copies.count((64, 32)) == 6
    assert set(copies) == {(64, 32)}


def test_nothing_is_copied_that_nobody_else_has(copies):
    data = np.ones((4, 3), np.float32)
    x: object = data[[0, 1]]
    x = wf.from_numpy(x)
    assert [(x * 2.0).sum().item(), (wf.from_numpy(data[[2]]) * 2.0).sum().item()] == [12.0, 6.0]
    assert not copies
    held = data[[0, 1]]
    part = held[1:]
    y = wf.from_numpy(held)
    del held
    z = y * 2.0
    part[:] = 9.0
    assert z.sum().item() == 12.0 and copies == [(2, 3)]


# Line by line

SIZE = 6


class _World:
    """Arrays and tensors that share memory, in a library."""

    def __init__(self, lib) -> None:
        self.lib = lib
        self.arrays = [np.arange(SIZE, dtype=np.float32) + i for i in range(2)]
        x = lib.arange(float(SIZE)) * 1.5
        self.tensors = [*map(lib.from_numpy, self.arrays), x, lib.from_dlpack(self.arrays[0])]
        self.arrays.append(x.numpy())
        self.results = []

    def line(self, kind: int, i: int, j: int) -> None:
        a, x = self.arrays[i % len(self.arrays)], self.tensors[i % len(self.tensors)]
        y = self.tensors[j % len(self.tensors)]
        match kind:
            case 0:
                a[j % SIZE :] += 1.0
            case 1:
                self.results.append(x * 2.0 + y)
            case 2:
                self.results.append((x[j % SIZE :] - 1.0).sum())
            case 3:
                x.add_(y)
            case 4:
                x[: j % SIZE].mul_(0.5)
            case 5:
                x[j % SIZE] = y[i % SIZE]
            case 6:
                self.results.append(x.detach().reshape(2, 3).t() * y[1])
            case 7:
                found = self.results[j % len(self.results)].numpy() if self.results else a
                self.arrays.append(np.atleast_1d(found))  # still the same memory
            case 8:
                a[:] = self.arrays[j % len(self.arrays)].mean() % 8.0
            case _:
                x.copy_(y).clamp_(0.0, 50.0)

    def now(self) -> list[np.ndarray]:
        return [*self.arrays, *[x.numpy() for x in (*self.results, *self.tensors)]]


@at_most(60)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5), st.integers(0, 5)), max_size=12))
def test_values_are_those_of_a_program_that_runs_line_by_line(lines):
    ours, theirs = _World(wf), _World(torch)
    for line in lines:
        ours.line(*line)
        theirs.line(*line)
        for a, b in zip(ours.arrays, theirs.arrays, strict=True):
            np.testing.assert_allclose(a, b, 1e-5)
    for x, y in zip(ours.now(), theirs.now(), strict=True):
        np.testing.assert_allclose(x, y, 1e-5)


# One at a time


def _views(lib, a):
    return {
        "dlpack": lib.from_dlpack(a), "part": lib.from_numpy(a)[1:], "row": lib.from_numpy(a)[0],
        "turned": lib.from_numpy(a.reshape(1, -1)).t(), "detached": lib.from_numpy(a).detach(),
        "buffer": lib.frombuffer(a, dtype=lib.float32), "expanded": lib.from_numpy(a).expand(2, 4),
        "asarray": lib.asarray(a),
    }  # fmt: skip


@pytest.mark.parametrize("name", _views(torch, np.zeros(4, np.float32)))
def test_every_way_to_share_memory(name):
    a = _filled(4, 1.0)
    x = _views(wf, a)[name]
    before = x * 2.0
    a[:] = 5.0
    assert set(np.ravel(before.tolist())) == {2.0}
    assert set(np.ravel(x.tolist())) == {5.0}


@pytest.mark.parametrize(
    "hand_out", [lambda x: x.numpy(), np.asarray, lambda x: x.detach().numpy()]
)
def test_memory_that_is_handed_out_while_results_wait(hand_out):
    x = wf.ones(3)
    x.tolist()
    y = x * 2.0
    hand_out(x)[:] = 7.0
    assert (y.tolist(), x.tolist()) == ([2.0] * 3, [7.0] * 3)


def test_an_array_in_an_operation():
    a = _filled(3, 1.0)
    y = wf.ones(3) * a
    a[:] = 5.0
    assert y.tolist() == [1.0] * 3


def test_memory_that_is_ours_again_is_not_copied(copies):
    w = wf.ones(3, requires_grad=True)
    array = w.detach().numpy()
    y = w * 2.0
    array[:] = 4.0
    assert y.tolist() == [2.0] * 3 and copies == [(3,)]
    del array
    assert (w * 2.0).tolist() == [8.0] * 3 and copies == [(3,)]


def test_gradients_are_those_of_what_was_read():
    w = wf.tensor([1.0, 2.0], requires_grad=True)
    memory, x = w.detach().numpy(), _filled(2, 3.0)
    loss = (w * w * wf.from_numpy(x)).sum()
    memory[:], x[:] = 10.0, 0.0
    loss.backward()
    memory[:] = 20.0
    assert (loss.item(), w.grad.tolist()) == (15.0, [6.0, 12.0])
    assert wf.autograd.grad((w * 2.0).sum(), [w])[0].tolist() == [2.0, 2.0]


def _changed(lib):
    """An operation that changes shared memory in place, and the array that shows it."""
    layer, norm = lib.nn.Linear(2, 1), lib.nn.BatchNorm1d(2)
    w = lib.ones(2, requires_grad=True)
    w.grad = lib.ones(2)
    x, factor = lib.ones(2), lib.tensor(3.0, requires_grad=True)
    given = {k: lib.ones_like(v) for k, v in layer.state_dict().items()}
    weight, mean = layer.weight.detach().numpy(), norm.running_mean.numpy()
    return {
        "step": (lib.optim.Adam([w], lr=0.5).step, w.detach().numpy()),
        "accumulated": (lambda: (w * 2.0).sum().backward(), w.grad.numpy()),
        "load": (lambda: layer.load_state_dict(given), weight),
        "init": (lambda: lib.nn.init.constant_(layer.weight, 4.0), weight),
        "statistics": (lambda: norm(lib.tensor([[1.0, 2.0], [3.0, 5.0]])), mean),
        "by what needs a gradient": (lambda: x.mul_(factor), x.numpy()),
    }


@pytest.mark.parametrize("name", _changed(torch))
def test_changes_in_place_show_at_once(name):
    (ours, found), (theirs, wanted) = _changed(wf)[name], _changed(torch)[name]
    ours()
    theirs()
    np.testing.assert_allclose(found, wanted, 1e-5)
    found[:] = 9.0  # nothing is written there any more
    wf.synchronize()
    assert set(found.ravel().tolist()) == {9.0}


def test_rows_of_a_large_table_are_read_at_once(copies, monkeypatch):
    monkeypatch.setattr(snapshot, "LARGE", 1 << 10)
    table = np.arange(4000, dtype=np.float32).reshape(1000, 4)
    x, places = wf.from_numpy(table), wf.tensor([1, 999])
    rows, w = x[places], wf.ones(4, requires_grad=True)
    y = x @ w
    table[:] = -1.0
    assert rows.sum().item() == 16012.0 and y[999].item() == 15990.0
    table[:] = 1.0
    y.sum().backward()
    table[:] = -1.0
    assert w.grad.tolist() == [1000.0] * 4
    assert not copies and not trace.now.pending


def test_a_traced_function_reads_what_it_captures_when_it_is_called():
    captured, x = wf.tensor([2.0, 2.0]), wf.ones(2)
    function = wf.func.jit(lambda x: x * captured)
    for _ in range(5):
        assert function(x).tolist() == [2.0, 2.0]
    before = function(x)
    memory = captured.numpy()
    memory[:] = 3.0
    later = function(x)
    memory[:] = 4.0
    assert [y.tolist()[0] for y in (before, later, function(x))] == [2.0, 3.0, 4.0]


def test_a_program_that_fails_leaves_the_memory_as_it_was():
    a = _filled(3, 1.0)
    x, bad = wf.from_numpy(a), wf.zeros(3)[wf.tensor([3])]
    with pytest.raises(wf.errors.OutOfRangeError):
        x.add_(bad)
    assert a.tolist() == x.tolist() == [1.0] * 3
    x.add_(1.0)
    assert a.tolist() == [2.0] * 3
