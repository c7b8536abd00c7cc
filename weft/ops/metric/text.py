"""Scores of translations and summaries, from counts of words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
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


def shares(hits: int, own: int, true: int) -> tuple[float, float, float]:
    """Precision, recall and their harmonic mean, of `hits` pieces of `own` and of `true` ones."""
    if not hits:
        return 0.0, 0.0, 0.0
    return hits / own, hits / true, 2 * hits / (own + true)


def pieces(tokens: Sequence[Any], length: int) -> Counter[tuple[Any, ...]]:
    """How often each n-gram occurs."""
    rows: Iterable[tuple[Any, ...]] = zip(*[tokens[i:] for i in range(length)], strict=False)
    return Counter(rows)


def rouge_n(a: Sequence[str], b: Sequence[str], n: int) -> tuple[float, float, float]:
    """Precision, recall and F1 of n-grams of a text `a`, given the true one.

    Source: Lin, "ROUGE: A Package for Automatic Evaluation of Summaries", 2004; of all below.
    """
    own, true = pieces(a, n), pieces(b, n)
    return shares((own & true).total(), own.total(), true.total())


def _common(a: Sequence[str], b: Sequence[str]) -> list[int]:
    """The places in `b` of a longest common subsequence."""
    table = [[0] * (len(a) + 1) for _ in range(len(b) + 1)]
    for j, y in enumerate(b, 1):
        for i, x in enumerate(a, 1):
            above, left = table[j - 1][i], table[j][i - 1]
            table[j][i] = table[j - 1][i - 1] + 1 if x == y else max(above, left)
    found: list[int] = []
    i, j = len(a), len(b)
    while i and j:
        if a[i - 1] == b[j - 1]:
            i, j = i - 1, j - 1
            found.append(j)
        elif table[j][i - 1] > table[j - 1][i]:
            i -= 1
        else:
            j -= 1
    return found


def rouge_l(a: Sequence[str], b: Sequence[str]) -> tuple[float, float, float]:
    """Precision, recall and F1 of the longest common subsequence."""
    return shares(len(_common(a, b)), len(a), len(b))


def rouge_lsum(
    a: Sequence[Sequence[str]], b: Sequence[Sequence[str]]
) -> tuple[float, float, float]:
    """Precision, recall and F1 of sentences: of the union of what all of `a` have with each."""
    own, true = [Counter([word for row in rows for word in row]) for rows in (a, b)]
    counts, hits = own & true, 0
    for row in b:
        for j in sorted({j for other in a for j in _common(other, row)}):
            if counts[row[j]] > 0:
                counts[row[j]] -= 1
                hits += 1
    return shares(hits, own.total(), true.total())
