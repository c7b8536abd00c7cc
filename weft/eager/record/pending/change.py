"""What waits to be computed: records, and the changes of Python state that rely on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from weakref import ref

from weft.eager.record.pending.lazy import Lazy, Record

Replaced = tuple[ref[Any], Lazy, Lazy, Any]
"""A tensor, the value it held, the value that it holds since, and which view it was."""


class Change(NamedTuple):
    """A change of Python state that relies on a pending value, for example that a tensor now holds
    it.

    Attributes:
        value: the pending value.
        take_back: undoes the change if the value cannot be computed; the latest change is undone
            first. `None` if it only replaces values of tensors.
        replaced: the values that it replaces.
    """

    value: Lazy
    take_back: Callable[[], None] | None
    replaced: Sequence[Replaced] = ()

    def undo(self) -> None:
        """Undo the change."""
        if self.take_back is not None:
            self.take_back()
        for reference, before, after, window in reversed(self.replaced):
            tensor = reference()
            if tensor is not None:
                tensor.take_back(before, after, window)

    @property
    def values(self) -> list[Lazy]:
        """The values that it refers to, once for each reference."""
        return [self.value, *[x for _, before, after, _ in self.replaced for x in (before, after)]]


class Pending(NamedTuple):
    """Records that wait to be computed, and the changes that rely on them."""

    records: list[Record]
    changes: list[Change]


class Interrupted:
    """What a thread has set aside since Ctrl-C came while it was computed.

    Nothing tells which record took so long, so each is computed only if a value that depends on it
    is read.

    Attributes:
        pending: all that is set aside: what was interrupted, and what depends on that.
        core: the records that were interrupted.
    """

    __slots__ = ("core", "pending")

    def __init__(self) -> None:
        self.pending = Pending([], [])
        self.core: set[Record] = set()

    def add(self, pending: Pending) -> None:
        """Set records aside that depend on others that were interrupted."""
        self.pending.records.extend(pending.records)
        self.pending.changes.extend(pending.changes)
