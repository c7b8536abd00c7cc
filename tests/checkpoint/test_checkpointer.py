"""Checkpoint folders are written whole or not at all, whatever fails: process, disk or files."""

from __future__ import annotations

import errno
import os
import random
import resource
import shutil
import signal
import threading
from pathlib import Path

import numpy as np
import pytest

import weft as wf
from tests.checkpoint.kill_saves import attack
from tests.mutation import WAYS
from weft.checkpoint import Checkpointer, PerRank, RandomState, Slice
from weft.errors import (
    ArgumentError,
    CheckpointError,
    DataError,
    DTypeError,
    FileError,
    NewerFormatError,
    ShapeError,
)
from weft.formats.checkpoint_folder import manifest as manifest_module
from weft.formats.checkpoint_folder import writer as writer_module
from weft.formats.checkpoint_folder.layout import MANIFEST, remove_folder


def state(step: int) -> dict[str, object]:
    return {"w": np.full((3, 5), step, np.float32), "nested": [{"step": step}, "text", None]}


def held(folder: Path) -> int:
    """The step that a folder gives, whose parts agree."""
    found = Checkpointer(folder).restore()
    assert set(found.state["w"].numpy().ravel().tolist()) == {found.step}
    assert found.state["nested"] == [{"step": found.step}, "text", None]
    return found.step


def filled(folder: Path, *steps: int, **options: object) -> Path:
    with Checkpointer(folder, **options) as checkpoints:
        for step in steps:
            checkpoints.save(step, state(step))
    return folder


def test_the_newest_and_the_best_are_kept(tmp_path):
    with Checkpointer(tmp_path / "a" / "b", keep=2, best="loss") as checkpoints:
        assert checkpoints.restore() is None and checkpoints.latest() is None
        for step, loss in enumerate([5.0, 1.0, float("nan"), 3.0, 4.0]):
            checkpoints.save(step, state(step), {"loss": loss})
        assert checkpoints.steps() == [1, 3, 4] and checkpoints.best() == 1
        assert checkpoints.latest() == 4 and checkpoints.restore(step=1).metrics == {"loss": 1.0}
    with Checkpointer(tmp_path / "a" / "b", keep=1, best="loss", mode="max") as checkpoints:
        checkpoints.save(2, state(2), {"loss": 2.0})  # back at an earlier step
        assert checkpoints.latest() == 2 and checkpoints.steps() == [4, 2]
        checkpoints.save(2, state(2), {"loss": wf.tensor(9.0)})  # the same again
        assert checkpoints.steps() == [2] and checkpoints.best() == 2
    assert held(tmp_path / "a" / "b") == 2


def test_complex_states_are_restored(tmp_path):
    with Checkpointer(tmp_path, keep=2) as checkpoints:
        for step in range(3):
            checkpoints.save(step, {"c": wf.tensor([1 + 2j]) * step, "d": np.ones(2) * 1j})
        found = checkpoints.restore()
    assert found.state["c"].tolist() == [2 + 4j] and found.state["d"].dtype == wf.complex128


def test_what_cannot_be_read_back_replaces_nothing(tmp_path, monkeypatch):
    filled(tmp_path, 1, keep=1)
    write = writer_module.write_arrays

    def write_badly(path, *rest):
        digest = write(path, *rest)
        with path.open("r+b") as file:
            file.seek(-1, os.SEEK_END)
            file.write(b"\xff")
        return digest

    monkeypatch.setattr(writer_module, "write_arrays", write_badly)
    with pytest.raises(DataError, match="do not match their checksum"):
        filled(tmp_path, 2, keep=1)
    assert held(tmp_path) == 1


def test_what_is_saved_is_of_the_moment(tmp_path, monkeypatch):
    begun, go = threading.Event(), threading.Event()
    write = writer_module.write_arrays

    def slow(*given):
        begun.set()
        assert go.wait(10)
        return write(*given)

    monkeypatch.setattr(writer_module, "write_arrays", slow)
    w = wf.ones(3)
    with Checkpointer(tmp_path) as checkpoints:
        checkpoints.save(1, {"w": w})
        assert begun.wait(10)
        w += 1  # while it is written
        w.numpy()
        go.set()
        assert checkpoints.restore().state["w"].tolist() == [1.0, 1.0, 1.0]


class Training:
    """A model that draws, with all that a run consists of."""

    def __init__(self) -> None:
        self.model = wf.nn.Sequential(wf.nn.Linear(6, 8), wf.nn.Dropout(0.2), wf.nn.Linear(8, 1))
        self.optimizer = wf.optim.Adam(self.model.parameters(), lr=0.1)
        self.schedule = wf.optim.lr_scheduler.StepLR(self.optimizer, 2, 0.5)
        self.scaler = wf.amp.GradScaler("cpu")
        self.average = np.zeros(1)
        self.buffer = wf.zeros(2)

    def state(self) -> dict[str, object]:
        parts = {"model": self.model, "optimizer": self.optimizer, "schedule": self.schedule}
        rest = {"scaler": self.scaler, "random": RandomState()}
        return {**parts, **rest, "arrays": [self.average, {"buffer": self.buffer}]}

    def train(self, steps: int) -> list[object]:
        for _ in range(steps):
            x = wf.randn(4, 6) + random.random() + float(np.random.rand())
            loss = self.model(x).square().mean()
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.schedule.step()
            self.average += loss.item()
            self.buffer += loss.item()
        tensors = [*self.model.parameters(), self.buffer]
        return [t.tolist() for t in tensors] + [self.average.tolist(), random.random()]


def test_resumed_training_is_bitwise_the_uninterrupted_one(tmp_path, monkeypatch):
    wf.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    whole = Training()
    whole.train(3)
    with Checkpointer(tmp_path) as checkpoints:
        checkpoints.save(3, whole.state())
        expected = whole.train(4)
    random.seed(7)
    wf.manual_seed(7)
    np.random.seed(7)
    second = Training()
    assert Checkpointer(tmp_path).restore(second.state()).step == 3
    assert second.train(4) == expected


@pytest.mark.filterwarnings("ignore:restore")
def test_what_is_damaged_is_passed_over_and_told(tmp_path):
    filled(tmp_path, 1, 2, 3)
    path = tmp_path / "step-3" / "arrays-00000-of-00001.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.warns(UserWarning, match=r"step-3 is skipped, step 2 is used: .*is damaged"):
        assert held(tmp_path) == 2
    with pytest.raises(DataError, match="is damaged"):
        Checkpointer(tmp_path).restore(step=3)
    shutil.copy(tmp_path / "step-1" / path.name, tmp_path / "step-2" / path.name)
    with pytest.warns(UserWarning, match="is not the file that was saved"):
        assert held(tmp_path) == 1
    (tmp_path / "step-1" / MANIFEST).unlink()
    with pytest.raises(DataError, match=r"no checkpoint in .* can be read: .*it has no manifest"):
        held(tmp_path)
    with pytest.raises(DataError, match=r"expected step 9 to be one of \[2, 3\]"):
        Checkpointer(tmp_path).restore(step=9)
    filled(tmp_path, 3)  # the same step again, beside the damaged one
    assert held(tmp_path) == 3


@pytest.mark.filterwarnings("ignore:restore")
def test_no_mutation_goes_unseen(tmp_path):
    filled(tmp_path, 1, 2)
    draw = random.Random(0)
    files = sorted((tmp_path / "step-2").iterdir())
    before = [path.read_bytes() for path in files]
    for number in range(400):
        which = draw.randrange(len(files))
        way = draw.choice(WAYS if files[which].suffix == ".safetensors" else WAYS[:7])
        data = bytearray(before[which])
        way(data, draw)
        files[which].write_bytes(data)
        assert held(tmp_path) == (2 if data == before[which] else 1), (number, way)
        files[which].write_bytes(before[which])


def test_a_newer_format_is_reported_not_passed_over(tmp_path, monkeypatch):
    filled(tmp_path, 1)
    monkeypatch.setattr(manifest_module, "FORMAT", 2)
    filled(tmp_path, 2)
    monkeypatch.undo()
    with pytest.raises(NewerFormatError, match="has format 2: expected 1 at most"):
        held(tmp_path)


def test_another_models_checkpoint_raises_key_by_key(tmp_path):
    with Checkpointer(tmp_path) as checkpoints:
        checkpoints.save(1, {"model": wf.nn.Linear(2, 2), "w": wf.ones(2)})
    other = wf.nn.Sequential(wf.nn.Linear(2, 2))
    w, kept = wf.zeros(3), [p.tolist() for p in other.parameters()]
    with pytest.raises(CheckpointError) as raised:
        Checkpointer(tmp_path).restore({"w": w, "model": other, "epoch": 0})
    text = str(raised.value)
    assert "missing in the checkpoint: model.0.weight, model.0.bias, epoch" in text
    assert "not expected: model.weight, model.bias" in text
    assert "w: expected float32(3,), got float32(2,)" in text
    assert kept == [p.tolist() for p in other.parameters()] and w.tolist() == [0, 0, 0]
    whole = wf.optim.SGD([wf.ones(1, requires_grad=True)], 0.1)
    with pytest.raises(CheckpointError, match="'model': load_state_dict"):
        Checkpointer(tmp_path).restore({"model": Refusing(whole)})


class Refusing:
    def __init__(self, optimizer):
        self.optimizer = optimizer

    def state_dict(self):
        return {"lr": 0.1}

    def load_state_dict(self, given):
        self.optimizer.load_state_dict({"state": {}, "param_groups": []})


def test_errors_of_the_background_arrive_and_leave_the_old_state(tmp_path):
    filled(tmp_path, 1)
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.getsignal(signal.SIGXFSZ)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with Checkpointer(tmp_path) as checkpoints:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
        try:
            checkpoints.save(2, {"w": np.zeros(10_000)})
            with pytest.raises(OSError) as raised:
                checkpoints.save(3, state(3))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            signal.signal(signal.SIGXFSZ, handler)
        assert raised.value.errno == errno.EFBIG
        assert sorted(os.listdir(tmp_path)) == ["lock", "step-1"] and held(tmp_path) == 1
        checkpoints.save(3, state(3))
    assert held(tmp_path) == 3


def test_two_writers_and_invalid_arguments_raise(tmp_path):
    with Checkpointer(tmp_path) as first:
        first.save(1, state(1))
        first.wait()
        message = f"process {os.getpid()} writes to .* already"
        with pytest.raises(FileError, match=message), Checkpointer(tmp_path) as second:
            second.save(2, state(2))
        assert held(tmp_path) == 1  # reading needs no lock
    filled(tmp_path, 2)
    for wrong in ({"keep": 0}, {"mode": "least"}, {"rank": 2, "world_size": 2}):
        with pytest.raises(ArgumentError, match="Checkpointer: expected"):
            Checkpointer(tmp_path, **wrong)
    with Checkpointer(tmp_path) as checkpoints:
        with pytest.raises(ArgumentError, match="expected a step from 0"):
            checkpoints.save(-1, {})
        with pytest.raises(DTypeError, match="got object"):
            checkpoints.save(3, {"model": object()})
        with pytest.raises(ArgumentError, match="best='name of a metric'"):
            checkpoints.best()
    assert held(tmp_path) == 2


def test_ranks_commit_together_or_not_at_all(tmp_path):
    ranks = [Checkpointer(tmp_path, rank=r, world_size=3, timeout=20) for r in (0, 1, 2)]
    for step in (1, 2):
        for rank in reversed(ranks):
            rank.save(step, state(step))
        for rank in ranks:
            rank.wait()
        assert held(tmp_path) == step
    assert len(list((tmp_path / "step-2").iterdir())) == 4
    for rank in ranks:
        rank.close()
    alone = Checkpointer(tmp_path, world_size=2, timeout=0.1)
    alone.save(3, state(3))
    with pytest.raises(CheckpointError, match=r"waited 0.1 s .* until rank 1 saves its part"):
        alone.close()
    assert held(tmp_path) == 2


@pytest.mark.slow
def test_kills_leave_what_was_acknowledged(tmp_path):
    assert attack(tmp_path, 30) == 0
    last = tmp_path / "2"
    filled(last, 10**9)
    assert not list(last.glob("*.tmp")) and held(last) == 10**9


def piece(whole, rank, ranks):
    """A rank's rows of an array."""
    rows = len(whole) // ranks
    part = wf.from_numpy(whole[rank * rows : (rank + 1) * rows].copy())
    return Slice(part, whole.shape, (rank * rows, 0))


@pytest.mark.parametrize("after", [1, 2, 3, 4, 12])
def test_slices_are_restored_on_any_number_of_ranks(tmp_path, after):
    whole = np.arange(36, dtype=np.float32).reshape(12, 3)
    saving = [Checkpointer(tmp_path, rank=r, world_size=4, timeout=20) for r in range(4)]
    for rank, one in enumerate(saving):
        own = [wf.full((2,), rank), {"at": rank}]
        common = {"shared": wf.arange(5), "step": 1}
        one.save(1, {"w": [piece(whole, rank, 4)], "own": PerRank(own), "common": common})
    for one in saving:
        one.close()
    names = sorted((tmp_path / "step-1").glob("arrays*"))
    assert wf.load(names[1])["common"]["shared"] is None  # rank 0 saves it
    for rank in range(after):
        wanted = piece(np.zeros_like(whole), rank, after)
        own, shared = wf.zeros(2, dtype=wf.int64), wf.zeros(5, dtype=wf.int64)
        one = Checkpointer(tmp_path, rank=rank, world_size=after)
        into = {"w": [wanted], "own": PerRank([own, {}]), "common": {"shared": shared}}
        if after == 4:
            assert one.restore(into).state["own"][1] == {"at": rank}
            assert own.tolist() == [rank, rank]
        else:
            with pytest.warns(UserWarning, match="saved by another number of ranks"):
                one.restore(into)
        assert wanted.tensor.tolist() == whole[wanted.place].tolist()
        assert shared.tolist() == [0, 1, 2, 3, 4]
    other = Slice(wf.zeros(2, 3), (13, 3), (0, 0))
    with pytest.raises(CheckpointError, match=r"w.0: expected float32\(13, 3\), got float32\(12"):
        Checkpointer(tmp_path).restore({"w": [other]})
    assert Checkpointer(tmp_path).restore().state["w"][0].tolist() == whole.tolist()


def test_pieces_that_do_not_make_a_whole_are_reported(tmp_path):
    with pytest.raises(ShapeError, match=r"expected a piece within \(2, 3\), got \(2, 3\) at"):
        Slice(wf.zeros(2, 3), (2, 3), (1, 0))
    with Checkpointer(tmp_path) as checkpoints:
        checkpoints.save(1, {"w": Slice(wf.zeros(2, 3), (4, 3), (1, 0))})
        with pytest.raises(DataError, match="they leave out 6 of 12"):
            checkpoints.restore(step=1)


def test_what_cannot_be_removed_waits_for_the_next_save(tmp_path, monkeypatch):
    def refused(*_):
        raise OSError(errno.EBUSY, "busy")

    with Checkpointer(tmp_path, keep=1) as checkpoints:
        checkpoints.save(1, state(1))
        checkpoints.wait()
        with monkeypatch.context() as patch:
            patch.setattr(os, "rename", refused)
            remove_folder(tmp_path / "step-1")
        assert checkpoints.steps() == [1]
        checkpoints.save(2, state(2))
        assert checkpoints.steps() == [2]
