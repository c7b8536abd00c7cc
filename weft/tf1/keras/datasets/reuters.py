"""Reuters: newswires as numbers of words, with topics, from a file in Keras's folder."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.documentation import arguments_of
from weft.tf1.keras.datasets import imdb
from weft.tf1.keras.datasets.archive import arrays, numbered, shuffled, word_index

__all__ = ["get_word_index", "load_data"]


@arguments_of(imdb.load_data)
def load_data(
    path: str = "reuters.npz", num_words: int | None = None, skip_top: int = 0,
    maxlen: int | None = None, test_split: float = 0.2, seed: int = 113, start_char: int | None = 1,
    oov_char: int | None = 2, index_from: int = 3,
) -> Any:  # fmt: skip
    """Sequences and labels for training, and those for tests.

    Args:
        test_split: the part of the data that is for tests.

    Raises:
        DataError: the file is missing; the message says where to get it.
    """
    found = arrays(path)
    pair = shuffled(np.random.RandomState(seed), found["x"], found["y"])
    ((x, y),) = numbered([pair], num_words, skip_top, maxlen, start_char, oov_char, index_from)
    count = int(len(x) * (1 - test_split))
    return (x[:count], y[:count]), (x[count:], y[count:])


def get_word_index(path: str = "reuters_word_index.json") -> dict[str, int]:
    """The numbers of words, before `index_from` is added.

    Raises:
        DataError: the file is missing; the message says where to get it.
    """
    return word_index(path)
