"""`DataLoader`: equal batches from processes, threads and neither; dead workers raise."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from patience import LIMIT

import weft as wf
from weft.errors import ArgumentError, StateError, WorkerError
from weft.pipeline import element_random
from weft.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    get_worker_info,
    random_split,
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
            time.sleep(600)
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
    _, errors = process.communicate(timeout=LIMIT)
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
        ({"prefetch_factor": 3}, "prefetch_factor needs num_workers > 0"),
        ({"num_workers": 1, "prefetch_factor": 0}, "expected prefetch_factor > 0, got 0"),
        ({"multiprocessing_context": "fork"}, "multiprocessing_context needs num_workers > 0"),
        ({"num_workers": 1, "multiprocessing_context": "thredd"}, "one of .*, thread, got 'thredd"),
    ],
)
def test_arguments_that_exclude_one_another(options, message):
    with pytest.raises(ArgumentError, match=message):
        DataLoader(range(5), **options)
    with pytest.raises(ArgumentError, match="an order of its own"):
        DataLoader(Counted(3), shuffle=True)


def test_what_an_epoch_is_made_of_cannot_be_set_later():
    loader = DataLoader(range(6), 2, num_workers=0)
    for name in (
        "batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers",
    ):  # fmt: skip
        with pytest.raises(ValueError, match=f"{name} cannot be set after the loader is made"):
            setattr(loader, name, getattr(loader, name))
    with pytest.raises(ArgumentError, match="multiprocessing_context needs num_workers > 0"):
        loader.multiprocessing_context = "fork"
    loader.timeout = 1
    with pytest.raises(ArgumentError, match="timeout needs num_workers > 0"):
        iter(loader)
    loader.timeout, loader.collate_fn = 0, sum
    assert list(loader) == [1, 5, 9]
    assert loader.in_order
    assert (loader.prefetch_factor, loader.pin_memory_device) == (None, "")
    assert DataLoader(range(6), num_workers=1).prefetch_factor == 2
    with pytest.raises(ValueError, match="the only device here, got 'cuda'"):
        DataLoader(range(6), pin_memory_device="cuda")
    assert isinstance(loader, DataLoader[int].__origin__)
    assert isinstance(StackDataset(range(6)), StackDataset[int].__origin__)
    assert isinstance(DistributedSampler(range(6), 1, 0), DistributedSampler[int].__origin__)


def test_other_settings_start_other_persistent_workers():
    loader = DataLoader(range(4), 2, num_workers=1, persistent_workers=True)
    assert [b.tolist() for b in loader] == [[0, 1], [2, 3]]
    loader.collate_fn = sum
    assert list(loader) == [1, 5]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_batch_sampler_has_a_sampler_of_its_own(workers):
    def batches(sampler, drop=False):
        loader = DataLoader(
            range(10), batch_sampler=BatchSampler(sampler, 4, drop), num_workers=workers
        )
        return [batch.tolist() for batch in loader]

    assert batches([5, 6, 7]) == [[5, 6, 7]]
    assert batches(SubsetRandomSampler([3]), True) == []
    shuffled = batches(RandomSampler(range(10), generator=wf.Generator().manual_seed(1)), True)
    assert list(map(len, shuffled)) == [4, 4]
    assert shuffled != [[0, 1, 2, 3], [4, 5, 6, 7]]
    if not workers:
        wf.manual_seed(0)
        plain = [b.tolist() for b in DataLoader(range(10), 4, shuffle=True)]
        wf.manual_seed(0)
        assert batches(RandomSampler(range(10))) == plain


@pytest.mark.parametrize("workers", [0, 1])
def test_a_samplers_own_iteration_is_the_order(workers):
    given = [(range(6),), ([1, 2],), ([1.0] * 6, 4), (range(6), 2, 0)]
    kinds = RandomSampler, SubsetRandomSampler, WeightedRandomSampler, DistributedSampler
    for kind, values in zip((SequentialSampler, *kinds), (given[0], *given), strict=True):
        own = type("Own", (kind,), {"__iter__": lambda s: iter([5, 3, 4]), "__len__": lambda s: 3})
        sampler = own(*values)
        loader = DataLoader(range(6), 2, sampler=sampler, num_workers=workers)
        assert [b.tolist() for b in loader] == [[5, 3], [4]]
        batches = BatchSampler(sampler, 2, True)
        loader = DataLoader(range(6), batch_sampler=batches, num_workers=workers)
        assert [b.tolist() for b in loader] == [[5, 3]]
        single = DataLoader(range(6), batch_size=None, sampler=sampler, num_workers=workers)
        assert list(single) == [5, 3, 4]
    running = iter(loader := DataLoader(range(6), 2, sampler=sampler, num_workers=workers))
    next(running)
    loader.load_state_dict(running.state_dict())
    assert [b.tolist() for b in loader] == [[4]]


class Sorted(RandomSampler):
    def __iter__(self):
        return iter(sorted(super().__iter__()))


def test_a_samplers_iteration_may_use_that_of_its_kind():
    loader = DataLoader(range(6), 4, sampler=Sorted(range(6)))
    assert [b.tolist() for b in loader] == [[0, 1, 2, 3], [4, 5]]


@pytest.mark.parametrize("kind", [RandomSampler, SubsetRandomSampler, DistributedSampler])
def test_a_samplers_iteration_that_uses_its_kinds_goes_on(kind):
    own = type("Own", (kind,), {"__iter__": lambda s: reversed(list(kind.__iter__(s)))})
    values = (range(12), 2, 1) if kind is DistributedSampler else (range(6),)
    running = iter(DataLoader(range(12), 2, sampler=own(*values)))
    next(running)
    later = DataLoader(range(12), 2, sampler=own(*values))
    later.load_state_dict(running.state_dict())
    assert [b.tolist() for b in later] == [b.tolist() for b in running]


class Named(Dataset):
    def __len__(self):
        return 3

    def __getitem__(self, key):
        return key


KEYS = [["a", "b"], [(1, 2), (3, 4)], [1.5, 2.5], [[1], [2, 3]], [slice(1), None], [True, 2]]


@pytest.mark.parametrize("workers", [0, 1])
def test_keys_arrive_as_the_sampler_yields_them(workers):
    for keys in KEYS if not workers else KEYS[:1] + KEYS[3:4]:
        options = {"num_workers": workers, "collate_fn": lambda x: x}
        single = DataLoader(Named(), batch_size=None, sampler=keys, **options)
        assert list(single) == keys
        assert str(list(DataLoader(Named(), batch_sampler=[keys], **options))) == str([keys])
        shuffled = DataLoader(Named(), sampler=SubsetRandomSampler(keys), **options)
        assert sorted(map(str, shuffled)) == sorted(str([key]) for key in keys)
    bulk = BatchSampler(SequentialSampler(range(5)), 2, False)
    found = list(DataLoader(Named(), batch_size=None, sampler=bulk, num_workers=workers))
    assert found == [[0, 1], [2, 3], [4]]


class Bag(Dataset):
    """A dataset whose `gather` is about something else."""

    def __len__(self):
        return 4

    def __getitem__(self, i):
        return i

    def gather(self, what):
        raise AssertionError("not a loader's business")


class Doubled(TensorDataset):
    def __getitem__(self, i):
        return (super().__getitem__(i)[0] * 2,)


@pytest.mark.parametrize("workers", [0, 1])
def test_tensors_and_others_are_datasets(workers):
    x = wf.arange(12.0).reshape(6, 2)
    for dataset, rows in (
        (x, x),
        (Subset(x, [3, 1]), x[[3, 1]]),
        (wf.arange(5), wf.arange(5)),
        (x.numpy(), x),
        (Bag(), wf.arange(4)),
        (Subset(Bag(), [2, 0]), wf.tensor([2, 0])),
    ):
        loader = DataLoader(dataset, batch_size=4, num_workers=workers)
        assert wf.cat(list(loader)).equal(rows)
        if workers:
            return
    parts = random_split(x, [4, 2])
    assert sorted(row[0] for part in parts for row in wf.stack(list(part)).tolist()) == [
        0, 2, 4, 6, 8, 10,
    ]  # fmt: skip
    for doubled in (Doubled(x), Subset(Doubled(x), range(6))):
        assert next(iter(DataLoader(doubled, batch_size=6)))[0].equal(x * 2)


class Several(Named):
    def __getitems__(self, keys):
        return [element_random().integers(1, 2) * key * 10 for key in keys]


def test_datasets_are_asked_for_several_samples_where_they_can():
    several, named = Several(), Named()
    assert next(iter(DataLoader(several, batch_size=3))).tolist() == [0, 10, 20]
    part = Subset(Subset(several, [0, 2]), [1, 0])
    assert next(iter(DataLoader(part, batch_size=2))).tolist() == [20, 0]
    assert Subset(named, ["a", "b"]).__getitems__([1, 0]) == ["b", "a"]
    stacked = StackDataset(a=named, b=several)
    batch = next(iter(DataLoader(stacked, batch_size=3)))
    assert {k: x.tolist() for k, x in batch.items()} == {"a": [0, 1, 2], "b": [0, 10, 20]}
    assert StackDataset(named, named).__getitems__([1, 2]) == [(1, 1), (2, 2)]
    with pytest.raises(NotImplementedError, match="Half defines __getitem__ alone; define __geti"):
        type("Half", (Subset,), {"__getitem__": lambda self, i: i})(named, [0])
