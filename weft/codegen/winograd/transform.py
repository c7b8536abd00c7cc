"""Winograd's transforms as data: the Cook-Toom construction, and the code of a transform.

`m` outputs of a correlation with `r` taps need `n = m + r - 1` multiplications instead of `m * r`:

    y = A (G g * B d)       d: n inputs, g: r taps, y: m outputs, * by element

A polynomial product of degree n - 1 is determined by its values at n points. Evaluating taps and
outputs there gives G and A (powers of the points); undoing the evaluation gives B (coefficients of
the product of all other points' factors, whose value at the point itself divides a row of G). The
last point lies at infinity: the leading coefficient. In two dimensions each transform is applied
along both axes: 36 products instead of 144 for F(4x4, 3x3), 16 instead of 36 for F(2x2, 3x3), 64
instead of 400 for F(4x4, 5x5) (Lavin & Gray, "Fast Algorithms for Convolutional Neural Networks").

Points in pairs p, -p make rows equal up to the signs of their odd entries, so that both take one
even and one odd sum: 12 operations instead of 18 for B of 6 points, 10 instead of 16 for A.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Final

from weft.codegen.builder import Builder, Reg, constant
from weft.codegen.microkernel import fma

Matrix = tuple[tuple[Fraction, ...], ...]

POINTS: Final[dict[int, tuple[Fraction, ...]]] = {
    4: (Fraction(0), Fraction(1), Fraction(-1)),
    6: (Fraction(0), Fraction(5, 8), Fraction(-5, 8), Fraction(3, 2), Fraction(-3, 2)),
    8: (
        Fraction(0), Fraction(1, 2), Fraction(-1, 2), Fraction(1), Fraction(-1), Fraction(2),
        Fraction(-2),
    ),
}  # fmt: skip
"""Finite points, by the number of all. Around 1 powers grow least, and these are exact in
binary: rounding errors are half those of 0, 1, -1, 2, -2 (7.8e-7 against 1.6e-6 on 64 channels).
"""


@dataclass(frozen=True)
class Transform:
    """F(outputs, taps): the three matrices."""

    outputs: int
    taps: int
    result: Matrix  # A: outputs x points
    weights: Matrix  # G: points x taps
    source: Matrix  # B: points x points

    @property
    def points(self) -> int:
        """Multiplications along one axis."""
        return self.outputs + self.taps - 1

    @property
    def growth(self) -> float:
        """Bound on the sum of absolute terms relative to the output, along one axis.

        In the worst case rounding errors grow by this factor along each axis; on random data, where
        errors are as often up as down, in two dimensions by about this factor (not its square).
        """
        inner = [
            sum(map(abs, g), Fraction(0)) * sum(map(abs, b), Fraction(0))
            for g, b in zip(self.weights, self.source, strict=True)
        ]
        rows = (sum(abs(a) * i for a, i in zip(row, inner, strict=True)) for row in self.result)
        return float(max(rows))


@functools.cache
def transform(outputs: int, taps: int) -> Transform:
    """F(outputs, taps) by the Cook-Toom construction.

    Raises:
        KeyError: no points are listed for `outputs + taps - 1`.
    """
    points = POINTS[outputs + taps - 1]
    zero, one = Fraction(0), Fraction(1)
    result = [(*(p**i for p in points), one if i == outputs - 1 else zero) for i in range(outputs)]
    weights: list[tuple[Fraction, ...]] = []
    source: list[tuple[Fraction, ...]] = []
    for p in points:
        others = [q for q in points if q != p]
        scale = prod((p - q for q in others), start=one)
        weights.append(tuple(p**k / scale for k in range(taps)))
        source.append((*_from_roots(others), zero))
    weights.append((*(zero for _ in range(taps - 1)), one))
    source.append(_from_roots(points))
    return Transform(outputs, taps, tuple(result), tuple(weights), tuple(source))


def _from_roots(roots: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """Coefficients of the product of `x - root`, the constant one first."""
    found = [Fraction(1)]
    for root in roots:
        shifted, scaled = [Fraction(0), *found], [*(root * c for c in found), Fraction(0)]
        found = [a - b for a, b in zip(shifted, scaled, strict=True)]
    return tuple(found)


@dataclass(frozen=True)
class _Scheme:
    """How to multiply by a matrix.

    Attributes:
        summed: pairs of values whose sum and difference are computed first, after the values.
        rows: the matrix applied to all of these.
        shared: pairs of rows, and what they share: a sum, and one that they add with factors
            `factor` and `-factor`.
    """

    summed: tuple[tuple[int, int], ...]
    rows: Matrix
    shared: tuple[tuple[int, int, tuple[Fraction, ...], tuple[Fraction, ...], Fraction], ...]


@functools.lru_cache(maxsize=64)
def _scheme(matrix: Matrix) -> _Scheme:
    rows = [list(row) for row in matrix]
    summed = _pairs([list(column) for column in zip(*matrix, strict=True)])
    for j, k in summed:
        for row in rows:  # c * (x + y), or c * (x - y)
            row.append(row[j] if row[j] == row[k] else Fraction(0))
            row.append(row[j] if row[j] != row[k] else Fraction(0))
            row[j] = row[k] = Fraction(0)
    shared: list[tuple[int, int, tuple[Fraction, ...], tuple[Fraction, ...], Fraction]] = []
    for i, k in _pairs(rows):
        even = tuple([x if x == y else Fraction(0) for x, y in zip(rows[i], rows[k], strict=True)])
        odd = [x if x != y else Fraction(0) for x, y in zip(rows[i], rows[k], strict=True)]
        factor = next(c for c in reversed(odd) if c)
        shared.append((i, k, even, tuple([c / factor for c in odd]), factor))
    return _Scheme(tuple(summed), tuple(map(tuple, rows)), tuple(shared))


def apply(b: Builder, matrix: Matrix, values: Sequence[Reg]) -> list[Reg]:
    """Writes `matrix @ values`: sums of vectors that share what pairs of points have in common."""
    scheme, values = _scheme(matrix), list(values)
    for j, k in scheme.summed:
        total = b.binary("fadd", values[j], values[k])
        values += [total, b.binary("fsub", values[j], values[k])]
    results: dict[int, Reg] = {}
    for i, k, even, odd, factor in scheme.shared:
        start, change = _sum(b, even, values), _sum(b, odd, values)
        results[i] = _add(b, start, factor, change)
        results[k] = _add(b, start, -factor, change)
    rows = enumerate(scheme.rows)
    return [results[i] if i in results else _sum(b, row, values) for i, row in rows]


def _pairs(lines: list[list[Fraction]]) -> list[tuple[int, int]]:
    """Pairs of lines equal up to signs, with some of either sign; each line is in at most one."""
    found: list[tuple[int, int]] = []
    for i, x in enumerate(lines):
        for k in range(i + 1, len(lines)):
            if any(i in pair or k in pair for pair in found):
                continue
            equal = sum(1 for p, q in zip(x, lines[k], strict=True) if p == q and p)
            turned = sum(1 for p, q in zip(x, lines[k], strict=True) if p == -q and p)
            if equal and turned and equal + turned == max(map(_entries, (x, lines[k]))):
                found.append((i, k))
    return found


def _entries(line: list[Fraction]) -> int:
    return sum(1 for c in line if c)


def _sum(b: Builder, row: Sequence[Fraction], values: Sequence[Reg]) -> Reg:
    """`row @ values`, starting with an entry that needs no multiplication if there is one."""
    terms = [(c, v) for c, v in zip(row, values, strict=True) if c]
    terms.sort(key=lambda term: term[0] != 1)
    (factor, value), *others = terms
    total = value if factor == 1 else b.binary("fmul", value, _splat(factor, value))
    for factor, value in others:
        total = _add(b, total, factor, value)
    return total


def _add(b: Builder, total: Reg, factor: Fraction, value: Reg) -> Reg:
    if abs(factor) == 1:
        return b.binary("fadd" if factor > 0 else "fsub", total, value)
    return fma(b, value, _splat(factor, value), total)


def _splat(factor: Fraction, like: Reg) -> Reg:
    return constant(float(factor), like.type)


def both_axes(b: Builder, matrix: Matrix, square: list[list[Reg]]) -> list[list[Reg]]:
    """`matrix @ square @ matrix.T`, `square` by rows."""
    columns = [apply(b, matrix, column) for column in zip(*square, strict=True)]
    return [apply(b, matrix, row) for row in zip(*columns, strict=True)]
