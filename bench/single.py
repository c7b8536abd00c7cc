"""One operation at a time: our kernels beside PyTorch, which waits in a process of its own.

A line gives our time and GFLOP/s, the share of what the microkernel reaches from L1 on the same
threads at the same moment, and how often PyTorch's time ours is. The runtime's own step programs
run our kernels, so the hand-over between threads is part of the time. Figures are medians.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bench.contest import ALLOCATOR
from weft.codegen import target as targets
from weft.ir.node import Value
from weft.ir.shape import known, size
from weft.passes.launch import Launch, Scratch
from weft.runtime.compilation.compiler import compile_kernels
from weft.runtime.execution.call import Call, InArena
from weft.runtime.execution.program import Program
from weft.runtime.measurement.peak import arithmetic
from weft.runtime.memory.arena import Arena

TURN = 0.01
"""Seconds of a turn, at least."""
PAUSE = 0.03
"""Seconds before a turn: an OpenMP team that has nothing to do spins for some milliseconds more, on
the processors of whoever comes next."""


def program(launches: tuple[Launch, ...], threads: int) -> Program:
    """A step program that does the launches on random numbers."""
    places: dict[Value | Scratch, InArena] = {}
    total = 0
    for launch in launches:
        for argument in launch.args:
            if isinstance(argument, int) or argument in places:
                continue
            if isinstance(argument, Scratch):
                need = argument.size * (threads if argument.per_thread else 1)
            else:
                need = size(known(argument.shape)) * argument.dtype.size
            places[argument] = InArena(total, need)
            total += -(-need // 4096) * 4096 + 64
    arena = Arena(total)
    rng = np.random.default_rng(0)
    for argument, place in places.items():
        if isinstance(argument, Value):
            shape = known(argument.shape)
            view = arena.view(place.offset, argument.dtype.numpy, shape)
            view[...] = rng.random(shape, np.float32).astype(argument.dtype.numpy)
        else:
            arena.view(place.offset, np.dtype(np.uint8), (place.size,))[...] = 0
    calls = [
        Call(
            launch.kernel, tuple(a if isinstance(a, int) else places[a] for a in launch.args),
            launch.writes, launch.chunks, launch.flops, launch.bytes,
        )
        for launch in launches
    ]  # fmt: skip
    functions = compile_kernels([launch.kernel for launch in launches], targets.current())
    return Program(calls, functions, arena, threads=threads)


class Peer:
    """PyTorch, its allocator tuned, doing what `module` says."""

    def __init__(self, module: str, threads: int) -> None:
        command = [sys.executable, "-m", module, str(threads)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, env={**os.environ, **ALLOCATOR, "OMP_NUM_THREADS": str(threads)},
        )  # fmt: skip
        self.present = self._answer() == "ready"

    def _answer(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def ask(self, **command: Any) -> float:
        """Seconds of a turn, or of the preparation."""
        assert self.process.stdin
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        return float(self._answer())

    def stop(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def serve(prepared: Callable[..., Callable[[], object]]) -> None:
    """Take the turns that `Peer` asks for."""
    import torch

    torch.set_num_threads(int(sys.argv[1]))
    step: Callable[[], object] = int
    print("ready", flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        if "turn" in command:
            print(turn(step, command["turn"]), flush=True)
            continue
        start = time.perf_counter()
        step = prepared(torch, **command)
        step()
        step()
        print(time.perf_counter() - start, flush=True)


def turn(step: Callable[[], object], seconds: float = TURN) -> float:
    """Seconds of a step: the mean over a turn, after a pause and a step that does not count."""
    time.sleep(PAUSE)
    step()
    count, start = 0, time.perf_counter()
    while not count or time.perf_counter() - start < seconds:
        step()
        count += 1
    return (time.perf_counter() - start) / count


@dataclass
class Result:
    """What was measured of one operation: medians over the rounds."""

    count: int  # times in the network
    seconds: float
    ratio: float  # PyTorch's time over ours
    share: float  # of the peak at the same moment: the clock is not steady


@dataclass
class Bench:
    """Our kernels and PyTorch's, in turns."""

    module: str
    threads: int
    rounds: int
    results: dict[str, list[Result]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.peer = Peer(self.module, self.threads)
        self.best = arithmetic(self.threads)
        print(f"{f'{self.threads} threads':45}{'time':>12}{'GFLOP/s':>8}{'peak':>7}{'PyTorch':>8}")

    def run(
        self, of: tuple[str, int, str, str], launches: tuple[Launch, ...], flops: float, **peer: Any
    ) -> None:
        """Measure one and print its line.

        `of` are a network, how often it has the operation, its name, and which of its gradients;
        `peer` is what PyTorch's process is told.
        """
        network, count, name, kind = of
        ours = program(launches, self.threads)
        ours.run()
        if self.peer.present:
            self.peer.ask(kind=kind, **peer)
        work = self.best.calls[0].flops
        own: list[float] = []
        ratios: list[float] = []
        shares: list[float] = []
        for _ in range(self.rounds):
            before = turn(self.best.run, TURN / 4)
            own.append(turn(ours.run))
            best = (before + turn(self.best.run, TURN / 4)) / 2
            theirs = self.peer.ask(turn=TURN) if self.peer.present else math.nan
            ratios.append(theirs / own[-1])
            shares.append(flops / own[-1] * best / work)
        result = Result(count, *map(statistics.median, (own, ratios, shares)))
        self.results.setdefault(f"{network} {kind}", []).append(result)
        print(
            f"{network:10}{count:2} {name:25}{kind:8}{result.seconds * 1e3:9.2f} ms"
            f"{flops / result.seconds / 1e9:8.1f}{result.share:7.0%}{result.ratio:7.2f}x",
            flush=True,
        )

    def report(self) -> None:
        """The means, and the least; then PyTorch may go."""
        everything = [r for results in self.results.values() for r in results]
        for name, results in (*self.results.items(), ("all", everything)):
            ratios = [r.ratio for r in results]
            total = sum(r.count * r.seconds * r.ratio for r in results)
            total /= sum(r.count * r.seconds for r in results)
            print(
                f"{name:20} mean {statistics.geometric_mean(ratios):5.2f}x  least "
                f"{min(ratios):5.2f}x  below 0.9x {sum(r < 0.9 for r in ratios):3}  "
                f"weighted {total:5.2f}x"
            )
        self.peer.stop()


def wanted(names: Sequence[str], own: Sequence[str]) -> bool:
    """Whether one of `own` begins as one of `names` does; no names want everything."""
    return not names or any(o.startswith(n) for o in own for n in names)
