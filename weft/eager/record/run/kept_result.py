"""Results of a forward pass that are kept for its backward pass, if the loss is read in between.

Reading a loss before `backward()` computes the forward pass, of which no tensor may hold the
intermediate results; the backward pass would compute them again. Once it has done so, later forward
passes of the same calls keep the results that take long to compute, as all matmuls and
convolutions. What follows from them elementwise is computed again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from weft.eager.record.call.plan import Plan, placeholders
from weft.eager.record.pending.lazy import Lazy, Record
from weft.eager.record.recognition.structure import Structure
from weft.ir.graph import Graph
from weft.ops.declaration import Opaque, is_region, op_of

MOST: Final = 512  # forgotten together
_Calls = tuple[Any, ...]


class _Read(NamedTuple):
    """Calls whose values were read, and the serial numbers of the first and the last."""

    first: int
    last: int
    calls: _Calls


_read: Final[deque[_Read]] = deque(maxlen=8)
_followed: Final[dict[_Calls, None]] = {}  # calls that were computed again by a backward pass
_long: Final[dict[Plan, bool]] = {}


def hold(records: Sequence[Record], wanted: Lazy | None) -> list[Lazy]:
    """Holds the results of pending calls that a backward pass will read; `release` lets them go.

    Args:
        wanted: is read next.
    """
    if wanted is None or not (wanted.tracked and records):
        return []
    if any([record.plan.follows for record in records]):
        return []
    calls = tuple([record.plan.pattern for record in records])
    if calls not in _followed:
        _read.append(_Read(records[0].serial, records[-1].serial, calls))
        return []
    found = [y for r in records if _takes_long(r) for y in r.outputs if y.tracked and not y.is_live]
    for lazy in found:
        lazy.owner = _holder
    return found


def _holder() -> object:
    """Stands for a tensor."""
    return _holder


def release(held: Sequence[Lazy]) -> None:
    """Leaves what is computed to those who refer to it."""
    for lazy in held:
        lazy.owner = None


def note(structure: Structure) -> None:
    """Finds out whether calls whose values were read are computed again."""
    if not _read or not any([record.plan.follows for record in structure.records]):
        return
    for each in list(_read):
        lost = [
            y for r in structure.records if each.first <= r.serial <= each.last
            for y in r.outputs if y.tracked and y.array is None
        ]  # fmt: skip
        if any([y.record is not None and _takes_long(y.record) for y in lost]):
            _read.remove(each)
            if len(_followed) >= MOST:
                _followed.clear()
            _followed[each.calls] = None


def _takes_long(record: Record) -> bool:
    """Whether a call has a kernel of its own, as a matmul, or a loop."""
    plan = record.plan
    found = _long.get(plan)
    if found is None:
        graph = Graph()
        with graph.as_default():
            plan.expand(*placeholders([x.type for x in record.inputs]))
        found = any([isinstance(op_of(n).lower, Opaque) or is_region(n) for n in graph.nodes])
        if len(_long) >= MOST:
            _long.clear()
        _long[plan] = found
    return found
