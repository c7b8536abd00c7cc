"""One unit of work: a kernel's function or one of Python's, for a range of chunks."""

from __future__ import annotations

from weft.codegen.driver import system
from weft.codegen.driver.layout import HOST, TIMED, Program, Record, Unit
from weft.codegen.procedure import Procedure, Ref, Word, i64, routine


def _run(f: Procedure, unit: Ref, thread: Word) -> None:
    unit["function"].call("void", unit["args"], unit["begin"], unit["end"], thread)


def _run_kernel(f: Procedure, unit: Ref, thread: Word) -> None:
    # In a program for many sizes there may be fewer chunks than units.
    with f.when(unit["begin"] < unit["end"]):
        _run(f, unit, thread)


@routine(Program, Unit, i64)
def execute(f: Procedure, program: Ref, unit: Ref, thread: Word) -> None:
    """Does a unit."""
    with f.when(unit["flags"].has(HOST | TIMED)):
        _execute_with_flags(f, program, unit, thread)
        f.give()
    _run_kernel(f, unit, thread)


@routine(Program, Unit, i64)
def _execute_with_flags(f: Procedure, program: Ref, unit: Ref, thread: Word) -> None:
    flags = unit["flags"]
    timed, start = flags.has(TIMED), f.local(0)
    with f.when(timed):
        start.set(system.now(f))
    with f.when(flags.has(HOST)):
        # The callback clears the mark last, so an exception leaves it, wherever it is raised.
        program["unfinished"] = 1
        _run(f, unit, thread)
        with f.when(program["unfinished"].differs(0)):
            program["error"].to(i64).store(2, "seq_cst")
    with f.when(~flags.has(HOST)):
        _run_kernel(f, unit, thread)
    with f.when(timed):
        record = program["records"].to(Record).at(unit["position"])
        end = system.now(f)
        record["start"], record["end"], record["thread"] = start, end, thread
        record["busy"] = record["busy"] + (end - start)
        record["times"] = record["times"] + 1
