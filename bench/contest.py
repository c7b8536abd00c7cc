"""Contestants in processes of their own, timed in turns, so that a noisy machine hits all alike."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

ROUND_SECONDS = 0.4
GROUP = 0.05  # seconds
SLOW_STEP = 0.5  # seconds: a round may be one such step
WARM_UP = 8  # steps
FRAMEWORKS = {"tf1": "tensorflow", "tf2": "tensorflow"}  # where the name is not the module's
TUNED = "_tuned"  # ends the name of a contestant whose C library keeps the memory it has mapped
ALLOCATOR = {
    "MALLOC_TOP_PAD_": str(1 << 30),
    "MALLOC_MMAP_THRESHOLD_": str(1 << 34),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 36),
}


@dataclass
class Contestant:
    """One implementation of a workload in a process that waits for its turn."""

    workload: str
    name: str
    threads: int
    turn_seconds: float = ROUND_SECONDS
    cold: bool = False  # whether it starts with nothing compiled by earlier processes
    folder: str = ""  # where compiled code is kept; where the framework does so, if empty
    seconds: list[float] = field(default_factory=list)
    absent: str = ""
    first: float = 0.0  # seconds of the first step
    loss: float = 0.0  # seconds until it has given its loss; Weft goes on with the rest
    peak: int = 0  # the most bytes of memory, above those after the imports
    resident: int = 0  # the most bytes of memory that the process has had

    def start(self) -> None:
        """Launch the process and wait until it has done its first step."""
        environment = {
            **os.environ,
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "TF_ENABLE_ONEDNN_OPTS": "1",
            "OMP_NUM_THREADS": str(self.threads),
            "WEFT_THREADS": str(self.threads),
            "WEFT_WARM": "0",  # nothing works in the background while times are taken
            **(ALLOCATOR if self.name.endswith(TUNED) else {}),
        }
        self._temporary = tempfile.TemporaryDirectory() if self.cold else None
        if self._temporary:
            self.folder = self._temporary.name
        if self.folder:
            environment |= {"WEFT_CACHE": self.folder, "TORCHINDUCTOR_CACHE_DIR": self.folder}
        name = self.name.removesuffix(TUNED)
        arguments = [self.workload, name, str(self.threads), str(self.turn_seconds)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bench.contest", *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, env=environment, preexec_fn=self._confine,
        )  # fmt: skip
        answer = self._answer()
        self.first, self.loss = answer.get("first", 0.0), answer.get("loss", 0.0)

    def _answer(self) -> dict[str, Any]:
        answer = json.loads(self.process.stdout.readline() or '{"absent": "died"}')
        self.absent = answer.get("absent", "")
        self.peak = answer.get("peak", self.peak)
        self.resident = answer.get("resident", self.resident)
        return answer

    def _confine(self) -> None:
        """Keep to as many processors as threads, also those that count for themselves."""
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: self.threads])

    def turn(self) -> None:
        """One timed round; warming up comes before the first."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write("go\n")
            self.process.stdin.flush()
        answer = self._answer()
        if not self.absent:
            self.seconds.append(answer["seconds"])

    def stop(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()
        if self._temporary:
            self._temporary.cleanup()

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


def contest(
    workload: str,
    names: Sequence[str],
    threads: int = 2,
    rounds: int = 5,
    turn_seconds: float = ROUND_SECONDS,
    cold: bool = False,
) -> list[Contestant]:
    """Time every contestant that is installed, in turns."""
    contestants = [Contestant(workload, name, threads, turn_seconds, cold) for name in names]
    try:
        for one in contestants:
            one.start()
        for _ in range(rounds):
            for one in contestants:
                if not one.absent:
                    one.turn()
    finally:
        for one in contestants:
            if hasattr(one, "process"):
                one.stop()
    return contestants


def report(
    title: str,
    contestants: list[Contestant],
    work: float = 0.0,
    unit: str = "",
    baselines: Sequence[Contestant] = (),
) -> dict[str, float]:
    """Print a table; `work` per step turns times into rates; `baselines` are no peers."""
    print(f"\n{title}")
    present = [one for one in contestants if not one.absent]
    ours = next((one for one in present if one.name == "weft"), None)
    for one in contestants:
        if one.absent:
            print(f"  {one.name:14} absent: {one.absent}")
            continue
        low, high = min(one.seconds), max(one.seconds)
        rate = f"  {work / one.median:8.1f} {unit}" if work else ""
        ratio = ""
        if ours and one is not ours:
            middle, low_ratio, high_ratio = spread(one, ours)
            ratio = f"  weft is {middle:5.2f}x ({low_ratio:.2f} to {high_ratio:.2f})"
        print(
            f"  {one.name:14} {one.median * 1e6:12.1f} us ({low * 1e6:.1f} to {high * 1e6:.1f})"
            f"{rate}{ratio}"
        )
    peers = [one for one in present if one is not ours and one not in baselines]
    result = {one.name: one.median for one in present}
    if ours and peers:
        fastest = min(peers, key=lambda one: one.median)
        ratio = fastest.median / ours.median
        print(f"  against the fastest peer ({fastest.name}): {ratio:.2f}x")
        result["ratio"] = ratio
    return result


def spread(one: Contestant, ours: Contestant) -> tuple[float, float, float]:
    """How many times as long as ours a step takes: the median of the rounds, least and most."""
    pairs = sorted(t / w for t, w in zip(one.seconds, ours.seconds, strict=True))
    return statistics.median(pairs), pairs[0], pairs[-1]


def time_steps(
    step: Callable[[], object], seconds: float, finish: Callable[[], object] = int
) -> float:
    """Median seconds per step over groups of steps that fill `seconds`.

    A group ends when `finish` returns: no work of the last step is left.
    """
    start = time.perf_counter()
    step()
    finish()
    took = time.perf_counter() - start
    group = max(1, int(GROUP / max(took, 1e-7)))
    slow = took > SLOW_STEP
    times: list[float] = [took] if slow else []
    end = start + seconds
    while time.perf_counter() < end or len(times) < (1 if slow else 3):
        begin = time.perf_counter()
        for _ in range(group):
            step()
        finish()
        times.append((time.perf_counter() - begin) / group)
    return statistics.median(times)


def _peak() -> int:
    """The most memory that the process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _imported(name: str) -> int:
    """The memory that a contestant's framework takes by being imported."""
    framework = name.partition("_")[0]
    importlib.import_module(FRAMEWORKS.get(framework, framework))
    return _peak()


def _finish(name: str) -> Callable[[], object]:
    """Waits for what a framework goes on with after a step: Weft does, the others do not."""
    return importlib.import_module("weft").synchronize if name.startswith("weft") else int


def _compiled_at_once(name: str) -> contextlib.AbstractContextManager[object]:
    """Steps have the programs that they would have after many; those of Weft begin as lists."""
    if not name.startswith("weft"):
        return contextlib.nullcontext()
    return importlib.import_module("weft").config.override(compile=True)


def main() -> None:
    """The process of one contestant: make the step, do it once, then a round per line of input."""
    parser = argparse.ArgumentParser()
    parser.add_argument("workload")
    parser.add_argument("name")
    parser.add_argument("threads", type=int)
    parser.add_argument("turn_seconds", type=float)
    given = parser.parse_args()
    sys.stdout.flush()
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a framework prints must not look like an answer

    def say(**answer: object) -> None:
        print(json.dumps(answer), file=channel, flush=True)

    try:
        _compete(given, say)
    except ImportError as error:
        say(absent=f"not installed ({error.name})")
    except Exception as error:
        say(absent=f"failed ({type(error).__name__}: {str(error).partition(chr(10))[0]})")


def _compete(given: argparse.Namespace, say: Callable[..., None]) -> None:
    module = importlib.import_module(f"bench.work.{given.workload.partition(':')[0]}")
    arguments = given.workload.split(":")[1:]
    before = _imported(given.name)
    step = getattr(module, given.name)(given.threads, *arguments)
    finish = _finish(given.name)
    start = time.perf_counter()
    step()
    loss = time.perf_counter() - start
    finish()
    first = time.perf_counter() - start
    say(first=first, loss=loss, peak=_peak() - before, resident=_peak())
    for turn, _ in enumerate(sys.stdin):
        if turn == 0:
            with _compiled_at_once(given.name):
                for _ in range(WARM_UP):
                    step()
                finish()
            time_steps(step, 0.3, finish)
        seconds = time_steps(step, given.turn_seconds, finish)
        say(seconds=seconds, peak=_peak() - before, resident=_peak())


if __name__ == "__main__":
    main()
