"""The attacks, and the limits of their cases."""

from __future__ import annotations

from dataclasses import dataclass

GIBIBYTE = 1 << 30


@dataclass(frozen=True)
class Attack:
    """One attack; `tools.attack.NAME` runs its cases.

    Attributes:
        name: of the module; its `begin()` gives a function that runs a case.
        about: what is attacked, for the table.
        count: cases of a whole run.
        block: cases of one process.
        seconds: what a case may take.
        memory: bytes that the process may map.
    """

    name: str
    about: str
    count: int
    block: int
    seconds: float
    memory: int = 6 * GIBIBYTE


ATTACKS = {
    attack.name: attack
    for attack in (
        Attack("calls", "hostile calls, interpreted and compiled", 10_000, 100, 30),
        Attack("files", "mutated files", 10_000, 500, 10, 3 * GIBIBYTE),
        Attack("kills", "kills while saving", 1_000, 50, 30),
        Attack("signals", "Ctrl-C in training", 500, 25, 60),
        Attack("caches", "hostile code caches", 1_000, 50, 60),
        Attack("memory", "programs short of memory or processes", 1_000, 50, 90, 16 * GIBIBYTE),
        Attack("graphs", "drawn programs", 6_000, 100, 90),
        Attack("trainers", "drawn trainer configurations", 2_000, 50, 90, 16 * GIBIBYTE),
        Attack("control", "drawn programs with vmapped control flow", 400, 20, 300, 1 << 46),
        Attack("threads", "threads and finalizers that share tensors", 2_000, 100, 60),
        Attack("loops", "Ctrl-C of endless loops", 500, 25, 60),
        Attack("extremes", "extreme numbers in every operation", 2_000, 100, 90),
        Attack("ranks", "kills and stops of ranks", 100, 5, 150, 256 * GIBIBYTE),
        Attack("tasks", "kills and stops of a cluster's tasks", 100, 5, 400, 256 * GIBIBYTE),
        Attack("crowds", "starts of many late ranks", 10, 2, 300, 256 * GIBIBYTE),
        Attack("hosts", "ranks, link and launcher of two hosts", 20, 5, 150, 256 * GIBIBYTE),
    )
}
