"""Too little memory, too few processes, dying compilers: the right result, or Weft's own error."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tools.attack import identity
from tools.attack.isolated import Ended, forked
from tools.attack.program import PROGRAMS, result
from tools.attack.verdict import DEATH, HANG, PLAIN, WRONG, Case, Verdict

SIZES = (9, 40, 150)
PATIENCE = 60.0
ACCEPTED = ("weft.errors.WeftError", "builtins.MemoryError")
PAGE = os.sysconf("SC_PAGE_SIZE")
KILLING = 2.0  # seconds for which compilers are killed

Limit = Callable[[np.random.Generator], "tuple[Callable[[], object], str]"]


def begin() -> Case:
    """Notes what the programs give where nothing is short."""
    wanted: dict[tuple[str, int], str] = {}
    for name in PROGRAMS:
        found = forked(lambda name=name: [result(name, size) for size in SIZES], PATIENCE)
        wanted |= {(name, size): text for size, text in zip(SIZES, found.value, strict=True)}

    def case(random: np.random.Generator) -> Verdict:
        name, size = str(random.choice(list(PROGRAMS))), int(random.choice(SIZES))
        limit = LIMITS[int(random.integers(len(LIMITS)))]
        shorten, told = limit(random)
        threads = int(random.integers(1, 5))
        cache = str(Path(f"cache-{random.integers(1 << 40)}").resolve())
        cold = random.random() < 0.7
        ended = forked(
            lambda: _short(shorten, name, size, threads, cache if cold else ""), PATIENCE
        )
        return judged(ended, wanted[name, size], f"{name} of {size}, {threads} threads, {told}")

    return case


def _short(shorten: Callable[[], object], name: str, size: int, threads: int, cache: str) -> str:
    warnings.simplefilter("ignore")  # that kernels are not kept
    before = resource.getrlimit(resource.RLIMIT_AS)
    settings = {"cache": cache} if cache else {}
    try:
        shorten()
        return result(name, size, threads=threads, **settings)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)  # there is room to tell what happened


def judged(ended: Ended, wanted: str, told: str) -> Verdict:
    """The verdict on a program that was short of something."""
    if ended.hung:
        return Verdict(HANG, "hangs", told)
    if ended.signal:
        return Verdict(DEATH, f"signal {ended.signal}", told)
    if ended.value is not None:
        return Verdict() if ended.value == wanted else Verdict(WRONG, "another result", told)
    if any(name in ended.error for name in ACCEPTED):
        return Verdict()
    last = (ended.text.strip().splitlines() or ["no words"])[-1]
    return Verdict(PLAIN, last[:100], f"{told}\n{ended.text}")


def _address_space(random: np.random.Generator) -> tuple[Callable[[], object], str]:
    more = int(10 ** random.uniform(5.5, 9.3))

    def shorten() -> None:
        now = int(Path("/proc/self/statm").read_text().split()[0]) * PAGE
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (now + more, hard))

    return shorten, f"{more >> 20} MiB more"


def _processes(random: np.random.Generator) -> tuple[Callable[[], object], str]:
    count = int(random.integers(0, 10))

    def shorten() -> None:
        identity.nobody()
        resource.setrlimit(resource.RLIMIT_NPROC, (count, count))

    return shorten, f"{count} processes and threads"


def _dying_compilers(random: np.random.Generator) -> tuple[Callable[[], object], str]:
    pause = float(10 ** random.uniform(-3, -0.5))

    def shorten() -> None:
        threading.Thread(target=_kill_children, args=(pause,), daemon=True).start()

    return shorten, f"compilers killed each {1000 * pause:.0f} ms"


def _kill_children(pause: float) -> None:
    """Kills what this process has started, for a while."""
    end = time.monotonic() + KILLING
    while time.monotonic() < end:
        time.sleep(pause)
        for tasks in Path("/proc/self/task").glob("*/children"):
            for pid in tasks.read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)


LIMITS: tuple[Limit, ...] = (
    _address_space, _address_space, _address_space, _processes, _dying_compilers
)  # fmt: skip
