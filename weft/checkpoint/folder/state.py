"""The state in a checkpoint, assembled from its ranks' data.

A piece of a global array is saved as `{SLICE: [shape, start], "piece": array}`, and a per-rank
value as `{RANK: value}`. Of everything else, the value of the lowest rank that has it counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

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
    if len(stored) == 1 and f'"{SLICE}"' not in first and f'"{RANK}"' not in first:
        return nested(stored[0], path, wrap)
    states = dict(enumerate([nested(part, path, lambda array: array) for part in stored]))
    try:
        return _merged(states, rank if ranks == len(states) else None, wrap)
    except _FAULTS as error:
        raise DataError(f"load: {path} is damaged: its pieces: {error!r}") from None


def _merged(states: Mapping[int, Any], rank: int | None, wrap: Wrap) -> Any:
    """What ranks have at one place, by rank; keys and items may be on some of them alone."""
    first = next(iter(states.values()))
    if isinstance(first, dict):
        return _merged_dicts({r: s for r, s in states.items() if isinstance(s, dict)}, rank, wrap)
    if isinstance(first, list | tuple):
        lists = {r: s for r, s in states.items() if isinstance(s, list | tuple)}
        found = [
            _merged({r: s[i] for r, s in lists.items() if i < len(s)}, rank, wrap)
            for i in range(max(map(len, lists.values())))
        ]
        return found if isinstance(first, list) else tuple(found)
    return wrap(first) if isinstance(first, np.ndarray) else first


def _merged_dicts(states: Mapping[int, dict[Any, Any]], rank: int | None, wrap: Wrap) -> Any:
    keys = dict.fromkeys([key for state in states.values() for key in state])
    if SLICE in keys:
        return wrap(whole_of([state for state in states.values() if SLICE in state]))
    if RANK in keys:
        own = {} if rank is None else states.get(rank, {})
        return _merged({0: own[RANK]}, 0, wrap) if RANK in own else ABSENT
    return {k: _merged({r: s[k] for r, s in states.items() if k in s}, rank, wrap) for k in keys}


def whole_of(states: Sequence[Mapping[str, Any]]) -> Array:
    """Assembles a global array from its pieces, which may overlap but must cover it.

    Args:
        states: of each piece `{SLICE: [shape, start], PIECE: array}`.

    Raises:
        ValueError: pieces of different arrays, or some are missing.
    """
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
