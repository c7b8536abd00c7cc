"""What recording costs: calls on small tensors whose values are not looked at."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import weft as wf
from weft.eager.record.pending.state import trace
from weft.nn import functional as F

WIDTH = 7
LAYERS = 8
Shapes = Sequence[tuple[int, ...]]


def works() -> dict[str, tuple[Callable[[int], Shapes], Callable[..., object]]]:
    """Calls by name: the shapes of their arguments for a size, and what is called."""
    w = wf.ones(WIDTH, requires_grad=True)

    def one(n: int) -> Shapes:
        return [(n, WIDTH)]

    def two(n: int) -> Shapes:
        return [(n, WIDTH), (n, WIDTH)]

    def three(n: int) -> Shapes:
        return [(n, WIDTH), (8, WIDTH), (8,)]

    return {
        "x + y": (two, lambda x, y: x + y),
        "x * 2.0": (one, lambda x: x * 2.0),
        "wf.tanh(x)": (one, wf.tanh),
        "w * x, w needs a gradient": (one, lambda x: w * x),
        "x @ w.T": (lambda n: [(n, WIDTH), (WIDTH, 8)], lambda x, y: x @ y),
        "F.relu(x)": (one, F.relu),
        "F.softmax(x, -1)": (one, lambda x: F.softmax(x, -1)),
        "F.linear(x, w, b)": (three, F.linear),
        "x.sum()": (one, lambda x: x.sum()),
        "x.reshape(-1)": (one, lambda x: x.reshape(-1)),
        "x[1:]": (one, lambda x: x[1:]),
    }  # fmt: skip


def measure(rounds: int = 40, calls: int = 30) -> dict[str, tuple[float, float]]:
    """Median seconds of a call with known types and with new sizes, by what is recorded."""
    sizes = itertools.count(10)
    wf.zeros(1).add(1).item()  # loads native code, as any program does
    found: dict[str, tuple[float, float]] = {}
    for name, (shapes, function) in works().items():
        known = [wf.ones(*shape) for shape in shapes(5)]
        times: tuple[list[float], list[float]] = ([], [])
        for _ in range(rounds):
            new = [[wf.ones(*s) for s in shapes(next(sizes))] for _ in range(calls)]
            for to, arguments in zip(times, ([known] * calls, new), strict=True):
                to.append(_seconds(function, arguments) / calls)
        found[name] = statistics.median(times[0]), statistics.median(times[1])
    return found


def measure_backward(rounds: int = 100) -> tuple[tuple[float, float], tuple[float, float]]:
    """The same for each call of a perceptron: recording it, and its share of `backward()`."""
    ws = [wf.ones(WIDTH, WIDTH, requires_grad=True) for _ in range(LAYERS)]

    def passes(n: int) -> Iterator[float]:
        x, calls = wf.ones(n, WIDTH), 2 * LAYERS + 1
        for w in ws:
            w.grad = None
        loss: list[Any] = []

        def forward() -> None:
            y: Any = x
            for w in ws:
                y = F.relu(y @ w)
            loss.append(y.sum())

        yield _seconds(forward, [()]) / calls
        yield _seconds(loss[0].backward, [()], fresh=False) / calls

    found: list[tuple[float, float]] = []
    sizes = itertools.count(10)
    for new in (False, True):
        pairs = [tuple(passes(next(sizes) if new else 5)) for _ in range(rounds)]
        found.append(tuple(map(statistics.median, zip(*pairs, strict=True))))  # pyright: ignore
    (forward, backward), (new_forward, new_backward) = found
    return (forward, new_forward), (backward, new_backward)


def _seconds(
    function: Callable[..., object], arguments: Sequence[Sequence[Any]], fresh: bool = True
) -> float:
    """Seconds of calls; if `fresh`, nothing is pending before. Nothing is computed."""
    now = trace.now
    if fresh:
        now.pending.clear()  # nobody holds the results
        now.changes.clear()
        now.limit = 1 << 30
    start = time.thread_time()  # others may share the processor
    for given in arguments:
        function(*given)
    return time.thread_time() - start
