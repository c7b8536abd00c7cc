"""Contestants in processes of their own, timed in turns, so that a noisy machine hits all alike."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

ROUND_SECONDS = 0.4
FRAMEWORKS = {"tf1": "tensorflow", "tf2": "tensorflow"}  # where the name is not the module's


@dataclass
class Contestant:
    """One implementation of a workload in a process that waits for its turn."""

    workload: str
    name: str
    threads: int
    seconds: list[float] = field(default_factory=list)
    absent: str = ""
    first: float = 0.0  # seconds of the first step
    peak: int = 0  # bytes of memory at the end of the warm-up, above those after the imports

    def start(self) -> None:
        """Launch the process and wait until it has compiled and warmed up."""
        environment = {
            **os.environ,
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "TF_ENABLE_ONEDNN_OPTS": "1",
            "OMP_NUM_THREADS": str(self.threads),
            "WEFT_THREADS": str(self.threads),
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bench.contest", self.workload, self.name, str(self.threads)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, env=environment, preexec_fn=self._confine,
        )  # fmt: skip
        answer = json.loads(self.process.stdout.readline() or '{"absent": "died"}')
        self.absent = answer.get("absent", "")
        self.first, self.peak = answer.get("first", 0.0), answer.get("peak", 0)

    def _confine(self) -> None:
        """Keep to as many processors as threads, also those that count for themselves."""
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: self.threads])

    def turn(self) -> None:
        """One timed round."""
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        self.seconds.append(json.loads(self.process.stdout.readline())["seconds"])

    def stop(self) -> None:
        self.process.stdin.close()
        self.process.wait()

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


def contest(workload: str, names: list[str], threads: int = 2, rounds: int = 5) -> list[Contestant]:
    """Time every contestant that is installed, in turns."""
    contestants = [Contestant(workload, name, threads) for name in names]
    for one in contestants:
        one.start()
    present = [one for one in contestants if not one.absent]
    for _ in range(rounds):
        for one in present:
            one.turn()
    for one in contestants:
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
            pairs = sorted(t / w for t, w in zip(one.seconds, ours.seconds, strict=True))
            ratio = (
                f"  weft is {statistics.median(pairs):5.2f}x ({pairs[0]:.2f} to {pairs[-1]:.2f})"
            )
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


def time_steps(step: Callable[[], object], seconds: float) -> float:
    """Median seconds per step over groups of steps that fill `seconds`."""
    start = time.perf_counter()
    step()
    group = max(1, int(0.01 / max(time.perf_counter() - start, 1e-7)))
    times: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        begin = time.perf_counter()
        for _ in range(group):
            step()
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


def main() -> None:
    """The process of one contestant: make the step, warm up, then a round per line of input."""
    parser = argparse.ArgumentParser()
    parser.add_argument("workload")
    parser.add_argument("name")
    parser.add_argument("threads", type=int)
    given = parser.parse_args()
    sys.stdout.flush()
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a framework prints must not look like an answer

    def say(**answer: object) -> None:
        print(json.dumps(answer), file=channel, flush=True)

    try:
        module = importlib.import_module(f"bench.work.{given.workload.partition(':')[0]}")
        arguments = given.workload.split(":")[1:]
        before = _imported(given.name)
        step = getattr(module, given.name)(given.threads, *arguments)
        start = time.perf_counter()
        step()
        first = time.perf_counter() - start
        for _ in range(3):
            step()
        time_steps(step, 0.3)
    except ImportError as error:
        say(absent=f"not installed ({error.name})")
        return
    say(first=first, peak=_peak() - before)
    for _ in sys.stdin:
        say(seconds=time_steps(step, ROUND_SECONDS))


if __name__ == "__main__":
    main()
