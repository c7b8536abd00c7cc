"""Padding of sequences."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.errors import ArgumentError
from weft.tf1.framework.graph import fail


def pad_sequences(
    sequences: Sequence[Any], maxlen: int | None = None, dtype: Any = "int32",
    padding: str = "pre", truncating: str = "pre", value: Any = 0.0,
) -> Any:  # fmt: skip
    """Sequences as rows of one array.

    Args:
        maxlen: the length of rows; by default that of the longest sequence.
        padding: whether `value` fills rows `"pre"`, at the start, or `"post"`, at the end.
        truncating: whether long sequences are cut `"pre"` or `"post"`.

    >>> pad_sequences([[1, 2, 3], [4]], maxlen=2).tolist()
    [[2, 3], [0, 4]]
    """
    for name, given in (("padding", padding), ("truncating", truncating)):
        if given not in ("pre", "post"):
            raise fail(
                ArgumentError, f"pad_sequences: expected {name} 'pre' or 'post', got {given!r}"
            )
    arrays = [np.asarray(s) for s in sequences]
    count = max([len(a) for a in arrays], default=0) if maxlen is None else maxlen
    rest = next((a.shape[1:] for a in arrays if len(a)), ())
    found = np.full((len(arrays), count, *rest), value, dtype)
    for row, array in zip(found, arrays, strict=True):
        kept = array[max(len(array) - count, 0) :] if truncating == "pre" else array[:count]
        if len(kept):
            row[slice(-len(kept), None) if padding == "pre" else slice(len(kept))] = kept
    return found


def make_sampling_table(size: int, sampling_factor: float = 1e-5) -> Any:
    """The probability to keep each word, by its rank, if frequencies follow Zipf's law.

    Args:
        size: the number of words.
        sampling_factor: of word2vec's rule.
    """
    rank = np.arange(size)
    rank[:1] = 1
    inverse = rank * (np.log(rank) + 0.577) + 0.5 - 1.0 / (12.0 * rank)
    part = sampling_factor * inverse
    return np.minimum(1.0, part / np.sqrt(part))


def skipgrams(
    sequence: Sequence[int], vocabulary_size: int, window_size: int = 4,
    negative_samples: float = 1.0, shuffle: bool = True, categorical: bool = False,
    sampling_table: Any = None, seed: int | None = None,
) -> tuple[list[list[int]], list[Any]]:  # fmt: skip
    """Pairs of words: neighbors, with label 1, and then drawn ones, with label 0.

    Args:
        sequence: numbers of words; 0 is none.
        vocabulary_size: one more than the greatest number.
        window_size: how far neighbors are apart at most.
        negative_samples: the number of drawn pairs for each pair of neighbors.
        shuffle: whether pairs are in a random order.
        categorical: labels are `[0, 1]` and `[1, 0]`.
        sampling_table: the probability to keep each word.
        seed: of the order.
    """
    pairs: list[list[int]] = []
    for i, word in enumerate(sequence):
        if not word or (sampling_table is not None and sampling_table[word] < random.random()):
            continue
        first = max(0, i - window_size)
        near = enumerate(sequence[first : i + window_size + 1], first)
        pairs += [[word, other] for j, other in near if j != i and other]
    count = int(len(pairs) * negative_samples)
    words = [pair[0] for pair in pairs]
    random.shuffle(words)
    labels: list[Any] = [[0, 1] if categorical else 1] * len(pairs)
    labels += [[1, 0] if categorical else 0] * count
    pairs += [[words[i % len(words)], random.randint(1, vocabulary_size - 1)] for i in range(count)]
    if shuffle:
        start = random.randint(0, 10**6) if seed is None else seed
        for each in (pairs, labels):
            random.seed(start)
            random.shuffle(each)
    return pairs, labels
