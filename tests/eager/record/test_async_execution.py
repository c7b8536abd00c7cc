"""Asynchronous execution: callers return early, and never see unfinished results."""

from __future__ import annotations

import copy
import gc
import operator
import os
import pickle
import tempfile
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest

import weft as wf
import weft.numpy as wnp
from weft import config, nn
from weft.eager.record.memory import memory_pool, snapshot
from weft.errors import OutOfRangeError
from weft.runtime import executable, flight
from weft.runtime.execution.team import TEAM, Team

SIZES = (24, 40)  # of no other test: programs are cached by structure


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """A team without workers: what a caller leaves stays undone until someone waits for it."""
    TEAM.stop()
    monkeypatch.setattr(Team, "_start", lambda *_: None)
    monkeypatch.setattr(executable, "AHEAD_NS", 0.0)
    with config.override(threads=2, compile=True):
        yield
    TEAM.stop()


class Loop:
    """A plain training loop on arrays that can be written to."""

    def __init__(self, kind=wf.optim.Adam, sizes=SIZES):
        rng = np.random.default_rng(0)
        inner, outer = sizes
        self.model = nn.Sequential(nn.Linear(inner, outer), nn.ReLU(), nn.Linear(outer, 10))
        for p in self.model.parameters():
            p.data.copy_(wf.tensor(rng.standard_normal(tuple(p.shape)).astype(np.float32)))
        self.opt = kind(self.model.parameters(), 1e-2)
        self.images = rng.standard_normal((256, inner)).astype(np.float32)
        self.labels = rng.integers(0, 10, 256)
        self.w = self.model[0].weight

    def step(self):
        x, labels = wf.from_numpy(self.images), wf.from_numpy(self.labels)
        self.loss = nn.functional.cross_entropy(self.model(x), labels)
        self.loss.backward()
        self.opt.step()
        self.opt.zero_grad()
        return float(self.loss.detach())

    def ahead(self):
        """After some steps, the last of which is still running."""
        for _ in range(4):
            self.step()
        assert flight.aloft
        return self

    def values(self):
        return [p.detach().numpy().copy() for p in self.model.parameters()]


def expected(look):
    """What `look` gives where every step is done before it returns."""
    loop = Loop()
    for _ in range(4):
        loop.step()
        flight.land()
    return look(loop)


def test_synchronize_waits_for_all_of_it():
    loop = Loop().ahead()
    wf.synchronize()
    assert not flight.aloft
    y = loop.w * 2
    wf.synchronize()
    assert y.lazy.array is not None


def _saved(loop):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        wf.save(loop.model.state_dict(), path)
        return path.read_bytes()


def _in_thread(loop):
    found = []
    thread = threading.Thread(target=lambda: found.extend(loop.values()))
    thread.start()
    thread.join()
    return found


def _in_child(loop):
    array = loop.w.lazy.array  # as it is: nothing waits but the fork
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(send, array[:4].tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    found = os.read(receive, 1 << 12)
    os.close(receive)
    os.close(send)
    return found


def _written(loop):
    w = loop.w.detach().clone()
    w[0] = 5.0
    return w.numpy()


def _written_in_place(loop):
    with wf.no_grad():
        loop.w[0] = 5.0
        loop.w.mul_(2.0)
    return loop.values()


def _state_of(loop):
    return [np.asarray(v) for s in loop.opt.state_dict()["state"].values() for v in s.values()]


LOOKS = {
    "numpy": lambda loop: loop.w.detach().numpy(),
    "data": lambda loop: loop.w.data.numpy(),
    "asarray": lambda loop: np.asarray(loop.w.detach()),
    "dlpack": lambda loop: np.from_dlpack(loop.w.detach()),
    "tolist": lambda loop: loop.w.tolist(),
    "repr": lambda loop: repr(loop.w),
    "item": lambda loop: loop.w[3, 4].item(),
    "format": lambda loop: f"{loop.w.detach().sum():.9f}",
    "bool": lambda loop: bool(loop.w.sum() > 0),
    "int": lambda loop: int(loop.w.sum() * 1000),
    "view": lambda loop: loop.w.T.detach().numpy(),
    "part": lambda loop: loop.w.detach()[1:3].numpy(),
    "by positions": lambda loop: loop.w.detach()[np.array([1, 2])].numpy(),
    "where": lambda loop: wf.nonzero(loop.w > 0).numpy(),
    "iteration": lambda loop: [row.tolist() for row in loop.w],
    "clone": lambda loop: loop.w.clone().detach().numpy(),
    "sum": lambda loop: loop.w.sum().item(),
    "equal": lambda loop: wf.equal(loop.w, loop.w.detach().clone()),
    "deepcopy": lambda loop: copy.deepcopy(loop.model)[0].weight.detach().numpy(),
    "pickle": lambda loop: pickle.loads(pickle.dumps(loop.w)).detach().numpy(),
    "save": _saved,
    "state dict": lambda loop: {k: v.numpy() for k, v in loop.model.state_dict().items()},
    "optimizer's state": _state_of,
    "interpreted": lambda loop: np.asarray(wnp.linalg.svd(wnp.asarray(loop.w.detach()))[1]),
    "thread": _in_thread,
    "child": _in_child,
    "written": _written,
    "written in place": _written_in_place,
    "model": lambda loop: loop.model(wf.from_numpy(loop.images)).detach().numpy(),
    "loss": lambda loop: loop.loss.item(),
    "next step": lambda loop: [loop.step(), loop.step(), *loop.values()],
    "index": lambda loop: operator.index((loop.w.detach().sum() * 100).long()),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
@pytest.mark.parametrize("name", LOOKS)
def test_readers_find_finished_memory(name):
    look = LOOKS[name]
    np.testing.assert_equal(look(Loop().ahead()), expected(look))


def test_the_check_can_fail():
    """Memory that is read past all doors is not finished."""
    w = Loop().ahead().w.lazy.array.copy()
    assert not np.array_equal(w, expected(lambda loop: loop.w.detach().numpy()))


def test_empty_cache_frees_what_the_rest_of_a_step_worked_on():
    loop = Loop().ahead()
    memory = weakref.ref(loop.w.lazy.array)
    del loop
    gc.collect()
    assert memory() is not None
    wf.empty_cache()
    assert memory() is None


def test_the_loss_is_not_waited_for():
    loop = Loop().ahead()
    loop.loss.item()
    assert flight.aloft


def test_arrays_given_may_be_overwritten_once_the_loss_is_known():
    loop = Loop()
    images, labels = loop.images.copy(), loop.labels.copy()
    for _ in range(4):
        loop.images[:], loop.labels[:] = images, labels
        loop.step()
        loop.images[:], loop.labels[:] = 7.0, 0
    assert flight.aloft
    for value, wanted in zip(loop.values(), expected(Loop.values), strict=True):
        np.testing.assert_array_equal(value, wanted)


def test_a_batch_that_was_copied_when_it_was_read_is_not_copied_again(monkeypatch):
    def copied(array, dtype):
        shapes.append(array.shape)
        return memory_pool.copied(array, dtype)

    shapes: list[tuple[int, ...]] = []
    loop = Loop(sizes=(96, 64)).ahead()
    flight.land()
    monkeypatch.setattr(snapshot, "copied", copied)
    loop.step()
    loop.images[:] = np.nan
    assert flight.aloft
    assert sorted(shapes) == [(256,), (256, 96)]
    assert all(np.isfinite(value).all() for value in loop.values())


def test_a_caller_stays_where_parameters_are_seen_by_others():
    loop = Loop()
    shown = [p.detach().numpy() for p in loop.model.parameters()]
    for _ in range(4):
        loop.step()
        assert not flight.aloft
    for value, wanted in zip(shown, expected(Loop.values), strict=True):
        np.testing.assert_array_equal(value, wanted)


def test_a_part_of_an_array_counts_as_the_whole():
    array = np.zeros((4, 6), np.float32)
    kept = [wf.from_numpy(array[1:]), wf.from_numpy(array.T)]
    assert all(
        wf.eager.record.memory.memory_pool.is_lent(a)
        for a in (array, array[2:3], array.reshape(-1))
    )
    del kept


def test_arrays_that_are_gone_are_forgotten():
    before = len(wf.eager.record.memory.memory_pool._LENT._roots)
    for _ in range(3):
        wf.from_numpy(np.zeros(5))
    assert len(wf.eager.record.memory.memory_pool._LENT._roots) == before


def test_a_label_out_of_range_is_found_before_anyone_leaves():
    loop = Loop().ahead()
    memory = loop.w.lazy.array
    loop.labels[3] = 10
    with pytest.raises(OutOfRangeError):
        loop.step()
    assert not flight.aloft
    np.testing.assert_array_equal(memory, expected(lambda loop: loop.w.detach().numpy()))


def test_models_that_are_gone_are_trained_to_the_end():
    Loop().ahead()
    Loop().ahead()
    flight.land()
    assert not flight.aloft


@pytest.mark.parametrize("kind", [wf.optim.SGD, wf.optim.AdamW, wf.optim.Adagrad])
def test_optimizers_give_what_they_give_to_callers_that_stay(kind):
    ahead, stays = Loop(kind), Loop(kind)
    for _ in range(5):
        first = ahead.step()
        flight.land()
        assert first == stays.step()
        flight.land()
    for value, wanted in zip(ahead.values(), stays.values(), strict=True):
        np.testing.assert_array_equal(value, wanted)
