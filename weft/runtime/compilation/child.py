"""A compiler process, seen from its parent: jobs go in, object code comes out."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import select
import sys
from collections.abc import Collection
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, NamedTuple

import numpy as np

from weft.codegen import llvm
from weft.codegen.target import Target
from weft.errors import CompileError, NoCompilerError
from weft.host.deferred import Deferred
from weft.passes.launch import SYMBOL
from weft.runtime.compilation.worker import ANSWER, REQUEST

if TYPE_CHECKING:
    import subprocess
    import sysconfig
    import tempfile
else:  # as long as all kernels are on disk
    subprocess, sysconfig = Deferred("subprocess"), Deferred("sysconfig")
    tempfile = Deferred("tempfile")

PIPE_BYTES: Final = 1 << 20
PAGE_BYTES: Final = 4096
MOST_SENT: Final = 8
"""Jobs that a child has at once; another one that is urgent waits for them, some 20 ms each."""
PLAN: Final = 1 << 20
"""The work of a plan, which takes a second: as much as that of many kernels."""
PREFIX: Final = "plan "
"""Of the key of a plan; that of the program follows."""
_NAME: Final = re.compile(rf"@{SYMBOL}(?![\w.$-])")


class Job(NamedTuple):
    """A kernel to compile: its key in the cache, its final symbol, its text.

    Without a symbol it is a step to plan, which `weft.runtime.compilation.planner` wrote.
    """

    key: str
    symbol: str
    name: str
    ir: str
    target: Target

    @property
    def is_plan(self) -> bool:
        """Whether it is a step to plan."""
        return not self.symbol

    @property
    def program(self) -> str:
        """The key of the program of a step to plan."""
        return self.key.removeprefix(PREFIX)

    @property
    def work(self) -> int:
        """How much there is to do, in bytes of a text that is optimized."""
        if self.is_plan:
            return PLAN
        return len(self.ir) // (4 if self.ir.startswith(llvm.QUICK) else 1)


class Died(Exception):
    """A compiler process ended without an answer; the argument is its exit code."""


def _messages() -> IO[bytes]:
    """A file for LLVM's abort messages; none if there is no room for a file."""
    try:
        return tempfile.TemporaryFile()
    except OSError:
        return open(os.devnull, "r+b")


def folders() -> list[str]:
    """Import folders of llvmlite, NumPy and their dependencies."""
    numpy = str(Path(np.__file__).parents[1])
    return list(dict.fromkeys((llvm.folder(), sysconfig.get_paths()["purelib"], numpy)))


class Child:
    """One compiler process."""

    def __init__(self) -> None:
        """Starts it.

        Raises:
            NoCompilerError: the system refuses.
        """
        script = str(Path(__file__).with_name("worker.py"))
        try:
            self._messages = _messages()
            try:
                self.process = subprocess.Popen(
                    [sys.executable or "", "-I", "-S", script, *folders()],  # none if embedded
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=self._messages,
                    start_new_session=True,  # Ctrl-C is for the parent
                )
            except OSError:
                self._messages.close()
                raise
        except OSError as error:
            raise NoCompilerError(f"cannot start a compiler process: {error}") from None
        assert self.process.stdin is not None and self.process.stdout is not None
        self._input = self.process.stdin
        self.output: Final = self.process.stdout
        self.jobs: Final[list[Job]] = []  # sent and not answered, in order
        self.planned = False  # from the first plan on it has imported what plans
        self._pages = 0  # those that jobs may take in the pipe, so that sending never waits
        with contextlib.suppress(AttributeError, OSError):
            fcntl.fcntl(self.output, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
            self._pages = fcntl.fcntl(self._input, fcntl.F_SETPIPE_SZ, PIPE_BYTES) // PAGE_BYTES

    @property
    def load(self) -> int:
        """About how many pages its jobs take."""
        return sum([2 + len(job.ir) // PAGE_BYTES for job in self.jobs])

    @property
    def plans(self) -> int:
        """How many steps it is planning."""
        return sum([job.is_plan for job in self.jobs])

    def has_room(self, job: Job) -> bool:
        """Whether it takes another job while it works."""
        if not self.jobs:
            return True
        pages = 2 + len(job.ir) // PAGE_BYTES
        return len(self.jobs) < MOST_SENT and self.load + pages <= self._pages

    def send(self, job: Job) -> None:
        """Sends a job.

        Raises:
            OSError: the process has ended.
        """
        self.jobs.append(job)
        self.planned = self.planned or job.is_plan
        target = job.target
        if job.is_plan:
            texts = "", "", "", job.ir
        else:
            ir = _NAME.sub(f"@{job.symbol}", job.ir)
            texts = target.cpu, target.features, target.processor, ir
        parts = [text.encode() for text in texts]
        self._input.write(REQUEST.pack(*map(len, parts)) + b"".join(parts))
        self._input.flush()

    def receive(self) -> bytes:
        """The object code or the plan of the first job.

        Raises:
            CompileError: LLVM rejected the kernel; the process is fine.
            Died: the process has ended.
        """
        head = self._read(ANSWER.size)
        if len(head) < ANSWER.size:
            raise Died(self.process.wait())
        status, size = ANSWER.unpack(head)
        body = self._read(size)
        if len(body) < size:
            raise Died(self.process.wait())
        job = self.jobs.pop(0)
        if status:
            what = "" if job.is_plan else f"kernel {job.name}: "
            raise CompileError(f"{what}{body.decode(errors='replace')}")
        return body

    def _read(self, size: int) -> bytes:
        """So many bytes, or fewer at the end; no more, so that `poll` sees further answers."""
        found = b""
        while len(found) < size and (more := os.read(self.output.fileno(), size - len(found))):
            found += more
        return found

    def last_words(self) -> str:
        """What the process wrote before it died."""
        self._messages.seek(0)
        lines = self._messages.read().decode(errors="replace").strip().splitlines()
        last = lines[-1] if lines else "it said nothing"
        return next((line for line in lines if "LLVM ERROR" in line), last)

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self.process.poll() is None

    def end(self) -> None:
        """Kill the process."""
        self.process.kill()
        self.process.wait()
        self.forget()

    def forget(self) -> None:
        """Closes the pipes; the process then ends by itself."""
        for pipe in (self._input, self.output, self._messages):
            with contextlib.suppress(OSError):
                pipe.close()


def ready(files: Collection[int], patience: float | None) -> list[int]:
    """Which of some files are readable; waits up to that many seconds for one."""
    if not files:
        return []
    poll = select.poll()  # `select` cannot handle file descriptors from 1024 on
    for number in files:
        poll.register(number, select.POLLIN)
    return [number for number, _ in poll.poll(None if patience is None else patience * 1000)]
