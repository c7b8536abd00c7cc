"""From kernels to addresses: looked up in memory, then on disk, else compiled by child processes.

LLVM holds one lock for everything in a process and aborts the process on some errors. So kernels
are compiled in a few child processes that stay for a while; the parent only links.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import re
import select
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from weft import config
from weft.codegen import llvm
from weft.codegen.kernel import SYMBOL, Kernel
from weft.codegen.target import Target
from weft.errors import CompileError
from weft.runtime.cache import Cache, digest
from weft.runtime.worker import ANSWER, REQUEST

MAX_CHILDREN: Final = 8  # each takes 60 MB
PIPE_BYTES: Final = 1 << 20
PATIENCE_SECONDS: Final = 5.0
_NAME: Final = re.compile(rf"@{SYMBOL}(?![\w.$-])")


class Job(NamedTuple):
    """A kernel to be compiled: its key in the cache, its final symbol, its text."""

    key: str
    symbol: str
    name: str
    ir: str


class _Died(Exception):
    """A compiler process ended without an answer; its exit code is the argument."""


class _Child:
    """One compiler process."""

    def __init__(self) -> None:
        self._messages = tempfile.TemporaryFile()  # noqa: SIM115 - what LLVM says before it aborts
        folders = dict.fromkeys((str(llvm.FOLDER), sysconfig.get_paths()["purelib"]))
        script = str(Path(__file__).with_name("worker.py"))
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", script, *folders],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._messages,
                start_new_session=True,  # Ctrl-C is for the parent
            )
        except OSError as error:
            self._messages.close()
            raise CompileError(f"cannot start a compiler process: {error}") from None
        assert self.process.stdin is not None and self.process.stdout is not None
        self._input = self.process.stdin
        self.output: Final = self.process.stdout
        self.job: Job | None = None  # what it works on
        with contextlib.suppress(AttributeError, OSError):  # a whole request fits: no waiting
            fcntl.fcntl(self._input, fcntl.F_SETPIPE_SZ, PIPE_BYTES)

    def send(self, job: Job, target: Target) -> None:
        """Hand over a job.

        Raises:
            OSError: the process has ended.
        """
        self.job = job
        ir = _NAME.sub(f"@{job.symbol}", job.ir)
        parts = [part.encode() for part in (target.cpu, target.features, ir)]
        self._input.write(REQUEST.pack(*map(len, parts)) + b"".join(parts))
        self._input.flush()

    def receive(self) -> bytes:
        """The object code of the job at hand.

        Raises:
            CompileError: LLVM refused the kernel; the process is fine.
            _Died: the process is not.
        """
        assert self.job is not None
        head = self.output.read(ANSWER.size)
        if len(head) < ANSWER.size:
            raise _Died(self.process.wait())
        status, size = ANSWER.unpack(head)
        body = self.output.read(size)
        if len(body) < size:
            raise _Died(self.process.wait())
        job, self.job = self.job, None
        if status:
            raise CompileError(f"kernel {job.name}: {body.decode(errors='replace')}")
        return body

    def last_words(self) -> str:
        """What the process said before it died."""
        self._messages.seek(0)
        lines = self._messages.read().decode(errors="replace").strip().splitlines()
        return next((line for line in lines if "LLVM ERROR" in line), "it said nothing")

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
        """Close the pipes; the process ends by itself."""
        for pipe in (self._input, self.output, self._messages):
            with contextlib.suppress(OSError):
                pipe.close()


class Compiler:
    """Linked kernels of this process, and the child processes that compile missing ones."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._children: list[_Child] = []
        self._linked: dict[str, int] = {}
        self._caches: dict[str, Cache] = {}
        self._library: llvm.Library | None = None
        self._held = False

    def compile(self, kernels: Iterable[Kernel], target: Target) -> dict[Kernel, int]:
        """See `compile_kernels`."""
        wanted = list(dict.fromkeys(kernels))
        with self._lock:
            keys = {ir: self._key(ir, target) for ir in {kernel.ir for kernel in wanted}}
            jobs: dict[str, Job] = {}
            for kernel in wanted:
                key = keys[kernel.ir]
                if key not in self._linked and key not in jobs:
                    jobs[key] = Job(key, f"k{key[:40]}", kernel.name, kernel.ir)
            self._link(jobs, self._objects(list(jobs.values()), target))
            return {kernel: self._linked[keys[kernel.ir]] for kernel in wanted}

    def knows(self, kernel: Kernel, target: Target) -> bool:
        """Whether a kernel needs no compilation."""
        key = self._key(kernel.ir, target)
        return key in self._linked or self._cache().holds(key)

    @staticmethod
    def _key(ir: str, target: Target) -> str:
        return digest(llvm.version(), target.cpu, target.features, ir)

    def _cache(self) -> Cache:
        folder = str(config.get("cache"))
        return self._caches.setdefault(folder, Cache(folder))

    def _objects(self, jobs: list[Job], target: Target) -> dict[str, bytes]:
        cache = self._cache()
        found: dict[str, bytes] = {}
        missing: list[Job] = []
        for job in jobs:
            code = cache.load(job.key)
            if code is None:
                missing.append(job)
            else:
                found[job.key] = code
        if missing:
            fresh: dict[str, bytes] = {}
            try:
                self._build(missing, target, fresh)
            finally:
                cache.store(fresh)  # one bad kernel does not waste the work on the others
            found.update(fresh)
        return found

    def _link(self, jobs: dict[str, Job], objects: dict[str, bytes]) -> None:
        if not objects:
            return
        if self._library is None:
            self._library = llvm.Library()
        addresses = self._library.link({jobs[key].symbol: code for key, code in objects.items()})
        for key in objects:
            self._linked[key] = addresses[jobs[key].symbol]

    def _build(self, jobs: Sequence[Job], target: Target, done: dict[str, bytes]) -> None:
        """Compile in parallel, the largest first. Adds to `done` as it goes."""
        queue = sorted(jobs, key=lambda job: len(job.ir))
        failures: list[CompileError] = []
        retried: set[str] = set()
        self.prestart(min(len(queue), _child_count()))
        try:
            for child in self._children[: len(queue)]:
                self._feed(child, queue, target)
            while busy := {child.output: child for child in self._children if child.job}:
                for output in select.select(list(busy), [], [])[0]:
                    child = busy[output]
                    job = child.job
                    assert job is not None
                    try:
                        done[job.key] = child.receive()
                    except CompileError as error:
                        failures.append(error)
                    except _Died as death:
                        (code,) = death.args
                        # An abort is LLVM's. Anything else may be somebody's kill: once more.
                        if code == -signal.SIGABRT or job.key in retried:
                            failures.append(_fatal(job, code, child.last_words()))
                        else:
                            retried.add(job.key)
                            queue.append(job)
                        child = self._replace(child)
                    self._feed(child, queue, target)
        except BaseException:
            # Ctrl-C: what the busy ones are about to say is for nobody.
            self._drop_busy()
            raise
        if failures:
            raise failures[0]

    def _feed(self, child: _Child, queue: list[Job], target: Target) -> None:
        """Give a child the next job; one that has ended meanwhile is replaced."""
        if not queue:
            return
        job = queue.pop()
        try:
            child.send(job, target)
        except OSError:
            try:
                self._replace(child).send(job, target)
            except OSError as error:
                raise CompileError(f"kernel {job.name}: no compiler process: {error}") from None

    def _replace(self, child: _Child) -> _Child:
        self._children.remove(child)
        child.end()
        return self._spawn()

    def _drop_busy(self) -> None:
        for child in [child for child in self._children if child.job]:
            self._children.remove(child)
            child.end()

    def _spawn(self) -> _Child:
        child = _Child()
        self._children.append(child)
        return child

    def prestart(self, count: int) -> None:
        """Have `count` children running."""
        with self._lock:
            for child in [child for child in self._children if not child.alive]:
                self._children.remove(child)
                child.forget()
            while len(self._children) < count:
                self._spawn()

    def close(self) -> None:
        """End the child processes; the next compilation starts new ones.

        Those that a daemon thread keeps busy end by themselves, when their pipes close.
        """
        if self._lock.acquire(timeout=PATIENCE_SECONDS):
            for child in self._children:
                child.end()
            self._children = []
            self._lock.release()

    def before_fork(self) -> None:
        """Let a compilation end: the forked child gets a consistent linker."""
        self._held = self._lock.acquire(timeout=PATIENCE_SECONDS)

    def after_fork_in_parent(self) -> None:
        """Undo `before_fork`."""
        if self._held:
            self._lock.release()

    def after_fork_in_child(self) -> None:
        """The compiler processes belong to the parent."""
        self._lock = threading.RLock()
        for child in self._children:
            child.process.returncode = 0  # not our child: never wait for it
            child.forget()
        self._children = []


def _child_count() -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(cores or 1, MAX_CHILDREN))


def _fatal(job: Job, code: int, said: str) -> CompileError:
    return CompileError(f"kernel {job.name}: the compiler died with exit code {code}: {said}")


_compiler: Final = Compiler()
atexit.register(_compiler.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_compiler.before_fork,
        after_in_parent=_compiler.after_fork_in_parent,
        after_in_child=_compiler.after_fork_in_child,
    )


def compile_kernels(kernels: Iterable[Kernel], target: Target) -> dict[Kernel, int]:
    """The addresses of kernels, which stay good for the life of the process.

    Equal IR is compiled once. Safe to call from several threads; they take turns.

    Raises:
        CompileError: LLVM refused a kernel or died of it; the message names the kernel.
    """
    return _compiler.compile(kernels, target)


def prestart(witness: Kernel, target: Target) -> None:
    """Start the compiler processes now, if `witness` shows that nothing was compiled here before.

    Takes 3 ms; the processes are ready 50 ms later.
    """
    if not _compiler.knows(witness, target):
        _compiler.prestart(_child_count())
