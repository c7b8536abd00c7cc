"""The table of contents of the compiler's graph half."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from weft import config
from weft.ir.printer import format_graph
from weft.ir.verify import verify
from weft.passes.simplify import cse, fold, prune, simplify
from weft.passes.step import Step

PASSES: tuple[Callable[[Step], Step], ...] = (
    prune,  # what no output needs
    fold,  # arithmetic on constants
    simplify,  # algebra: identities, transposes into matmul, reshape chains
    cse,  # the same thing computed twice
    prune,  # what became unused
)


def optimise(step: Step) -> Step:
    """Run `PASSES` in order; `WEFT_VERIFY=1` verifies and `WEFT_DEBUG=3` prints after each."""
    check, show = bool(config.get("verify")), int(config.get("debug")) >= 3
    for run in PASSES:
        start = time.perf_counter()
        step = run(step)
        if check:
            verify(step.graph)
        if show:
            spent = (time.perf_counter() - start) * 1e3
            print(f"# {run.__name__}: {spent:.2f} ms", file=sys.stderr)
            print(format_graph(step.graph), file=sys.stderr)
    return step
