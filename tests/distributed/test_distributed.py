"""Several ranks, started by `weft launch`: what they do together, and how they fail."""

import json
import re
import signal
from pathlib import Path

import pytest
from distributed.launching import Running, launch
from patience import eventually

import weft as wf
import weft.distributed as dist
from weft.distributed.fsdp import fully_shard
from weft.distributed.tensor.parallel import ColwiseParallel, parallelize_module
from weft.errors import ArgumentError, ConfigError, DistributedError


@pytest.mark.slow
def test_two_and_four_ranks(tmp_path):
    """One job behind the other, where the second restores what the first saved.

    Each checks what the other does not, but for models in shards, and files.
    """
    for ranks in (2, 4):
        assert_all_well(ranks, str(tmp_path))


def test_two_ranks_exchange_and_train(tmp_path):
    """Collectives, messages, objects and data-parallel training; the slow tests have the rest."""
    assert_all_well(2, str(tmp_path), "brief")


@pytest.mark.slow
def test_ranks_without_shared_memory(tmp_path):
    assert_all_well(2, str(tmp_path), "messages")


def assert_all_well(ranks, *arguments):
    found = launch(ranks, "job_checks.py", str(ranks), *arguments)
    assert found.code == 0, found.out + found.err
    assert sorted(found.out.split("\n")) == ["", *[f"[{i}] all well" for i in range(ranks)]]
    assert found.err == ""


DIFFER = re.compile(  # whether calls or programs are compared first depends on time
    r"\[0\] weft\.errors\.DistributedError: all_reduce: ranks (run different programs, at call 1 "
    r"of group 0: rank 0 has all_reduce\(reduction='sum'\) of float32\[3\] \(created at "
    r"job_failures\.py:42\), rank 1 has all_reduce\(reduction='sum'\) of float32\[4\]|call "
    r"different things at call 2 of group 0: rank 0 is in all_reduce\(sum\) of 1 array, 3 float32 "
    r"\(created at job_failures\.py:42\), rank 1 is in all_reduce\(sum\) of 1 array, 4 float32) "
    r"\(created at job_failures\.py:42\)"
)
FAILURES = {
    "raise": (3, "[0] weft.errors.DistributedError: rank 1 failed: ValueError: bad luck (", 1),
    "differ": (
        2, "[0] weft.errors.DistributedError: ranks call different things at call 2 of group 0: "
        "rank 0 is in all_reduce(sum) of float32[3] (created at job_failures.py:61), rank 1 is in "
        "all_reduce(sum) of float32[4] (created at job_failures.py:61)", 1,
    ),
    "programs": (2, DIFFER, 1),
    "stop": (
        2, "[0] weft.errors.DistributedTimeoutError: all_reduce(sum) of float32[3] (created at "
        "job_failures.py:61): no answer from rank 1 for 6 s", 1,
    ),
    "step": (
        2, "[0] weft.errors.DistributedTimeoutError: all_reduce: all_reduce(mean) of 2 arrays, 4 "
        "float32 (created at job_failures.py:25): no answer from rank 1 for 6 s", 1,
    ),
    "leave": (2, "[0] weft.errors.DistributedError: all_reduce(sum) of float32[3] (created at "
              "job_failures.py:61): rank 1 ended before it", 1),
    "late": (
        2, "[0] weft.errors.DistributedTimeoutError: init_process_group: no answer from ranks 1, "
        "which are not there yet, for 2 s", 1,
    ),
    "kill": (2, "weft launch: rank 1 was killed by SIGKILL (host ", 137),
    "out": (2, "weft launch: rank 1 ended with status 0 in the middle of the job (host ", 1),
    "source": (
        2, "[0] weft.errors.DistributedError: ranks call different things at call 2 of group 0: "
        "rank 0 is in broadcast from rank 0 of float32[3] (created at job_failures.py", 1,
    ),
    "threads": (
        2, "[0] weft.errors.DistributedError: rank 0: thread second calls a collective while "
        "another thread is in all_reduce(sum) of float32[3] (created at ", 1,
    ),
}  # fmt: skip


@pytest.mark.slow
def test_a_failure_of_one_rank_ends_all_and_is_told_by_all():
    for ways in (
        ("raise", "differ"), ("programs", "stop"), ("step", "leave"), ("late", "kill"),
        ("out", "source"), ("threads",),
    ):  # fmt: skip
        running = {way: Running(FAILURES[way][0], "job_failures.py", way) for way in ways}
        for way, job in running.items():
            found = job.end()
            _, text, code = FAILURES[way]
            told = text.search(found.err) if isinstance(text, re.Pattern) else text in found.err
            assert told, (way, found)
            assert found.code == code, (way, found)
            if way == "raise":  # also a rank that does not wait
                assert "[2] weft.errors.DistributedError: rank 1 failed" in found.err


@pytest.mark.slow
def test_bench_on_two_ranks(tmp_path):
    """The first rank prints, with who waited for whom; the trace has the tracks of both."""
    file = tmp_path / "trace.json"
    arguments = ("--ranks", "2", "--seconds", "0", "--json")
    options = ("--plain",)
    jobs = [
        Running(2, "job_bench.py", *arguments, options=options),
        Running(2, "job_bench.py", *arguments, "--trace", str(file), options=options),
    ]
    said = [job.end() for job in jobs]
    assert all(one.code == 0 and one.err == "" for one in said), said
    found = [json.loads(one.out) for one in said]
    assert (found[0]["ranks"], found[0]["batch"]) == (2, 4)
    assert [each["rank"] for each in found[0]["communication"]] == [0, 1]
    events = json.loads(file.read_text())["traceEvents"]
    tracks = {(e["pid"], e["args"]["name"]) for e in events if e["name"] == "thread_name"}
    assert {(r, n) for r in (0, 1) for n in ("thread 0", "communication")} <= tracks
    spans = [[e for e in events if e["pid"] == r and e.get("tid") == 1000 and "ts" in e]
             for r in (0, 1)]  # fmt: skip
    for ours, theirs in zip(*spans, strict=True):  # the same calls, at the same time
        assert ours["name"] == theirs["name"]
        assert ours["ts"] < theirs["ts"] + theirs["dur"] and theirs["ts"] < ours["ts"] + ours["dur"]


@pytest.mark.slow
def test_a_job_starts_again(tmp_path):
    options = ("--max-restarts", "2")
    found = launch(2, "job_restart.py", str(tmp_path / "a"), options=options)
    assert found.code == 0, found
    said = [line for line in found.out.split("\n") if line[4:]]
    assert sorted(said) == ["[0] ended at 4", "[1] ended at 4"], found
    killed = (
        r"weft launch: rank 1 was killed by SIGKILL \(host .*, pid \d+\): was it out of memory\?"
    )
    again = "weft launch: all ranks start again, 2 more times at most"
    assert re.fullmatch(f"{killed}\n{again}\n", found.err), found


@pytest.mark.slow
def test_ctrl_c_ends_all():
    job = Running(2, "job_forever.py")
    lines = [job.process.stdout.readline() for _ in range(2)]
    job.process.send_signal(signal.SIGINT)
    assert job.end().code != 0
    eventually(lambda: not any(Path("/proc", line.split()[-1]).exists() for line in lines))


def test_alone(capsys):
    for _ in range(2):
        dist.init_process_group()
        dist.destroy_process_group()
    assert capsys.readouterr().err in ("weft.distributed: no launcher of MPI: a world of one\n", "")
    dist.init_process_group()
    try:
        x = wf.tensor([1.0, 2.0])
        dist.all_reduce(x)
        assert x.tolist() == [1.0, 2.0] and dist.get_world_size() == 1
        layer = fully_shard(parallelize_module(wf.nn.Linear(2, 3), None, ColwiseParallel()))
        saved = layer.state_dict()["weight"]
        assert isinstance(saved.tensor, wf.Tensor) and saved.shape == (3, 2)
        layer.load_state_dict({"weight": wf.ones(3, 2), "bias": wf.zeros(3)})
        assert layer(x).tolist() == [3.0, 3.0, 3.0]
        optimizer = wf.optim.NAdam(layer.parameters())  # its state has numbers, too
        layer(x).sum().backward()
        optimizer.step()
        optimizer.load_state_dict(optimizer.state_dict())
        optimizer.step()
        with pytest.raises(DistributedError, match="there is a process group already"):
            dist.init_process_group()
        with pytest.raises(DistributedError, match=r"expected different ranks from 0 to 0"):
            dist.new_group([0, 1])
        with pytest.raises(DistributedError, match=r"broadcast: expected one of the group's ranks"):
            dist.broadcast(x, 1)
    finally:
        dist.destroy_process_group()
    with pytest.raises(DistributedError, match=r"call weft.distributed.init_process_group"):
        dist.all_reduce(x)
    with pytest.raises(DistributedError, match="weft launch -n 4"):
        dist.init_process_group(world_size=4)
    with pytest.raises(ArgumentError, match="expected the backend 'mpi' or 'gloo', got 'nccl'"):
        dist.init_process_group("nccl")
    with pytest.raises(ArgumentError, match="expected store=None, got dict; start ranks with weft"):
        dist.init_process_group(store={})
    with pytest.raises(ConfigError, match="expected 'cpu', the only device here, got 'cuda:0'"):
        dist.init_process_group("cpu:gloo,cuda:nccl", device_id="cuda:0")
