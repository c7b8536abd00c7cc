"""Which tier runs a structure: library kernels at first, then a program of its own.

That follows from the structure and from how often it has run, never from the time that it took,
from what a cache holds or from other threads. So all ranks of a job choose alike.
"""

from __future__ import annotations

import sys
import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from weft import config
from weft.eager.record.pending.lazy import Array, Lazy
from weft.eager.record.recognition.structure import Structure
from weft.eager.record.run.stitched_tier import (
    Stitched,
    compiled,
    is_compiled_at_once,
    meet,
    types_of,
)
from weft.eager.record.run.tier import Compute, Interpreted, Results, Tier
from weft.errors import CompileError, NoCompilerError
from weft.host.watchers import Watchers
from weft.library.routine import NoRoutineError

MOST: Final = 512
"""Structures, each of which keeps its plans alive; the least recently run goes first."""

MOST_SHOWN: Final = 4  # names of calls

_tiers: Final[OrderedDict[Any, Tier]] = OrderedDict()


def begun(
    structure: Structure, leaves: Sequence[Array], as_rows: bool = False, wanted: Lazy | None = None
) -> tuple[Tier, Compute]:
    """Chooses the tier of this run of a structure, and makes what the run needs.

    Raises:
        CompileError: there is no kernel for something.
    """
    key = structure.key, as_rows
    tier = before = _tiers.get(key)
    if sys.is_finalizing():  # a compiler needs more than is left of the interpreter
        tier = tier if tier is not None and tier.is_ready else Interpreted(structure, as_rows)
    else:
        tier = (tier and tier.next(structure)) or _first(structure, as_rows)
    while True:
        try:
            compute = tier.begin(structure, leaves, wanted)
            break
        except (NoRoutineError, CompileError, NoCompilerError) as error:
            tier = tier.instead(structure, error)
    if tier is not before:
        _tiers[key] = tier
        if int(config.get("debug")):
            print(f"# tier of {shown(structure.calls)}: {tier.why}", file=sys.stderr)
        if len(_tiers) > MOST:
            _tiers.popitem(last=False)
    _tiers.move_to_end(key)
    return tier, _watched(tier.why, compute) if watchers else compute


class TierTime(NamedTuple):
    """One run of recorded calls: what computed it and for which reason, and when.

    Attributes:
        begin: nanoseconds of `time.perf_counter_ns`.
        end: the same.
    """

    tier: str
    begin: int
    end: int


watchers: Final = Watchers[TierTime]()
"""Of all that computes recorded calls.

>>> import weft as wf
>>> x = wf.arange(5.0)
>>> with watchers.watch() as times:
...     print((x * 0.25).sum().item(), times[-1].tier)
2.5 library kernels: it has run 0 times
"""


def _watched(tier: str, compute: Compute) -> Compute:
    def timed() -> Results:
        begin = time.perf_counter_ns()
        found = compute()
        watchers.tell(TierTime(tier, begin, time.perf_counter_ns()))
        return found

    return timed


def shown(calls: Sequence[str]) -> str:
    """What is called, in a few words.

    >>> shown(["full"] * 7)
    '7 calls (full, full, full, full, ...)'
    """
    few = [*calls[:MOST_SHOWN], *["..."] * (len(calls) > MOST_SHOWN)]
    return f"{len(calls)} calls ({', '.join(few)})"


def _first(structure: Structure, as_rows: bool) -> Tier:
    """The tier of the first run."""
    if is_compiled_at_once(types_of(structure)):
        return compiled(structure, as_rows)
    meet(structure)
    return Stitched(as_rows)
