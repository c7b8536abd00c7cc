"""Data sets that are one archive in Keras's folder, and what is done to sequences of words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.errors import ArgumentError
from weft.formats.object_array import read_archive
from weft.tf1.framework.graph import fail
from weft.tf1.keras.utils import get_file

SOURCE = "https://storage.googleapis.com/tensorflow/tf-keras-datasets/"


def arrays(path: str) -> dict[str, Any]:
    """The arrays of a file in Keras's folder.

    Raises:
        DataError: it is not there; the message says where to get it.
    """
    return read_archive(get_file(path, SOURCE + path))


def word_index(path: str) -> dict[str, int]:
    """The numbers of words, from a file in Keras's folder."""
    with open(get_file(path, SOURCE + path), encoding="utf-8") as file:
        return json.load(file)


def shuffled(random: Any, *parts: Any) -> list[Any]:
    """Arrays with their rows in one new order."""
    order = np.arange(len(parts[0]))
    random.shuffle(order)
    return [part[order] for part in parts]


def numbered(
    parts: Sequence[Any], num_words: int | None, skip_top: int, maxlen: int | None,
    start_char: int | None, oov_char: int | None, index_from: int,
) -> list[Any]:  # fmt: skip
    """Pairs of sequences and labels, with starts, higher numbers, and frequent words alone.

    Raises:
        ArgumentError: no sequence is shorter than `maxlen`.
    """
    start, shift = ([] if start_char is None else [start_char]), index_from or 0
    kept: list[tuple[Any, Any]] = []
    for xs, labels in parts:
        rows = [start + [int(w) + shift for w in row] for row in xs]
        short = [i for i, row in enumerate(rows) if not maxlen or len(row) < maxlen]
        if not short:
            raise fail(ArgumentError, f"load_data: expected sequences shorter than {maxlen}")
        kept.append(([rows[i] for i in short], labels[short]))
    most = num_words or max([max(row) for rows, _ in kept for row in rows])

    def told(row: list[int]) -> list[int]:
        known = [skip_top <= w < most for w in row]
        if oov_char is None:
            return [w for w, is_known in zip(row, known, strict=True) if is_known]
        return [w if is_known else oov_char for w, is_known in zip(row, known, strict=True)]

    found: list[Any] = []
    for rows, labels in kept:
        array = np.empty(len(rows), object)
        array[:] = [told(row) for row in rows]
        found.append((array, labels))
    return found
