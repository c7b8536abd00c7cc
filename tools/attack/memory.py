"""Too little memory, too few processes, dying compilers: a correct result, or Weft's error."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tools.attack import identity
from tools.attack.isolated import Ended, forked
from tools.attack.program import PROGRAMS, measured
from tools.attack.verdict import DEATH, HANG, PLAIN, WRONG, Case, Verdict
from weft.errors import WeftError

SIZES = (9, 40, 150)
PATIENCE = 60.0
INTERPRETED = "nothing is compiled"  # Weft's warning where it has no compiler
PAGE = os.sysconf("SC_PAGE_SIZE")

Shorten = Callable[[], Callable[[], None]]  # creates a shortage; returns a function that ends it
Limit = Callable[[np.random.Generator], tuple[Shorten, str]]


def begin() -> Case:
    """Notes the programs' results without shortages."""
    wanted: dict[tuple[str, int], list[Any]] = {}
    for name in PROGRAMS:
        found = forked(lambda name=name: [measured(name, size) for size in SIZES], PATIENCE)
        wanted |= {(name, size): each for size, each in zip(SIZES, found.value, strict=True)}

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


NO_ROOM = "failed to map segment"  # the system's loader, of a module of Python's own


class Unusable(Exception):
    """A missing resource still fails, with all that needs it."""


def _short(
    shorten: Shorten, name: str, size: int, threads: int, cache: str
) -> tuple[str, list[float], bool]:
    """A program's result, now or after the shortage has ended; whether it was interpreted."""
    settings = {"cache": cache} if cache else {}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        relieve = shorten()
        try:
            found = measured(name, size, threads=threads, **settings)
        except (WeftError, MemoryError, ImportError) as error:
            if isinstance(error, ImportError) and NO_ROOM not in str(error):
                raise
            relieve()
            found = _again(name, size, threads=threads, **settings)
        finally:
            relieve()  # leaves room to report what happened
    return *found, any(INTERPRETED in str(warning.message) for warning in said)


def _again(name: str, size: int, **settings: Any) -> tuple[str, list[float]]:
    try:
        return measured(name, size, **settings)
    except Exception as error:
        raise Unusable(repr(error)) from error


def _is_right(found: Any, wanted: list[Any]) -> bool:
    """Equal bits; or, after a warning that nothing is compiled, numbers equal up to rounding."""
    bits, means, interpreted = found
    return bits == wanted[0] or (interpreted and np.allclose(means, wanted[1], rtol=1e-3))


def judged(ended: Ended, wanted: list[Any], told: str) -> Verdict:
    """The verdict on a program under a shortage."""
    if ended.hung:
        return Verdict(HANG, "hangs", told)
    if ended.signal:
        return Verdict(DEATH, f"signal {ended.signal}", told)
    if ended.value is not None:
        right = _is_right(ended.value, wanted)
        return Verdict() if right else Verdict(WRONG, "another result", told)
    last = (ended.text.strip().splitlines() or ["no words"])[-1]
    kind = WRONG if "tools.attack.memory.Unusable" in ended.error else PLAIN
    return Verdict(kind, last[:100], f"{told}\n{ended.text}")


def _soft(which: int, bound: int) -> Callable[[], None]:
    """Sets a limit that can be lifted again; returns what lifts it."""
    soft, hard = resource.getrlimit(which)
    resource.setrlimit(which, (bound, hard))
    return lambda: resource.setrlimit(which, (soft, hard))


def _address_space(random: np.random.Generator) -> tuple[Shorten, str]:
    more = int(10 ** random.uniform(5.5, 9.3))

    def shorten() -> Callable[[], None]:
        now = int(Path("/proc/self/statm").read_text().split()[0]) * PAGE
        return _soft(resource.RLIMIT_AS, now + more)

    return shorten, f"{more >> 20} MiB more"


def _processes(random: np.random.Generator) -> tuple[Shorten, str]:
    count = int(random.integers(0, 10))

    def shorten() -> Callable[[], None]:
        identity.nobody()
        return _soft(resource.RLIMIT_NPROC, count)

    return shorten, f"{count} processes and threads"


def _dying_compilers(random: np.random.Generator) -> tuple[Shorten, str]:
    pause = float(10 ** random.uniform(-3, -0.5))

    def shorten() -> Callable[[], None]:
        over = threading.Event()
        killer = threading.Thread(target=_kill_children, args=(pause, over))
        killer.start()

        def relieve() -> None:
            over.set()
            killer.join()

        return relieve

    return shorten, f"compilers killed each {1000 * pause:.0f} ms"


def _kill_children(pause: float, over: threading.Event) -> None:
    """Kills the processes that this one has started, repeatedly."""
    while not over.wait(pause):
        for tasks in Path("/proc/self/task").glob("*/children"):
            for pid in tasks.read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)


LIMITS: tuple[Limit, ...] = (
    _address_space, _address_space, _address_space, _processes, _dying_compilers
)  # fmt: skip
