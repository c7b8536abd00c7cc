"""Ctrl-C during training: the state is that of one step, and training on gives the usual result.

An interrupted step has made the changes of its lines so far: statistics change in the forward pass,
parameters and optimizer state together in `optimizer.step()`.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tools.attack.isolated import forked
from tools.attack.timer import send_after
from tools.attack.training import PARTS, Loop, State, Training, alike
from tools.attack.verdict import OTHER, WRONG, Case, Verdict
from weft import config
from weft.eager.record.run import stitched_tier

PATIENCE = 50.0
COLD = 0.2  # of the cases find nothing compiled
INTERPRETED = 0.4  # of the cases are interpreted throughout
KEPT = Path("states.npz")


def begin() -> Case:
    """Makes SIGINT raise, as on a terminal."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return case


def case(random: np.random.Generator) -> Verdict:
    """One loop, interrupted once."""
    loop = Loop(
        "mlp" if random.random() < 0.5 else "images", int(random.integers(2, 33)),
        int(random.integers(8, 25)), random.random() < 0.5, random.random() >= INTERPRETED,
    )  # fmt: skip
    with _settings(loop, int(random.integers(1, 3))):
        wanted = forked(lambda: _uninterrupted(loop), PATIENCE)
        if wanted.value is None:
            return Verdict(OTHER, "the uninterrupted run failed", f"{loop}: {wanted.text}")
        late = float(random.uniform(0, wanted.value))
        folder = "cold" if random.random() < COLD else str(config.get("cache"))
        with config.override(cache=_emptied(folder)):
            return _judged(loop, _read(loop), late)


@contextmanager
def _settings(loop: Loop, threads: int) -> Iterator[None]:
    stitched_tier.STITCHED_RUNS = 0 if loop.exact else 1 << 30  # type: ignore[misc]
    with config.override(compile=loop.exact, threads=threads):
        yield


def _emptied(folder: str) -> str:
    """The cache folder, emptied if it is to be cold."""
    if folder == "cold" and Path(folder).is_dir():
        for path in Path(folder).iterdir():
            path.unlink()
    return folder


def _uninterrupted(loop: Loop) -> float:
    """Keeps the state before the first step and after each; returns the seconds of a run.

    Raises:
        AssertionError: reading the states changes them.
    """
    final = _trained(loop)
    start = time.perf_counter()
    _trained(loop)
    seconds = time.perf_counter() - start
    training = Training(loop)
    states = [training.state()]
    for _ in range(loop.steps):
        training.one()
        states.append(training.state())
    for part in PARTS:
        if not alike(states[-1][part], final[part], loop.exact):
            raise AssertionError(f"the {part} depend on whether they are looked at")
    arrays: Any = _named(states)
    np.savez(KEPT, **arrays)
    return seconds


def _trained(loop: Loop) -> State:
    training = Training(loop)
    training.run()
    return training.state()


def _named(states: list[State]) -> dict[str, Any]:
    return {
        f"{step}/{part}/{i}": array
        for step, state in enumerate(states)
        for part in PARTS
        for i, array in enumerate(state[part])
    }


def _read(loop: Loop) -> list[State]:
    states: list[State] = [{part: [] for part in PARTS} for _ in range(loop.steps + 1)]
    with np.load(KEPT) as kept:
        for name in kept.files:
            step, part, _ = name.split("/")
            states[int(step)][part].append(kept[name])
    return states


def _judged(loop: Loop, states: list[State], late: float) -> Verdict:
    training = Training(loop)
    interrupted(training, late)
    told = f"{loop}, after {1000 * late:.2f} ms, in step {training.step}"
    try:
        found = training.state()
    except Exception as error:
        return Verdict(WRONG, "the state cannot be read", f"{told}: {error!r}")
    step = whole_step(training, states, found)
    if isinstance(step, str):
        return Verdict(WRONG, f"{loop.kind}: not of one step", f"{told}: {step}")
    try:
        final = _gone_on(training, step, states[step])
    except Exception as error:
        return Verdict(WRONG, f"{loop.kind}: cannot go on", f"{told}: {error!r}")
    if any(not alike(final[part], states[-1][part], loop.exact) for part in PARTS):
        return Verdict(WRONG, f"{loop.kind}: goes on to something else", told)
    return Verdict()


def _gone_on(training: Training, step: int, state: State) -> State:
    """The final state, from a step that may have to be repeated."""
    if not alike(training.state()["statistics"], state["statistics"], training.loop.exact):
        training.put_back(step, state)
    training.step = step
    training.run()
    return training.state()


def interrupted(training: Training, late: float) -> None:
    """Trains until the signal arrives."""
    try:
        send_after(late, signal.SIGINT)
        training.run()
        time.sleep(PATIENCE)
    except KeyboardInterrupt:
        return


def whole_step(training: Training, states: list[State], found: State) -> int | str:
    """The step that the state belongs to, or how its parts disagree."""
    steps = {
        part: {
            i for i, state in enumerate(states)
            if alike(found[part], state[part], training.loop.exact)
        }
        for part in PARTS
    }  # fmt: skip
    both = steps["parameters"] & steps["optimizer"] & {training.step, training.step + 1}
    for step in sorted(both):
        ahead = training.forward_begun and step + 1 in steps["statistics"]
        if step in steps["statistics"] or ahead:
            return step
    return f"{', '.join(PARTS)} are of steps {[sorted(s) for s in steps.values()]}"
