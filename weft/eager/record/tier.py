"""Which tier runs a structure: library kernels at first, then a program of its own.

That follows from the structure and from how often it has run, never from the time that it took.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final

from weft import config
from weft.eager.record.determinism import are_deterministic_algorithms_enabled
from weft.eager.record.structure import Structure
from weft.transport import session

STITCHED_RUNS: Final = 2
"""The next run is that of a program."""
SHAPES: Final = 8
"""Structures with the same calls, from which on they are taken for one in ever new sizes: ..."""
STITCHED_RUNS_OF_MANY: Final = 64
"""... then each runs so often before it has a program of its own, which takes long to compile."""
MOST: Final = 512
"""Structures, each of which keeps its plans alive; the least recently run goes first."""

_runs: Final[OrderedDict[Any, int]] = OrderedDict()
_shapes: Final[dict[tuple[str, ...], int]] = {}
_UNSUITED: Final = -1


def is_stitched(structure: Structure) -> bool:
    """Whether this run of a structure is one of library kernels; counts it."""
    key = structure.key
    runs = _runs.get(key, 0)
    if runs:
        _runs.move_to_end(key)
    if not 0 <= runs < STITCHED_RUNS_OF_MANY:
        return False
    if session.monitors or are_deterministic_algorithms_enabled():
        return False
    if config.get("compile") or config.get("reference"):
        return False
    if runs >= STITCHED_RUNS and _shapes.get(structure.calls, 0) < SHAPES:
        _runs[key] = STITCHED_RUNS_OF_MANY
        return False
    if not runs:
        if any(structure.devices):
            return False
        _meet(structure.calls)
    _runs[key] = runs + 1
    if len(_runs) > MOST:
        _runs.popitem(last=False)
    return True


def _meet(calls: tuple[str, ...]) -> None:
    if len(_shapes) >= MOST:
        _shapes.clear()
    _shapes[calls] = _shapes.get(calls, 0) + 1


def is_unsuited(structure: Structure) -> None:
    """Note that a structure has calls that are not in the library."""
    _runs[structure.key] = _UNSUITED


def was_stitched(structure: Structure) -> bool:
    """Whether it has run on library kernels before."""
    return _runs.get(structure.key, 0) > 0
