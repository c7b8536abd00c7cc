"""Ranks on several hosts and their share of the cores; a stub stands for the remote shell."""

import json
import os

import pytest
from distributed.launching import HERE, launch

from weft.host import cores


def places(ranks, *options):
    found = launch(ranks, "job_place.py", options=options)
    assert found.code == 0, found
    lines = sorted(found.out.strip().split("\n"))
    assert [line[:4] for line in lines] == [f"[{i}] " for i in range(ranks)]
    return [json.loads(line[4:]) for line in lines]


def test_hosts_are_reached_by_the_remote_shell(monkeypatch):
    monkeypatch.setenv("HYDRA_LAUNCHER", "ssh")
    monkeypatch.setenv("HYDRA_LAUNCHER_EXEC", str(HERE / "remote_shell"))
    monkeypatch.setenv("TOLD", "to every host")
    found = places(3, "--hosts", "127.0.0.2:2,127.0.0.3:1")
    assert [p["host"] for p in found] == ["127.0.0.2", "127.0.0.2", "127.0.0.3"]
    assert [p["local"] for p in found] == [[0, 2], [1, 2], [0, 1]]
    assert all(p["told"] == "to every host" and p["sum"] == 3 for p in found)
    wanted = [[0, 3, 0, 2], [1, 3, 1, 2], [2, 3, 0, 1]]
    assert [p["as torchrun"] for p in found] == wanted
    own = cores.cores()
    half = max(1, len(own) // 2)
    assert [p["threads"] for p in found] == [half, half, len(own)]
    if len(own) > 1:  # each rank of the first host has cores of its own
        assert found[0]["cores"] == sorted(own[:half])
        assert found[1]["cores"] == sorted(own[half : 2 * half])
    assert found[2]["cores"] == sorted(own)


@pytest.mark.slow
def test_more_threads_than_the_share_are_not_pinned():
    found = places(2, "--threads", str(len(cores.cores()) + 1))
    assert all(p["cores"] == sorted(cores.cores()) for p in found)


@pytest.mark.parametrize(
    ("env", "rank", "size", "alone"),
    [
        ({}, 0, 1, 1),
        ({"PMI_RANK": "5", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "4"}, 1, 4, 1),
        ({"PMIX_RANK": "0", "OMPI_COMM_WORLD_LOCAL_RANK": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "3"},
         2, 3, 1),
        ({"PMI_RANK": "6", "SLURM_LOCALID": "0", "SLURM_NODEID": "3",
          "SLURM_STEP_TASKS_PER_NODE": "2(x3),1", "SLURM_STEP_NUM_TASKS": "7"}, 0, 1, 1),
        ({"PMIX_RANK": "3", "SLURM_LOCALID": "1", "SLURM_NODEID": "1",
          "SLURM_STEP_TASKS_PER_NODE": "2(x3),1", "SLURM_STEP_NUM_TASKS": "7"}, 1, 2, 1),
        ({"SLURM_LOCALID": "0", "SLURM_NODEID": "0", "SLURM_STEP_TASKS_PER_NODE": "8",
          "SLURM_STEP_NUM_TASKS": "8"}, 0, 8, 8),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}, 0, 1, 1),  # a batch script, no step
    ],
)  # fmt: skip
def test_launchers_say_where_a_process_is(env, rank, size, alone):
    assert cores.local_rank(env) == rank
    assert cores.local_size(env) == size
    assert cores.tasks_without_mpi(env) == alone


def test_cores_are_shared_where_nobody_has_divided_them(monkeypatch):
    count = len(os.sched_getaffinity(0))
    for name in ("MPI_LOCALNRANKS", cores.MARK):
        monkeypatch.setenv(name, "2")
    assert cores.core_count() == max(1, count // 2)
    monkeypatch.setenv(cores.PINNED, cores.DONE)
    assert cores.core_count() == count
