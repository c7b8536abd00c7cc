"""SIGKILL while checkpoints are saved: `python -m tests.checkpoint.kill_saves 1000`."""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from tools.attack.isolated import Fork
from weft.checkpoint import Checkpointer

PATIENCE = 30.0
NUMBER = 8  # bytes


def kill(folder: Path, rows: int, seconds: float) -> tuple[int, int]:
    """The step that was acknowledged last before a process was killed, and the one that is held."""
    read, write = os.pipe()
    process = Fork(lambda: save(folder, rows, write))
    os.close(write)
    last = os.read(read, NUMBER)
    time.sleep(seconds)
    process.kill()
    process.ended(PATIENCE)
    while more := os.read(read, NUMBER):
        last = more
    os.close(read)
    return int.from_bytes(last, "little"), held(folder)


def save(folder: Path, rows: int, write: int) -> None:
    """Saves one step after the other, and tells which are safe, until the end."""
    checkpoints = Checkpointer(folder, keep=2)
    step = checkpoints.latest() or 0
    while True:
        step += 1
        checkpoints.save(step, {"w": np.full(rows, step, np.float32), "nested": [{"step": step}]})
        if step % 3 == 0:
            checkpoints.wait()
            os.write(write, step.to_bytes(NUMBER, "little"))


def held(folder: Path) -> int:
    """The step that a folder gives, whose parts agree."""
    found = Checkpointer(folder).restore()
    assert set(found.state["w"].numpy().tolist()) == {found.step}
    assert found.state["nested"] == [{"step": found.step}]
    return found.step


def attack(folder: Path, count: int, seed: int = 0) -> int:
    """How many kills left less than what was acknowledged."""
    draw, worse = random.Random(seed), 0
    for number in range(count):
        place = folder / str(number // 10)  # each goes on where one was killed, ten times
        rows, seconds = int(10 ** draw.uniform(0, 5.5)), draw.uniform(0, 0.08)
        acknowledged, found = kill(place, rows, seconds)
        worse += found < acknowledged
    return worse


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as given:
        kills = int(sys.argv[1])
        print(f"{kills} kills, {attack(Path(given), kills)} lost an acknowledged checkpoint")
