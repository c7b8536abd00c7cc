"""Programs that are run once, each in a new process without compiled programs, beside their peers.

A program is a function of the framework, `torch` or `weft`, in `bench/work`: it prepares its data
and returns what is timed. If that is a generator, each of its turns is a lap. Wall time and
processor time, of child processes too, are measured; the latter suffers less from other work on the
machine.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench import installed

PATIENCE = 300  # seconds of a process, at most


@dataclass(frozen=True)
class Call:
    """One call of a program, by one clock.

    Attributes:
        whole: seconds, with the work that goes on after it has returned.
        laps: seconds of each turn; of the call where it has no turns.
    """

    whole: float
    laps: Sequence[float]


@dataclass(frozen=True)
class Measure:
    """A figure of a program's calls.

    Attributes:
        title: what it is.
        of: the figure, from the calls in order.
        unit: of the figure: seconds, or times.
    """

    title: str
    of: Callable[[Sequence[Call]], float]
    unit: str = "s"


@dataclass(frozen=True)
class Program:
    """What is run, and what is said of it.

    Attributes:
        place: the function: `module:name` in `bench/work`.
        title: what it does.
        measures: of its calls.
        calls: how often it is called in its process.
        bar: how many times as long as ours the fastest peer is to take.
        mirrored: whether it imports packages that import `torch`: Weft then takes its place.
    """

    place: str
    title: str
    measures: tuple[Measure, ...]
    calls: int = 1
    bar: float = 1.0
    mirrored: bool = False


@dataclass
class Runner:
    """A program under one framework: what its processes have measured.

    Attributes:
        wall: calls of each process, by the clock of the room.
        processor: the same, by the clock of the process.
        absent: why there is none.
    """

    program: Program
    framework: str
    threads: int
    wall: list[list[Call]] = field(default_factory=list)
    processor: list[list[Call]] = field(default_factory=list)
    absent: str = ""

    @property
    def title(self) -> str:
        return f"{self.framework} {self.threads}"

    def run(self, warm: bool = False, library: bool = True) -> None:
        """One new process; what earlier ones compiled is used only if `warm`.

        Args:
            library: whether it has the kernel library, as an installed wheel has.
        """
        with tempfile.TemporaryDirectory() as folder:
            caches = ("WEFT_CACHE", "TORCHINDUCTOR_CACHE_DIR")
            count = str(self.threads)
            environment = {**os.environ, "OMP_NUM_THREADS": count, "WEFT_THREADS": count}
            environment["WEFT_WARM"] = "0"
            environment.pop("PYTHONDONTWRITEBYTECODE", None)  # else each would compile all imports
            environment |= {} if warm else dict.fromkeys(caches, folder)
            command = [sys.executable, "-m", "bench.once", self.program.place, self.framework]
            command += [str(self.threads), str(self.program.calls)]
            command += ["--mirrored"] if self.program.mirrored else []
            with subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment,
                text=True, start_new_session=True, cwd=installed.tree() if library else None,
            ) as process:  # fmt: skip
                try:
                    said, _ = process.communicate(timeout=PATIENCE)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    said = json.dumps({"absent": f"not done after {PATIENCE} s"})
        answer = json.loads(said.strip() or '{"absent": "died"}')
        self.absent = answer.get("absent", "")
        if not self.absent:
            self.wall.append([Call(*one) for one in answer["wall"]])
            self.processor.append([Call(*one) for one in answer["processor"]])

    def figures(self, measure: Measure) -> tuple[float, float]:
        """Medians over the processes, by the wall's clock and by the processor's."""
        wall, processor = (
            statistics.median(measure.of(calls) for calls in clock)
            for clock in (self.wall, self.processor)
        )
        return wall, processor


def function(place: str, framework: str) -> Callable[[Any], Callable[[], object]]:
    """The program: its form for this framework, or the one that is the same for all.

    Raises:
        LookupError: it has no form for JAX.
    """
    module, _, name = place.partition(":")
    forms = vars(importlib.import_module(f"bench.work.{module}"))
    if framework == "jax" and f"{name}_jax" not in forms:
        raise LookupError(f"no {name} for JAX")
    return forms.get(f"{name}_{framework}") or forms[name]


def library(framework: str, mirrored: bool, threads: int) -> Any:
    """The framework's module, told how many threads it has."""
    if mirrored and framework == "weft":
        importlib.import_module("weft.as_torch")
        sys.path.insert(0, "")
        module = importlib.import_module("torch")
        module.manual_seed(0)
        return module
    module = importlib.import_module(framework)
    if framework == "jax":
        return module
    importlib.import_module(f"{framework}.nn.functional")
    module.set_num_threads(threads)
    module.manual_seed(0)
    return module


def _of_children() -> float:
    """Processor time of child processes, where Weft compiles, those that still run included."""
    ended = os.times()
    ticks = 0
    for file in Path("/proc/self/task").glob("*/children"):
        for child in file.read_text(encoding="ascii").split():
            with contextlib.suppress(OSError):  # it has just ended
                stat = Path("/proc", child, "stat").read_text(encoding="utf-8")
                ticks += sum(map(int, stat.rpartition(")")[2].split()[11:13]))
    return ended.children_user + ended.children_system + ticks / os.sysconf("SC_CLK_TCK")


def timed(turn: Callable[[], object], finish: Callable[[], object]) -> tuple[Call, Call]:
    """A call by both clocks."""
    clocks = time.perf_counter, time.process_time
    helped = _of_children()
    times = [[clock() for clock in clocks]]
    result = turn()
    if isinstance(result, Iterator):
        times += [[clock() for clock in clocks] for _ in result]
    else:
        times.append([clock() for clock in clocks])
    finish()
    ends = [time.perf_counter(), time.process_time() + _of_children() - helped]
    wall, processor = (
        Call(end - of[0], [b - a for a, b in pairwise(of)])
        for end, of in zip(ends, zip(*times, strict=True), strict=True)
    )
    return wall, processor


def main() -> None:
    """The process of one runner: prints the calls' times as one line of JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("place")
    parser.add_argument("framework")
    parser.add_argument("threads", type=int)
    parser.add_argument("calls", type=int)
    parser.add_argument("--mirrored", action="store_true")
    given = parser.parse_args()
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a framework prints must not look like an answer
    try:
        module = library(given.framework, given.mirrored, given.threads)
        turn = function(given.place, given.framework)(module)
        finish = importlib.import_module("weft").synchronize if given.framework == "weft" else int
        calls = [timed(turn, finish) for _ in range(given.calls)]
        answer: dict[str, Any] = {
            clock: [(one[i].whole, one[i].laps) for one in calls]
            for i, clock in enumerate(("wall", "processor"))
        }
    except ImportError as error:
        answer = {"absent": f"not installed ({error.name or error})"}
    except Exception as error:
        text = str(error).partition("\n")[0]
        answer = {"absent": f"failed ({type(error).__name__}: {text})"}
    print(json.dumps(answer), file=channel, flush=True)


if __name__ == "__main__":
    main()
