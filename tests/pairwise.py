"""Few rows in which every two values of different axes meet; a full product multiplies them all.

>>> len(pairwise("ab", range(4), range(3)))
12
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any


def pairwise(*axes: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Rows with a value of each axis, chosen one by one: each has the most pairs that are new.

    A fault that needs three values at once may be missed; one that needs two is found.
    """
    values = [list(axis) for axis in axes]
    places = list(itertools.product(*[range(len(axis)) for axis in values]))
    left = {pair for row in places for pair in _pairs(row)}
    rows: list[tuple[Any, ...]] = []
    while left:
        best = max(places, key=lambda row: len(left.intersection(_pairs(row))))
        left.difference_update(_pairs(best))
        rows.append(tuple([axis[i] for axis, i in zip(values, best, strict=True)]))
    return rows


def name_of(given: Any) -> str:
    """A test's id, which is the same in each process."""
    return getattr(given, "__name__", str(given))


def _pairs(row: tuple[int, ...]) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    return list(itertools.combinations(enumerate(row), 2))
