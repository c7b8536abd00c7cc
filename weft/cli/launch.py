"""`weft launch -n 2 SCRIPT`: several processes of one program, on this machine or on several.

MPI's own launcher starts them. This adds a fair number of threads for each, output lines prefixed
with the rank, and a cleanup when one of them fails.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from weft.errors import ConfigError, DistributedError
from weft.placement import ASKED, KEPT, MARK, PINNED

END_SECONDS: Final = 5.0
"""Seconds that a job has to stop before it is killed."""
_KILLS: Final = frozenset({signal.SIGKILL, signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT})
_CHATTER: Final = (
    b"=" * 40, b"=   ", b"YOUR APPLICATION TERMINATED WITH", b"This typically refers to a problem",
    b"Please see the FAQ page for debugging",
)  # fmt: skip
"""What MPICH's launcher prints when a rank was killed."""
_SPLIT: Final = re.compile(rb"\x1e(\d+)\x1f")


@dataclass(frozen=True)
class Job:
    """What to start.

    Attributes:
        command: Python's arguments: a script and its own, or `-m` and a module.
        ranks: number of processes.
        hosts: `a:2,b:2`, machines and how many ranks each takes; this one if empty.
        threads: of each rank; by its share of the cores if `None`.
        prefix: whether lines of output begin with the rank.
        restarts: how often all ranks are restarted after one has failed.
        pin: whether each rank keeps to its share of its host's cores.
    """

    command: tuple[str, ...]
    ranks: int
    hosts: str = ""
    threads: int | None = None
    prefix: bool = True
    restarts: int = 0
    pin: bool = True


def launch(job: Job) -> int:
    """Runs a job to its end; returns the exit code.

    Raises:
        DistributedError: no launcher of MPI is installed.
        ConfigError: more ranks than the hosts take.
    """
    with tempfile.TemporaryDirectory(prefix="weft-kept-") as kept:
        return _restarting(job, [*_launcher(job), sys.executable, *job.command], kept)


def _restarting(job: Job, arguments: Sequence[str], kept: str) -> int:
    """Runs a job, restarting it after failures; returns its last exit code.

    Args:
        kept: a folder for files that outlive a failure.
    """
    for left in range(job.restarts, -1, -1):
        with tempfile.TemporaryDirectory(prefix="weft-job-") as folder:
            code, stopped = _run(job, arguments, folder, kept)
        if code == 0 or stopped or not left:
            return code
        print(f"weft launch: all ranks start again, {left} more times at most", file=sys.stderr)
    raise AssertionError


def _run(job: Job, arguments: Sequence[str], folder: str, kept: str) -> tuple[int, bool]:
    """Runs a job once; returns its exit code, and whether it was asked to stop."""
    process = subprocess.Popen(
        arguments, env=_environment(job, folder, kept), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None and process.stderr is not None
    pairs = ((process.stdout, sys.stdout), (process.stderr, sys.stderr))
    readers = [threading.Thread(target=_pass_on, args=(*p, job.prefix)) for p in pairs]
    for reader in readers:
        reader.start()
    try:
        with _stopping(process) as stopped:
            code = process.wait()
    finally:
        _kill(folder)
    for reader in readers:
        reader.join()
    failed = any(Path(folder).glob("failed-*"))
    return _told(code, failed), bool(stopped)


def _told(code: int, failed: bool) -> int:
    """The exit code; MPI's launcher returns the number of the signal that killed a rank.

    It also kills the remaining ranks when one has failed, which is not reported.
    """
    if failed:
        return 1
    if -64 <= code < 0 or code in _KILLS:
        name = signal.Signals(abs(code)).name
        print(f"weft launch: a rank was killed by {name}", file=sys.stderr)
        return 128 + abs(code)
    return code


def _launcher(job: Job) -> list[str]:
    """MPI's launcher, preferring the wheel's, and its options."""
    wheel = Path(sysconfig.get_path("scripts")) / "mpiexec"
    found = str(wheel) if wheel.exists() else shutil.which("mpiexec")
    if found is None:
        raise DistributedError('launch: there is no mpiexec; install: pip install "weft[mpi]"')
    hosts = ["-hosts", job.hosts] if job.hosts else []
    if job.hosts and _places(job.hosts) < job.ranks:
        raise ConfigError(
            f"launch: expected hosts for {job.ranks} ranks, got {job.hosts!r} for "
            f"{_places(job.hosts)}"
        )
    return [found, *hosts, "-n", str(job.ranks), "-prepend-pattern", "\x1e%r\x1f"]


def _places(hosts: str) -> int:
    return sum(int(host.partition(":")[2] or 1) for host in hosts.split(","))


def _environment(job: Job, folder: str, kept: str) -> Mapping[str, str]:
    """The environment of the ranks; MPI's launcher passes it to other hosts, too.

    Each rank finds out its number of cores by itself, on its host.
    """
    own = {"PYTHONUNBUFFERED": "1", MARK: folder}
    if job.restarts:
        own[KEPT] = kept
    if job.threads:
        own["WEFT_THREADS"] = str(job.threads)
    if job.pin:
        own[PINNED] = ASKED
    return {**os.environ, **own}


@contextlib.contextmanager
def _stopping(process: subprocess.Popen[bytes]) -> Iterator[list[float]]:
    """Forwards Ctrl-C and SIGTERM to the job; kills it if it does not end then.

    Yields the times at which it was asked to stop.
    """
    asked: list[float] = []

    def stop(number: int, frame: Any) -> None:
        asked.append(time.monotonic())
        if process.poll() is None:
            process.send_signal(signal.SIGINT if len(asked) == 1 else signal.SIGKILL)
            if len(asked) == 1:
                timer = threading.Timer(END_SECONDS, process.kill)
                timer.daemon = True
                timer.start()

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [(n, signal.signal(n, stop)) for n in numbers]
    try:
        yield asked
    finally:
        for number, handler in before:
            signal.signal(number, handler)


def _kill(folder: str) -> None:
    """Kills whatever is left of the job on this machine."""
    mark = f"{MARK}={folder}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile, or belongs to somebody else
            if mark in (process / "environ").read_bytes().split(b"\0"):
                os.kill(int(process.name), signal.SIGKILL)


def _pass_on(source: IO[bytes], target: IO[str], prefix: bool) -> None:
    """Prints the ranks' output in whole lines, with the rank in front."""
    lines = Lines(prefix)
    while data := source.read1(1 << 16):  # pyright: ignore[reportAttributeAccessIssue]
        for line in lines.take(data):
            target.write(line)
        target.flush()
    for line in lines.rest():
        target.write(line)
    target.flush()


class Lines:
    """Assembles lines of several ranks from interleaved pieces.

    Example:
        >>> lines = Lines()
        >>> lines.take(b"\\x1e0\\x1fone \\x1e1\\x1ftwo\\n")
        ['[1] two\\n']
        >>> lines.take(b"\\x1e0\\x1fthree\\n")
        ['[0] one three\\n']
    """

    def __init__(self, prefix: bool = True) -> None:
        self._prefix = prefix
        self._begun: dict[int, bytes] = {}
        self._rank = -1  # rank of the current piece; -1 for the launcher
        self._tail = b""  # may be the beginning of a mark

    def take(self, data: bytes) -> list[str]:
        """The lines that are complete now."""
        data = self._tail + data
        cut = data.rfind(b"\x1e")
        open_mark = cut >= 0 and b"\x1f" not in data[cut:] and len(data) - cut < 16
        self._tail = data[cut:] if open_mark else b""
        pieces = _SPLIT.split(data[:cut] if open_mark else data)
        found = self._add(pieces[0])
        for rank, text in zip(pieces[1::2], pieces[2::2], strict=True):
            self._rank = int(rank)
            found += self._add(text)
        return found

    def _add(self, text: bytes) -> list[str]:
        *found, rest = (self._begun.get(self._rank, b"") + text).split(b"\n")
        self._begun[self._rank] = rest
        whole: list[bytes] = []
        for line in found:
            if not line.startswith(_CHATTER):
                whole.append(line)
            elif whole and not whole[-1]:
                whole.pop()
        return [self._line(self._rank, line) for line in whole]

    def _line(self, rank: int, line: bytes) -> str:
        text = line.decode(errors="replace")
        return f"[{rank}] {text}\n" if self._prefix and rank >= 0 else f"{text}\n"

    def rest(self) -> list[str]:
        """Unfinished lines."""
        return [self._line(rank, text) for rank, text in self._begun.items() if text]


def command_of(script: str, arguments: Sequence[str], module: bool) -> tuple[str, ...]:
    """Python's arguments for a script, or for a module."""
    return ("-m", script, *arguments) if module else (script, *arguments)
