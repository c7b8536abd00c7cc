"""The state in a checkpoint, assembled from its ranks' data.

A piece of a global array is saved as `{SLICE: [shape, start], "piece": array}`, and a per-rank
value as `{RANK: value}`. Rank 0 saves everything else for all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from weft.checkpoint.arrays import Stored
from weft.checkpoint.folder.manifest import Manifest
from weft.checkpoint.folder.reader import read_parts
from weft.checkpoint.structure import TREE, built
from weft.errors import DataError

Array = np.ndarray[Any, Any]
Wrap = Callable[[Array], Any]
SLICE: Final = "weft.slice"
RANK: Final = "weft.rank"
PIECE: Final = "piece"
_FAULTS: Final = (ValueError, LookupError, TypeError, RecursionError, AttributeError)


class Absent:
    """Placeholder for per-rank values if the number of ranks has changed."""

    def __repr__(self) -> str:
        return "<of another number of ranks>"


ABSENT: Final = Absent()


def nested(found: Stored, path: Path, wrap: Wrap) -> Any:
    """The arrays of a file in the nested structure in which they were saved.

    Args:
        wrap: converts an array to what replaces it.

    Raises:
        DataError: the stored structure is invalid.
    """
    wrapped = {name: wrap(array) for name, array in found.arrays.items()}
    if TREE not in found.metadata:
        return wrapped
    try:
        return built(json.loads(found.metadata[TREE]), wrapped)
    except _FAULTS as error:
        raise DataError(f"load: {path} is damaged: its {TREE!r}: {error!r}") from None


def read_state(path: Path, manifest: Manifest, wrap: Wrap, rank: int = 0, ranks: int = 1) -> Any:
    """The state in a checkpoint, with global arrays assembled from their pieces.

    Args:
        rank: the rank, of `ranks`, whose own values are read.

    Raises:
        DataError: it is damaged.
        OSError: it may not be read.
    """
    stored = read_parts(path, manifest)
    first = stored[0].metadata.get(TREE, "")
    if f'"{SLICE}"' not in first and f'"{RANK}"' not in first:
        return nested(stored[0], path, wrap)
    states = [nested(part, path, lambda array: array) for part in stored]
    try:
        return _merged(states, rank if ranks == len(states) else None, wrap)
    except _FAULTS as error:
        raise DataError(f"load: {path} is damaged: its pieces: {error!r}") from None


def _merged(states: Sequence[Any], rank: int | None, wrap: Wrap) -> Any:
    first = states[0]
    if isinstance(first, dict):
        keys = cast("dict[Any, Any]", first)
        if SLICE in keys:
            return wrap(_whole(states))
        if RANK in keys:
            own = None if rank is None else states[rank][RANK]
            return ABSENT if rank is None else _merged([own], 0, wrap)
        return {k: _merged([s[k] for s in states], rank, wrap) for k in keys}
    if isinstance(first, list | tuple):
        items = cast("list[Any]", first)
        found = [_merged([s[i] for s in states], rank, wrap) for i in range(len(items))]
        return found if isinstance(first, list) else tuple(found)
    return wrap(first) if isinstance(first, np.ndarray) else first


def _whole(states: Sequence[Any]) -> Array:
    """Assembles a global array from its pieces, which may overlap but must cover it."""
    shape, _ = states[0][SLICE]
    whole = np.empty(shape, states[0][PIECE].dtype)
    filled = np.zeros(shape, np.bool_)
    for state in states:
        other, start = state[SLICE]
        piece = state[PIECE]
        if other != shape or piece.ndim != len(shape) or piece.dtype != whole.dtype:
            raise ValueError(f"a piece of {piece.dtype} in {other} beside {whole.dtype} in {shape}")
        place = tuple([slice(a, a + n) for a, n in zip(start, piece.shape, strict=True)])
        whole[place] = piece
        filled[place] = True
    if not filled.all():
        raise ValueError(f"they leave out {filled.size - int(filled.sum())} of {filled.size}")
    return whole
