"""Ctrl-C in training: the state is that of one step, and going on gives the uninterrupted bits.

What a step has changed when it is interrupted is what its lines so far change: statistics move in
the forward pass, parameters and the optimizer's state together in `optimizer.step()`.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np

from tools.attack.isolated import forked
from tools.attack.training import Loop, State, Training
from tools.attack.verdict import OTHER, WRONG, Case, Verdict
from weft import config

PATIENCE = 50.0
COLD = 0.2  # of the cases find nothing compiled


def begin() -> Case:
    """Has Ctrl-C raise, as at a terminal."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return case


def case(random: np.random.Generator) -> Verdict:
    """One loop, interrupted once."""
    kind = "mlp" if random.random() < 0.5 else "images"
    loop = Loop(
        kind, int(random.integers(2, 33)), int(random.integers(3, 9)), random.random() < 0.5
    )
    with config.override(compile=True, threads=int(random.integers(1, 3))):
        wanted = forked(lambda: _uninterrupted(loop), PATIENCE)
        if wanted.value is None:
            return Verdict(OTHER, "the uninterrupted run failed", f"{loop}: {wanted.text}")
        states = [State(*fields) for fields in wanted.value["states"]]
        late = float(random.uniform(0, 1.1 * wanted.value["seconds"]))
        folder = "cold" if random.random() < COLD else str(config.get("cache"))
        with config.override(cache=_emptied(folder)):
            return _judged(loop, states, late)


def _emptied(folder: str) -> str:
    """The folder, without what earlier cases left if it is to be cold."""
    if folder == "cold" and Path(folder).is_dir():
        for path in Path(folder).iterdir():
            path.unlink()
    return folder


def _uninterrupted(loop: Loop) -> dict[str, Any]:
    """The states before the first step and after each, and how long all take.

    Raises:
        AssertionError: looking at the states changes them.
    """
    whole = Training(loop)
    whole.run()
    final = whole.state()
    training = Training(Loop(loop.kind, loop.width, loop.steps, loop.reads))
    states = [training.state()]
    start = time.perf_counter()
    Training(loop).run()
    seconds = time.perf_counter() - start
    for step in range(loop.steps):
        training.loop = Loop(loop.kind, loop.width, step + 1, loop.reads)
        training.run()
        states.append(training.state())
    assert states[-1] == final, "the state depends on whether it is looked at"
    return {"states": [astuple(state) for state in states], "seconds": seconds}


def _judged(loop: Loop, states: list[State], late: float) -> Verdict:
    training = Training(loop)
    _interrupted(training, late)
    told = f"{loop}, after {1000 * late:.2f} ms, in step {training.step}"
    try:
        found = training.state()
    except Exception as error:
        return Verdict(WRONG, "the state cannot be read", f"{told}: {error!r}")
    if problem := mixed(training, states, found):
        return Verdict(WRONG, f"{loop.kind}: not of one step", f"{told}: {problem}")
    step = [state.parameters for state in states].index(found.parameters)
    if found.statistics != states[step].statistics:
        training.put_back(step, states[step])
    training.step = step
    training.run()
    if training.state() != states[-1]:
        return Verdict(WRONG, f"{loop.kind}: goes on to other bits", told)
    return Verdict()


def _interrupted(training: Training, late: float) -> None:
    """Trains until the signal comes."""

    def send() -> None:
        time.sleep(late)
        os.kill(os.getpid(), signal.SIGINT)

    sender = threading.Thread(target=send)
    try:
        sender.start()
        training.run()
        sender.join()
        time.sleep(PATIENCE)
    except KeyboardInterrupt:
        sender.join()


def mixed(training: Training, states: list[State], found: State) -> str:
    """How the parts of a state don't belong together; empty if they do."""
    steps = {
        part: [i for i, state in enumerate(states) if getattr(state, part) == getattr(found, part)]
        for part in ("parameters", "optimizer", "statistics")
    }
    said = f"parameters, optimizer and statistics are of steps {list(steps.values())}"
    both = set(steps["parameters"]) & set(steps["optimizer"])
    if not both & {training.step, training.step + 1}:
        return said
    fits = both & set(steps["statistics"])
    ahead = {step + 1 for step in both} & set(steps["statistics"])
    return "" if fits or (ahead and training.forward_begun) else said
