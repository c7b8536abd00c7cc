"""After a failure, restores the state in which the failing call would have raised at once.

A label out of range is found only when the loss is read; by then the backward pass and the update
are recorded too. Records before the failing call stay pending; in-place changes recorded after it
are undone. What may succeed the next time, because it was interrupted or memory ran out, is set
aside.
"""

from __future__ import annotations

from bisect import bisect_right

from weft.eager.record.listing.expansion import expand
from weft.eager.record.pending.change import Change, Pending
from weft.eager.record.pending.lazy import Lazy, Record
from weft.eager.record.pending.state import computing, trace
from weft.eager.record.recognition.structure import Structure
from weft.eager.record.run.interruption import lengthy, set_aside
from weft.errors import WeftError


def blame(error: WeftError, structure: Structure) -> None:
    """Set the serial number of the failing record on an error that has none."""
    if error.serial is None:
        error.serial = _failed(error.node or "", structure).serial


def _failed(name: str, structure: Structure) -> Record:
    """The record that a node belongs to; the first one if that is unknown.

    Nodes that replace an operation carry its name as a prefix: `softmax/exp`.
    """
    expanded = expand(structure)
    positions = {node.name: i for i, node in enumerate(expanded.graph.nodes)}
    while name and name not in positions:
        name = name.rpartition("/")[0]
    return structure.records[max(bisect_right(expanded.begins, positions.get(name, 0)) - 1, 0)]


def recover(error: BaseException, pending: Pending) -> None:
    """Keep what can still be computed pending, and undo the rest."""
    now = trace.now
    taken = now.pending is not pending.records  # KeyboardInterrupt may come before that
    later = now.waiting() if taken else Pending([], [])
    since = _since(error, pending)
    if since is not None:
        kept = _undone(pending, since)
    elif isinstance(error, MemoryError):
        kept = set_aside(pending, pending.records)
    else:
        kept = set_aside(pending, lengthy(pending.records))
    now.pending, now.changes = kept.records + later.records, kept.changes + later.changes


def undo(since: float) -> None:
    """Undo what is pending from the record with this number on."""
    now = trace.now
    with computing:
        now.pending, now.changes = _undone(now.waiting(), since)


def recover_interrupted(error: WeftError) -> None:
    """The same for an error in what was set aside."""
    interrupted = trace.now.interrupted
    if error.serial is not None and error.serial in [r.serial for r in interrupted.pending.records]:
        interrupted.pending = _undone(interrupted.pending, error.serial)
        interrupted.core.intersection_update(interrupted.pending.records)


def _undone(pending: Pending, since: float) -> Pending:
    """What is left once all from this record on is undone."""
    kept: list[Change] = []
    for change in reversed(pending.changes):
        if _is_behind(change.value, since):
            change.undo()
        else:
            kept.append(change)
    return Pending([r for r in pending.records if r.serial < since], kept[::-1])


def _since(error: BaseException, pending: Pending) -> float | None:
    """The number of the first record that is not to be computed; `None` if all may succeed."""
    if isinstance(error, WeftError) and error.serial is not None:
        return error.serial
    if isinstance(error, Exception) and not isinstance(error, MemoryError):
        return pending.records[0].serial if pending.records else float("inf")
    return None


def _is_behind(lazy: Lazy, since: float) -> bool:
    """Whether a value will not be computed."""
    return lazy.array is None and lazy.record is not None and lazy.record.serial >= since
