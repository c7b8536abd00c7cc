"""Ctrl-C of endless loops: everything else is computed as usual, and changes can be undone."""

from __future__ import annotations

import faulthandler
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import weft
from tools.attack.endless import KINDS, LOOPS, Waiting, factor
from tools.attack.isolated import forked
from tools.attack.timer import send_after
from tools.attack.verdict import DEATH, HANG, PLAIN, WRONG, Case, Verdict
from weft import config
from weft.eager.record.pending.state import trace

PATIENCE = 30.0  # for a session
HUNG = Path("hung")  # where it was shortly before it was killed
SECONDS = 0.6  # until the signal comes, at most
SURE = 0.1  # until a read has begun to compute
COUNT = 20_000  # iterations of a loop that ends


@dataclass(frozen=True)
class Plan:
    """A session.

    Attributes:
        loop, kind: of `LOOPS` and `KINDS`.
        count: iterations; 0 for an endless loop.
        behind: the loop is interrupted before anything waits for it.
        held: whether what waits for the loop is still held after Ctrl-C.
        compiled: whether everything is compiled.
        before, after: independent pending values, recorded before the loop and after it.
        late: seconds until each signal.
    """

    loop: str
    kind: str
    count: int
    behind: bool
    held: bool
    compiled: bool
    before: int
    after: int
    late: tuple[float, ...]


def begin() -> Case:
    """Nothing to prepare."""
    return case


def drawn(random: np.random.Generator) -> Plan:
    """A random session."""
    return Plan(
        loop=str(random.choice(list(LOOPS))),
        kind=str(random.choice(list(KINDS))),
        count=int(random.choice([0, 0, 0, COUNT])),
        behind=bool(random.random() < 0.4),
        held=bool(random.random() < 0.8),
        compiled=bool(random.random() < 0.4),
        before=int(random.integers(4)),
        after=int(random.integers(4)),
        late=tuple(float(x) for x in random.random(3) ** 2 * SECONDS),
    )


def case(random: np.random.Generator) -> Verdict:
    """One session, in its own process."""
    plan = drawn(random)
    ended = forked(lambda: Session(plan).run(), PATIENCE)
    if ended.hung:
        return Verdict(HANG, plan.kind, f"{plan}\n{HUNG.read_text()}"[:6000])
    if ended.signal:
        return Verdict(DEATH, f"{plan.kind}: {signal.Signals(ended.signal).name}", f"{plan}")
    if ended.value is None:
        name = ended.error[0] if ended.error else ended.text
        return Verdict(PLAIN, f"{plan.kind}: {name}", f"{plan}\n{ended.text}"[:1500])
    return Verdict(WRONG, plan.kind, f"{plan}\n{ended.value}") if ended.value else Verdict()


class Problem(Exception):
    """Something is not as it must be."""


class Session:
    """A loop that is interrupted, and what is done then."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.pending: list[tuple[Any, Any]] = []
        self.recorded = False

    def run(self) -> str:
        """Run it; returns what is wrong."""
        signal.signal(signal.SIGINT, signal.default_int_handler)
        faulthandler.dump_traceback_later(0.9 * PATIENCE, file=HUNG.open("w"))
        try:
            with config.override(compile=self.plan.compiled):
                self._run()
        except Problem as problem:
            return str(problem)
        return ""

    def _run(self) -> None:
        waiting, plan = KINDS[self.plan.kind](), self.plan
        weft.synchronize()
        self._independent(plan.before)
        made = factor(plan.loop, plan.count)
        if plan.behind:
            self._interrupted(made.item, plan.late[0])
        if plan.count:
            self._record(waiting, made)
            self._interrupted(waiting.read, plan.late[1])
        else:
            self._interrupted(partial(self._come_to, waiting, made), plan.late[1])
            if not trace.now.interrupted.pending.records:  # it came before anything was computed
                self._interrupted(made.item, SURE + plan.late[0])
        del made
        self._usual()
        if not plan.held:
            waiting = KINDS[plan.kind]()
            weft.drop_interrupted()
            weft.synchronize()
            self._usual()
        elif plan.count:
            self._equal("after another try", waiting.read(), waiting.new)
        else:
            self._given_up(waiting)

    def _record(self, waiting: Waiting, made: Any) -> None:
        """Record what waits for the loop, and other values; of an endless one, it may be begun."""
        waiting.record(made)
        self.recorded = True
        self._independent(self.plan.after)

    def _come_to(self, waiting: Waiting, made: Any) -> None:
        self._record(waiting, made)
        waiting.read()

    def _given_up(self, waiting: Waiting) -> None:
        """Read it once more, then undo what waits for the endless loop."""
        if self.recorded:  # else it is unknown how much of it was
            self._interrupted(waiting.read, self.plan.late[2])
        self._usual()
        weft.drop_interrupted()
        if waiting.old is not None:
            self._equal("given up", waiting.read(), waiting.old)
        waiting.record(weft.tensor(1.0))
        self._equal("done again", waiting.read(), waiting.new)
        self._usual()

    def _interrupted(self, act: Callable[[], object], late: float) -> None:
        """Run something until the signal arrives; only finite loops may end before."""
        try:
            send_after(late, signal.SIGINT)
            act()
            if not self.plan.count:
                raise Problem("an endless loop has ended")
            time.sleep(PATIENCE)
        except KeyboardInterrupt:
            return

    def _independent(self, count: int) -> None:
        """Pending values that do not depend on the loop."""
        for i in range(count):
            x = weft.ones(2) * (i + 1)
            y = weft.zeros(2)
            self.pending.append((x.sum(), float(2 * i + 2)))
            y.add_(x)
            self.pending.append((y, [i + 1.0] * 2))

    def _usual(self) -> None:
        """Compute what is pending, and new values."""
        for x, wanted in self.pending:
            self._equal("pending", x.tolist(), wanted)
        x = weft.ones(2)
        for _ in range(50):
            x = x + 1
        self._equal("new", x.tolist(), [51.0] * 2)
        waiting = KINDS["Adam"]()
        waiting.record(weft.tensor(1.0))
        self._equal("trained", waiting.read(), waiting.new)

    def _equal(self, when: str, found: Any, wanted: Any) -> None:
        if not np.allclose(found, wanted, 1e-5, 1e-6):
            raise Problem(f"{when}: expected {wanted}, got {found}")
