"""What Ctrl-C has interrupted is set aside, so that nothing else waits for it.

A program that was interrupted may be an endless loop. Nothing tells which of its records took so
long. So all that may take long are set aside, and so is what depends on them: a value among them is
computed when it is read, with only what it depends on. Once the interrupted records have been
computed or nothing needs them, the rest is pending as usual.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from weft.eager.record.call.plan import placeholders
from weft.eager.record.pending.change import Interrupted, Pending
from weft.eager.record.pending.lazy import Lazy, Record
from weft.eager.record.pending.state import MOST_BACKWARD, MOST_PENDING, computing, flush, trace
from weft.eager.record.recognition.structure import interpreted_seconds, needed
from weft.host.interrupt import Uninterrupted
from weft.ir.graph import Graph
from weft.ir.node import Node
from weft.ops.declaration import calls_python, inner_nodes, op_of

LONG: Final = 0.1
"""Seconds that a record may take, as estimated, without being set aside."""


def set_aside(pending: Pending, core: Sequence[Record]) -> Pending:
    """Set aside these records, which were interrupted, and what depends on them; returns the
    rest.
    """
    interrupted = trace.now.interrupted
    if core:  # Ctrl-C may have come after they were computed
        interrupted.core.update(_of_use(pending.records).intersection(core))
    free, behind = _divided(pending, interrupted.core.union(interrupted.pending.records))
    interrupted.add(behind)
    return free


def lengthy(records: Iterable[Record]) -> list[Record]:
    """Those that may take long, or without end."""
    with Uninterrupted():
        return [r for r in records if not r.plan.follows and _is_lengthy(r)]


def _is_lengthy(record: Record) -> bool:
    graph = Graph()
    with graph.as_default():
        record.plan.expand(*placeholders([x.type for x in record.inputs]))
    return any(map(_may_wait, graph.nodes)) or interpreted_seconds(graph) > LONG


def _may_wait(node: Node) -> bool:
    """Whether it runs as long as values decide, calls Python, or waits for others."""
    facts = op_of(node).facts
    if facts.unbounded or facts.ordered or calls_python(node):
        return True
    return any(map(_may_wait, inner_nodes(node)))


def without_interrupted(pending: Pending) -> Pending:
    """What does not depend on interrupted records; the rest is set aside.

    If so much waits for them that a program would be too large, they are computed after all.
    """
    interrupted = trace.now.interrupted
    before = len(interrupted.pending.records)
    free = set_aside(pending, ())
    if len(interrupted.pending.records) == before or not _is_overdue(interrupted):
        return free
    return _retaken(free)


def _is_overdue(interrupted: Interrupted) -> bool:
    records = [r for r in interrupted.pending.records if r not in interrupted.core]
    passes = sum([bool(r.plan.follows) for r in records])
    return len(records) >= MOST_PENDING or passes >= MOST_BACKWARD


def _retaken(free: Pending) -> Pending:
    """All that is set aside, to be computed with the rest."""
    now = trace.now
    aside, now.interrupted = now.interrupted.pending, Interrupted()
    now.taken = found = Pending(aside.records + free.records, aside.changes + free.changes)
    return found


def _divided(pending: Pending, behind: set[Record]) -> tuple[Pending, Pending]:
    """What does not depend on some records, and what does; the latter are added to `behind`."""
    free, waiting = Pending([], []), Pending([], [])
    for record in pending.records:
        is_behind = record in behind or any([_is_among(x, behind) for x in record.inputs])
        if is_behind:
            behind.add(record)
        (waiting if is_behind else free).records.append(record)
    for change in pending.changes:
        (waiting if _is_among(change.value, behind) else free).changes.append(change)
    return free, waiting


def _is_among(lazy: Lazy, records: set[Record]) -> bool:
    return lazy.array is None and lazy.record in records


def release() -> None:
    """Make pending again what no longer depends on interrupted records."""
    interrupted = trace.now.interrupted
    aside, wanted = interrupted.pending, _of_use(interrupted.pending.records)
    interrupted.core.intersection_update(wanted)
    changes = [change for change in aside.changes if change.value.array is None]
    free, behind = _divided(Pending(aside.records, changes), set(interrupted.core))
    interrupted.pending = behind
    now = trace.now
    now.pending = [r for r in free.records if r in wanted] + now.pending
    now.changes = free.changes + now.changes


def _of_use(records: Iterable[Record]) -> set[Record]:
    """All that the pending values among the results depend on that a tensor holds."""
    return set(needed([y for r in records for y in r.outputs if y.array is None and y.is_live]))


def drop_interrupted() -> None:
    """Give up what Ctrl-C has interrupted in this thread: tensors that it was to change in place
    have their old values again.

    What was interrupted, and what was recorded from its results, is otherwise computed when a value
    of it is read. A new tensor among the results still is.

    >>> import weft as wf
    >>> x = wf.zeros(2)
    >>> x.add_(1.0)
    tensor([1., 1.])
    >>> wf.drop_interrupted()  # nothing was interrupted
    >>> x
    tensor([1., 1.])
    """
    now = trace.now
    with computing:
        free, _ = _divided(now.waiting(), set(now.interrupted.pending.records))
        changes = [*now.interrupted.pending.changes]
        changes += [change for change in now.changes if change not in free.changes]
        for change in reversed(changes):
            if change.value.array is None:
                change.undo()
        now.pending, now.changes = free.records, free.changes
        now.interrupted = Interrupted()


def retry() -> None:
    """Compute all that is pending, also what was interrupted."""
    now = trace.now
    with computing:
        if now.interrupted.pending.records:
            found = _retaken(now.waiting())
            now.pending, now.changes = found
            now.taken = None
        flush()
