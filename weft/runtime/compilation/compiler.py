"""From kernels to addresses: looked up in memory, then on disk, else compiled by child processes.

LLVM holds one lock for everything in a process, and aborts the process on some errors. So kernels
are compiled in a few child processes that stay for a while; the parent only links.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Collection, Iterable, Set
from typing import Final

from weft import config
from weft.codegen import llvm
from weft.codegen.target import Target
from weft.errors import CompileError, NoCompilerError
from weft.host.at_exit import at_exit
from weft.host.interrupt import Uninterrupted
from weft.host.memory import may_hold_code
from weft.passes.launch import Kernel
from weft.runtime.compilation.cache import Cache, digest
from weft.runtime.compilation.child import Child, Died, Job, ready
from weft.runtime.compilation.loading import loaded
from weft.runtime.compilation.notice import tell
from weft.runtime.compilation.plan_data import Written, unpacked

MAX_CHILDREN: Final = 8  # each takes 60 MB
SHARE: Final = 64 << 10
"""Work (see `Job`) for each of them, which takes LLVM as long as a process to start: 60 ms."""
PATIENCE_SECONDS: Final = 5.0
REST_SECONDS: Final = 60.0
"""Seconds to wait before starting compiler processes again after that failed."""
MOST_PLANS: Final = 4
"""Plans that one process has before another plans, too: importing the compiler takes 0.3 s."""
_FAULTS: Final = frozenset(
    {signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGTRAP}
)
"""Signals that LLVM raises itself; any other is a kill from outside, as by the OOM killer."""


class Compiler:
    """Linked kernels of this process, and the child processes that compile missing ones."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._children: list[Child] = []
        self._queue: dict[str, Job] = {}  # jobs that no child works on yet
        self._wanted: Collection[str] = ()  # the keys of jobs that are waited for
        self._results: dict[str, bytes | CompileError] = {}  # results that nobody has taken yet
        # Recipes, and their kernels that are not on disk yet.
        self._unkept: dict[str, tuple[bytes, set[str]]] = {}
        self._retried: set[str] = set()
        self._linked: dict[str, int] = {}
        self._caches: dict[str, Cache] = {}
        self._held = False
        self._rested = 0.0  # when compiler processes may be tried again
        self._told = False

    @property
    def available(self) -> bool:
        """Whether compiler processes are available, as far as is known."""
        return time.monotonic() >= self._rested

    def compile(self, kernels: Iterable[Kernel], target: Target) -> dict[Kernel, int]:
        """See `compile_kernels`."""
        wanted = list(dict.fromkeys(kernels))
        with self._lock:
            keys = {kernel: key_of(kernel, target) for kernel in wanted}
            jobs: dict[str, Job] = {}
            for kernel, key in keys.items():
                if key not in self._linked:
                    jobs.setdefault(key, _job(key, kernel, target))
            self._link(jobs, self._objects(jobs))
            return {kernel: self._linked[key] for kernel, key in keys.items()}

    def objects(self, kernels: Iterable[Kernel], target: Target) -> dict[str, tuple[str, bytes]]:
        """See `object_code`."""
        jobs = {key: _job(key, k, target) for k in kernels for key in [key_of(k, target)]}
        with self._lock:
            return {key: (jobs[key].symbol, code) for key, code in self._objects(jobs).items()}

    def begin(self, kernel: Kernel, target: Target) -> None:
        """See `begin`."""
        key = key_of(kernel, target)
        with self._lock:
            if not self.available:
                return
            if key not in self._linked and not self.cache().holds(key):
                self._enqueue(_job(key, kernel, target))
            with contextlib.suppress(NoCompilerError):  # reported to whoever waits for the kernel
                self._advance(0.0)

    def feed(self) -> None:
        """See `feed`."""
        with self._lock, contextlib.suppress(NoCompilerError):
            if self._queue or any([child.jobs for child in self._children]):
                self._advance(0.0)

    def plan(self, job: Job) -> None:
        """See `plan`."""
        with self._lock, contextlib.suppress(NoCompilerError):  # reported to whoever waits for it
            self._enqueue(job)
            self._advance(0.0)

    def planned(self, job: Job) -> bytes:
        """See `planned`."""
        with self._lock:
            if job.key not in self._results:
                self.demand()
                self._enqueue(job)
            self._wait({job.key})
            found = self._results.pop(job.key)
        if isinstance(found, CompileError):
            raise found
        return found

    def knows(self, kernel: Kernel, target: Target) -> bool:
        """Whether a kernel needs no compilation."""
        key = key_of(kernel, target)
        return key in self._linked or self.cache().holds(key)

    def holds(self, key: str) -> bool:
        """See `holds`."""
        return key in self._linked or self.cache().load(key) is not None

    def cache(self) -> Cache:
        """The disk cache, shared between processes."""
        folder = str(config.get("cache"))
        found = self._caches.get(folder)
        return found or self._caches.setdefault(folder, Cache(folder))

    def _objects(self, jobs: dict[str, Job]) -> dict[str, bytes]:
        cache = self.cache()
        found: dict[str, bytes] = {}
        missing: dict[str, Job] = {}
        for key, job in jobs.items():
            done = key in self._results
            code = None if done else cache.load(key)
            if code is not None:
                found[key] = code
            elif done or job.ir:
                missing[key] = job
            else:
                raise CompileError(f"kernel {job.name}: its object code is no longer on disk")
        if missing:
            found.update(self._build(missing))
        return found

    def _link(self, jobs: dict[str, Job], objects: dict[str, bytes]) -> None:
        if not objects:
            return
        if not may_hold_code():
            raise self._refusal("memory cannot be made executable here")
        addresses = loaded([(jobs[key].symbol, code) for key, code in objects.items()])
        self._linked.update(zip(objects, addresses, strict=True))

    def _build(self, jobs: dict[str, Job]) -> dict[str, bytes]:
        """Waits for all jobs; those that nobody waits for come later."""
        self.demand()
        for job in jobs.values():
            self._enqueue(job)
        self._wait(jobs.keys())
        done: dict[str, bytes] = {}
        for key, result in [(key, self._results.pop(key)) for key in jobs]:
            if isinstance(result, CompileError):
                raise result
            done[key] = result
        return done

    def _wait(self, keys: Set[str]) -> None:
        """Waits for the results of jobs."""
        self._wanted = keys
        try:
            while not keys <= self._results.keys():
                self._advance(None)
        finally:
            self._wanted = ()

    def _enqueue(self, job: Job) -> None:
        at_work = [sent.key for child in self._children for sent in child.jobs]
        if job.key not in self._results and job.key not in at_work:
            self._queue[job.key] = job

    def _advance(self, patience: float | None) -> None:
        """Keeps the children busy, and takes their results.

        Args:
            patience: how many seconds to wait for an answer; `None` for as long as it takes.
        """
        try:
            with Uninterrupted():
                self._hand_out()
            busy = {child.output.fileno(): child for child in self._children if child.jobs}
            numbers = ready(busy, patience)
            with Uninterrupted():  # a child whose answer is partly read would be out of sync
                for number in numbers:
                    self._take(busy[number])
                self._hand_out()
        except BaseException:
            # Ctrl-C: answers of busy children would go to nobody.
            self._drop_busy()
            raise

    def _hand_out(self) -> None:
        """Gives children the remaining jobs, the largest first; those that are waited for before.

        A child has several at once, so that it works on while this process does something else.
        """
        if not self._queue:
            return
        jobs = [*self._queue.values(), *[sent for child in self._children for sent in child.jobs]]
        self.prestart(min(1 + sum([job.work for job in jobs]) // SHARE, _child_count()))
        while self._queue:
            key = max(self._queue, key=self._urgency)
            child = self._next_child(self._queue[key])
            if not child.has_room(self._queue[key]):
                break
            self._feed(child, self._queue.pop(key))

    def _next_child(self, job: Job) -> Child:
        """The child with the least to do; for a plan one that has planned, if it has few."""
        planners = [x for x in self._children if x.planned and x.plans < MOST_PLANS]
        chosen = planners if job.is_plan and planners else self._children
        return min(chosen, key=lambda child: child.load)

    def _urgency(self, key: str) -> tuple[bool, bool, int]:
        job = self._queue[key]
        return key in self._wanted, job.is_plan, len(job.ir)

    def _take(self, child: Child) -> None:
        """Receives a child's answer, or handles its death."""
        job = child.jobs[0]
        try:
            self._results[job.key] = body = child.receive()
            if job.is_plan:
                recipe, kernels = unpacked(body)
                self._begin_kernels(kernels, job.target)
                self._unkept[job.program] = recipe, {x.key for x in kernels}
            self._keep({} if job.is_plan else {job.key: body})
        except CompileError as error:
            self._results[job.key] = error
        except Died as death:
            (code,) = death.args
            said = child.last_words()
            self._remove(child, job)
            # An abort is LLVM's. Anything else may be a kill from outside: try once more.
            ours = -code in _FAULTS and "out of memory" not in said
            if (ours and code == -signal.SIGABRT) or job.key in self._retried:
                self._retried.discard(job.key)
                error = _fatal(job, code, said)
                if not ours:
                    raise self._refusal(str(error)) from None
                self._results[job.key] = error
            else:
                self._retried.add(job.key)
                self._queue[job.key] = job

    def _keep(self, kernels: dict[str, bytes]) -> None:
        """Stores kernels, and recipes that have all theirs: who asked may end before it runs them.

        Else every process that ends as early would compile them again.
        """
        cache = self.cache()
        cache.store(kernels)
        for key, (recipe, missing) in list(self._unkept.items()):
            missing.difference_update([x for x in missing if x in kernels or cache.holds(x)])
            if not missing:
                cache.store({key: recipe})
                del self._unkept[key]

    def _begin_kernels(self, kernels: Iterable[Written], target: Target) -> None:
        """Has the kernels of a plan compiled that are neither linked nor on disk."""
        for key, kernel in {x.key: Kernel(x.name, x.ir) for x in kernels}.items():
            if key not in self._linked and not self.cache().holds(key):
                self._enqueue(_job(key, kernel, target))

    def _feed(self, child: Child, job: Job) -> None:
        """Gives a child a job; replaces a child that has ended."""
        try:
            child.send(job)
        except OSError:
            child.jobs.pop()
            if child.jobs:  # which it has answered, or died of
                self._queue[job.key] = job
                self._take(child)
                self.prestart(1)
                return
            self._remove(child)
            try:
                self._spawn().send(job)
            except (OSError, NoCompilerError) as error:
                raise self._refusal(f"kernel {job.name}: {error}") from None

    def _remove(self, child: Child, job: Job | None = None) -> None:
        """Ends a child; its jobs but for one are others'."""
        self._children.remove(child)
        self._queue.update({sent.key: sent for sent in child.jobs if sent is not job})
        child.end()

    def _drop_busy(self) -> None:
        with Uninterrupted():
            for child in [child for child in self._children if child.jobs]:
                self._remove(child)
            self._queue.clear()

    def _spawn(self) -> Child:
        child = Child()
        self._children.append(child)
        return child

    def demand(self) -> None:
        """Raises at once if no compiler process is available.

        Raises:
            NoCompilerError: none could be had lately.
        """
        if not self.available:
            raise NoCompilerError("no compiler process is available")

    def _refusal(self, reason: str) -> NoCompilerError:
        """The error, reported once; blocks further tries for a while."""
        self._rested = time.monotonic() + REST_SECONDS
        if not self._told:
            self._told = True
            tell(f"nothing is compiled: {reason}; programs are interpreted, which is slow")
        return NoCompilerError(reason)

    def prestart(self, count: int) -> None:
        """Starts children until `count` run, or as many as the system allows.

        Raises:
            NoCompilerError: none could be started.
        """
        with self._lock, Uninterrupted():  # only its caller knows a child that has just started
            for child in [child for child in self._children if not (child.alive or child.jobs)]:
                self._children.remove(child)
                child.forget()
            while len(self._children) < count:
                try:
                    self._spawn()
                except NoCompilerError as error:
                    if not self._children:
                        raise self._refusal(str(error)) from None
                    return

    def close(self) -> None:
        """Ends the child processes; the next compilation starts new ones.

        Children busy for a daemon thread end by themselves, when their pipes close.
        """
        with Uninterrupted():
            if self._lock.acquire(timeout=PATIENCE_SECONDS):
                for child in self._children:
                    child.end()
                self._children = []
                self._lock.release()

    def before_fork(self) -> None:
        """Lets a compilation finish, so that the forked child gets a consistent linker."""
        with Uninterrupted():
            self._held = self._lock.acquire(timeout=PATIENCE_SECONDS)

    def after_fork_in_parent(self) -> None:
        """Undoes `before_fork`."""
        if self._held:
            self._lock.release()

    def after_fork_in_child(self) -> None:
        """Drops the compiler processes, which belong to the parent."""
        self._lock = threading.RLock()
        for child in self._children:
            child.process.returncode = 0  # not our child: never wait for it
            child.forget()
        self._children = []
        self._queue = {}


def _child_count() -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(cores or 1, MAX_CHILDREN))


def _job(key: str, kernel: Kernel, target: Target) -> Job:
    return Job(key, f"k{key[:40]}", kernel.name, kernel.ir, target)


def _fatal(job: Job, code: int, said: str) -> CompileError:
    return CompileError(f"kernel {job.name}: the compiler died with exit code {code}: {said}")


def key_of(kernel: Kernel, target: Target) -> str:
    """The cache key of a kernel's object code."""
    return kernel.key or digest(llvm.version(), target.cpu, target.features, kernel.digest)


_compiler: Final = Compiler()
at_exit(_compiler.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_compiler.before_fork,
        after_in_parent=_compiler.after_fork_in_parent,
        after_in_child=_compiler.after_fork_in_child,
    )


def compile_kernels(kernels: Iterable[Kernel], target: Target) -> dict[Kernel, int]:
    """The addresses of kernels, valid for the life of the process.

    Equal IR is compiled once. Safe to call from several threads; they take turns.

    Raises:
        CompileError: LLVM rejected a kernel or aborted; the message names the kernel.
        NoCompilerError: no compiler process could be started, or all were killed.
    """
    return _compiler.compile(kernels, target)


def object_code(kernels: Iterable[Kernel], target: Target) -> dict[str, tuple[str, bytes]]:
    """Object files of kernels, by their keys, with the symbol that each defines.

    Raises:
        CompileError, NoCompilerError: as `compile_kernels`.
    """
    return _compiler.objects(kernels, target)


def begin(kernel: Kernel, target: Target) -> None:
    """Starts compiling a kernel in the background, before `compile_kernels`.

    Does nothing if it is compiled already. Takes 50 us.
    """
    _compiler.begin(kernel, target)


def plan(job: Job) -> None:
    """Starts planning a step in the background; the kernels of the plan are compiled after it."""
    _compiler.plan(job)


def planned(job: Job) -> bytes:
    """The plan of a step, as `weft.runtime.finish.planned` gave it.

    Raises:
        CompileError: it cannot be planned there.
        NoCompilerError: no compiler process could be started, or all were killed.
    """
    return _compiler.planned(job)


def feed() -> None:
    """Gives compilers what has been begun, if they have room; takes 50 us."""
    _compiler.feed()


def holds(key: str) -> bool:
    """Whether the kernel of a key is linked, or its object code on disk is undamaged."""
    return _compiler.holds(key)


def available() -> bool:
    """Whether programs can be compiled, as far as is known; else they are interpreted."""
    return _compiler.available


def demand() -> None:
    """Raises at once, before planning, if no compiler is available.

    Raises:
        NoCompilerError: none could be had lately.
    """
    _compiler.demand()


def cache() -> Cache:
    """The disk cache of object code and programs."""
    return _compiler.cache()


def prestart(witness: Kernel, target: Target) -> None:
    """Starts a compiler process now, if `witness` is not in the cache.

    Takes 3 ms; the process is ready 50 ms later, and compiles `witness` first.
    """
    if _compiler.available and not _compiler.knows(witness, target):
        with contextlib.suppress(NoCompilerError):  # reported to whoever waits for a kernel
            _compiler.prestart(1)
        _compiler.begin(witness, target)


def knows(kernel: Kernel, target: Target) -> bool:
    """Whether a kernel needs no compilation; takes no look at its object code."""
    return _compiler.knows(kernel, target)
