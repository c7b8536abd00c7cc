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
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from weft.cli.argument import MOST_OF_A_HOST
from weft.cli.output import News, pass_on
from weft.errors import ConfigError, DistributedError
from weft.host.cores import ASKED, KEPT, MARK, PINNED
from weft.host.memory import capacity
from weft.transport import supervisor

END_SECONDS: Final = 5.0
"""Seconds that a job has to stop before it is killed."""
LOOK_SECONDS: Final = 0.2
GUARD_SECONDS: Final = 1.0
RANK_BYTES: Final = 32 << 20
"""Less than the memory of a rank that has started."""
LEAST_ROOM: Final = 64
MASTER: Final = "MASTER_ADDR", "MASTER_PORT"
"""Environment variables that `torchrun` sets and its programs read."""
_KILLS: Final = frozenset({signal.SIGKILL, signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT})


@dataclass(frozen=True)
class Job:
    """What to start.

    Attributes:
        command: Python's arguments: a script and its own, or `-m` and a module.
        ranks: number of processes.
        hosts: `a:2,b:2`, machines and their numbers of ranks; by default this one.
        threads: of each rank; by its share of the cores if `None`.
        prefix: whether lines of output start with the rank.
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
        DistributedError: no MPI launcher is installed.
        ConfigError: more ranks than the hosts allow.
    """
    with tempfile.TemporaryDirectory(prefix="weft-kept-") as kept:
        return _restarting(job, _launcher(job), kept)


def _restarting(job: Job, launcher: Sequence[str], kept: str) -> int:
    """Runs a job, restarting it after failures; returns its last exit code.

    Args:
        kept: a folder for files that outlive a failure.
    """
    for left in range(job.restarts, -1, -1):
        with tempfile.TemporaryDirectory(prefix="weft-job-") as folder:
            code, stopped = _run(job, launcher, folder, kept)
        if code == 0 or stopped or not left:
            return code
        print(f"weft launch: all ranks start again, {left} more times at most", file=sys.stderr)
    raise AssertionError


def _run(job: Job, launcher: Sequence[str], folder: str, kept: str) -> tuple[int, bool]:
    """Runs a job once; returns its exit code, and whether it was asked to stop."""
    process = subprocess.Popen(
        [*launcher, *_supervised(folder), sys.executable, *job.command],
        env=_environment(job, folder, kept), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        preexec_fn=_end_with_launcher,
    )  # fmt: skip
    assert process.stdout is not None and process.stderr is not None
    news = News()
    pairs = ((process.stdout, sys.stdout), (process.stderr, sys.stderr))
    readers = [
        threading.Thread(target=pass_on, args=(*p, job.prefix, news), daemon=True) for p in pairs
    ]
    for reader in readers:
        reader.start()
    try:
        with _stopping(process) as stopped:
            code = _wait(process, Path(folder), news)
    finally:
        _clear(folder)
    for reader in readers:
        reader.join(END_SECONDS)  # longer if a process elsewhere keeps the pipe
    return _told(job, code, Path(folder), news, bool(stopped)), bool(stopped)


def _supervised(folder: str) -> list[str]:
    """The prefix of a rank's command that starts its supervisor."""
    return [sys.executable, "-I", "-S", str(supervisor.__file__), folder]


def _end_with_launcher() -> None:
    """Have MPI's launcher killed if this process is; supervisors then kill the ranks."""
    supervisor.die_with_parent(signal.SIGKILL)


def _wait(process: subprocess.Popen[bytes], folder: Path, news: News) -> int:
    """Wait for MPI's launcher, which may wait for hosts that it no longer reaches."""
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(LOOK_SECONDS)
        if _failures(folder):
            news.fail()
        if news.failed_at is not None and time.monotonic() > news.failed_at + END_SECONDS:
            process.kill()


def _failures(folder: Path) -> list[str]:
    """The texts of failures that ranks on this host have reported by files."""
    return [path.read_text(encoding="utf-8") for path in folder.glob("failed-*")]


def _told(job: Job, code: int, folder: Path, news: News, stopped: bool) -> int:
    """The exit code; prints failures that are not reported yet."""
    failures = _failures(folder)
    sys.stderr.write("".join(failures[:1]))
    if news.codes:
        return news.codes[0]
    if failures:
        return 1
    if -64 <= code < 0 or code in _KILLS:  # returned by MPI's launcher if a supervisor died
        name, who = signal.Signals(abs(code)).name, "MPI's launcher" if code < 0 else "a supervisor"
        print(f"weft launch: {who} was killed by {name}: all ranks end", file=sys.stderr)
        return 128 + abs(code)
    if code and not stopped and job.hosts and news.begun < job.ranks:
        print(
            f"weft launch: {news.begun} of {job.ranks} ranks have begun on {job.hosts}: can each "
            f"host be reached (ssh HOST true, without a password), and has it {sys.executable}?",
            file=sys.stderr,
        )
    return code


def _launcher(job: Job) -> list[str]:
    """MPI's launcher, preferring the wheel's, and its options."""
    wheel = Path(sysconfig.get_path("scripts")) / "mpiexec"
    found = str(wheel) if wheel.exists() else shutil.which("mpiexec")
    if found is None:
        raise DistributedError('launch: there is no mpiexec; install: pip install "weft[mpi]"')
    hosts = ["-hosts", job.hosts] if job.hosts else []
    _check_room(job)
    if job.hosts and _places(job.hosts) < job.ranks:
        raise ConfigError(
            f"launch: expected hosts for {job.ranks} ranks, got {job.hosts!r} for "
            f"{_places(job.hosts)}"
        )
    return [found, *hosts, "-n", str(job.ranks), "-prepend-pattern", "\x1e%r\x1f"]


def _check_room(job: Job) -> None:
    """Raise if this machine has too little memory.

    Raises:
        ConfigError: more ranks than its memory has room for.
    """
    most = min(MOST_OF_A_HOST, max(LEAST_ROOM, capacity() // RANK_BYTES))
    if not job.hosts and job.ranks > most:
        raise ConfigError(
            f"launch: expected at most {most:,} ranks on this machine, each of which takes "
            f"{RANK_BYTES >> 20} MiB at least, got {job.ranks:,}"
        )


def _places(hosts: str) -> int:
    return sum(int(host.partition(":")[2] or 1) for host in hosts.split(","))


def _environment(job: Job, folder: str, kept: str) -> Mapping[str, str]:
    """The environment of the ranks; MPI's launcher passes it to other hosts, too.

    Each rank finds out its number of cores by itself, on its host.
    """
    own = {"PYTHONUNBUFFERED": "1", MARK: folder, **_master(job)}
    if job.restarts:
        own[KEPT] = kept
    if job.threads:
        own["WEFT_THREADS"] = str(job.threads)
    if job.pin:
        own[PINNED] = ASKED
    return {**os.environ, **own}


def _master(job: Job) -> Mapping[str, str]:
    """An address at which programs may let ranks meet, as with `torchrun`; Weft does not use it."""
    if any(name in os.environ for name in MASTER):
        return {}
    with socket.socket() as free:
        free.bind(("", 0))
        port = str(free.getsockname()[1])
    address = re.split("[:,]", job.hosts)[0] or "127.0.0.1"
    return dict(zip(MASTER, (address, port), strict=True))


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


def _clear(folder: str) -> None:
    """Kills what is left of the job on this machine, once its guards had time to clean up."""
    until = time.monotonic() + GUARD_SECONDS
    while left := _left(folder):
        if time.monotonic() > until:
            for process in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            return
        time.sleep(0.02)


def _left(folder: str) -> list[int]:
    """The job's processes on this machine."""
    mark, found = f"{MARK}={folder}".encode(), list[int]()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or belongs to another user
            if mark in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
    return found


def command_of(script: str, arguments: Sequence[str], module: bool) -> tuple[str, ...]:
    """Python's arguments for a script, or for a module."""
    return ("-m", script, *arguments) if module else (script, *arguments)
