"""After a failure, restores the state in which the failing call would have raised at once.

A label out of range is found only when the loss is read; by then the backward pass and the update
are recorded too. Records before the failing call stay pending; in-place changes recorded after it
are undone.
"""

from __future__ import annotations

from bisect import bisect_right

from weft.eager.record.lazy import Lazy, Record
from weft.eager.record.state import Change, Pending, trace
from weft.eager.record.structure import Structure, expand
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
    keep(pending, _since(error, pending))


def keep(pending: Pending, before: float) -> None:
    """Keep the records before this number pending, and undo the rest."""
    kept: list[Change] = []
    for change in reversed(pending.changes):
        if _is_behind(change.value, before):
            change.take_back()
        else:
            kept.append(change)
    now = trace.now
    taken = now.pending is not pending.records  # KeyboardInterrupt may come before that
    later = now.waiting() if taken else Pending([], [])
    now.pending = [r for r in pending.records if r.serial < before] + later.records
    now.changes = kept[::-1] + later.changes


def _since(error: BaseException, pending: Pending) -> float:
    """The number of the first record that is not to be computed."""
    if isinstance(error, WeftError) and error.serial is not None:
        return error.serial
    if isinstance(error, Exception) and not isinstance(error, MemoryError):
        return pending.records[0].serial
    return float("inf")  # it may succeed the next time


def _is_behind(lazy: Lazy, since: float) -> bool:
    """Whether a value will not be computed."""
    return lazy.array is None and lazy.record is not None and lazy.record.serial >= since
