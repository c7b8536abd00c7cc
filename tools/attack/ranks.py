"""SIGKILL and SIGSTOP of one rank: all ranks end soon, with a reason, and no process is left.

A killed rank ends the job at once; the watchdog of the other ranks names a stopped one.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tools.attack.verdict import HANG, OTHER, WRONG, Case, Verdict

SCRIPT = Path(__file__).with_name("rank_loop.py")
WATCHDOG = 3.0  # seconds
ENDS_WITHIN = WATCHDOG + 12.0  # farewells, the launcher's patience, and a busy machine
STARTS_WITHIN = 90.0
MARK = "RANKS_OF_CASE"


def begin() -> Case:
    """Needs no preparation."""
    return case


def case(random: np.random.Generator) -> Verdict:
    """A job, one rank of which is killed or stopped."""
    ranks = int(random.integers(2, 5))
    victim, stops = int(random.integers(ranks)), random.random() < 0.5
    early = random.random() < 0.3  # while ranks start, else while they train
    late = float(random.uniform(0, 1.5))
    number = signal.SIGSTOP if stops else signal.SIGKILL
    told = f"{number.name} of rank {victim} of {ranks}, {late:.2f} s after " + (
        "the start" if early else "training began"
    )
    job = Job(ranks)
    try:
        if not job.wait(early):
            return Verdict(OTHER, "the job did not start", f"{told}: {job.said()}")
        time.sleep(late)
        begun = time.monotonic()
        try:
            os.kill(job.pids[victim], number)
        except ProcessLookupError:
            return Verdict(OTHER, "the job ended by itself", f"{told}: {job.said()}")
        if not job.ends():
            return Verdict(HANG, f"no end after {number.name}", f"{told}: {job.said()}")
        told += f", the end after {time.monotonic() - begun:.1f} s"
        return _judged(job, told, victim)
    finally:
        job.clear()


def parent_of(pid: int) -> int:
    """A process's parent."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _judged(job: Job, told: str, victim: int) -> Verdict:
    text = job.said()
    left = job.left()
    if left:
        return Verdict(OTHER, "processes are left", f"{told}: {left}")
    if memory := job.memory_left():
        return Verdict(OTHER, "memory is left", f"{told}: {memory}")
    if job.process.returncode == 0:
        return Verdict(WRONG, "the job ends as if all were well", f"{told}: {text}")
    if re.search(rf"ranks? ([\d, ]+, )?{victim}\b|other ranks", text) is None:
        return Verdict(WRONG, "nobody says what happened", f"{told}: {text}")
    return Verdict()


class Job:
    """`weft launch` of the loop; threads read its output."""

    def __init__(
        self, ranks: int, prefix: Sequence[str] = (), options: Sequence[str] = (),
        env: Mapping[str, str] | None = None, script: Path = SCRIPT,
    ) -> None:  # fmt: skip
        self.mark = uuid.uuid4().hex
        self.ranks = ranks
        self.memory: set[str] = set()
        self.pids: dict[int, int] = {}
        self.ready = 0
        self._lines: list[str] = []
        weft = [*prefix, sys.executable, "-m", "weft", "launch", "-n", str(ranks)]
        self.process = subprocess.Popen(
            [*weft, "--threads", "1", *options, str(script), str(WATCHDOG)],
            env={**os.environ, **(env or {}), MARK: self.mark},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            words = line.split()
            if words[1:2] == ["pid"]:
                self.pids[int(words[2])] = int(words[3])
            self.ready += words[1:2] == ["ready"]
            if words[1:2] == ["memory"]:
                self.memory.update(words[2:])
            self._lines.append(line)

    def wait(self, early: bool) -> bool:
        """Waits until all ranks have started or, unless `early`, train; whether they have."""
        until = time.monotonic() + STARTS_WITHIN
        while time.monotonic() < until and self.process.poll() is None:
            if len(self.pids) == self.ranks and (early or self.ready == self.ranks):
                return True
            time.sleep(0.01)
        return False

    def ends(self, seconds: float | None = None) -> bool:
        """Whether the launcher ends in time."""
        try:
            self.process.wait(ENDS_WITHIN if seconds is None else seconds)
        except subprocess.TimeoutExpired:
            return False
        self._reader.join(1.0)
        return True

    def said(self) -> str:
        """The last lines of output."""
        return "".join(self._lines[-20:])

    def left(self) -> list[int]:
        """The job's processes that are alive."""
        mark, found = f"{MARK}={self.mark}".encode(), list[int]()
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (process / "environ").read_bytes().split(b"\0"):
                    found.append(int(process.name))
            except OSError:  # it has ended meanwhile, or is another user's
                continue
        return found

    def memory_left(self) -> list[str]:
        """Names of MPI's memory that the job has made and that are still there."""
        return sorted([name for name in self.memory if Path("/dev/shm", name).exists()])

    @staticmethod
    def alive(pid: int) -> bool:
        """Whether a process runs: zombies do not."""
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False

    def clear(self) -> None:
        """Kills what is left of the job."""
        for process in self.left():
            os.kill(process, signal.SIGKILL)
        self.process.wait()
