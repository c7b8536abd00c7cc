"""Workers of a loader: their random numbers, their queues, and what they inherit."""

import gc
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from patience import eventually

import weft as wf
from weft.data.transforms import compose
from weft.errors import StateError, WorkerError
from weft.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
    get_worker_info,
)


class Drawn(Dataset):
    """Every random number that a sample may draw without a generator."""

    def __len__(self):
        return 8

    def __getitem__(self, i):
        info = get_worker_info()
        assert info is None or wf.initial_seed() == info.seed
        return [wf.rand(1).item(), wf.randperm(10**6)[0].item(), np.random.rand(), random.random()]


class DrawnByLayers(Drawn):
    """What draws in other ways."""

    def __getitem__(self, i):
        filled, dropped = wf.empty(1), wf.nn.functional.dropout(wf.ones(64))
        wf.nn.init.normal_(filled)
        return [filled.item(), dropped.numpy().tobytes(), compose.random().random()]


class DrawnStream(Drawn, IterableDataset):
    def __iter__(self):
        yield from map(self.__getitem__, range(4))


def whole(batch):
    return batch


def drawn(dataset, **options):
    """The samples of two epochs, after the same seed."""
    wf.manual_seed(0)
    loader = DataLoader(dataset, batch_size=1, collate_fn=whole, **options)
    return [sample for _ in range(2) for (sample,) in loader]


@pytest.mark.parametrize(
    ("dataset", "options"),
    [
        (DrawnByLayers(), {}),
        (Drawn(), {"persistent_workers": True, "shuffle": True}),
        pytest.param(Drawn(), {"generator": wf.Generator().manual_seed(3)}, marks=pytest.mark.slow),
        pytest.param(DrawnStream(), {}, marks=pytest.mark.slow),
        pytest.param(
            DrawnStream(),
            {"persistent_workers": True, "multiprocessing_context": "spawn"},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_workers_draw_numbers_of_their_own_that_follow_from_the_seed(dataset, options):
    first = drawn(dataset, num_workers=2, **options)
    assert len(first) == 16
    assert all(len(set(column)) == 16 for column in zip(*first, strict=True))
    if "generator" in options:
        assert drawn(dataset, num_workers=2, **options) != first
        options["generator"].manual_seed(3)
    assert drawn(dataset, num_workers=2, **options) == first


def test_threads_draw_numbers_that_follow_from_the_seed():
    options = {"num_workers": 3, "multiprocessing_context": "thread"}
    keep = [0, 1]  # not Python's and NumPy's, which all threads share
    first = [[row[k] for k in keep] for row in drawn(Drawn(), **options)]
    assert all(len(set(column)) == 16 for column in zip(*first, strict=True))
    assert [[row[k] for k in keep] for row in drawn(Drawn(), **options)] == first


def test_ranks_with_one_order_draw_different_numbers():
    sampler = wf.utils.data.DistributedSampler(Drawn(), num_replicas=2, rank=0)
    found = [drawn(Drawn(), num_workers=1, sampler=sampler)]
    loader = DataLoader(Drawn(), num_workers=1, collate_fn=whole, sampler=sampler)
    found.append([sample for (sample,) in loader])  # the generator has moved on
    assert found[0][:4] != found[1]


def test_the_parents_numbers_do_not_depend_on_workers():
    after = []
    for count in (0, 2):
        wf.manual_seed(1)
        list(DataLoader(Sized(4, 1), num_workers=count))
        after.append(wf.rand(1).item())
    assert after[0] == after[1]


class Augmented(Dataset):
    def __getitem__(self, i):
        return compose.random().random()


def test_a_sample_that_comes_twice_draws_other_numbers():
    loader = DataLoader(Augmented(), batch_size=2, sampler=[3, 3, 3, 3])
    found = [x for _ in range(2) for batch in loader for x in batch.tolist()]
    assert len(set(found)) == 8


class Sized(Dataset):
    def __init__(self, count, size):
        self.count, self.size = count, size

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return np.full(self.size, i, np.float32)


@pytest.mark.parametrize(
    ("ahead", "batches", "batch", "size", "workers"),
    [(300, 400, 1, 1, 1), (2000, 600, 1, 300, 2), (600, 120, 3000, 1, 1)],
)
def test_any_number_of_batches_may_wait(ahead, batches, batch, size, workers):
    dataset = Subset(Sized(batches, size), np.arange(batches).repeat(batch))
    first = lambda samples: samples[0]  # noqa: E731
    loader = DataLoader(
        dataset, batch, num_workers=workers, prefetch_factor=ahead, collate_fn=first, timeout=60
    )
    assert [int(x[0]) for x in loader] == list(range(batches))


class Stuck(Sized):
    def __getitem__(self, i):
        time.sleep(600)


def test_the_timeout_also_counts_while_tasks_wait():
    loader = DataLoader(Stuck(9000, 1), 1, num_workers=1, prefetch_factor=3000, timeout=0.3)
    with pytest.raises(WorkerError, match=r"within 0\.3 seconds"):
        next(iter(loader))


class FirstIsSlow(Sized):
    def __init__(self, mark):
        super().__init__(20, 1)
        self.mark = mark

    def __getitem__(self, i):
        if i == 0:
            eventually(self.mark.exists)
        return i


@pytest.mark.parametrize("context", [None, "thread"])
def test_batches_come_as_they_are_ready(context, tmp_path):
    dataset = FirstIsSlow(tmp_path / "mark")
    options = {"num_workers": 2, "in_order": False, "multiprocessing_context": context}
    loader = DataLoader(dataset, **options)
    assert loader.in_order is False
    running = iter(loader)
    found = [int(next(running)) for _ in range(4)]
    assert 0 not in found
    state = loader.state_dict()
    dataset.mark.touch()
    rest = [int(x) for x in running]
    assert sorted(found + rest) == list(range(20))
    again = DataLoader(dataset, **options)
    again.load_state_dict(state)
    assert sorted(int(x) for x in again) == sorted(rest)


class SlowWorker(IterableDataset):
    def __init__(self, mark):
        self.mark = mark

    def __iter__(self):
        worker = get_worker_info().id
        for i in range(3):
            if worker == i == 0:
                eventually(self.mark.exists)
            yield 10 * worker + i


def test_streams_come_as_they_are_ready(tmp_path):
    dataset = SlowWorker(tmp_path / "mark")
    loader = DataLoader(dataset, batch_size=1, num_workers=2, in_order=False)
    running = iter(loader)
    found = [int(next(running))]
    with pytest.raises(StateError, match="in_order=True"):
        loader.state_dict()
    assert [*found, int(next(running)), int(next(running))] == [10, 11, 12]
    dataset.mark.touch()
    assert [int(x) for x in running] == [0, 1, 2]
    assert [int(x) for x in DataLoader(dataset, batch_size=1, num_workers=2)] == [
        0, 10, 1, 11, 2, 12,
    ]  # fmt: skip


def test_kept_batches_hold_no_descriptors():
    before = len(os.listdir("/proc/self/fd"))
    kept = list(DataLoader(Sized(300, 2000), num_workers=2, prefetch_factor=20))
    assert len(os.listdir("/proc/self/fd")) <= before + 2
    assert [int(x[0, 5]) for x in kept] == list(range(300))


def test_too_many_open_files_says_which_limit_to_raise():
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    running = iter(DataLoader(Sized(9, 2000), num_workers=1))
    next(running)
    used = max(map(int, os.listdir("/proc/self/fd"))) + 1
    resource.setrlimit(resource.RLIMIT_NOFILE, (used, limits[1]))
    held = []
    try:
        with pytest.raises(OSError, match="Too many open files"):
            while True:
                held.append(os.dup(0))
        with pytest.raises(WorkerError, match=rf"got none of {used}; raise the limit by `ulimit"):
            list(running)
        with pytest.raises(WorkerError, match=r"raise the limit by `ulimit -n \d+`"):
            list(DataLoader(Sized(9, 2000), num_workers=1))
    finally:
        for handle in held:
            os.close(handle)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


class Holding(Dataset):
    def __init__(self):
        self.rows = wf.randn(50, 30).exp().mul(0.1)  # pending
        self.calls = wf.randn(50, 30)

    def __len__(self):
        return 50

    def __getitem__(self, i):
        return self.rows[i], self.calls[i].sum() * 0


@pytest.mark.parametrize("dataset", [Holding, lambda: TensorDataset(wf.randn(50, 30).exp())])
def test_pending_values_are_computed_before_workers_start(dataset):
    made = dataset()
    held = made.rows if isinstance(made, Holding) else made.tensors[0]
    assert held.shown.array is None
    batches = list(DataLoader(made, batch_size=10, num_workers=2))
    assert held.shown.array is not None  # here, where all workers inherit it
    assert wf.cat([batch[0] for batch in batches]).equal(held)


class Raising(Sized):
    def __getitem__(self, i):
        raise LookupError("no")


@pytest.mark.slow
def test_workers_leave_their_parents_processes_alone(capfd):
    class Collecting(Sized):
        def __getitem__(self, i):
            gc.collect()
            return i

    with pytest.raises(LookupError) as kept:
        list(DataLoader(Raising(4, 1), num_workers=2))
    other = iter(DataLoader(Sized(8, 1), num_workers=1))
    next(other)
    cycle = [other, kept]
    cycle.append(cycle)  # garbage that workers of the next loader collect, too
    gc.disable()
    try:
        sentinel = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        pids = [int(x) for x in re.findall(r"\d+", str(os.listdir("/proc"))) if _child(int(x))]
        del other, kept, cycle
        assert len(list(DataLoader(Collecting(2, 1), num_workers=2))) == 2
        assert all(map(_child, pids))  # none was ended
    finally:
        gc.enable()
        sentinel.send_signal(signal.SIGKILL)
        sentinel.wait()
    assert "Traceback" not in capfd.readouterr().err


def _child(pid):
    """Whether a process is a child of this one, and runs."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return False
    return int(fields[1]) == os.getpid() and fields[0] != "Z"


class Handler(Sized):
    def __getitem__(self, i):
        return int(signal.getsignal(signal.SIGTERM) is signal.SIG_IGN)


def test_a_handler_of_the_parent_is_not_for_its_workers():
    before = signal.signal(signal.SIGTERM, lambda number, frame: None)  # as a trainer's
    try:
        assert [int(x) for x in DataLoader(Handler(3, 1), num_workers=1)] == [1, 1, 1]
    finally:
        signal.signal(signal.SIGTERM, before)
