"""Lazy recording: what is computed, compiled and kept, and when."""

import gc
import threading
import weakref
from collections import OrderedDict

import numpy as np
import pytest

import weft as wf
from weft import config, optim
from weft.eager.record.call.interned_type import intern
from weft.eager.record.pending.state import trace
from weft.eager.record.run import program, tier_choice
from weft.eager.record.run.compiled_tier import Compiled
from weft.eager.tensor.dispatch import leaf, recorded, wrap
from weft.errors import GradientError, ShapeError, WeftError
from weft.ir.dtype import float32
from weft.ops.declaration import catalogue


def tensor(array):
    return wrap(leaf(np.array(array, np.float32)))


@recorded
def affine(x, w, b):
    return catalogue.matmul(x, w) + b


@recorded
def square_error(y, z):
    return catalogue.mean(catalogue.square(y - z))


@pytest.fixture
def compiled(monkeypatch):
    """Counts programs as they are compiled."""
    counted = []
    before = Compiled.__init__

    def count(self, structure, *options):
        counted.append(structure.calls)
        before(self, structure, *options)

    monkeypatch.setattr(Compiled, "__init__", count)
    monkeypatch.setattr(tier_choice, "_tiers", OrderedDict())
    return counted


@pytest.fixture
def runs(monkeypatch):
    """What each run computes."""
    counted = []

    def begun(structure, *options):
        counted.append(structure.calls)
        return tier_choice.begun(structure, *options)

    monkeypatch.setattr(program, "begun", begun)
    return counted


class Loop:
    """A plain training loop."""

    def __init__(self, kind=optim.Adam, **options):
        rng = np.random.default_rng(0)
        self.w = tensor(rng.standard_normal((3, 2))).requires_grad_()
        self.b = tensor(np.zeros(2)).requires_grad_()
        self.opt = kind([self.w, self.b], **options)
        self.x = rng.standard_normal((8, 3)).astype(np.float32)
        self.z = rng.standard_normal((8, 2)).astype(np.float32)

    def step(self, rows=8):
        loss = square_error(
            affine(wrap(leaf(self.x[:rows])), self.w, self.b), leaf_of(self.z[:rows])
        )
        loss.backward()
        self.opt.step()
        self.opt.zero_grad()
        return loss


def leaf_of(array):
    return wrap(leaf(array))


def test_nothing_is_computed_before_a_value_is_read():
    x = tensor([1.0, 2.0])
    y = x + 1.0
    assert y.lazy.array is None
    assert y.numpy().tolist() == [2.0, 3.0]
    assert y.lazy.array is not None


def test_what_nobody_holds_is_not_computed():
    x = tensor([1.0])
    y = wf.exp(x)
    inner = y.lazy
    del y
    (x + 1.0).item()
    assert inner.array is None


def test_the_third_run_of_a_structure_is_compiled(compiled):
    loop = Loop(lr=0.1)
    counts = []
    for _ in range(8):
        loop.step().item()
        counts.append(len(compiled))
    # Adam's state is created by the first step, so all iterations are equal from the first on.
    assert counts[1] == 0
    assert counts[-1] == 1


def test_numbers_do_not_recompile(compiled):
    loop = Loop(lr=0.1)
    for i in range(12):
        loop.opt.param_groups[0]["lr"] = 0.1 / (i + 1)
        loop.x = loop.x + i
        loop.step().item()
    assert len(compiled) == 1


def test_another_last_batch_is_another_program_of_the_same_loop(compiled):
    loop = Loop(lr=0.1)
    for _ in range(4):
        for rows in (8, 8, 8, 3):
            loop.step(rows).item()
    assert len(compiled) == 2


def test_a_structure_seen_once_is_not_compiled(compiled):
    for n in range(1, 30):
        (wf.exp(tensor(np.ones(n))) * 2.0).numpy()
    assert compiled == []


def test_data_made_before_the_first_step_is_no_part_of_its_program(compiled):
    with config.override(compile=True):
        loop = Loop(momentum=0.9, kind=optim.SGD)
        x, z = wf.randn(8, 3), wf.randn(8, 2)
        for _ in range(3):
            square_error(affine(x, loop.w, loop.b), z).backward()
            loop.opt.step()
            loop.opt.zero_grad()
            x.numpy(), loop.w.numpy(force=True)
    assert [len(family) for family in compiled] == [2, 4]  # both draws; the step
    assert "gradients" in compiled[1]


def test_compiled_at_once_the_first_run_gives_the_bits_of_the_others(compiled):
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((30, 30)).astype(np.float32) for _ in range(2))
    with config.override(compile=True):
        found = [wf.tanh(wf.from_numpy(a) @ wf.from_numpy(b)).numpy() for _ in range(4)]
    assert len(compiled) == 1
    assert all(np.array_equal(found[0], y) for y in found[1:])


def test_compiled_and_interpreted_agree():
    losses = []
    for _ in range(2):
        loop = Loop(lr=0.05)
        losses.append([loop.step().item() for _ in range(10)])
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)


def test_one_program_an_iteration(runs):
    loop = Loop(lr=0.1)
    for _ in range(5):
        loop.step().item()
    runs.clear()
    loop.step().item()
    assert len(runs) == 1


def test_a_loop_that_reads_no_value_still_runs():
    loop = Loop(lr=0.1)
    w = loop.w.detach().numpy().copy()
    for _ in range(5):
        loop.step()
    assert len(trace.now.pending) < 20
    assert not np.array_equal(loop.w.detach().numpy(), w)


def test_records_do_not_pile_up(monkeypatch):
    monkeypatch.setattr("weft.eager.record.pending.state.MOST_PENDING", 100)
    trace.now.take()
    x = tensor([0.0]).requires_grad_()
    for n in range(350):
        assert len(trace.now.pending) <= min(n, 100)
        x = x + 1.0
    assert len(trace.now.pending) == 50
    assert x.item() == 350.0
    monkeypatch.undo()
    trace.now.take()


def test_parameters_are_updated_in_their_memory():
    loop = Loop(lr=0.1)
    memory = loop.w.detach().numpy()
    for _ in range(5):
        before = memory.copy()
        loop.step().item()
        assert loop.w.detach().numpy() is memory
        assert not np.array_equal(before, memory)


def test_the_past_is_let_go():
    x = tensor([1.0]).requires_grad_()
    y = wf.exp(x) * 2.0
    assert y.lazy.record is not None
    y.backward()
    y.item()
    x.grad.item()
    assert y.lazy.record is None


def test_recordings_leave_nothing_to_the_garbage_collector():
    w = tensor([2.0, 3.0]).requires_grad_()
    gc.disable()
    try:
        y = (w * 2.0).tanh()
        loss = y.sum()
        values = [weakref.ref(x.lazy) for x in (y, loss)]
        loss.backward()
        assert w.grad.tolist() != [0.0, 0.0]
        del y, loss
        assert [value() for value in values] == [None, None]
    finally:
        gc.enable()


@pytest.mark.parametrize("kept", [0, 1])
def test_results_are_distinguished_where_others_are_gone(kept):
    for _ in range(4):
        y = wf.split(tensor([[1.0, 2.0]]), 1, dim=1)[kept]
        assert (y * 3.0).tolist() == [[3.0 * (1 + kept)]]


def test_shape_errors_come_at_their_line():
    with pytest.raises(ShapeError, match=r"test_recording\.py"):
        tensor([1.0, 2.0]) + tensor([1.0, 2.0, 3.0])


def test_a_second_backward_says_what_to_do():
    x = tensor([1.0]).requires_grad_()
    y = wf.exp(x)
    y.backward()
    with pytest.raises(GradientError, match="retain_graph=True"):
        y.backward()


def test_a_value_that_was_overwritten_is_missed():
    w = tensor([1.0, 2.0]).requires_grad_()
    y = wf.exp(w)
    total = affine(wf.reshape(y, (1, 2)), tensor([[1.0], [1.0]]), tensor([0.0]))
    total.item()
    with wf.no_grad():
        w.add_(1.0)
    w.tolist()
    with pytest.raises(WeftError, match="changed in place"):
        total.backward(tensor([[1.0]]))
        w.grad.tolist()


def test_detached_memory_is_shared():
    loop = Loop(lr=0.1)
    seen = loop.w.detach()
    product = seen * 2.0  # of the value before the update
    old = seen.numpy().copy()
    loop.step().item()
    np.testing.assert_array_equal(product.numpy(), old * 2.0)
    assert seen.numpy() is loop.w.detach().numpy()
    assert not np.array_equal(seen.numpy(), old)


def test_detaching_a_result_is_no_program(runs):
    loop = Loop(lr=0.1)
    for _ in range(4):
        float(loop.step().detach())
    runs.clear()
    float(loop.step().detach())
    assert len(runs) == 1


def test_threads_record_on_their_own():
    results = {}

    def work(k):
        loop = Loop(lr=0.1)
        results[k] = [loop.step().item() for _ in range(6)]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len({tuple(np.round(r, 5)) for r in results.values()}) == 1


def test_a_value_recorded_by_another_thread():
    made = []
    thread = threading.Thread(target=lambda: made.append(tensor([1.0]) + 1.0))
    thread.start()
    thread.join()
    assert (made[0] * 2.0).item() == 4.0
    assert made[0].item() == 2.0


def test_gradients_that_add_up_are_computed_now_and_then():
    loop = Loop(lr=0.1)
    for _ in range(40):
        square_error(affine(leaf_of(loop.x), loop.w, loop.b), leaf_of(loop.z)).backward()
    assert len(trace.now.pending) < 30
    once = Loop(lr=0.1)
    square_error(affine(leaf_of(once.x), once.w, once.b), leaf_of(once.z)).backward()
    np.testing.assert_allclose(loop.w.grad.numpy(), 40 * once.w.grad.numpy(), rtol=1e-4)


@pytest.mark.parametrize("kept", [[0, 1], [1, 0]])
def test_which_of_several_results_is_there_already_decides_the_program(kept):
    """A computed result is fed to the backward pass: not the other one, of the same shape."""
    array = np.random.default_rng(0).standard_normal((4, 4)) + 4 * np.eye(4)

    def gradient(which):
        x = tensor(array).requires_grad_()
        parts = list(wf.linalg.qr(x))
        total = (parts[0] * parts[1]).sum()
        del parts[1 - which]
        parts[0].tolist()
        total.backward()
        return x.grad.numpy()

    found = [gradient(which) for which in kept]
    np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-4)


def test_sizes_of_types_are_integers():
    """A refused shape (1031, 2.0), which is equal to (1031, 2), is not remembered in its place."""
    with pytest.raises(TypeError):
        intern(float32, (1031, 2.0))
    kept = intern(float32, (np.int64(1031), 2))
    assert kept is intern(float32, (1031, 2)) and [type(n) for n in kept.shape] == [int, int]
