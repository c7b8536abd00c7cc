"""What Python calls: a program's run, and what goes with it."""

from __future__ import annotations

from weft.codegen.driver import system
from weft.codegen.driver.layout import BEYOND, PAUSED, UNDERSTAFFED, Patch, Program, Team
from weft.codegen.driver.queue import wake
from weft.codegen.driver.segment import advance, serial
from weft.codegen.driver.work import work
from weft.codegen.procedure import Procedure, Ref, Word, i64, pointer, routine


@routine(Program, result=i64)
def run(f: Procedure, program: Ref) -> Word:
    """One step, or the rest of one that has paused.

    Returns:
        The error cell's state. Or nothing is done: `-1 - i` if external `i` has no address,
        `UNDERSTAFFED` if the team has fewer threads than the program wants (after a fork).
    """
    call, segment = program["resume_call"], program["resume_segment"]
    patience = program["patience"]
    with f.when(patience.differs(0)):
        program["deadline"] = system.now(f) + patience
    with f.when(patience.equals(0) | call.equals(0)):
        _patch(f, program)
        program["error"].to(i64).store(0, "seq_cst")
    alone = f.local(f.constant(1, "i1"))
    team = program["team"].to(Team)
    with f.when(program["segment_count"].differs(0)):
        with f.when(team.field("size").load("acquire") < program["threads"]):
            f.give(UNDERSTAFFED)
        # If another program has the team, do without.
        alone.set(~team.field("busy").replace(0, 1))
    program["resume_call"] = 0
    program["resume_segment"] = 0
    with f.when(alone):
        serial(f, program, call)
    with f.when(~alone):
        _run_with(f, program, team, segment)
    with f.when(program["resume_call"].differs(0)):
        f.give(PAUSED)
    return program["error"].to(i64).load("seq_cst")


def _patch(f: Procedure, program: Ref) -> None:
    """Puts the addresses of externals where arguments are."""
    patches, externals = program["patches"].to(Patch), program["externals"].to(i64)
    slots = program["slots"].to(i64)
    with f.count(program["patch_count"]) as i:
        external = patches.at(i)["external"]
        address = externals.at(external).load()
        with f.when(address.equals(0)):
            f.give(~external)
        slots.at(patches.at(i)["slot"]).store(address)


def _run_with(f: Procedure, program: Ref, team: Ref, segment: Word) -> None:
    """Runs the program with the team, to the end or until the caller may leave."""
    team["program"] = program
    team["flushing"] = system.flushing(f)
    team.field("processor").store(system.processor(f), "monotonic")
    team.field("finished").store(0, "seq_cst")
    team.field("parting").store(0, "seq_cst")
    advance(f, program, team, segment, 0)
    work(f, team, 0, team.field("parting"))
    program["leave"] = BEYOND
    with f.when(team.field("finished").load("acquire").equals(0)):
        program["aloft"] = 1
        f.give(0)
    team.field("busy").store(0, "release")


@routine(Program, result=i64)
def land(f: Procedure, program: Ref) -> int:
    """The rest of a step that the caller has left, if it has: done when this returns."""
    with f.when(program["aloft"].differs(0)):
        team = program["team"].to(Team)
        mode = system.flushing(f)
        work(f, team, 0, team.field("finished"))
        system.flush_as(f, mode)
        program["aloft"] = 0
        team.field("busy").store(0, "release")
    return 0


@routine(Team, result=i64)
def stop(f: Procedure, team: Ref) -> int:
    """Asks the workers to leave."""
    team.field("quit").store(1, "seq_cst")
    f.full_fence()
    wake(f, team.field("workers"))
    return 0


@routine(pointer, result=i64)
def flush(f: Procedure, wanted: Word) -> Word:
    """Makes this thread flush subnormal numbers (1) or keep them (0): `wanted` points at that.

    Returns:
        What holds then: 0 if they are kept, -1 where the processor's mode is unknown.
    """
    system.flush_as(f, -wanted.to(i64).load())
    return system.flushing(f)
