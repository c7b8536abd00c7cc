"""A thread of the team: it claims units, does them, and sleeps when there are none for long."""

from __future__ import annotations

from weft.codegen.driver import system
from weft.codegen.driver.layout import Program, Queue, Segment, Team, Unit, Worker
from weft.codegen.driver.queue import make_room
from weft.codegen.driver.segment import (
    CALLER_BIT,
    SEGMENT_SHIFT,
    THREADS_SHIFT,
    UNITS_BITS,
    advance,
    share_end,
)  # fmt: skip
from weft.codegen.driver.unit import execute
from weft.codegen.procedure import Procedure, Ref, Word, i64, pointer, routine


@routine(Team, i64, pointer)
def work(f: Procedure, team: Ref, me: Word, told: Word) -> None:
    """Claims and does units until told to leave.

    The caller is told when the program is finished, or as much of it as it waits for; workers when
    the team is dissolved. Units are published by writing every head, one's own included, so a
    thread that has found nothing looks at nothing but its own head until that changes: cache lines
    move between cores only with work.
    """
    leave, is_caller = told.to(i64), me.equals(0)
    queue = f.select(is_caller, team.field("callers"), team.field("workers")).to(Queue)
    mine = team.field("heads").at(me).field("word")
    with f.repeat() as turns:
        turns.leave(leave.load("acquire").differs(0))
        looks, enlisted, epoch = f.local(0), f.local(f.constant(0, "i1")), f.local(0)
        with f.repeat() as scan:
            seen = mine.load("acquire")
            size = team.field("size").load("monotonic")
            with f.count(size) as i:
                around = me + i
                thread = f.select(around >= size, around - size, around)
                head = team.field("heads").at(thread).field("word")
                with f.repeat() as attempts:
                    word = head.load("acquire")
                    attempts.leave((word & UNITS_BITS).equals(0))
                    callers = word.has(CALLER_BIT)
                    width = (word >> THREADS_SHIFT) & 255
                    attempts.leave((me > width) | (callers & ~is_caller))
                    with f.when(head.replace(word, word - 1)):
                        _do(f, team, me, head, thread, word)
                        turns.again()
            with f.when(enlisted):
                turns.leave(leave.load("acquire").differs(0))
                system.sleep(f, queue.field("epoch"), epoch)
                _part(f, team, is_caller)
                turns.again()
            with f.repeat() as idle:
                looks.set(looks + 1)
                turns.leave(leave.load("acquire").differs(0))
                with f.when(looks > team.field("turns").load("monotonic")):
                    # Announce the sleep, then look once more: whoever publishes either sees us or
                    # is seen.
                    epoch.set(queue.field("epoch").load("seq_cst"))
                    queue.field("sleeping").update("xchg", 1)
                    f.full_fence()
                    enlisted.set(1)
                    scan.again()
                system.relax(f)
                _part(f, team, is_caller)
                idle.leave(~mine.load("acquire").equals(seen))


def _part(f: Procedure, team: Ref, is_caller: Word) -> None:
    with f.when(~is_caller):
        make_room(f, team)


def _do(f: Procedure, team: Ref, me: Word, head: Ref, thread: Word, word: Word) -> None:
    """Does the unit that was claimed from a thread's head, and those behind it."""
    # Now that a unit is ours, the program cannot end, so the team's pointer to it is good.
    program = team["program"].to(Program)
    system.flush_as(f, team["flushing"])
    units = program["units"].to(Unit)
    number, threads = word >> SEGMENT_SHIFT, ((word >> THREADS_SHIFT) & 255) + 1
    segment = program["segments"].to(Segment).at(number)
    end = segment["first"] + share_end(f, segment["units"], thread, threads, word.has(CALLER_BIT))
    left, done = f.local(word & UNITS_BITS), f.local(0)
    with f.repeat() as claimed:
        execute(f, program, units.at(end - left), me)
        done.set(done + 1)
        # As long as there is more on this head, which we cannot lose before we report, take it.
        with f.repeat() as attempts:
            more = head.load("acquire")
            left.set(more & UNITS_BITS)
            attempts.leave(left.equals(0))
            with f.when(head.replace(more, more - 1)):
                claimed.again()
        claimed.leave()
    before = team.field("pending").update("sub", done, "acq_rel")
    with f.when(before.equals(done)):
        advance(f, program, team, number + 1, me)


@routine(Worker, result=pointer)
def worker(f: Procedure, me: Ref) -> Word:
    """The whole life of a worker thread."""
    team = me["team"].to(Team)
    work(f, team, me["thread"], team.field("quit"))
    return f.null()
