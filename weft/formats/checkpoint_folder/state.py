"""The state in a checkpoint, assembled from its ranks' data.

A piece of a global array is saved as `{SLICE: [shape, start], "piece": array}`, and a per-rank
value as `{RANK: value}`. Of everything else, the value of the lowest rank that has it counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from weft.errors import DataError
from weft.formats.checkpoint_folder.manifest import Manifest
from weft.formats.checkpoint_folder.reader import read_part, read_parts
from weft.formats.nested_arrays import TREE, built
from weft.formats.safetensors import ArrayFile, Stored
from weft.ir.dtype import DType

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


def check_part(path: Path, digest: str) -> None:
    """Reads a rank's data back after it was written, before older checkpoints are removed.

    Raises:
        DataError: it cannot be read.
        OSError: it may not be read.
    """
    nested(read_part(path, digest, mapped=True), path, lambda array: array)


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
    states = [nested(part, path, lambda array: array) for part in stored]
    joining = Joining(rank if ranks == len(states) else None, wrap, lambda x: wrap(whole_of(x)))
    return merged(path, states, joining)


@dataclass(frozen=True)
class StoredArray:
    """An array in an open file, which is read when it is needed."""

    file: ArrayFile
    name: str

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return self.file.entries[self.name].shape

    @property
    def dtype(self) -> DType:
        """Its type."""
        return self.file.entries[self.name].dtype

    def read(self) -> Array:
        """The array.

        Raises:
            DataError: it is damaged.
            OSError: it may not be read.
        """
        return self.file.read(self.name)


def stored_state(file: ArrayFile) -> Any:
    """The nested structure in a file, with a `StoredArray` for each array.

    Raises:
        DataError: the stored structure is invalid.
    """
    arrays = {name: StoredArray(file, name) for name in file.entries}
    try:
        return built(json.loads(file.metadata[TREE]), arrays)
    except _FAULTS as error:
        raise DataError(f"load: {file.path} is damaged: its {TREE!r}: {error!r}") from None


class Joining(NamedTuple):
    """How states of ranks become one.

    Attributes:
        rank: whose own values are taken; `None` for nobody's.
        wrap: converts a whole array to what replaces it.
        join: converts pieces, as `whole_of` takes them, to what replaces the whole.
    """

    rank: int | None
    wrap: Callable[[Any], Any]
    join: Callable[[Sequence[Mapping[str, Any]]], Any]


def merged(path: Path, states: Sequence[Any], joining: Joining) -> Any:
    """The state of all ranks; keys and items may be on some of them alone.

    Args:
        states: of each rank, of arrays or `StoredArray`s.

    Raises:
        DataError: they do not fit together.
    """
    try:
        return _merged(dict(enumerate(states)), joining)
    except _FAULTS as error:
        raise DataError(f"load: {path} is damaged: its pieces: {error!r}") from None


def _merged(states: Mapping[int, Any], joining: Joining) -> Any:
    """What ranks have at one place, by rank."""
    first = next(iter(states.values()))
    if isinstance(first, dict):
        return _merged_dicts({r: s for r, s in states.items() if isinstance(s, dict)}, joining)
    if isinstance(first, list | tuple):
        lists = {r: s for r, s in states.items() if isinstance(s, list | tuple)}
        found = [
            _merged({r: s[i] for r, s in lists.items() if i < len(s)}, joining)
            for i in range(max(map(len, lists.values())))
        ]
        return found if isinstance(first, list) else tuple(found)
    return joining.wrap(first) if isinstance(first, np.ndarray | StoredArray) else first


def _merged_dicts(states: Mapping[int, dict[Any, Any]], joining: Joining) -> Any:
    keys = dict.fromkeys([key for state in states.values() for key in state])
    if SLICE in keys:
        return joining.join([state for state in states.values() if SLICE in state])
    if RANK in keys:
        own = {} if joining.rank is None else states.get(joining.rank, {})
        return _merged({0: own[RANK]}, joining) if RANK in own else ABSENT
    return {k: _merged({r: s[k] for r, s in states.items() if k in s}, joining) for k in keys}


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
