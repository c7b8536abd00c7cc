"""The accounts of a cluster under attack: who was told what, and what may be lost."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from tools.attack.task_processes import Fault, Finding, Line, Processes, Task
from tools.attack.verdict import HANG, WRONG

TELLS_WITHIN = 3.0  # seconds; tasks are patient for 2.5
BUSY = 3.0  # seconds by which an error may be late on a busy machine
NOTICED_WITHIN = 60.0  # seconds; when a chief may restore the checkpoint
LOST = {"UnavailableError", "AbortedError"}
slowest: list[float] = []
"""Seconds from a fault to the error, of all that were told."""


def check_errors(processes: Processes, fault: Fault) -> None:
    """All that use a task were told of its fault, in time, by name; nobody else was.

    Raises:
        Finding: they were not.
    """
    if processes.kind != "plain":
        return
    for task in processes.trainers:
        errors = processes.said_of(task, "error", fault.at)
        for error in errors:
            _check_named(processes, task, error)
        if not fault.early and task != fault.victim and _must_hear(processes, task, fault):
            if not errors:
                raise Finding(WRONG, "no error", f"of {fault.victim} in {task}")
            slowest.append(errors[0].at - fault.at)
            if slowest[-1] > TELLS_WITHIN + BUSY:
                raise Finding(HANG, "late error", f"in {task} after {slowest[-1]:.2f} s")


def _must_hear(processes: Processes, task: Task, fault: Fault) -> bool:
    """Whether a trainer uses the victim, and it was away for long enough."""
    if not fault.killed and fault.away < TELLS_WITHIN + BUSY / 2:
        return False
    return fault.victim[0] == "ps" or (fault.victim == ("worker", 0) and task[0] == "client")


def _check_named(processes: Processes, task: Task, error: Line) -> None:
    """An error names a task that had a fault, or is of a variable that one has lost."""
    kind, text = error.words[0], " ".join(error.words[1:])
    faults = [f for f in processes.faults if f.at <= error.at]
    if kind in LOST:
        if any(name in text for f in faults for name in _names(processes, f, task)):
            return
        raise Finding(WRONG, "an error does not name the task", f"{task}: {text}")
    if kind == "FailedPreconditionError" and any(f.killed and f.victim[0] == "ps" for f in faults):
        return
    raise Finding(WRONG, f"unexpected {kind}", f"{task}: {text}")


def _names(processes: Processes, fault: Fault, task: Task) -> list[str]:
    job, index = fault.victim
    names = [f"/job:{job}/replica:0/task:{index}"]
    if job == "worker":
        names.append(processes.spec[job][index])
    if fault.victim == task:  # it was stopped itself, and all others are gone for it
        names.append("/job:")
    return names


def check_acknowledged(processes: Processes) -> None:
    """Counters only grow; after a fault they may fall once, but not below the checkpoint.

    Raises:
        Finding: an acknowledged update is lost, or an update is torn.
    """
    for number, task in enumerate(processes.trainers):
        acks = processes.acks(task)
        for before, after in itertools.pairwise(acks):
            was, now = int(before.words[0]), int(after.words[0])
            if now > was:
                continue
            kept = _may_fall(processes, number, before.at, after.at)
            if kept is None or now <= kept:
                raise Finding(
                    WRONG, "an acknowledged update is lost",
                    f"{task}: {was}, then {now}; the checkpoint had {kept}",
                )  # fmt: skip
        if torn := [ack for ack in acks if "1" in ack.words[4:]]:
            raise Finding(WRONG, "a torn update", f"{task}: {torn[0]}")


def _may_fall(processes: Processes, number: int, since: float, until: float) -> int | None:
    """The least value that a counter may fall to between two times; `None`: it may not."""
    home = ("ps", (number + 1) % 2)  # the step is on the first one
    found: list[int] = []
    for fault in processes.faults:
        if fault.at > until or fault.back < since - NOTICED_WITHIN:
            continue
        lost = fault.killed and fault.victim == home
        if processes.kind != "plain":  # the chief restores everything
            lost = fault.victim[0] == "ps" or fault.victim == ("worker", 0)
            lost = lost or not processes.filtered
        if lost:
            found.append(fault.kept[number] if processes.kind != "plain" else 0)
    return min(found, default=None)


def check_final(processes: Processes, values: dict[str, Any]) -> None:
    """The servers have all that was acknowledged, and nothing more than was tried.

    Raises:
        Finding: they do not.
    """
    counters: Sequence[int] = values["counters"]
    for number, task in enumerate(processes.trainers):
        last = int(processes.acks(task)[-1].words[0])
        tries = 1 + len(processes.faults) + len(processes.said_of(task, "error"))
        if not last <= counters[number] <= last + tries:
            found = f"{task}: acknowledged {last}, the server has {counters[number]}"
            raise Finding(WRONG, "another final counter", found)
    if any(f.killed and f.victim[0] == "ps" for f in processes.faults) or processes.kind != "plain":
        return
    steps = sum(len(processes.acks(task)) for task in processes.trainers)
    tries = sum(len(processes.said_of(task, "error")) + 1 for task in processes.trainers)
    if not steps <= values["step"] <= steps + tries + len(processes.faults):
        found = f"acknowledged {steps}, the server has {values['step']}"
        raise Finding(WRONG, "another final step", found)
