"""The kernels of profiled steps: when each ran, what it wrote, and what it waited for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from weft.passes.blueprint import Placed
from weft.passes.control.record import Steer
from weft.runtime.execution.call import Call, External, InArena
from weft.runtime.measurement.profile import Run


class KernelRun(NamedTuple):
    """One run of a kernel.

    Attributes:
        name: unique in a profile; prefixed with the program's name if there are several.
        kernel: name of the kernel.
        work: the shapes that it reads and writes.
        nodes: names of the nodes that it computes, in order.
        inputs: names of the kernels whose results it reads.
        start: nanoseconds on a clock that all threads share.
        end: end of its last thread.
        written: bytes.
        traffic: bytes read and written.
        flops: floating-point operations.
        spans: thread, start and end of each part.
    """

    name: str
    kernel: str
    work: str
    nodes: tuple[str, ...]
    inputs: tuple[str, ...]
    start: int
    end: int
    written: int
    traffic: float
    flops: float
    spans: tuple[tuple[int, int, int], ...]


Interval = tuple[int, int, int]  # memory space (-1 for the arena), begin, end


def kernel_runs(runs: Sequence[Run]) -> list[KernelRun]:
    """The kernels that ran, program by program, in order."""
    found: list[KernelRun] = []
    for number, run in enumerate(runs):
        found += _of_program(run, f"program_{number}/" if len(runs) > 1 else "")
    return found


def _of_program(run: Run, scope: str) -> list[KernelRun]:
    spans = _spans(run)
    nodes = [_nodes(placed) for placed in run.blueprint.calls]
    taken: Counter[str] = Counter()
    last: dict[Interval, str] = {}  # the last writer
    found: list[KernelRun] = []
    for index, call in enumerate(run.program.calls):
        if index not in spans or isinstance(call.function, Steer):
            continue
        name = f"{scope}{call.name}" + (f"_{taken[call.name]}" if taken[call.name] else "")
        taken[call.name] += 1
        read, written = _intervals(call)
        inputs = {writer for place in read for at, writer in last.items() if _meet(at, place)}
        for place in written:
            last = {at: writer for at, writer in last.items() if not _meet(at, place)}
        last.update(dict.fromkeys(written, name))
        own = spans[index]
        start, end = min(s for _, s, _ in own), max(e for _, _, e in own)
        size = sum(to - at for _, at, to in written)
        found.append(KernelRun(
            name, call.name, run.works[index], nodes[index], tuple(sorted(inputs)), start, end,
            size, call.traffic, call.flops, tuple(own),
        ))  # fmt: skip
    return found


def _nodes(placed: Placed) -> tuple[str, ...]:
    """The names of a kernel's nodes, without constants and the like, which read nothing."""
    return () if placed.group is None else tuple([n.name for n in placed.group.nodes if n.inputs])


def _spans(run: Run) -> dict[int, list[tuple[int, int, int]]]:
    """The parts of each call that ran."""
    found: dict[int, list[tuple[int, int, int]]] = {}
    records = run.recording.records
    for record, owner in zip(records, run.recording.owner.tolist(), strict=True):
        if record["start"] > 0:
            span = int(record["thread"]), int(record["start"]), int(record["end"])
            found.setdefault(owner, []).append(span)
    return found


def _intervals(call: Call) -> tuple[list[Interval], list[Interval]]:
    """The memory that a call reads, and that it writes."""
    sides: tuple[list[Interval], list[Interval]] = [], []
    for position, argument in enumerate(call.args):
        if isinstance(argument, InArena):
            place = -1, argument.offset, argument.offset + argument.size
        elif isinstance(argument, External):
            place = argument.index, 0, argument.size
        else:
            continue
        sides[position in call.writes].append(place)
    return sides


def _meet(one: Interval, other: Interval) -> bool:
    return one[0] == other[0] and one[1] < other[2] and other[1] < one[2]
