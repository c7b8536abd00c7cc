"""Symbolic integers: numbers that follow from sizes which differ from run to run.

An `Extent` has the value that it takes for the largest planned sizes, so code that computes with
shapes works unchanged. Arithmetic on an extent gives extents, and each comparison is recorded as a
guard, because it holds for some sizes only. Code that takes an extent for a plain number without
saying how (`range(n)`, an index) gets its value, and a guard that no other value is admitted.
(Sets compare hashes first: `n in (3, 5)` adds guards, `n in {3, 5}` finds nothing.) So code that
was generated for one size knows for which other sizes it is valid, and which of its numbers change.

>>> extents = Extents()
>>> n = extents.base(100)
>>> blocks = -(-8 * n // 16)
>>> blocks, n > 3, extents.values([7])[blocks.index]
((((-8 * s0) // 16) * -1), True, 4)
>>> extents.admits(extents.values([7])), extents.admits(extents.values([3]))
(True, False)
"""

from __future__ import annotations

import importlib
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from weft.ir.bound import Bounds

_COMPUTED: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv,
    "%": operator.mod, "min": min, "max": max,
}  # fmt: skip
DECISIONS: Final[dict[str, Callable[..., int]]] = {}
"""By name; see `weft.ir.decision`."""
_COMPARED: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq, "<": operator.lt, "<=": operator.le,
}  # fmt: skip

LONGEST: Final = 200
"""Characters of a formula; in longer ones extents of extents would appear again and again."""


class Extents:
    """The extents that follow from some base sizes, and the guards on them.

    Attributes:
        planning: whether `int(n)` and fractions only tune the code for the largest sizes (a fast
            variant, enough memory). If false they decide results, so they admit no other sizes.
    """

    def __init__(self) -> None:
        self.planning = False
        self._made: list[tuple[str, int, int]] = []  # operation, indices of the operands
        self._bases: list[int] = []
        self._numbers: dict[tuple[str, int, int], int] = {}
        self._guards: dict[tuple[str, int, int], bool] = {}
        self._tuned: dict[tuple[str, int, int], bool] = {}
        self._extents: dict[int, Extent] = {}
        self._least: dict[int, int] = {}
        self._bounds = Bounds(self._made, self._least)
        self._certain: dict[tuple[str, int, int], bool | None] = {}
        self._equal: dict[tuple[str, int, int], int] = {}
        self._known: dict[object, Extent] = {}

    def __getitem__(self, index: int) -> Extent:
        """An extent by its index."""
        return self._extents[index]

    def base(self, value: int, least: int | None = None) -> Extent:
        """Adds a base size, from which other extents follow; `values` takes them in this order.

        `least`: a guard that it is not smaller. Guards that follow from it are left out.
        """
        place = len(self._bases)
        self._bases.append(value)
        index = self._number("base", place, 0)
        if least is not None:
            self._least[index] = least
        extent = self._extent(value, index, f"s{place}")
        self._known[frozenset(self._bounds.polynomial(index).items())] = extent
        return extent

    def values(self, bases: Sequence[int]) -> list[int]:
        """Values of all extents for these base sizes, by index.

        Raises:
            ZeroDivisionError: an extent divides by zero.
        """
        found = self._undecided(bases)
        for index, (kind, a, b) in enumerate(self._made):
            if kind in DECISIONS:
                found[index] = DECISIONS[kind](*found[a : a + b])
        return found

    def _undecided(self, bases: Sequence[int]) -> list[int]:
        """The values, with 0 for decisions, from which nothing else follows."""
        found: list[int] = []
        for kind, a, b in self._made:
            if kind == "base":
                found.append(bases[a])
            elif kind == "number":
                found.append(a)
            else:
                found.append(0 if kind in DECISIONS else _COMPUTED[kind](found[a], found[b]))
        return found

    def admits(self, values: Sequence[int]) -> bool:
        """Whether all guards hold for these values."""
        enough = all([values[index] >= least for index, least in self._least.items()])
        return enough and _hold(self._guards, values)

    def admitted(self, bases: Sequence[int]) -> list[int] | None:
        """The values for these base sizes; `None` if a guard does not hold for them.

        Decisions, which may take long, are made if all other guards hold.
        """
        try:
            found = self._undecided(bases)
        except ZeroDivisionError:
            return None
        asked = {i for i, (kind, _, _) in enumerate(self._made) if kind in DECISIONS}
        plain = {key: x for key, x in self._guards.items() if key[1] not in asked}
        enough = all([found[index] >= least for index, least in self._least.items()])
        if not enough or not _hold(plain, found):
            return None
        found = self.values(bases) if asked else found
        return found if self.admits(found) else None

    @property
    def state(self) -> dict[str, Any]:
        """All extents and guards as plain data."""
        guards, tuned = (
            [[*key, found] for key, found in known.items()] for known in (self._guards, self._tuned)
        )
        made, least = (list(map(list, x)) for x in (self._made, self._least.items()))
        return {
            "bases": self._bases, "least": least, "made": made, "guards": guards, "tuned": tuned,
        }  # fmt: skip

    def restored(self, state: dict[str, Any]) -> None:
        """Restores what was known when `state` was taken.

        Args:
            state: from `Extents` with the same bases.
        """
        made = [(kind, a, b) for kind, a, b in state["made"]]
        for decision in {kind for kind, _, _ in made if "." in kind} - DECISIONS.keys():
            importlib.import_module(decision.rpartition(".")[0])
        assert made[: len(self._made)] == self._made
        self._made[:], self._numbers = made, {key: i for i, key in enumerate(made)}
        self._guards.update({(kind, a, b): found for kind, a, b, found in state["guards"]})
        self._tuned.update({(kind, a, b): found for kind, a, b, found in state["tuned"]})
        self._least.update({index: least for index, least in state["least"]})

    def at(self, index: int) -> Extent:
        """An extent by its index, also one that is known by a `restored` state alone."""
        found = self._extents.get(index)
        return found or self._extent(self.values(self._bases)[index], index, f"#{index}")

    def number_of(self, value: int) -> int:
        """The index of an extent or of a plain number."""
        if isinstance(value, Extent):
            return value.index
        return self._number("number", int(value), 0)

    def computed(self, kind: str, a: int, b: int) -> int:
        """The extent `a kind b`; a plain number if neither operand is an extent."""
        value = _COMPUTED[kind](_value(a), _value(b))
        plain = _plain(kind, a, b)
        if plain is None and kind in ("//", "%"):
            plain = self._divided(kind, a, b)
        if plain is not None:
            return plain
        x, y = self.number_of(a), self.number_of(b)
        found = self._equal.get((kind, x, y))
        if found is None:
            found = self._equal[kind, x, y] = self._made_once(
                kind, x, y, value, f"({a!s} {kind} {b!s})"
            )
        return found

    def _made_once(self, kind: str, a: int, b: int, value: int, text: str) -> int:
        """A number or an extent that is equal for all sizes, if there is one."""
        polynomial = self._bounds.folded(kind, a, b)
        if polynomial is None or polynomial.keys() - {()}:
            index = self._number(kind, a, b)
            key = frozenset(self._bounds.polynomial(index).items())
            return self._known.setdefault(key, self._extent(value, index, text))
        return polynomial.get((), 0)

    def _divided(self, kind: str, a: int, b: int) -> int | None:
        """Simplifies a product with a number that is divided by a factor of the number."""
        if not isinstance(a, Extent) or isinstance(b, Extent):
            return None
        made, *factors = self._made[a.index]
        if made != "*":
            return None
        for at, number in enumerate(factors):
            operation, factor, _ = self._made[number]
            rest = self._extents.get(factors[1 - at])
            if operation == "number" and factor % b == 0 and rest is not None:
                quotient = factor // b
                pair = (rest, quotient) if at else (quotient, rest)
                return 0 if kind == "%" else self.computed("*", *pair)
        return None

    def _extent(self, value: int, index: int, text: str) -> Extent:
        found = self._extents.get(index)
        if found is None:
            short = text if len(text) <= LONGEST else f"#{index}"
            found = self._extents[index] = Extent(value, self, index, short)
        return found

    def compared(self, kind: str, a: int, b: int) -> bool:
        """The comparison `a kind b`: a guard, unless it is the same for all sizes."""
        return self._found(kind, a, b, self._guards)

    def tuned(self, kind: str, a: int, b: int) -> bool:
        """The comparison `a kind b`, which decides how fast code is, not what it computes."""
        return self._found(kind, a, b, self._tuned)

    def _found(self, kind: str, a: int, b: int, noted: dict[tuple[str, int, int], bool]) -> bool:
        known = self.certain(kind, a, b)
        if known is not None:
            return known
        found = _COMPARED[kind](_value(a), _value(b))
        noted[kind, self.number_of(a), self.number_of(b)] = found
        return found

    def certain(self, kind: str, a: int, b: int) -> bool | None:
        """The comparison `a kind b` if it is the same for all sizes, as far as is known."""
        x, y = self.number_of(a), self.number_of(b)
        if (kind, x, y) not in self._certain:
            self._certain[kind, x, y] = self._bounds.compared(kind, x, y)
        return self._certain[kind, x, y]

    def decided(self, name: str, numbers: Sequence[int], found: int) -> None:
        """Adds a guard: the decision `name` gives `found` for these numbers."""
        zero, wanted = self.number_of(0), self.number_of(found)
        indices = [self.number_of(n) for n in numbers]
        first = len(self._made)  # copies, so that the numbers follow each other
        self._made += [*[("+", i, zero) for i in indices], (name, first, len(indices))]
        self._guards["==", len(self._made) - 1, wanted] = True

    def _number(self, kind: str, a: int, b: int) -> int:
        key = (kind, a, b)
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self._made)
            self._made.append(key)
        return found


def _hold(comparisons: Mapping[tuple[str, int, int], bool], values: Sequence[int]) -> bool:
    return all(
        [
            _COMPARED[kind](values[a], values[b]) is expected
            for (kind, a, b), expected in comparisons.items()
        ]
    )


def _value(number: int) -> int:
    """The value of a number for the largest sizes."""
    return number.value if isinstance(number, Extent) else number


def _plain(kind: str, a: int, b: int) -> int | None:
    """Simplifies `a kind b` to an operand or a constant, where possible."""
    if kind in ("min", "max"):
        return a if same(a, b) else None
    if isinstance(b, Extent):
        if isinstance(a, Extent):
            return 0 if kind == "-" and a.index == b.index else None
        if kind in ("//", "%", "*") and a == 0:
            return 0
        if (kind == "+" and a == 0) or (kind == "*" and a == 1):
            return b
        return None
    if (kind in "+-" and b == 0) or (kind in ("*", "//") and b == 1):
        return a
    return 0 if (kind == "*" and b == 0) or (kind == "%" and b == 1) else None


# Not a subclass of `int`: C code would read its value without adding a guard.
_Integer = int if TYPE_CHECKING else object


class Extent(_Integer):
    """An integer that follows from sizes; see `weft.ir.extent`."""

    __slots__ = ("extents", "index", "text", "value")
    extents: Extents
    index: int
    text: str
    value: int

    def __new__(cls, value: int, extents: Extents, index: int, text: str) -> Extent:
        """The value for the largest sizes, the index among the extents, and the formula."""
        self = super().__new__(cls)
        self.value, self.extents, self.index, self.text = value, extents, index, text
        return self

    @property
    def __class__(self) -> type[int]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The class that `isinstance` sees."""
        return int

    def __int__(self) -> int:
        if not self.extents.planning:
            self.extents.compared("==", self, self.value)
        return self.value

    def __index__(self) -> int:
        return pinned(self)

    def __float__(self) -> float:
        return float(int(self))

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        """The formula; in a message to the user, which has to tell a number, the size itself."""
        return self.text if self.extents.planning else format(pinned(self), spec)

    def __hash__(self) -> int:
        return hash(self.text)

    def __add__(self, other: int) -> int:
        return self._computed("+", self, other)

    def __radd__(self, other: int) -> int:
        return self._computed("+", other, self)

    def __sub__(self, other: int) -> int:
        return self._computed("-", self, other)

    def __rsub__(self, other: int) -> int:
        return self._computed("-", other, self)

    def __mul__(self, other: int) -> int:
        return self._computed("*", self, other)

    def __rmul__(self, other: int) -> int:
        return self._computed("*", other, self)

    def __floordiv__(self, other: int) -> int:
        return self._computed("//", self, other)

    def __rfloordiv__(self, other: int) -> int:
        return self._computed("//", other, self)

    def __mod__(self, other: int) -> int:
        return self._computed("%", self, other)

    def __rmod__(self, other: int) -> int:
        return self._computed("%", other, self)

    def _refuse(self, *others: Any) -> Any:
        """Raises: the result would hold for the largest sizes only."""
        raise TypeError(f"{self}, {others[0]}: no operation for symbolic sizes")

    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _refuse
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __pow__ = __rpow__ = _refuse

    def __divmod__(self, other: int) -> tuple[int, int]:
        return self // other, self % other

    def __abs__(self) -> int:
        return -self if self < 0 else self

    def __neg__(self) -> int:
        return self.extents.computed("*", self, -1)

    def _computed(self, kind: str, a: Any, b: Any) -> Any:
        if isinstance(a, int) and isinstance(b, int):
            return self.extents.computed(kind, a, b)
        if isinstance(a, float) or isinstance(b, float):
            return _COMPUTED[kind](float(a), float(b))
        other = a if b is self else b
        if hasattr(other, "__len__"):  # such as a list repeated n times
            return self._refuse(other)
        return NotImplemented  # it may know how to compute with numbers

    def __truediv__(self, other: float) -> float:
        return float(self) / float(other)

    def __rtruediv__(self, other: float) -> float:
        return float(other) / float(self)

    def _compared(self, kind: str, other: object) -> Any:
        if isinstance(other, float):
            return _COMPARED[kind](float(self), other)
        if not isinstance(other, int):
            return NotImplemented
        return self.extents.compared(kind, self, other)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Extent) and other.extents is not self.extents:
            return False
        return self._compared("==", other)

    def __ne__(self, other: object) -> bool:
        found = self.__eq__(other)
        return found if found is NotImplemented else not found

    def __lt__(self, other: int) -> bool:
        return self._compared("<", other)

    def __le__(self, other: int) -> bool:
        return self._compared("<=", other)

    def __gt__(self, other: int) -> bool:
        found = self._compared("<=", other)
        return found if found is NotImplemented else not found

    def __ge__(self, other: int) -> bool:
        found = self._compared("<", other)
        return found if found is NotImplemented else not found

    def __bool__(self) -> bool:
        return not self._compared("==", 0)


def certain(kind: str, a: int, b: int) -> bool | None:
    """Whether `a kind b` (`== | < | <=`) for all sizes; `None` if not known. It adds no guard."""
    for x in (a, b):
        if isinstance(x, Extent):
            return x.extents.certain(kind, a, b)
    return _COMPARED[kind](a, b)


def tuned(kind: str, a: int, b: int) -> bool:
    """Whether `a kind b` for the largest sizes: no guard, as it decides speed alone."""
    for x in (a, b):
        if isinstance(x, Extent):
            return x.extents.tuned(kind, a, b)
    return _COMPARED[kind](a, b)


def smallest(a: int, b: int) -> int:
    """The minimum of two numbers, for each run's sizes."""
    return _chosen("min", a, b)


def largest(a: int, b: int) -> int:
    """The maximum of two numbers, for each run's sizes."""
    return _chosen("max", a, b)


def _chosen(kind: str, a: int, b: int) -> int:
    for x in (a, b):
        if isinstance(x, Extent):
            return x.extents.computed(kind, a, b)
    return _COMPUTED[kind](a, b)


def varies(shape: Sequence[int | None] | None) -> bool:
    """Whether a shape has extents."""
    return shape is not None and any([isinstance(d, Extent) for d in shape])


def assume(condition: bool) -> None:
    """Only the guard of a comparison: the code is valid where the outcome is the same."""


def pinned(value: int) -> int:
    """The value itself, with a guard: the code is valid for no other value."""
    assume(value == _value(value))
    return _value(value)


def planned(most: int) -> int:
    """The value for the largest sizes, as an upper bound for every run."""
    assume(most <= _value(most))
    return _value(most)


def symbolic(*numbers: int) -> bool:
    """Whether one of the numbers differs from run to run."""
    return any([isinstance(n, Extent) for n in numbers])


def same(a: int, b: int) -> bool:
    """Whether two numbers are equal for all sizes."""
    return certain("==", a, b) is True


def multiple(value: int, of: int) -> bool:
    """Whether a number is a multiple of another one for all sizes."""
    return same(value % of, 0)
