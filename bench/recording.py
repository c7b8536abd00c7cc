"""What recording costs: one elementwise operation on small tensors, its value not looked at."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import weft as wf
from weft.eager.record.state import trace


def measure(rounds: int = 400, calls: int = 60) -> dict[str, float]:
    """Median seconds to record one operation, by what is recorded."""
    x, w = wf.ones(3), wf.ones(3, requires_grad=True)
    work: dict[str, Callable[[], object]] = {
        "x + x": lambda: x + x,
        "x * 2.0": lambda: x * 2.0,
        "wf.tanh(x)": lambda: wf.tanh(x),
        "w * x, w needs a gradient": lambda: w * x,
    }
    found: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(rounds):
        for name, function in work.items():
            trace.now.pending.clear()  # nothing is computed: nobody holds the results
            start = time.perf_counter()
            for _ in range(calls):
                function()
            found[name].append((time.perf_counter() - start) / calls)
    trace.now.pending.clear()
    return {name: statistics.median(seconds) for name, seconds in found.items()}
