"""Threads that sleep until there is work for them."""

from __future__ import annotations

from weft.codegen.driver import system
from weft.codegen.driver.layout import MAX_PROCESSORS, Queue, Team
from weft.codegen.procedure import Procedure, Ref, i64, routine


@routine(Queue)
def wake(f: Procedure, queue: Ref) -> None:
    """Wakes whoever sleeps in a queue."""
    with f.when(queue.field("sleeping").load("seq_cst").differs(0)):
        queue.field("sleeping").update("xchg", 0)
        queue.field("epoch").update("add", 1)
        system.wake_all(f, queue.field("epoch"))


@routine(Team)
def make_room(f: Procedure, team: Ref) -> None:
    """A worker that finds itself on the caller's processor leaves it: it is only in the way there.

    The scheduler likes to wake a thread where it was woken from, and takes its time to part the
    two.
    """
    words = MAX_PROCESSORS // 64
    mask = f.room(i64, words)
    mine = system.processor(f)
    same = mine.equals(team.field("processor").load("monotonic"))
    with f.when(same & (mine < MAX_PROCESSORS)):
        system.copy(f, mask, team.field("processors"), MAX_PROCESSORS // 8)
        word = mask.at(mine >> 6)
        word.store(word.load() & ~(f.constant(1) << (mine & 63)))
        others = mask.at(0).load()
        for i in range(1, words):
            others = others | mask.at(i).load()
        with f.when(others.differs(0)):
            system.move(f, mask)
