"""Tensors in a checkpoint; a rank reads only the shards that it needs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.errors import DataError
from weft.formats.checkpoint_folder.state import PIECE, SLICE, StoredArray
from weft.ir.dtype import DType

Array = np.ndarray[Any, Any]
Sizes = tuple[int, ...]


@dataclass(frozen=True)
class Stored:
    """A tensor in open files: its shards, by their offsets."""

    dtype: DType
    shape: Sizes
    pieces: list[tuple[Sizes, StoredArray]]

    def whole(self) -> Array:
        """The whole tensor.

        Raises:
            DataError: it is damaged.
            OSError: it may not be read.
        """
        return self.part((0,) * len(self.shape), self.shape)

    def part(self, start: Sizes, sizes: Sizes) -> Array:
        """A part of the tensor; only shards that overlap it are read.

        Raises:
            DataError: it is damaged.
            OSError: it may not be read.
        """
        for begin, piece in self.pieces:
            if (begin, piece.shape) == (start, sizes):
                return piece.read()
        out, filled = np.empty(sizes, self.dtype.numpy), np.zeros(sizes, np.bool_)
        for begin, piece in self.pieces:
            low = [max(a, b) for a, b in zip(start, begin, strict=True)]
            ends = zip(start, sizes, begin, piece.shape, strict=True)
            high = [min(a + n, b + m) for a, n, b, m in ends]
            if all([a < b for a, b in zip(low, high, strict=True)]):
                place = _within(low, high, start)
                out[place] = piece.read()[_within(low, high, begin)]
                filled[place] = True
        if not filled.all():
            raise DataError(
                f"load: expected pieces of all {math.prod(self.shape)} elements of {self.shape}, "
                f"got none of {filled.size - int(filled.sum())}"
            )
        return out


def _within(low: Sequence[int], high: Sequence[int], start: Sizes) -> tuple[slice, ...]:
    """A region as slices of an array that starts at `start`."""
    return tuple([slice(a - s, b - s) for a, b, s in zip(low, high, start, strict=True)])


def stored(array: StoredArray) -> Stored:
    """A tensor that was saved whole."""
    return Stored(array.dtype, array.shape, [((0,) * len(array.shape), array)])


def joined(states: Sequence[Mapping[str, Any]]) -> Stored:
    """A tensor of shards `{SLICE: [shape, start], PIECE: array}`.

    Raises:
        ValueError: shards of different tensors.
    """
    shape, _ = states[0][SLICE]
    dtype: DType = states[0][PIECE].dtype
    tensor = Stored(dtype, tuple(shape), [])
    for state in states:
        other, start = state[SLICE]
        piece: StoredArray = state[PIECE]
        if other != shape or len(piece.shape) != len(shape) or piece.dtype != dtype:
            raise ValueError(f"a piece of {piece.dtype} in {other} beside {dtype} in {shape}")
        tensor.pieces.append((tuple(start), piece))
    return tensor
