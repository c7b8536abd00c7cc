"""Scores of translations, from counts over a corpus."""

from __future__ import annotations

import math
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
