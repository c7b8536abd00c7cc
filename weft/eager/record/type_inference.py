"""Infers result types of functions without calling them for every new size.

A function is called on placeholders to learn the types of its results. If only sizes differ from
earlier calls, it is called once on placeholders whose sizes are symbolic (`weft.ir.extent`): the
result holds for all sizes that pass the guards collected on the way.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final

from weft.eager.record.attribute_pattern import refilled, without
from weft.errors import WeftError
from weft.ir.extent import Extents
from weft.ir.node import TensorType
from weft.ir.shape import known

MOST: Final = 512  # functions; the least recently used goes first
WIDTHS: Final = 16  # sets of the other sizes, such as widths of several layers
VARIES: Final = 3  # different values of a size before it counts as dynamic
ATTEMPTS: Final = 4  # calls with extents for each set; some functions need too many guards

Sizes = tuple[int, ...]
Derive = Callable[
    [Callable[..., Any], Sequence[TensorType], dict[str, Any]], tuple[TensorType, ...]
]


class _Case:
    """Types as functions of the dynamic sizes, for sizes that pass the same guards."""

    def __init__(
        self, sizes: Sizes, varying: Sizes, derive: Callable[[Sizes], tuple[TensorType, ...]]
    ) -> None:
        self._extents = Extents()
        given = [self._extents.base(n) if i in varying else n for i, n in enumerate(sizes)]
        types = derive(tuple(given))
        number = self._extents.number_of
        self._types = [(t.dtype, [number(d) for d in known(t.shape)]) for t in types]

    def types(self, values: Sizes) -> tuple[TensorType, ...] | None:
        """The types for these values of the dynamic sizes."""
        try:
            found = self._extents.values(values)
        except ZeroDivisionError:
            return None
        if not self._extents.admits(found):
            return None
        return tuple([TensorType(d, tuple([found[n] for n in shape])) for d, shape in self._types])


class _Foresight:
    """What is known of a function on inputs that differ only in sizes."""

    def __init__(self) -> None:
        self._met: list[set[int]] = []
        self._varying: Sizes = ()  # positions of the dynamic sizes
        self._cases: dict[Sizes, list[_Case]] = {}  # by the other sizes
        self._attempts: dict[Sizes, int] = {}

    def types(self, sizes: Sizes) -> tuple[TensorType, ...] | None:
        """The types of the results for these sizes; `None` if unknown."""
        fixed, values = self._parts(sizes)
        for case in self._cases.get(fixed, ()):
            found = case.types(values)
            if found is not None:
                return found
        return None

    def _parts(self, sizes: Sizes) -> tuple[Sizes, Sizes]:
        """The static sizes and the dynamic ones."""
        fixed = tuple([n for i, n in enumerate(sizes) if i not in self._varying])
        return fixed, tuple([sizes[i] for i in self._varying])

    def learn(self, sizes: Sizes, derive: Callable[[Sizes], tuple[TensorType, ...]]) -> None:
        """Remember the types for sizes not covered yet."""
        if len(self._varying) < len(sizes):
            self._meet(sizes)
        fixed, values = self._parts(sizes)
        left = self._attempts.get(fixed, ATTEMPTS)
        if not values or not left:
            return
        if len(self._attempts) >= WIDTHS:
            self._attempts.clear()
            self._cases.clear()
        self._attempts[fixed] = left - 1
        try:
            case = _Case(sizes, self._varying, derive)
        except _REFUSALS:
            return  # it was written for integers and used one in a way that extents do not support
        self._cases.setdefault(fixed, []).insert(0, case)

    def _meet(self, sizes: Sizes) -> None:
        """Find the sizes that are dynamic."""
        self._met = self._met or [set() for _ in sizes]
        for met, size in zip(self._met, sizes, strict=True):
            if len(met) < VARIES:
                met.add(size)
        varying = tuple([i for i, met in enumerate(self._met) if len(met) >= VARIES])
        if varying != self._varying:
            self._varying = varying
            self._cases.clear()
            self._attempts.clear()


_REFUSALS: Final = (
    WeftError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError,
    RuntimeError,  # a generator that ended too early
)  # fmt: skip
_known: Final[OrderedDict[Any, _Foresight]] = OrderedDict()


def foreseen(
    function: Callable[..., Any],
    types: Sequence[TensorType],
    static: dict[str, Any],
    derive: Derive,
) -> tuple[TensorType, ...]:
    """`derive(function, types, static)`, with as few calls of it as possible.

    Raises:
        WeftError: whatever `derive` raises for these types.
    """
    sizes: list[int] = []
    kinds = tuple([(t.dtype, without(known(t.shape), sizes)) for t in types])
    attributes = tuple([(name, without(value, sizes)) for name, value in static.items()])
    key = (function, kinds, attributes)
    one = _known.get(key)
    if one is None:
        one = _known[key] = _Foresight()
        if len(_known) > MOST:
            _known.popitem(last=False)
    else:
        _known.move_to_end(key)
    found = one.types(tuple(sizes))
    if found is not None:
        return found
    found = derive(function, types, static)

    def derived(sizes: Sizes) -> tuple[TensorType, ...]:
        left = iter(sizes)
        other = [TensorType(t.dtype, refilled(known(t.shape), left)) for t in types]
        return derive(function, other, {k: refilled(v, left) for k, v in static.items()})

    one.learn(tuple(sizes), derived)
    return found
