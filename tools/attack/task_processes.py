"""The processes of a cluster under attack."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tools.attack.ranks import MARK
from tools.attack.task_read import checkpointed
from tools.attack.verdict import HANG, OTHER
from weft.transport.supervisor import mapped

SCRIPT = Path(__file__).with_name("task_loop.py")
ENDS_WITHIN = 30.0  # seconds
STUCK_AFTER = 2.0  # seconds; others wait for those that have left
STACKS_SECONDS = 1.0
SERVERS = 2
TERMINATED = 128 + signal.SIGTERM
Task = tuple[str, int]


class Finding(Exception):
    """What is wrong: the kind, few words, and details."""

    def __init__(self, kind: str, what: str, detail: str) -> None:
        super().__init__(what)
        self.kind, self.what, self.detail = kind, what, detail


class Line(NamedTuple):
    """What a process wrote, and when."""

    at: float
    kind: str
    words: list[str]


@dataclass
class Fault:
    """What was done to a task.

    Attributes:
        victim, number, at: which signal was sent to whom, and when.
        away: seconds until it went on, or came back.
        early: whether training had not begun.
        kept: the counters in the last checkpoint before.
        back: when it went on, or came back.
    """

    victim: Task
    number: signal.Signals
    at: float
    away: float
    early: bool
    kept: list[int]
    back: float = field(default=float("inf"))

    @property
    def killed(self) -> bool:
        """Whether it lost all."""
        return self.number == signal.SIGKILL


class Processes:
    """Two parameter servers, workers, and a client of the first worker.

    Args:
        workers: how many.
        kind: `plain`, `monitored` or `sync`.
        filtered: whether sessions use only the servers and their own worker.
        folder: for checkpoints and signs.

    Attributes:
        spec: of the cluster.
        running: each task's process.
        trainers: workers and the client.
        faults: what was done so far.
    """

    def __init__(self, workers: int, kind: str, filtered: bool, folder: Path) -> None:
        self.kind, self.filtered, self.folder = kind, filtered, folder
        addresses = iter(free_addresses(SERVERS + workers))
        self.spec = {
            "ps": [next(addresses) for _ in range(SERVERS)],
            "worker": [next(addresses) for _ in range(workers)],
        }
        self.trainers: list[Task] = [*[("worker", i) for i in range(workers)], ("client", 0)]
        self.running: dict[Task, subprocess.Popen[str]] = {}
        self.lines: dict[Task, list[Line]] = {}
        self.faults: list[Fault] = []
        self._mark, self._readers = uuid.uuid4().hex, list[threading.Thread]()
        for task in [("ps", i) for i in range(SERVERS)] + self.trainers:
            self.restart(task)

    def restart(self, task: Task) -> None:
        """Start a task, which may have been killed."""
        if task in self.running:
            self.running[task].wait()
        given = {
            "spec": self.spec, "job": task[0], "index": task[1], "folder": str(self.folder),
            "monitored": self.kind == "monitored", "sync": self.kind == "sync",
            "filtered": self.filtered, "trainers": len(self.trainers),
        }  # fmt: skip
        process = subprocess.Popen(
            [sys.executable, str(SCRIPT), json.dumps(given)], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
            env={**os.environ, MARK: self._mark, "WEFT_THREADS": "1"},
        )  # fmt: skip
        self.running[task] = process
        reader = threading.Thread(target=self._read, args=(task, process), daemon=True)
        reader.start()
        self._readers.append(reader)

    def _read(self, task: Task, process: subprocess.Popen[str]) -> None:
        lines = self.lines.setdefault(task, [])
        assert process.stdout is not None
        for line in process.stdout:
            words = line.split()
            try:
                lines.append(Line(float(words[0]), words[1], words[2:]))
            except (ValueError, IndexError):  # of Python
                lines.append(Line(time.monotonic(), "other", [line.rstrip()]))
        process.stdout.close()

    def send(self, task: Task, number: signal.Signals) -> None:
        """Send a signal to a task."""
        self.running[task].send_signal(number)

    def acks(self, task: Task, since: float = 0.0) -> list[Line]:
        """Acknowledged steps of a trainer."""
        return self.said_of(task, "ack", since)

    def said_of(self, task: Task, kind: str, since: float = 0.0) -> list[Line]:
        """Lines of a task."""
        return [e for e in list(self.lines.get(task, ())) if e.kind == kind and e.at > since]

    def checkpointed(self) -> list[int]:
        """The counters in the last checkpoint; zeros if there is none."""
        return checkpointed(self.folder / "checkpoints", len(self.trainers))

    def memory(self) -> set[str]:
        """Named memory that the processes use."""
        found = set[str]()
        for process in self.running.values():
            with contextlib.suppress(OSError):
                found.update(mapped(process.pid))
        return found

    def end_training(self) -> None:
        """Ask all trainers to end.

        Raises:
            Finding: one does not.
        """
        (self.folder / "stop").touch()
        begin = time.monotonic()

        def waits() -> list[Task]:
            return [t for t in self.trainers if not self.said_of(t, "ended")]

        _until(lambda: not waits(), STUCK_AFTER)
        if self.kind == "sync":  # a step needs all trainers, of which some have left
            for task in waits():
                self.send(task, signal.SIGINT)
        if not _until(lambda: not waits(), ENDS_WITHIN):
            took = f"{time.monotonic() - begin:.1f} s"
            raise Finding(HANG, "a trainer does not end", f"{waits()} after {took}")

    def end(self) -> None:
        """End all processes.

        Raises:
            Finding: one does not end, or with an unexpected status.
        """
        (self.folder / "leave").touch()
        for index in range(SERVERS):
            self.send(("ps", index), signal.SIGTERM)
        for task, process in self.running.items():
            try:
                status = process.wait(ENDS_WITHIN)
            except subprocess.TimeoutExpired:
                raise Finding(HANG, "a task does not end", str(task)) from None
            if status != (TERMINATED if task[0] == "ps" else 0):
                raise Finding(OTHER, "a task ends with an error", f"{task}: {status}")

    def left(self) -> list[int]:
        """Processes that are alive."""
        mark, found = f"{MARK}={self._mark}".encode(), list[int]()
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in (process / "environ").read_bytes().split(b"\0"):
                    found.append(int(process.name))
        return found

    def clear(self) -> None:
        """Kill what is left."""
        for process in self.running.values():
            process.kill()
            process.wait()
        for pid in self.left():
            os.kill(pid, signal.SIGKILL)
        for reader in self._readers:
            reader.join(5.0)

    def said(self) -> str:
        """The last lines of each task, and where its threads are."""
        told = {task: lines[-40:] for task, lines in self.lines.items()}
        begin = time.monotonic()
        for task, process in self.running.items():
            if process.poll() is None:
                self.send(task, signal.SIGUSR1)
        time.sleep(STACKS_SECONDS)
        for task in told:
            told[task] += [line for line in self.said_of(task, "other", begin)]
        return "\n".join(
            f"{task[0]} {task[1]}: {line.at:.2f} {line.kind} {' '.join(line.words)}"
            for task, lines in told.items()
            for line in lines
        )


def free_addresses(count: int) -> list[str]:
    """Addresses with ports that are free now."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]


def _until(condition: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
