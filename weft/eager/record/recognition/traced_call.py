"""Fast path for calls of traced functions whose captured tensors have not changed.

A call of a whole network reads a hundred parameters or more. As long as no tensor is changed, the
next call differs in its arguments alone, so only these are checked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.eager.record.pending.global_mark import changes
from weft.eager.record.pending.lazy import Drawn, Lazy, Record
from weft.eager.record.recognition.structure import Known, Structure


class CapturedState:
    """The captured values of a traced function, valid until a tensor changes."""

    def __init__(self, captured: Sequence[tuple[Lazy, Callable[[], Any] | None]]) -> None:
        """The current values, each with the tensor that holds it."""
        self._mark: object | None = changes.mark
        found: list[Lazy] = []
        for lazy, owner in captured:
            handle = None if owner is None else owner()
            if isinstance(lazy, Drawn):
                lazy, self._mark = lazy.again(), None
            found.append(lazy if handle is None else handle.lazy)
        self.values = tuple(found)
        self._known: Known | None = None

    @property
    def holds(self) -> bool:
        """Whether no tensor has changed since."""
        return self._mark is changes.mark

    def structure(self, record: Record, outputs: Sequence[Lazy]) -> Structure | None:
        """The structure of a call, if only its arguments are new."""
        known = self._known
        if known is None or not self.holds:
            return None
        if tuple([_number(y, record) for y in outputs]) != known.wanted:
            return None
        arguments = record.inputs[: known.arguments]
        places = {id(x.array) for x in arguments}
        plain = all([type(x) is Lazy and x.array is not None for x in arguments])
        if not plain or len(places) < len(arguments) or places & known.taken:
            return None
        homes = (-1,) * len(outputs)
        return Structure(known.key, (record,), record.inputs, tuple(outputs), homes, (), known)

    def learn(self, structure: Structure) -> None:
        """Store what later calls need to know about the call that a structure consists of."""
        record, outputs = structure.records[0], structure.outputs
        captured = structure.leaves[len(structure.leaves) - len(self.values) :]
        arrays = tuple([x.array for x in captured if x.array is not None and type(x) is Lazy])
        wanted = tuple([_number(y, record) for y in outputs])
        plain = len(arrays) == len(captured) and all([x.flags.c_contiguous for x in arrays])
        single = len(structure.records) == 1 and structure.leaves == record.inputs
        if single and plain and captured == self.values and -1 not in wanted:
            taken = frozenset(map(id, arrays))
            arguments = len(structure.leaves) - len(arrays)
            self._known = Known(structure.key, arguments, arrays, taken, wanted, object())


def _number(y: Lazy, record: Record) -> int:
    """Which result of a record it is, if it needs memory of its own and no gradient."""
    return y.index if y.record is record and y.home is None and not y.tracked else -1
