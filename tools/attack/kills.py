"""SIGKILL during a save: the file is valid, the last acknowledged one or the next."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np

import weft
from tools.attack.isolated import Fork
from tools.attack.verdict import OTHER, WRONG, Case, Verdict
from weft import tf1

FOLDER = Path("kept")
LATEST_KILL = 0.08  # seconds after the first save
PATIENCE = 20.0
ACKNOWLEDGED = 8  # bytes of a number


def begin() -> Case:
    """Makes the folder."""
    FOLDER.mkdir()
    return case


def case(random: np.random.Generator) -> Verdict:
    """Kills a process that saves repeatedly."""
    size, moment = int(10 ** random.uniform(1, 6)), float(random.uniform(0, LATEST_KILL))
    kind: type[Saved | Checkpoint] = Saved if random.random() < 0.8 else Checkpoint
    told = f"{kind.__name__} of {size} numbers, killed after {1000 * moment:.1f} ms"
    acknowledged = _killed(kind, size, moment)
    try:
        held = kind(size).load()
    except Exception as error:
        return Verdict(WRONG, "does not load", f"{told}: {error!r}")
    if held not in (acknowledged, acknowledged + 1):
        what = f"{told}: acknowledged {acknowledged}, the file holds {held}"
        return Verdict(WRONG, "holds another state", what)
    return _left_behind(kind, size, told)


def _killed(kind: type[Saved | Checkpoint], size: int, moment: float) -> int:
    """The last acknowledged number."""
    read, write = os.pipe()
    process = Fork(lambda: _saving(kind(size), write))
    os.close(write)
    last = os.read(read, ACKNOWLEDGED)  # once there is a file
    time.sleep(moment)
    process.kill()
    process.ended(PATIENCE)
    while more := os.read(read, ACKNOWLEDGED):
        last = more
    os.close(read)
    return int.from_bytes(last, "little")


def _saving(saver: Saved | Checkpoint, write: int) -> None:
    """Saves 0, 1, ... and acknowledges each, until it is killed."""
    number = 0
    while True:
        saver.save(number)
        os.write(write, number.to_bytes(ACKNOWLEDGED, "little"))
        number += 1


def _left_behind(kind: type[Saved | Checkpoint], size: int, told: str) -> Verdict:
    """After one more save, only what was saved is there."""
    saver = kind(size)
    saver.save(0)
    extra = sorted({path.name for path in FOLDER.iterdir()} - saver.files)
    for path in FOLDER.iterdir():
        path.unlink()
    if extra:
        return Verdict(OTHER, "files are left behind", f"{told}: {', '.join(extra)}")
    return Verdict()


class Saved:
    """A file of `wf.save` in which all numbers are equal."""

    files = frozenset(["x.safetensors"])

    def __init__(self, size: int) -> None:
        self.size = size

    def save(self, number: int) -> None:
        """Write it."""
        part = weft.from_numpy(np.full(self.size, number, np.int64))
        state = {"w": part, "nested": [part[:3], {"step": number}]}
        weft.save(state, FOLDER / "x.safetensors")

    def load(self) -> int:
        """The number in the file.

        Raises:
            AssertionError: it contains several.
        """
        found: Any = weft.load(FOLDER / "x.safetensors")
        step = found["nested"][1]["step"]
        numbers = {step, *found["w"].tolist(), *found["nested"][0].tolist()}
        assert numbers == {step}, numbers
        return int(step)


class Checkpoint:
    """A checkpoint of `Saver`."""

    files = frozenset(["x.safetensors", "x.meta", "checkpoint"])

    def __init__(self, size: int) -> None:
        self.graph = tf1.Graph()
        with self.graph.as_default():
            self.variable = tf1.Variable(np.zeros(size, np.int64), name="w")
            self.saver, self.session = tf1.train.Saver(), tf1.Session()
            self.given = tf1.placeholder(tf1.int64, [])
            self.fill = tf1.assign(self.variable, self.given + tf1.zeros_like(self.variable))

    def save(self, number: int) -> None:
        """Write it."""
        self.session.run(self.fill, {self.given: number})
        self.saver.save(self.session, str(FOLDER / "x"))

    def load(self) -> int:
        """The number in it.

        Raises:
            AssertionError: it contains several.
        """
        self.saver.restore(self.session, str(FOLDER / "x"))
        (number,) = set(self.session.run(self.variable).tolist())
        return int(number)
