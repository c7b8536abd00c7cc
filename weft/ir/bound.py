"""What holds for all values of symbolic integers: polynomials in them, and bounds.

Quotients, remainders, minima and maxima are unknowns of these polynomials, with bounds of their
own.

>>> made = [("base", 0, 0), ("number", 1, 0), ("-", 0, 1)]
>>> bounds = Bounds(made, {0: 1})
>>> bounds.compared("<", 2, 0), bounds.compared("==", 0, 1)
(True, None)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

Made = tuple[str, int, int]
Polynomial = Mapping[tuple[int, ...], int]
"""Coefficients by the unknowns that are multiplied."""
Interval = tuple[int | None, int | None]
MOST_TERMS: Final = 32


class Bounds:
    """Bounds of numbers that are `made` by operations; `least` has those of some of them."""

    def __init__(self, made: Sequence[Made], least: Mapping[int, int]) -> None:
        self._made = made
        self._least = least
        self._polynomials: dict[int, Polynomial] = {}
        self._unknowns: dict[object, int] = {}
        self._limits: dict[int, Interval] = {}

    def compared(self, kind: str, a: int, b: int) -> bool | None:
        """Whether `a kind b` for all values; `None` if that depends on them, or is not known."""
        low, high = self._interval(_sum(self.polynomial(b), self.polynomial(a), -1))
        if kind == "==":
            equal = low == high == 0
            return equal or (None if (low or 0) < 1 and (high or 0) > -1 else False)
        least = 1 if kind == "<" else 0
        if low is not None and low >= least:
            return True
        return False if high is not None and high < least else None

    def polynomial(self, index: int) -> Polynomial:
        """A number as a polynomial."""
        found = self._polynomials.get(index)
        if found is None:
            found = self._polynomials[index] = self._polynomial(index)
        return found

    def _polynomial(self, index: int) -> Polynomial:
        kind, a, b = self._made[index]
        if kind == "number":
            return {(): a} if a else {}
        if kind == "base" or "." in kind:  # a base, or what a decision finds
            return {(index,): 1}
        found = self.folded(kind, a, b)
        if found is not None:
            return found
        same = kind, *(frozenset(self.polynomial(i).items()) for i in (a, b))
        return {(self._unknowns.setdefault(same, index),): 1}

    def folded(self, kind: str, a: int, b: int) -> Polynomial | None:
        """The polynomial `a kind b`; `None` if it is an unknown of its own."""
        x, y = self.polynomial(a), self.polynomial(b)
        if kind in "+-":
            return _sum(x, y, 1 if kind == "+" else -1)
        if kind == "*":
            return _product(x, y) if len(x) * len(y) <= MOST_TERMS else None
        if kind in ("min", "max"):
            below = self.compared("<=", a, b)
            return None if below is None else x if below is (kind == "min") else y
        exact = _divided(x, y)
        return exact if kind == "//" or exact is None else {}

    def _interval(self, x: Polynomial) -> Interval:
        """Bounds: with each unknown written as its bound and a distance from it."""
        total: Polynomial = {}
        for unknowns, k in x.items():
            term: Polynomial = {(): k}
            for index in unknowns:
                low, high = self._bounds(index)
                if low is None and high is None:
                    return None, None
                start, sign = (low, 1) if low is not None else (high or 0, -1)
                term = _product(term, {(): start, (index,): sign})
            total = _sum(total, term, 1)
        start = total.get((), 0)
        others = [k for unknowns, k in total.items() if unknowns]
        low = start if all([k >= 0 for k in others]) else None
        return low, start if all([k <= 0 for k in others]) else None

    def _bounds(self, index: int) -> Interval:
        kind, a, b = self._made[index]
        if kind == "base":
            return self._least.get(index), None
        if "." in kind:
            return None, None
        found = self._limits.get(index)
        if found is None:
            found = self._limits[index] = self._made_bounds(kind, a, b)
        return found

    def _made_bounds(self, kind: str, a: int, b: int) -> Interval:
        x, y = (self._interval(self.polynomial(i)) for i in (a, b))
        if kind == "//":
            return _quotient(x, y)
        if kind == "%":
            return (0, None if y[1] is None else y[1] - 1) if (y[0] or 0) > 0 else (None, None)
        if kind not in ("min", "max"):
            return None, None
        lows, highs = ([i for i in pair if i is not None] for pair in zip(x, y, strict=True))
        return _extreme(kind, lows, highs)


def _extreme(kind: str, lows: list[int], highs: list[int]) -> Interval:
    if kind == "min":
        return min(lows) if len(lows) == 2 else None, min(highs, default=None)
    return max(lows, default=None), max(highs) if len(highs) == 2 else None


def _quotient(x: Interval, y: Interval) -> Interval:
    (low, high), (divisor, most) = x, y
    if divisor is None or divisor < 1:
        return None, None
    if divisor == most:
        return None if low is None else low // divisor, None if high is None else high // divisor
    least = None if low is None else 0 if low >= 0 else low
    return least, None if high is None else high if high >= 0 else -1


def _divided(x: Polynomial, y: Polynomial) -> Polynomial | None:
    """The quotient by one product of unknowns; `None` if that does not divide every term."""
    if len(y) != 1:
        return {(): 1} if x == y and x else None
    ((divisor, by),) = y.items()
    found: dict[tuple[int, ...], int] = {}
    for unknowns, k in x.items():
        rest = list(unknowns)
        if k % by or any(unknowns.count(i) < divisor.count(i) for i in divisor):
            return None
        for i in divisor:
            rest.remove(i)
        found[tuple(rest)] = k // by
    return found


def _sum(x: Polynomial, y: Polynomial, sign: int) -> Polynomial:
    total = dict(x)
    for unknowns, k in y.items():
        total[unknowns] = total.get(unknowns, 0) + sign * k
    return {unknowns: k for unknowns, k in total.items() if k}


def _product(x: Polynomial, y: Polynomial) -> Polynomial:
    total: dict[tuple[int, ...], int] = {}
    for a, j in x.items():
        for b, k in y.items():
            key = tuple(sorted((*a, *b)))
            total[key] = total.get(key, 0) + j * k
    return {unknowns: k for unknowns, k in total.items() if k}
