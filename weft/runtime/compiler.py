"""From kernels to addresses: looked up in memory, then on disk, else compiled by child processes.

LLVM holds one lock for everything in a process and aborts the process on some errors. So kernels
are compiled in a few child processes that stay for a while; the parent only links.
"""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import subprocess
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Final, NamedTuple

from weft import config
from weft.codegen import llvm
from weft.codegen.kernel import SYMBOL, Kernel
from weft.codegen.target import Target
from weft.errors import CompileError
from weft.runtime.cache import Cache, digest
from weft.runtime.worker import ANSWER, REQUEST

MAX_CHILDREN: Final = 8  # each takes 60 MB
_NAME: Final = re.compile(rf"@{SYMBOL}(?![\w.$-])")


class Job(NamedTuple):
    """A kernel to be compiled: its key in the cache, its final symbol, its text."""

    key: str
    symbol: str
    name: str
    ir: str


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
            raise CompileError(f"cannot start a compiler process: {error}") from None
        self.busy: Job | None = None

    @property
    def output(self) -> IO[bytes]:
        """Where answers come from."""
        assert self.process.stdout is not None
        return self.process.stdout

    def send(self, job: Job, target: Target) -> None:
        """Hand over a job; raises BrokenPipeError if the process has ended."""
        parts = [part.encode() for part in (target.cpu, target.features, job.ir)]
        assert self.process.stdin is not None
        self.busy = job
        self.process.stdin.write(REQUEST.pack(*map(len, parts)) + b"".join(parts))
        self.process.stdin.flush()

    def receive(self) -> bytes:
        """The object code of the job at hand.

        Raises:
            CompileError: LLVM refused the kernel, or the process died of it.
        """
        job, self.busy = self.busy, None
        assert job is not None
        head = self.output.read(ANSWER.size)
        if len(head) == ANSWER.size:
            status, size = ANSWER.unpack(head)
            body = self.output.read(size)
            if len(body) == size:
                if status == 0:
                    return body
                raise CompileError(f"kernel {job.name}: {body.decode(errors='replace')}")
        code = self.process.wait()
        raise CompileError(
            f"kernel {job.name}: the compiler died (exit code {code}): {self.said()}"
        )

    def said(self) -> str:
        """The last that the process wrote to its standard error."""
        with contextlib.suppress(OSError, ValueError):
            self._messages.seek(0)
            lines = self._messages.read().decode(errors="replace").strip().splitlines()
            told = [line for line in lines if "LLVM ERROR" in line] or lines[-1:]
            return told[0] if told else "it said nothing"
        return "it said nothing"

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
        for pipe in (self.process.stdin, self.process.stdout, self._messages):
            if pipe is not None:
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

    def compile(self, kernels: Iterable[Kernel], target: Target) -> dict[Kernel, int]:
        """See `compile_kernels`."""
        wanted = list(dict.fromkeys(kernels))
        with self._lock:
            keys = {ir: self._key(ir, target) for ir in {kernel.ir for kernel in wanted}}
            jobs: dict[str, Job] = {}
            for kernel in wanted:
                key = keys[kernel.ir]
                if key not in self._linked and key not in jobs:
                    symbol = f"k{key[:40]}"
                    jobs[key] = Job(key, symbol, kernel.name, _NAME.sub(f"@{symbol}", kernel.ir))
            self._link(jobs, self._objects(list(jobs.values()), target))
            return {kernel: self._linked[keys[kernel.ir]] for kernel in wanted}

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
        failure: CompileError | None = None
        self.prestart(min(len(queue), _child_count()))
        with selectors.DefaultSelector() as selector:
            try:
                for child in self._children[: len(queue)]:
                    selector.register(child.output, selectors.EVENT_READ, child)
                    self._feed(child, queue, target)
                while any(child.busy for child in self._children):
                    for key, _ in selector.select():
                        child: _Child = key.data
                        job = child.busy
                        assert job is not None
                        try:
                            done[job.key] = child.receive()
                        except CompileError as error:
                            failure = failure or error
                            if not child.alive:
                                selector.unregister(child.output)
                                self._children.remove(child)
                                child.forget()
                                child = self._spawn()
                                selector.register(child.output, selectors.EVENT_READ, child)
                        self._feed(child, queue, target)
            except BaseException:
                # Ctrl-C: what the busy ones are about to say is for nobody.
                self._drop_busy()
                raise
        if failure is not None:
            raise failure

    @staticmethod
    def _feed(child: _Child, queue: list[Job], target: Target) -> None:
        if queue:
            child.send(queue.pop(), target)

    def _drop_busy(self) -> None:
        for child in [child for child in self._children if child.busy]:
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

    def after_fork(self) -> None:
        """In a forked child: the compiler processes belong to the parent."""
        self._lock = threading.RLock()
        for child in self._children:
            child.process.returncode = 0  # not our child: never wait for it
            child.forget()
        self._children = []


def _child_count() -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(cores or 1, MAX_CHILDREN))


_compiler: Final = Compiler()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_compiler.after_fork)


def compile_kernels(kernels: Iterable[Kernel], target: Target) -> dict[Kernel, int]:
    """The addresses of kernels, which stay good for the life of the process.

    Equal IR is compiled once. Safe to call from several threads; they take turns.

    Raises:
        CompileError: LLVM refused a kernel or died of it; the message names the kernel.
    """
    return _compiler.compile(kernels, target)


def prestart() -> None:
    """Start the compiler processes now, because a compilation is likely; returns at once."""
    _compiler.prestart(_child_count())
