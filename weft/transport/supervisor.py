"""Starts and supervises one rank: reports how it ended, and removes what it left behind.

MPI's launcher runs this file in place of each rank, on every host. It imports only the standard
library, because it starts before each rank. The rank is killed when the launcher is gone; a guard
process, unknown to MPI's launcher, does the same when this process is killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import Final

NEWS: Final = b"\x1d"
"""Starts a line for `weft launch`: an exit code, and a text unless the rank has reported why it
ended. The code of a rank that has just started is -1."""
BEGUN: Final = -1
TOLD: Final = "TOLD_TO_SUPERVISOR"
"""Environment variable: the pipe through which a rank reports its state, the pipe's inode, and the
rank's process ID. See `weft.transport.arrival`."""
JOINED, LEFT, FAILED = b"+", b"-", b"!"
MEMORY: Final = "/dev/shm"
_NAMES: Final = ("mpich_shm_", "mpich_vci_")
_TERM_SECONDS: Final = 2.0
_LOOK_SECONDS: Final = 1.0
_PR_SET_PDEATHSIG: Final = 1
_IN_OPEN, _IN_CREATE = 0x20, 0x100
_PASSED_ON: Final = (
    signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2,
)  # fmt: skip
_HINTS: Final = {
    signal.SIGKILL: ": was it out of memory?",
    signal.SIGBUS: f": is {MEMORY} full?",
    signal.SIGSEGV: ": set PYTHONFAULTHANDLER=1 to see where",
    signal.SIGABRT: ": set PYTHONFAULTHANDLER=1 to see where",
    signal.SIGTERM: ": somebody asked it to end",
}


def main(folder: str, command: list[str]) -> int:
    """Runs a rank; returns its exit code, 128 and more for signals.

    Args:
        folder: the folder of `weft launch`, if it runs on this host.
    """
    parent = os.getppid()
    die_with_parent(signal.SIGTERM)
    guard = _start_guard()
    _tell(BEGUN)
    rank = _Rank(command, guard)
    _pass_signals(rank)
    status = rank.watch(parent)
    text = None if rank.asked else rank.told(status)
    code = os.waitstatus_to_exitcode(status)
    code = 128 - code if code < 0 else code or int(text is not None)
    if not code:
        _send(guard, "well")
        return 0
    clean(rank.pid, rank.names)
    if text is not None:
        _tell(code, text)
    if os.getppid() != parent and os.path.isdir(folder):
        _note_orphan(folder)
    return code


def _tell(code: int, text: str = "") -> None:
    """Report to `weft launch`, which reads the rank's standard error."""
    with contextlib.suppress(OSError):
        os.write(2, NEWS + f"{code} {text}\n".encode())


def _note_orphan(folder: str) -> None:
    """Report to `weft launch` that the output of this host's ranks is no longer forwarded."""
    rank = os.environ.get("PMI_RANK", "0")
    with open(os.path.join(folder, f"failed-{rank}"), "w", encoding="utf-8") as file:
        file.write(
            f"weft launch: the process of MPI's launcher that had started rank {rank} (host "
            f"{os.uname().nodename}) was killed: all ranks end\n"
        )


def die_with_parent(number: int) -> None:
    """Have the kernel send this process a signal once its parent has ended; on Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)


class _Rank:
    """The rank's process.

    Attributes:
        names: files of MPI's shared memory.
        asked: whether the launcher has asked it to end.
    """

    def __init__(self, command: list[str], guard: int) -> None:
        self.names: set[str] = set()
        self.asked = False
        self._notes = b""
        self._kill_at: float | None = None
        self._guard = guard
        self._memory = _watch_memory()
        self._source, end = os.pipe()
        self.pid = self._start(command, end)
        os.close(end)
        _send(guard, f"pid {self.pid}")

    def _start(self, command: list[str], end: int) -> int:
        own = os.getpid()
        pid = os.fork()
        if pid:
            return pid
        try:
            os.setpgid(0, 0)
            die_with_parent(signal.SIGKILL)
            os.set_inheritable(end, True)
            os.environ[TOLD] = f"{end}:{os.fstat(end).st_ino}:{os.getpid()}"
            if os.getppid() == own:
                os.execv(command[0], command)
        except OSError as error:
            os.write(2, f"weft launch: {command[0]}: {error}\n".encode())
        finally:
            os._exit(127)

    def send(self, number: int) -> None:
        """Forward a signal; a rank that was asked to end has two seconds to do so."""
        if number in (signal.SIGHUP, signal.SIGINT):  # sent by `weft launch`
            self.asked = True
        if number == signal.SIGTERM:
            self._kill_at = time.monotonic() + _TERM_SECONDS
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def watch(self, parent: int) -> int:
        """Wait for the end; returns the status."""
        wake, write = os.pipe()
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        sources = [fd for fd in (wake, self._source, self._memory) if fd >= 0]
        while True:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                self._read(self._source)
                return status
            self._end_late(parent)
            for source in select.select(sources, [], [], _LOOK_SECONDS)[0]:
                if not self._read(source):
                    sources.remove(source)  # the rank's process has become another program

    def _end_late(self, parent: int) -> None:
        """Kill the rank if the launcher is gone, or if it was asked to end and does not."""
        orphan = os.getppid() != parent
        self.asked |= orphan
        if orphan or (self._kill_at is not None and time.monotonic() > self._kill_at):
            os.kill(self.pid, signal.SIGKILL)

    def _read(self, source: int) -> bool:
        """Read what has arrived; returns whether more may follow."""
        data = os.read(source, 1 << 16) if select.select([source], [], [], 0)[0] else b""
        if source == self._source:
            self._notes += data
        elif source == self._memory:
            self._look_for_names()
        return bool(data)

    def _look_for_names(self) -> None:
        for name in mapped(self.pid) - self.names:
            self.names.add(name)
            _send(self._guard, f"name {name}")

    def told(self, status: int) -> str | None:
        """Why the job cannot continue; empty if the rank has reported it, `None` if it can."""
        code, inside = os.waitstatus_to_exitcode(status), self._notes.count(JOINED)
        inside -= self._notes.count(LEFT)
        place = f"(host {os.uname().nodename}, pid {self.pid})"
        who = f"weft launch: rank {os.environ.get('PMI_RANK', '?')}"
        if code < 0:
            name, hint = signal.Signals(-code).name, _HINTS.get(signal.Signals(-code), "")
            return f"{who} was killed by {name} {place}{hint}"
        if inside > 0 and FAILED not in self._notes:
            return (
                f"{who} ended with status {code} in the middle of the job {place}: did it call "
                "os._exit or exec before destroy_process_group()?"
            )
        return "" if code else None


def mapped(pid: int) -> set[str]:
    """The names of MPI's memory that a process has mapped or opened."""
    paths: set[str] = set()
    with contextlib.suppress(OSError):
        for entry in os.scandir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                paths.add(os.readlink(entry.path))
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as lines:
            paths.update(line[line.find("/") :].rstrip("\n") for line in lines if "/" in line)
    prefixes = tuple(f"{MEMORY}/{name}" for name in _NAMES)
    made = [path for path in paths if path.startswith(prefixes) and " " not in path]
    return {path[len(MEMORY) + 1 :] for path in made}  # a path with a space is of a deleted file


def _watch_memory() -> int:
    """An inotify descriptor for files in the folder of shared memory; -1 if there is none."""
    if sys.platform != "linux":
        return -1
    libc = ctypes.CDLL(None)
    watch = int(libc.inotify_init1(os.O_CLOEXEC))
    if watch >= 0:
        libc.inotify_add_watch(watch, MEMORY.encode(), _IN_OPEN | _IN_CREATE)
    return watch


def clean(pid: int, names: set[str]) -> None:
    """Kill the child processes of a failed rank, and remove MPI's memory."""
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)
    for name in names:
        with contextlib.suppress(OSError):
            os.unlink(f"{MEMORY}/{name}")


def _pass_signals(rank: _Rank) -> None:
    for number in _PASSED_ON:
        signal.signal(number, lambda signum, _: rank.send(signum))
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)


# -- the guard


def _start_guard() -> int:
    """Start a process that cleans up if this one is killed; returns the pipe to it."""
    read, write = os.pipe()
    child = os.fork()
    if child:
        os.close(read)
        os.waitpid(child, 0)
        return write
    os.close(write)
    os.setsid()
    if os.fork() == 0:  # an orphan, so that MPI's launcher does not wait for it
        _quietly(lambda: _guard(read), read)
    os._exit(0)


def _quietly(work: Callable[[], None], keep: int) -> None:
    """Do the work with all files closed but one."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)  # else readers of the rank's output would wait for this process
    os.closerange(max(3, keep + 1), 1 << 16)
    os.closerange(3, keep)
    try:
        work()
    finally:
        os._exit(0)


def _guard(read: int) -> None:
    """Read the supervisor's messages until the pipe closes, then clean up."""
    for number in _PASSED_ON:
        signal.signal(number, signal.SIG_IGN)
    words = [line.split(" ", 1) for line in _lines(read)]
    if ["well"] not in words:
        pid = next((int(word[1]) for word in words if word[0] == "pid"), 0)
        if pid:
            clean(pid, {word[1] for word in words if word[0] == "name"})


def _lines(read: int) -> Iterator[str]:
    with os.fdopen(read, encoding="utf-8") as lines:
        for line in lines:
            yield line.rstrip("\n")


def _send(guard: int, text: str) -> None:
    with contextlib.suppress(OSError):
        os.write(guard, f"{text}\n".encode())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
