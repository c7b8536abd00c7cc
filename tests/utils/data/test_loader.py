"""`DataLoader`: equal batches from processes, threads and neither; dead workers raise."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import weft as wf
from weft.errors import ArgumentError, StateError, WorkerError
from weft.pipeline import element_random
from weft.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
    get_worker_info,
)

WAYS = [{}, {"num_workers": 2}, {"num_workers": 2, "multiprocessing_context": "thread"}]


class Noisy(Dataset):
    def __len__(self):
        return 23

    def __getitem__(self, i):
        if i == 99:
            raise KeyError("label")
        big = np.full(2000, i, np.float32)
        return {"i": i, "x": big, "noise": element_random().integers(1 << 40), "t": str(i)}


class Counted(IterableDataset):
    def __init__(self, count):
        self.count = count

    def __iter__(self):
        info = get_worker_info()
        part = (0, 1) if info is None else (info.id, info.num_workers)
        yield from range(part[0], self.count, part[1])


def plain(batches):
    return [
        {k: x.tolist() if isinstance(x, wf.Tensor) else x for k, x in b.items()} for b in batches
    ]


def test_workers_change_nothing():
    found = []
    for way in WAYS:
        wf.manual_seed(3)
        loader = DataLoader(Noisy(), batch_size=4, shuffle=True, **way)
        assert len(loader) == 6
        found.append([plain(loader), plain(loader)])
    assert found[0] == found[1] == found[2]
    assert found[0][0] != found[0][1]
    assert sorted(i for b in found[0][0] for i in b["i"]) == list(range(23))


@pytest.mark.parametrize("way", WAYS)
def test_a_resumed_epoch_continues(way):
    wf.manual_seed(5)
    loader = DataLoader(Noisy(), batch_size=2, shuffle=True, drop_last=True, **way)
    running = iter(loader)
    for _ in range(4):
        next(running)
    state = loader.state_dict()
    expected = plain(running)
    wf.manual_seed(6)
    again = DataLoader(Noisy(), batch_size=2, shuffle=True, drop_last=True, **way)
    again.load_state_dict(state)
    assert plain(again) == expected
    assert len(expected) == 7
    assert plain(again) != expected
    streamed = DataLoader(Counted(20), batch_size=3, num_workers=way.get("num_workers", 0))
    if not way or "multiprocessing_context" not in way:
        whole = [b.tolist() for b in streamed]
        running = iter(streamed)
        next(running), next(running)
        streamed.load_state_dict(running.state_dict())
        assert [b.tolist() for b in streamed] == whole[2:]
    with pytest.raises(StateError, match="expected a loader's state, got 3"):
        loader.load_state_dict(3)


def test_iterable_datasets_are_shared_out():
    alone = DataLoader(Counted(10), batch_size=4)
    assert [b.tolist() for b in alone] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    shared = DataLoader(Counted(10), batch_size=2, num_workers=2, persistent_workers=True)
    for _ in range(2):
        found = [b.tolist() for b in shared]
        assert found == [[0, 2], [1, 3], [4, 6], [5, 7], [8], [9]]
    next(iter(shared))
    assert [b.tolist() for b in shared] == found
    assert [int(x) for x in DataLoader(Counted(3), batch_size=None)] == [0, 1, 2]


class Picky(Dataset):
    """Sample 5 raises; 6 ends the process."""

    def __init__(self, bad):
        self.bad = bad

    def __len__(self):
        return 8

    def __getitem__(self, i):
        if i == self.bad == 5:
            raise LookupError("no label")
        if i == self.bad == 6:
            os.kill(os.getpid(), signal.SIGKILL)
        if i == self.bad == 7:
            time.sleep(30)
        return i


def test_an_error_arrives_with_the_workers_traceback():
    running = iter(DataLoader(Picky(5), batch_size=2, num_workers=2))
    assert [next(running).tolist() for _ in range(2)] == [[0, 1], [2, 3]]
    with pytest.raises(LookupError, match="no label") as caught:
        next(running)
    notes = "".join(caught.value.__notes__)
    assert "raised by sample 5 of Picky" in notes
    assert "raised in worker 0 (process" in notes
    assert 'raise LookupError("no label")' in notes
    assert next(running).tolist() == [6, 7]


def test_a_killed_worker_and_a_slow_one_are_errors():
    with pytest.raises(WorkerError, match=r"worker 1 .* ended by signal 9 \(SIGKILL\)"):
        list(DataLoader(Picky(6), batch_size=2, num_workers=2))
    with pytest.raises(WorkerError, match=r"within 0\.3 seconds; it may be busy or deadlocked"):
        list(DataLoader(Picky(7), batch_size=2, num_workers=2, timeout=0.3))


def numbered(worker):
    os.environ["WORKER"] = str(worker)


class Environment(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        info = get_worker_info()
        return int(os.environ["WORKER"]), info.id, info.num_workers, os.getpid()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_are_started_and_kept(method):
    loader = DataLoader(
        Environment(),
        num_workers=2,
        worker_init_fn=numbered,
        persistent_workers=True,
        multiprocessing_context=method,
    )
    first, second = list(loader), list(loader)
    assert [[int(x) for x in b[:3]] for b in first] == [[0, 0, 2], [1, 1, 2]] * 2
    assert [int(b[3]) for b in first] == [int(b[3]) for b in second]
    assert get_worker_info() is None


PROGRAM = """
import numpy as np
import time
from weft.utils.data import DataLoader
class Slow:
    def __len__(self): return 100
    def __getitem__(self, i):
        time.sleep(0.05)
        return np.zeros(100000)
if __name__ == "__main__":
    for _ in DataLoader(Slow(), num_workers=2):
        print("batch", flush=True)
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_behind(how, tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    process = subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.getcwd()}, start_new_session=True,
    )  # fmt: skip
    assert process.stdout.readline() == "batch\n"
    if how == signal.SIGINT:
        os.killpg(process.pid, how)  # as a terminal does
    else:
        process.kill()
    _, errors = process.communicate(timeout=30)
    if how == signal.SIGINT:
        assert "KeyboardInterrupt" in errors
    limit = time.monotonic() + 10
    while time.monotonic() < limit:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            break
        time.sleep(0.05)
    else:
        pytest.fail("workers live on")


def test_whole_batches_are_gathered():
    x, y = wf.arange(20.0).reshape(10, 2), wf.arange(10)
    for loader in (
        DataLoader(TensorDataset(x, y), batch_size=4),
        DataLoader(TensorDataset(x, y), batch_sampler=BatchSampler(range(10), 4, False)),
        DataLoader(
            TensorDataset(x, y),
            batch_size=4,
            collate_fn=lambda b: [*map(wf.stack, zip(*b, strict=True))],
        ),
    ):
        batches = list(loader)
        assert [b[0].shape for b in batches] == [(4, 2), (4, 2), (2, 2)]
        assert wf.cat([b[0] for b in batches]).tolist() == x.tolist()
        assert batches[1][1].tolist() == [4, 5, 6, 7]
    part = Subset(Subset(TensorDataset(x, y), [1, 3, 5, 7]), [3, 0])
    assert [b[1].tolist() for b in DataLoader(part, batch_size=2)] == [[7, 1]]
    listed = Subset(Noisy(), [4, 2])
    assert next(iter(DataLoader(listed, batch_size=2)))["i"].tolist() == [4, 2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "expected batch_size > 0, got 0"),
        ({"shuffle": True, "sampler": [1]}, "expected shuffle or sampler, got both"),
        ({"batch_sampler": [[1]], "batch_size": 3}, "batch_sampler excludes"),
        ({"persistent_workers": True}, "persistent_workers needs num_workers > 0"),
        ({"num_workers": -1}, "expected num_workers >= 0, got -1"),
        ({"batch_size": None, "drop_last": True}, "drop_last needs a batch_size"),
    ],
)
def test_arguments_that_exclude_one_another(options, message):
    with pytest.raises(ArgumentError, match=message):
        DataLoader(range(5), **options)
    with pytest.raises(ArgumentError, match="an order of its own"):
        DataLoader(Counted(3), shuffle=True)
