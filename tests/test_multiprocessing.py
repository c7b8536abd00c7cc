"""One function in several processes, under PyTorch's names."""

import os
import signal
import time

import pytest

import weft as wf
import weft.multiprocessing as mp
from weft.errors import ArgumentError, WorkerError


def send(index, queue, x):
    queue.put((index, (x * index).tolist()))


def fail(index, at, how):
    if index != at:
        time.sleep(600.0)
    if how == "raise":
        raise ValueError("bad luck")
    if how == "exit":
        os._exit(7)
    os.kill(os.getpid(), signal.SIGKILL)


def train(index, model, steps):
    optimizer = wf.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        x = wf.ones(1, 2)
        optimizer.zero_grad()
        (model(x) - 3).square().sum().backward()
        optimizer.step()
    model.steps[index] += steps


@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_processes_train_one_model_in_shared_memory(method):
    model = wf.nn.Linear(2, 1)
    tied = wf.nn.Sequential(model, model)
    model.register_buffer("steps", wf.zeros(2))
    before = model.weight.detach().clone()
    shown = model.weight.data
    assert not model.weight.is_shared()
    assert model.share_memory() is model and model.weight.is_shared() and model.steps.is_shared()
    assert wf.equal(model.weight.detach(), before) and model.weight.requires_grad
    mp.start_processes(train, (model, 20), nprocs=2, start_method=method)
    assert model.steps.tolist() == [20, 20]
    assert abs(model(wf.ones(1, 2)).item() - 3) < 1e-3
    assert wf.equal(shown, model.weight.detach()) and not wf.equal(shown, before)
    with wf.no_grad():
        model.weight.zero_()
    assert model.weight.is_shared() and shown.tolist() == [[0, 0]] and tied[1] is model
    with pytest.raises(wf.errors.GradientError, match="share_memory_: expected a leaf"):
        (model.weight * 2).share_memory_()


@pytest.mark.slow
def test_every_process_has_its_index_and_tensors():
    queue = mp.get_context("spawn").SimpleQueue()
    assert mp.spawn(send, (queue, wf.tensor([1.0, 2.0])), nprocs=2) is None
    assert sorted(queue.get() for _ in range(2)) == [(0, [0.0, 0.0]), (1, [1.0, 2.0])]


@pytest.mark.parametrize(
    ("how", "kind", "text"),
    [
        ("raise", mp.ProcessRaisedException, r"process 1 raised:\n\n(.|\n)*ValueError: bad luck"),
        ("exit", mp.ProcessExitedException, "process 1 ended with exit code 7"),
        ("kill", mp.ProcessExitedException, "process 1 was ended by SIGKILL"),
    ],
)
def test_others_end_when_one_fails(how, kind, text):
    started = mp.start_processes(fail, (1, how), nprocs=3, join=False, start_method="fork")
    with pytest.raises(kind, match=text) as found:
        while not started.join():
            pass
    assert isinstance(found.value, WorkerError)
    assert found.value.error_index == 1 and found.value.error_pid == started.pids()[1]
    assert not any([process.is_alive() for process in started.processes])


def test_waiting_ends_after_the_timeout():
    started = mp.start_processes(fail, (1, "raise"), nprocs=1, join=False, start_method="fork")
    assert started.join(timeout=0.05) is False
    started.processes[0].kill()
    with pytest.raises(mp.ProcessExitedException, match="SIGKILL"):
        started.join()


def test_wrong_arguments():
    with pytest.raises(ArgumentError, match="expected nprocs of 0 or more, got -1"):
        mp.spawn(send, nprocs=-1)
    with pytest.raises(ArgumentError, match=r"expected one of .*spawn.*, got 'thread'"):
        mp.start_processes(send, start_method="thread")
