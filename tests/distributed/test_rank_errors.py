"""Mistakes before or at a call: an error of Weft's tree that says what to do."""

import sys

import pytest
from distributed.launching import Running

import weft as wf
import weft.distributed as dist
from weft.cli import launch, main
from weft.errors import ArgumentError, DistributedError, DTypeError, OptimizerError, ShapeError


@pytest.fixture
def alone():
    dist.init_process_group()
    yield wf.ones(3)
    dist.destroy_process_group()


@pytest.mark.parametrize(
    "call",
    [
        lambda x: dist.send(x, 1),
        lambda x: dist.recv(x, -1),
        lambda x: dist.isend(x, 7),
        lambda x: dist.broadcast(x, 1),
        lambda x: dist.reduce(x, 1),
        lambda x: dist.gather(x, [x], 1),
        lambda x: dist.scatter(x, [x], 1),
        lambda x: dist.gather_object(1, [None], 1),
        lambda x: dist.broadcast_object_list([1], 1),
        lambda x: dist.scatter_object_list([1], [1], 1),
    ],
)
def test_ranks_that_there_are_not(alone, call):
    where = r"\(created at test_rank_errors.py:\d+\)"
    text = rf"expected one of the group's ranks \[0\], got -?\d {where}"
    with pytest.raises(DistributedError, match=text):
        call(alone)


def test_groups_and_requests(alone):
    empty = dist.new_group([])
    assert (dist.get_rank(empty), dist.get_world_size(empty)) == (-1, -1)
    for call in (dist.all_reduce, lambda x, group: dist.barrier(group)):
        with pytest.warns(UserWarning, match=r"rank 0 is no member of the group of ranks \[\]"):
            assert call(alone, group=empty) is None
    with pytest.raises(DistributedError, match="expected different ranks from 0 to 0, got"):
        dist.new_group([0, 0])
    with pytest.raises(DistributedError, match="rank 3 is no member"):
        dist.get_group_rank(dist.new_group([0]), 3)
    work = dist.all_reduce(alone, async_op=True)
    work.wait()
    with pytest.raises(DistributedError, match="wait: the request has ended already"):
        work.wait()
    with pytest.raises(ShapeError, match="expected 1 times"):
        dist.reduce_scatter_tensor(alone, wf.ones(4))
    with pytest.raises(
        ShapeError, match=r"expected a list of 1 tensors float32\[3\], got 2 tensors"
    ):
        dist.all_gather([alone, alone], alone)


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda x: dist.new_group([0.5]), DistributedError, r"expected ranks, got \[0.5\]"),
        (lambda x: dist.new_group("0"), DistributedError, "expected ranks, got '0'"),
        (lambda x: dist.all_reduce(x, group="all"), DistributedError, "a process group, got 'all'"),
        (lambda x: dist.get_rank("all"), DistributedError, "get_rank: expected a process group"),
        (lambda x: dist.all_reduce(x, "sum"), ArgumentError, "expected a ReduceOp, got 'sum'"),
        (lambda x: dist.all_reduce([1.0]), DTypeError, r"expected a tensor of weft, got \[1.0\]"),
        (
            lambda x: wf.optim.ZeroRedundancyOptimizer([], wf.optim.Adam, lr=0.1),
            OptimizerError, "ZeroRedundancyOptimizer: got no parameters",
        ),
    ],
)  # fmt: skip
def test_arguments_of_other_kinds(alone, call, kind, text):
    with pytest.raises(kind, match=text):
        call(alone)


def test_no_mpi(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PMI_RANK", "0")
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(DistributedError, match=r'install it with: pip install "weft\[mpi\]"'):
        dist.init_process_group()
    assert not dist.is_initialized()
    monkeypatch.setattr(launch.sysconfig, "get_path", lambda name: str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main.main(["launch", "-n", "2", "train.py"]) == 2
    assert 'there is no mpiexec; install: pip install "weft[mpi]"' in capsys.readouterr().err


def test_more_ranks_than_the_hosts_take(capsys):
    assert main.main(["launch", "-n", "4", "--hosts", "a:2,b", "train.py"]) == 2
    assert "expected hosts for 4 ranks, got 'a:2,b' for 3" in capsys.readouterr().err


def test_tasks_that_slurm_gives_no_mpi(monkeypatch):
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "4")
    with pytest.raises(DistributedError, match=r"srun has started 4 tasks .* srun --mpi=pmi2"):
        dist.init_process_group()


@pytest.mark.slow
def test_ctrl_c_between_the_begin_and_the_end_of_reductions(tmp_path):
    """Nothing is written any more to the memory of the step; the other rank is told, at once."""
    begun = "rank 1 failed between the begin and the end of reductions (created"
    ways = dict.fromkeys(("shared", "messages", "interpreted"), (f"end_all_reduce: {begun}", 6))
    ways["deferred"] = "end_all_reduce: rank 1 left all_reduce(mean) of 1 array, ", 6
    ways["native"] = "all_reduce: rank 1 left all_reduce(mean) of 6 arrays, 126 float32 (created", 0
    jobs = [Running(2, "job_interrupted.py", way, str(tmp_path / way)) for way in ways]
    for (text, count), found in zip(ways.values(), [job.end() for job in jobs], strict=True):
        said = sorted(found.out.split("\n"))
        _, own = text.split(": ", 1)  # said before its next step begins
        wanted = [f"[0] told {text}", "[1] interrupted", f"[1] told {own}"]
        wanted = ["", *wanted, f"[1] untouched True {count}"]
        assert [line[: len(w)] for line, w in zip(said, wanted, strict=True)] == wanted, found
        assert "KeyboardInterrupt" in said[1], found
