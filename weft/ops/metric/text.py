"""Scores of translations, from counts over a corpus."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def bleu(right: Array, pieces: Array, own: int, reference: int, *, smooth: bool) -> float:
    """The mean precision of n-grams, less for translations shorter than their references.

    Args:
        right: the number of n-grams of each length that are in a reference, as floats.
        pieces: the number of n-grams of each length.
        own, reference: the lengths of all translations, and of the references nearest to them.
        smooth: add 1 to the counts of n-grams of two and more words.

    Source: Papineni et al., "BLEU: a Method for Automatic Evaluation of Machine Translation", 2002;
    smoothing: Lin and Och, "ORANGE", 2004.
    """
    if smooth:
        right, pieces = (np.concatenate([counts[:1], counts[1:] + 1]) for counts in (right, pieces))
    if not right.all():
        return 0.0
    brevity = min(0.0, 1 - reference / own)
    return math.exp(brevity + float(np.log(right / pieces).mean()))


def edit_distance(a: Sequence[Any], b: Sequence[Any]) -> int:
    """The least number of insertions, deletions and substitutions that make one the other.

    Source: Levenshtein, "Binary codes capable of correcting deletions, insertions, and reversals",
    1966.
    """
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]
