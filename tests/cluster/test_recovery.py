"""Training that goes on when a task is killed and comes back, with the tasks of the example."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from patience import LIMIT, eventually

from tests.cluster.processes import free_addresses

EXAMPLE = Path(__file__).parents[2] / "examples" / "distributed_mnist.py"


class Run:
    """The processes of the example: a server and two workers."""

    def __init__(self, folder: Path, *options: str) -> None:
        servers, workers = free_addresses(1), free_addresses(2)
        self.told = [
            "--ps_hosts", ",".join(servers), "--worker_hosts", ",".join(workers),
            "--checkpoints", str(folder), *options,
        ]  # fmt: skip
        self.folder, self.processes = folder, dict[tuple[str, int], subprocess.Popen[str]]()
        for job, index in (("ps", 0), ("worker", 0), ("worker", 1)):
            self.start(job, index)

    def start(self, job: str, index: int) -> None:
        command = [sys.executable, str(EXAMPLE), *self.told, "--job_name", job]
        self.processes[job, index] = subprocess.Popen(
            [*command, "--task_index", str(index)], stdout=subprocess.PIPE, text=True
        )

    def kill(self, job: str, index: int) -> None:
        process = self.processes[job, index]
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()

    def wait_for_checkpoints(self, count: int) -> None:
        eventually(lambda: len(list(self.folder.glob("model.ckpt-*"))) >= count)

    def accuracy(self) -> float:
        """What the chief prints once all workers have ended well."""
        texts = [self.processes["worker", i].communicate(timeout=LIMIT)[0] for i in range(2)]
        assert [self.processes["worker", i].returncode for i in range(2)] == [0, 0]
        return float(texts[0].split("test accuracy ")[1].split()[0])


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Any]:
    made: list[Run] = []

    def start(*options: str) -> Run:
        made.append(Run(tmp_path, *options))
        return made[-1]

    yield start
    for process in made[0].processes.values():
        process.kill()
        process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("job, index", [("ps", 0), ("worker", 1), ("worker", 0)])
def test_a_killed_task_comes_back(run: Any, job: str, index: int) -> None:
    tasks = run("--steps", "600", "--save_every", "100")
    tasks.wait_for_checkpoints(2)  # the one of the beginning, and another
    tasks.kill(job, index)
    time.sleep(0.5)
    tasks.start(job, index)
    assert tasks.accuracy() > 0.9  # 0.1 by chance
