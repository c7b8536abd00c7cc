"""Threads that share tensors: no change is lost, and every value is one that there was."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from tools.attack.shared import KINDS, Size
from tools.attack.verdict import PLAIN, WRONG, Case, Verdict
from weft import config

SWITCH_SECONDS = 1e-5  # threads take turns this often


def begin() -> Case:
    """Nothing to prepare."""
    return case


def case(random: np.random.Generator) -> Verdict:
    """Some kinds at once; each thread goes through them in its own order."""
    size = Size(*(int(random.integers(low, high)) for low, high in ((2, 5), (2, 16), (1, 40))))
    chosen = random.choice(len(KINDS), int(random.integers(1, 4)), replace=False)
    things = [KINDS[i](random, size) for i in chosen]
    orders = [random.permutation(len(things)) for _ in range(size.threads)]
    compiled = bool(random.random() < 0.3)

    def work(thread: int) -> None:
        with config.override(compile=compiled):
            for number in range(size.steps):
                for i in orders[thread]:
                    things[i].step(thread, number)

    told = f"{size}, {compiled=}: {', '.join(thing.about for thing in things)}"
    with unraisable() as lost:
        failed = together(work, size.threads)
        wrong = "" if failed else next(filter(None, (thing.problem() for thing in things)), "")
    if raised := [*failed, *lost]:
        where = "".join(traceback.format_exception(raised[0]))[-3000:]
        return Verdict(PLAIN, f"raised {type(raised[0]).__name__}", f"{told}\n{where}")
    return Verdict(WRONG, "another value", f"{told}\n{wrong}"[:1500]) if wrong else Verdict()


@contextmanager
def unraisable() -> Iterator[list[BaseException]]:
    """What finalizers raise meanwhile."""
    found: list[BaseException] = []
    before, sys.unraisablehook = (
        sys.unraisablehook,
        lambda told: found.append(told.exc_value or told.exc_type()),
    )
    try:
        yield found
    finally:
        sys.unraisablehook = before


def together(work: Callable[[int], None], count: int) -> list[BaseException]:
    """Runs `work(number)` in threads that often take turns; returns what they raised."""
    failed: list[BaseException] = []

    def run(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(count)]
    before = sys.getswitchinterval()
    try:
        sys.setswitchinterval(SWITCH_SECONDS)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    return failed
