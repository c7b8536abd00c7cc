"""Jobs of many more ranks than cores, each of which comes late: all start, none fails."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tools.attack.ranks import Job
from tools.attack.verdict import HANG, OTHER, WRONG, Case, Verdict

SCRIPT = Path(__file__).with_name("rank_late.py")
WITHIN = 240.0


def begin() -> Case:
    """Needs no preparation."""
    return case


def case(random: np.random.Generator) -> Verdict:
    """A job whose ranks wait for random times before they join, and before their first call."""
    ranks, seed = int(random.integers(6, 17)), int(random.integers(1 << 30))
    told = f"{ranks} ranks, seed {seed}"
    job = Job(ranks, env={"SEED_OF_CASE": str(seed)}, script=SCRIPT)
    try:
        if not job.ends(WITHIN):
            return Verdict(HANG, "no end", f"{told}: {job.said()}")
        if job.process.returncode or job.ready != ranks:
            return Verdict(WRONG, "a job that is right fails", f"{told}: {job.said()}")
        if left := job.left() or job.memory_left():
            return Verdict(OTHER, "something is left", f"{told}: {left}")
        return Verdict()
    finally:
        job.clear()
