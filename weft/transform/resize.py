"""Interpretations of one computation for new array sizes, without planning each anew.

Which function runs on which slots does not depend on the sizes: only shapes and attributes do.
`Template` compares the interpretations for a few sizes, step by step, and infers how each number
follows from the sizes (constant, multiple, multiple plus remainder, product). From that it derives
the interpretation for any other sizes. It refuses whatever does not fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import gcd, prod
from typing import Any, Final, NamedTuple, cast

import numpy as np

from weft.ir.node import Literal, TensorType
from weft.ir.shape import is_static, known
from weft.transform.interpretation import Interpretation, Step

Sizes = tuple[int, ...]
Types = tuple[tuple[Any, Any], ...]  # element types, and fits of the shapes
SAMPLES: Final = 3  # a line through two of them is checked by the third
# How much larger than the sizes seen a plan may be. Less is tried if that fails, as past the last
# position that a model knows.
ROOM: Final = (2.0, 1.25)
GROWING: Final = (4.0, 2.0, 1.25)  # factors once sizes have outgrown an earlier plan
LEAST: Final = 3  # the smallest size to plan for, if the computation there is the same


class UnfitError(Exception):
    """A number does not follow from the sizes in any known form."""


class Form(NamedTuple):
    """The form `factor * product of bases // divisor + rest`."""

    bases: tuple[int, ...]
    factor: int
    divisor: int
    rest: int

    def at(self, values: Sizes) -> int:
        """The number for these values of the bases.

        Raises:
            UnfitError: there is no such whole number.
        """
        whole, left = divmod(self.factor * prod([values[i] for i in self.bases]), self.divisor)
        if left:
            raise UnfitError
        return whole + self.rest


class Parts(tuple[Any, ...]):
    """A tuple some of whose entries follow from the sizes."""

    __slots__ = ()


class Number(NamedTuple):
    """A constant that is a number, or its reciprocal."""

    form: Form
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    inverse: bool

    def at(self, values: Sizes) -> np.ndarray[Any, Any]:
        """The constant's array."""
        found = self.form.at(values)
        return np.full(self.shape, 1 / found if self.inverse else found, self.dtype)


class Sizing:
    """Evaluates fits for given values of the bases; each fit once."""

    def __init__(self, values: Sizes) -> None:
        self._values = values
        self._found: dict[int, Any] = {}  # keyed by identity of the fit

    def at(self, fit: Any) -> Any:
        """The value of a fit."""
        if isinstance(fit, Parts):
            found = self._found.get(id(fit))
            if found is None:
                found = self._found[id(fit)] = tuple([self.at(part) for part in fit])
            return found
        return fit.at(self._values) if isinstance(fit, Form | Number) else fit

    def types(self, fits: Types) -> tuple[TensorType, ...]:
        """The types of a step's results."""
        found = self._found.get(id(fits))
        if found is None:
            found = tuple([TensorType(dtype, self.at(shape)) for dtype, shape in fits])
            self._found[id(fits)] = found
        return found


class Fit:
    """Infers from samples how numbers follow from sizes.

    Raises:
        UnfitError: the samples say too little, or no form fits all of them.
    """

    def __init__(self, samples: Sequence[Sizes]) -> None:
        self._columns: list[Sizes] = []  # of the sizes that others follow from
        self._places: list[int] = []
        self._forms: list[Form] = []  # of all sizes
        self._same: dict[Any, Any] = {}  # equal fits are one object
        for place, column in enumerate(zip(*samples, strict=True)):
            form = self._found(column)
            if form is None:
                if len(set(column)) < len(column) or min(column) < 2:
                    raise UnfitError
                form = Form((len(self._places),), 1, 1, 0)
                self._columns.append(column)
                self._places.append(place)
            self._forms.append(form)
        distinct = {form: n for n, form in enumerate(dict.fromkeys(self._forms))}
        self._distinct: Final = tuple(distinct)
        self._form_of: Final = tuple([distinct[form] for form in self._forms])

    def sizes(self, values: Sizes) -> Sizes:
        """All sizes for these values of the bases.

        Raises:
            UnfitError: no sizes fit them.
        """
        if min(values, default=2) < 2:  # a size of 1 would broadcast
            raise UnfitError
        found = [form.at(values) for form in self._distinct]
        return tuple([found[n] for n in self._form_of])

    def beyond(self, largest: Sizes, room: float) -> Sizes:
        """The bases scaled by `room`, made odd to avoid coincidental divisibility."""
        return tuple([int(room * n) | 1 for n in self.bases(largest)])

    def probes(self, smallest: Sizes, most: Sizes) -> Iterator[tuple[Sizes, ...]]:
        """Values of the bases to sample: three that determine everything between the ends.

        Args:
            smallest: sizes; the first sample is well below these, unless the computation differs
                there, as when it takes the last few of the words.
            most: the last sample; see `beyond`.
        """
        lows = [tuple([n + i for i in range(len(most))]) for n in _least(most)]
        for low in [*lows, self.bases(smallest)]:
            middle: list[int] = []
            for i, (a, b) in enumerate(zip(low, most, strict=True)):
                between = a + (b - a) * (i + 1) // (i + 2)  # no two bases on one line
                middle.append(between + (gcd(a, between, b) > 1))
            yield low, tuple(middle), most

    def bases(self, sizes: Sizes) -> Sizes:
        """The sizes that are bases."""
        return tuple([sizes[i] for i in self._places])

    def values(self, sizes: Sizes) -> Sizes:
        """The values of the bases.

        Raises:
            UnfitError: the sizes are not related as they were in the samples.
        """
        values = self.bases(sizes)
        if self.sizes(values) != sizes:
            raise UnfitError
        return values

    def number(self, column: Sequence[int]) -> Form:
        """How a number follows from the bases."""
        found = self._found(tuple(column))
        if found is None:
            raise UnfitError
        return found

    def _found(self, column: Sizes) -> Form | None:
        if len(set(column)) == 1:
            return Form((), 0, 1, column[0])
        for i, base in enumerate(self._columns):
            found = _line((i,), base, column)
            if found is not None:
                return found
        for i, a in enumerate(self._columns):
            for j, b in enumerate(self._columns[: i + 1]):
                products = tuple([x * y for x, y in zip(a, b, strict=True)])
                found = _line((i, j), products, column)
                if found is not None and not found.rest:
                    return found
        return None

    def value(self, samples: Sequence[Any]) -> Any:
        """How an attribute follows from the bases."""
        first = samples[0]
        kind = type(first)
        if any([type(x) is not kind for x in samples]):
            raise UnfitError
        if all([x == first for x in samples[1:]]):
            return first
        if kind is int:
            return self.number(samples)
        if kind is tuple and len({len(x) for x in samples}) == 1:
            found = Parts([self.value(parts) for parts in zip(*samples, strict=True)])
            return self._same.setdefault(found, found)
        raise UnfitError

    def types(self, samples: Sequence[Sequence[TensorType]]) -> Types:
        """How types follow from the bases, given one sequence per sample."""
        found: list[tuple[Any, Any]] = []
        for kinds in zip(*samples, strict=True):
            if any([k.dtype is not kinds[0].dtype or not is_static(k.shape) for k in kinds]):
                raise UnfitError
            found.append((kinds[0].dtype, self.value([known(kind.shape) for kind in kinds])))
        return self._same.setdefault(tuple(found), tuple(found))

    def constant(self, samples: Sequence[Literal]) -> Any:
        """How a constant follows from the bases; its array if it does not."""
        arrays = [x.array for x in samples]
        first = arrays[0]
        if all([x == samples[0] for x in samples[1:]]):
            return first
        if first.size != 1 or any(
            [a.shape != first.shape or a.dtype != first.dtype for a in arrays]
        ):
            raise UnfitError
        numbers = [a.item() for a in arrays]
        inverse = any([x % 1 for x in numbers])
        column = [round(1 / x) if inverse else int(x) for x in numbers]
        found = Number(self.number(column), first.dtype, first.shape, inverse)
        for array, number in zip(arrays, column, strict=True):
            again = np.full(first.shape, 1 / number if inverse else number, first.dtype)
            if again.tobytes() != array.tobytes():
                raise UnfitError
        return found


def _least(most: Sizes) -> tuple[int, int]:
    """The smallest value of the bases to try first, and the next."""
    return LEAST, max(most, default=0) // 8


def _line(bases: tuple[int, ...], x: Sizes, y: Sizes) -> Form | None:
    """The line through all points, if its coefficients are integers."""
    dx, dy = x[1] - x[0], y[1] - y[0]
    if (
        not dx
        or not dy
        or any([(b - x[0]) * dy != (c - y[0]) * dx for b, c in zip(x, y, strict=True)])
    ):
        return None
    common = gcd(dx, dy) * (1 if dx > 0 else -1)
    factor, divisor = dy // common, dx // common
    rest, left = divmod(y[0] * divisor - x[0] * factor, divisor)
    return None if left or (rest and divisor > 1) else Form(bases, factor, divisor, rest)


class Template:
    """An interpretation for all sizes, from those for some.

    Raises:
        UnfitError: they differ in more than sizes, or a number does not follow from the sizes.
    """

    def __init__(self, samples: Sequence[tuple[Sizes, Interpretation]]) -> None:
        self._fit = fit = Fit([sizes for sizes, _ in samples])
        runs = [run for _, run in samples]
        self._first = first = runs[0]
        if any([run.wiring != first.wiring for run in runs]):
            raise UnfitError
        self._feeds = fit.types([run.feeds for run in runs])
        self._constants = [
            (nodes[0][0], fit.constant([node.attrs["value"] for _, node in nodes]))
            for nodes in zip(*[run.constants for run in runs], strict=True)
        ]
        self._changes = [
            _change(fit, steps) for steps in zip(*[r.steps for r in runs], strict=True)
        ]

    def at(self, sizes: Sizes) -> Interpretation:
        """The interpretation for these sizes.

        Raises:
            UnfitError: they are not related as they were in the samples, or too small.
        """
        sizing = Sizing(self._fit.values(sizes))
        steps = [
            step if change is None else _resized(step, change, sizing)
            for step, change in zip(self._first.steps, self._changes, strict=True)
        ]
        feeds = sizing.types(self._feeds)
        constants = [(slot, sizing.at(fit)) for slot, fit in self._constants]
        return self._first.variant(steps, feeds, constants)


class _Change(NamedTuple):
    """The parts of a step that follow from the sizes."""

    attrs: dict[str, Any]
    types: Types


def _change(fit: Fit, steps: Sequence[Step]) -> _Change | None:
    """Fits of a step; `None` if the sizes do not matter."""
    node = steps[0].node
    if any([s.node.op != node.op or s.node.operands or s.node.regions for s in steps]):
        raise UnfitError
    types = fit.types([s.types for s in steps])
    functions = [s.function for s in steps]
    attrs: dict[str, Any] = {}
    if isinstance(functions[0], partial):
        for key in cast("partial[Any]", functions[0]).keywords:
            found = fit.value([cast("partial[Any]", f).keywords[key] for f in functions])
            if isinstance(found, Parts | Form):
                attrs[key] = found
    if not attrs and not any([isinstance(shape, Parts) for _, shape in types]):
        return None
    return _Change(attrs, types)


def _resized(step: Step, change: _Change, sizing: Sizing) -> Step:
    function: Any = step.function
    if change.attrs:
        attrs = {key: sizing.at(fit) for key, fit in change.attrs.items()}
        function = partial(function.func, **{**function.keywords, **attrs})
    return step.resized(function, sizing.types(change.types))
