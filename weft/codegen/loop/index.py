"""Affine index expressions: sums of integer multiples of atoms, with bounds, simplified as built.

Shape operations compute with `Index`. Its text (`key`) is canonical: equal expressions have equal
keys, so the key serves as hash, as equality and in printed loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from weft.ir.extent import Extent, certain, largest, multiple, same, smallest

FAR: Final = 1 << 62
"""Bound of a variable whose extent is only known when the kernel runs."""


class Symbol:
    """A value bound while a kernel runs: a loop variable, or the result of a reduction."""

    def __init__(self, name: str, extent: int = FAR) -> None:
        self.name: Final = name
        self.extent: Final = extent

    def __repr__(self) -> str:
        return self.name


class Atom:
    """A term of an index: a loop variable, or a function of an index or a scalar.

    `kind` is `var`, `div` and `mod` (by `value`), `clamp` (to `value`, inclusive) or `pick` (an
    integer scalar, clamped to `[0, value)`).
    """

    __slots__ = ("high", "inner", "key", "kind", "low", "symbols", "value")

    def __init__(
        self,
        kind: str,
        inner: Any,
        value: Any,
        key: str,
        bounds: tuple[int, int],
        symbols: frozenset[Symbol],
    ) -> None:
        self.kind: Final = kind
        self.inner: Final = inner
        self.value: Final = value
        self.key: Final = key
        self.low, self.high = bounds
        self.symbols: Final = symbols


class Index:
    """`const + sum(coefficient * atom)`, with inclusive bounds `low` and `high`."""

    __slots__ = ("const", "high", "key", "low", "symbols", "terms")

    def __init__(self, terms: Iterable[tuple[Atom, int]], const: int) -> None:
        self.terms: Final = tuple(sorted(terms, key=lambda t: t[0].key))
        self.const: Final = const
        low = high = const
        symbols: set[Symbol] = set()
        parts: list[str] = []
        for atom, k in self.terms:
            low += k * (atom.low if k > 0 else atom.high)
            high += k * (atom.high if k > 0 else atom.low)
            symbols |= atom.symbols
            parts.append(atom.key if same(k, 1) else f"{k}*{atom.key}")
        self.low: Final = low
        self.high: Final = high
        self.symbols: Final = frozenset(symbols)
        if not (parts and same(const, 0)):
            parts.append(str(const))
        self.key: Final = " + ".join(parts)

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Index) and self.key == other.key

    def __repr__(self) -> str:
        return self.key

    @property
    def is_constant(self) -> bool:
        """Whether it is a plain number."""
        return not self.terms

    def __add__(self, other: Index | int) -> Index:
        if isinstance(other, int):
            return self if same(other, 0) else Index(self.terms, self.const + other)
        total = dict(self.terms)
        by_key = {atom.key: atom for atom in total}
        for atom, k in other.terms:
            known = by_key.get(atom.key, atom)
            total[known] = total.get(known, 0) + k
        terms = {a: k for a, k in total.items() if not same(k, 0)}
        return _joined(terms, self.const + other.const)

    __radd__ = __add__

    def __neg__(self) -> Index:
        return self * -1

    def __sub__(self, other: Index | int) -> Index:
        return self + -other

    def __rsub__(self, other: int) -> Index:
        return -self + other

    def __mul__(self, other: Index | int) -> Index:
        if isinstance(other, Index):
            if self.is_constant:
                return other * self.const
            if not other.is_constant:
                raise TypeError(f"index: {self} * {other} is not linear")
            other = other.const
        if same(other, 0):
            return ZERO
        return Index([(a, k * other) for a, k in self.terms], self.const * other)

    __rmul__ = __mul__

    def __floordiv__(self, other: int) -> Index:
        if same(other, 1):
            return self
        whole, rest = self._split(other)
        if rest.lies(0, other):
            return whole
        return whole + _quotient(rest, other)

    def __mod__(self, other: int) -> Index:
        if same(other, 1):
            return ZERO
        _, rest = self._split(other)
        if rest.lies(0, other):
            return rest
        key = f"({rest.key}) % {other}"
        return _one(Atom("mod", rest, other, f"({key})", (0, other - 1), rest.symbols))

    def lies(self, low: int, high: int) -> bool:
        """Whether `low <= index < high`, for all sizes."""
        return certain("<=", low, self.low) is True and certain("<", self.high, high) is True

    def _split(self, by: int) -> tuple[Index, Index]:
        """Splits off the terms divisible by `by` (returned divided), and the rest.

        A constant whose remainder differs from size to size stays whole.
        """
        whole = [(a, k // by) for a, k in self.terms if multiple(k, by)]
        rest = [(a, k) for a, k in self.terms if not multiple(k, by)]
        left = self.const % by
        if isinstance(left, Extent):
            return Index(whole, 0), Index(rest, self.const)
        return Index(whole, self.const // by), Index(rest, left)


def _quotient(rest: Index, by: int) -> Index:
    if len(rest.terms) == 1 and same(rest.const, 0):
        atom, k = rest.terms[0]
        if same(k, 1) and atom.kind == "div":  # (x // a) // b -> x // (a * b)
            return atom.inner // (atom.value * by)
    bounds = (rest.low // by, rest.high // by)
    return _one(Atom("div", rest, by, f"(({rest.key}) // {by})", bounds, rest.symbols))


def _one(atom: Atom) -> Index:
    return Index([(atom, 1)], 0)


def _joined(terms: dict[Atom, int], const: int) -> Index:
    """The sum, with `c * (x // c) + x % c` simplified to `x`."""
    for atom, k in terms.items():
        if atom.kind != "mod":
            continue
        quotient = atom.inner // atom.value
        if not (quotient.terms and same(quotient.const, 0)):
            continue
        found = {a.key: (a, c) for a, c in terms.items()}
        wanted = [(a.key, c * atom.value * k) for a, c in quotient.terms]
        if all(key in found and same(found[key][1], c) for key, c in wanted):
            gone = {found[key][0] for key, _ in wanted} | {atom}
            rest = Index([(a, c) for a, c in terms.items() if a not in gone], const)
            return rest + atom.inner * k
    return Index(terms.items(), const)


ZERO: Final = Index((), 0)


def variable(symbol: Symbol, most: int | None = None) -> Index:
    """The loop variable as an index: `0 <= symbol < extent`, and the extent is at most `most`."""
    bounds = (0, (symbol.extent if most is None else most) - 1)
    if same(symbol.extent, 1):
        return ZERO
    return _one(Atom("var", symbol, None, symbol.name, bounds, frozenset((symbol,))))


def fixed(value: int) -> Index:
    """A constant index."""
    return Index((), value)


def clamped(index: Index, low: int, high: int) -> Index:
    """`index` limited to `[low, high]`."""
    if index.lies(low, high + 1):
        return index
    if certain("<=", index.high, low) or certain("<=", high, low):
        return fixed(low)
    if certain("<=", high, index.low):
        return fixed(high)
    key = f"clamp({index.key}, {low}, {high})"
    bounds = (largest(low, index.low), smallest(high, index.high))
    return _one(Atom("clamp", index, (low, high), key, bounds, index.symbols))


def picked(expr: Any, key: str, symbols: frozenset[Symbol], size: int) -> Index:
    """An integer scalar as an index, clamped to `[0, size)`."""
    if certain("<=", size, 1):
        return ZERO
    return _one(Atom("pick", expr, size, f"pick({key}, {size})", (0, size - 1), symbols))


def substituted(index: Index, new: Mapping[Symbol, Index], scalar: Callable[[Any], Any]) -> Index:
    """`index` with loop variables replaced; `scalar` does the same to scalars inside."""
    if not any(s in new for s in index.symbols):
        return index
    total = fixed(index.const)
    for atom, k in index.terms:
        total = total + _replaced(atom, new, scalar) * k
    return total


def _replaced(atom: Atom, new: Mapping[Symbol, Index], scalar: Callable[[Any], Any]) -> Index:
    if atom.kind == "var":
        return new.get(atom.inner, _one(atom))
    if atom.kind == "pick":
        expr = scalar(atom.inner)
        return picked(expr, expr.key, expr.symbols, atom.value)
    inner = substituted(atom.inner, new, scalar)
    if atom.kind == "div":
        return inner // atom.value
    if atom.kind == "mod":
        return inner % atom.value
    return clamped(inner, *atom.value)


def atoms_of(index: Index) -> Iterator[Atom]:
    """The atoms of an index and of the indices inside them."""
    for atom, _ in index.terms:
        yield atom
        if atom.kind in ("div", "mod", "clamp"):
            yield from atoms_of(atom.inner)


def flat(index: Sequence[Index], shape: Sequence[int]) -> Index:
    """Row-major position of the element at `index`."""
    total = ZERO
    for i, extent in zip(index, shape, strict=True):
        total = total * extent + i
    return total


def unflat(position: Index, shape: Sequence[int]) -> tuple[Index, ...]:
    """The index of the element at a row-major position: the inverse of `flat`."""
    found: list[Index] = []
    for n, extent in reversed(list(enumerate(shape))):
        if certain("<=", extent, 0):
            found.append(ZERO)
            continue
        found.append(position % extent if n else position)
        position = position // extent
    return tuple(reversed(found))


def turns(offset: Index, across: Symbol, along: Symbol) -> bool:
    """Whether a load is contiguous along one axis, whatever other atoms are, and not another."""
    steps = {atom.inner: k for atom, k in offset.terms if atom.kind == "var"}
    others = {s for atom, _ in offset.terms if atom.kind != "var" for s in atom.symbols}
    step = steps.get(along, 0)
    strides = along in others or not (same(step, 0) or same(step, 1))
    return strides and across not in others and same(steps.get(across, 0), 1)
