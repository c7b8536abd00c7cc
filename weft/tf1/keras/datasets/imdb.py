"""IMDB: film reviews as numbers of words, with 1 for a good one, from a file in Keras's folder."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.tf1.keras.datasets.archive import arrays, numbered, shuffled, word_index

__all__ = ["get_word_index", "load_data"]


def load_data(
    path: str = "imdb.npz", num_words: int | None = None, skip_top: int = 0,
    maxlen: int | None = None, seed: int = 113, start_char: int | None = 1,
    oov_char: int | None = 2, index_from: int = 3,
) -> Any:  # fmt: skip
    """Sequences and labels for training, and those for tests.

    Args:
        path: the file in Keras's folder.
        num_words: the number of words that are kept; all by default.
        skip_top: the number of the most frequent words that are left out.
        maxlen: sequences of this length and longer are left out.
        seed: of the order.
        start_char: what each sequence begins with.
        oov_char: what stands for other words; `None` leaves them out.
        index_from: the number of the first word.

    Raises:
        DataError: the file is missing; the message says where to get it.
    """
    found = arrays(path)
    random = np.random.RandomState(seed)
    parts = [shuffled(random, found[f"x_{k}"], found[f"y_{k}"]) for k in ("train", "test")]
    return tuple(numbered(parts, num_words, skip_top, maxlen, start_char, oov_char, index_from))


def get_word_index(path: str = "imdb_word_index.json") -> dict[str, int]:
    """The numbers of words, before `index_from` is added.

    Raises:
        DataError: the file is missing; the message says where to get it.
    """
    return word_index(path)
