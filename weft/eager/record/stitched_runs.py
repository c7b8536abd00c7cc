"""How often a structure runs on library kernels: a count that follows from what ran before."""

from __future__ import annotations

from typing import Final

from weft import config
from weft.eager.record.determinism import are_deterministic_algorithms_enabled
from weft.eager.record.structure import Structure

STITCHED_RUNS: Final = 2
"""During the next run, kernels of a program are compiled; the one after it is the program's."""
SHAPES: Final = 8
"""Structures with the same calls, from which on they are taken for one in ever new sizes: ..."""
STITCHED_RUNS_OF_MANY: Final = 64
"""... then each runs so often before it has a program of its own, which takes long to compile."""
MOST: Final = 512  # forgotten together

_shapes: Final[dict[tuple[str, ...], int]] = {}


def meet(structure: Structure) -> None:
    """Count a structure that has not run before."""
    calls = structure.calls
    if len(_shapes) >= MOST:
        _shapes.clear()
    _shapes[calls] = _shapes.get(calls, 0) + 1


def stays_stitched(structure: Structure, runs: int) -> bool:
    """Whether a structure that has run so often runs on library kernels alone once more."""
    if is_compiled_at_once():
        return False
    if runs < STITCHED_RUNS:
        return True
    return runs < STITCHED_RUNS_OF_MANY and _shapes.get(structure.calls, 0) >= SHAPES


def is_compiled_at_once() -> bool:
    """Whether structures have programs of their own from the first run on."""
    asked = config.get("compile") or config.get("reference")
    return bool(asked) or are_deterministic_algorithms_enabled()
