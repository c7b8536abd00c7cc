"""SIGKILL and SIGSTOP of the tasks of a cluster that trains, at random moments.

Without recovery each client gets an error that names the task; with it, all go on training once the
task is back. No acknowledged update is lost, no process or shared memory is left over.
"""

from __future__ import annotations

import signal
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from tools.attack.task_account import check_acknowledged, check_errors, check_final
from tools.attack.task_processes import Fault, Finding, Processes, Task
from tools.attack.task_read import values
from tools.attack.verdict import HANG, OTHER, Case, Verdict

FAULTS = 3
ENOUGH = 3  # acknowledged steps that show that a task trains
TRAINS_WITHIN = 90.0  # seconds
KINDS = {"plain": 0.4, "monitored": 0.35, "sync": 0.25}


def begin() -> Case:
    """Needs no preparation."""
    return case


def case(random: np.random.Generator, faults: int = FAULTS) -> Verdict:
    """A cluster that trains, some tasks of which are killed or stopped one after the other."""
    kind = str(random.choice(list(KINDS), p=list(KINDS.values())))
    workers, filtered = int(random.integers(2, 4)), bool(random.random() < 0.6)
    told = [f"{kind}, {workers} workers, device filters {filtered}"]
    with tempfile.TemporaryDirectory(prefix="weft-tasks-") as folder:
        processes = Processes(workers, kind, filtered, Path(folder))
        try:
            early = random.random() < 0.2
            if not early:
                _trains(processes, 0.0)
            for number in range(faults):
                _one_fault(random, processes, told, early and number == 0)
            _ends(processes)
            return Verdict()
        except Finding as found:
            detail = f"{'; '.join(told)}: {found.detail}\n{processes.said()}"
            return Verdict(found.kind, found.what, detail)
        finally:
            processes.clear()


def _one_fault(
    random: np.random.Generator, processes: Processes, told: list[str], early: bool
) -> None:
    tasks = list(processes.running)
    victim: Task = tasks[int(random.integers(len(tasks)))]
    number = signal.SIGSTOP if random.random() < 0.4 else signal.SIGKILL
    late, away = float(random.uniform(0, 3.0 if early else 1.0)), float(random.uniform(0, 5))
    what = f"{number.name} of {victim[0]} {victim[1]} for {away:.2f} s"
    told.append(f"{what}, {late:.2f} s after " + ("the start" if early else "all trained"))
    time.sleep(late)
    kept = processes.checkpointed()
    fault = Fault(victim, number, time.monotonic(), away, early, kept)
    processes.faults.append(fault)
    processes.send(victim, number)
    time.sleep(away)
    if number == signal.SIGSTOP:
        processes.send(victim, signal.SIGCONT)
    else:
        processes.restart(victim)
    fault.back = time.monotonic()
    _trains(processes, fault.back)
    check_errors(processes, fault)
    check_acknowledged(processes)


def _trains(processes: Processes, since: float) -> None:
    """Waits until every trainer has had some steps acknowledged since then."""
    end = time.monotonic() + TRAINS_WITHIN
    while waits := [t for t in processes.trainers if len(processes.acks(t, since)) < ENOUGH]:
        for task, process in processes.running.items():
            if process.poll() is not None:
                code = process.returncode
                raise Finding(OTHER, "a task ends by itself", f"{task} with {code}")
        if time.monotonic() > end:
            raise Finding(HANG, "no training", f"{waits} after {TRAINS_WITHIN:g} s")
        time.sleep(0.02)


def _ends(processes: Processes) -> None:
    """The end of all, and what they leave behind."""
    memory = processes.memory()
    processes.end_training()
    check_acknowledged(processes)
    check_final(processes, _values(processes))
    processes.end()
    if left := processes.left():
        raise Finding(OTHER, "processes are left", str(left))
    if names := [name for name in memory if Path("/dev/shm", name).exists()]:
        raise Finding(OTHER, "memory is left", str(names))


def _values(processes: Processes) -> dict[str, Any]:
    """The variables on the parameter servers, as another client sees them."""
    return values(processes.spec, len(processes.trainers))
