"""Result types as a small Python function of sizes, compiled from what `Extents` recorded."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from weft.eager.record.call.interned_type import intern, new_type, recall_type
from weft.ir.dtype import DType
from weft.ir.extent import Extents
from weft.ir.node import TensorType
from weft.ir.shape import known
from weft.ops.declaration.memory_check import SMALL

Sizes = Sequence[int]
Formula = Callable[[Sequence[TensorType], Sizes], tuple[TensorType, ...] | None]
"""The result types for types of the inputs and all sizes; `None` where it does not hold."""


class SymbolicSizes:
    """Sizes of which some are extents.

    Attributes:
        sizes: extents at the positions `symbolic`, else plain numbers.
        plain: all as plain numbers.
    """

    def __init__(self, sizes: Sizes, symbolic: Sizes) -> None:
        self._extents = Extents()
        self._positions = tuple(symbolic)
        self.plain = sizes
        self.sizes = list(sizes)
        for i in symbolic:
            self.sizes[i] = self._extents.base(sizes[i])

    def pinned(self) -> Iterator[tuple[int, int]]:
        """The symbolic positions that were used as plain numbers, and their values."""
        state = self._extents.state
        for kind, a, b, expected in state["guards"]:
            made, number = state["made"][a], state["made"][b]
            if (kind, expected, made[0], number[0]) == ("==", True, "base", "number"):
                yield self._positions[made[1]], number[1]

    def formula(self, given: Sequence[TensorType], types: Sequence[TensorType]) -> Formula:
        """The formula of result types, from those of the inputs, at these sizes.

        It holds where the guards do, for results that are not empty and surely fit in memory.
        """
        source = _Source(self._extents, self._positions)
        left = iter(self.sizes)
        inputs: dict[tuple[DType, tuple[str, ...]], int] = {}
        for i, t in enumerate(given):
            names = source.names([next(left) for _ in known(t.shape)])
            inputs.setdefault((t.dtype, names), i)
        results = [source.result(t, inputs) for t in types]
        return source.compiled(results, len(self.sizes))


def _pair(kind: str, x: str, y: str) -> str:
    """What an extent or a guard is, as an expression."""
    return f"{kind}({x}, {y})" if kind in ("min", "max") else f"{x} {kind} {y}"


class _Source:
    """The text of a formula."""

    def __init__(self, extents: Extents, positions: Sizes) -> None:
        self._extents = extents
        self._made: list[list[Any]] = extents.state["made"]
        self._positions = positions
        self._known: dict[int, str] = {}
        self._lines: list[str] = []
        self._space: dict[str, Any] = {"recall": recall_type, "new_type": new_type}
        self._tests = [
            f"({_pair(kind, self._name(a), self._name(b))}) is {expected}"
            for kind, a, b, expected in extents.state["guards"]
        ]

    def names(self, sizes: Sizes) -> tuple[str, ...]:
        """Sizes as expressions."""
        found = [self._extents.number_of(d) for d in sizes]
        self._made = self._extents.state["made"]
        return tuple(map(self._name, found))

    def _name(self, index: int) -> str:
        """An extent as an expression; adds the lines that compute it."""
        found = self._known.get(index)
        if found is None:
            kind, a, b = self._made[index]
            if kind == "base":
                found = f"s{self._positions[a]}"
            elif kind == "number":
                found = str(a)
            else:
                x, y = self._name(a), self._name(b)
                found = f"v{index}"
                self._lines.append(f"{found} = {_pair(kind, x, y)}")
            self._known[index] = found
        return found

    def result(self, kind: TensorType, inputs: Mapping[Any, int]) -> str:
        """The expression of a result type, which may be that of an input."""
        dtype, names = kind.dtype, self.names(known(kind.shape))
        if names:
            self._tests.append(f"0 < {' * '.join(names)} <= {SMALL // dtype.size}")
        same = inputs.get((dtype, names))
        if same is not None:
            return f"given[{same}]"
        if all(map(str.isdigit, names)):
            self._space[name := f"k{len(self._space)}"] = intern(dtype, tuple(map(int, names)))
            return name
        self._space[f"t_{dtype.name}"] = dtype
        return f"(recall(p := (t_{dtype.name}, ({', '.join(names)},))) or new_type(p))"

    def compiled(self, results: Sequence[str], count: int) -> Formula:
        """The function of so many sizes that returns these types."""
        taken = [f"s{i}, " for i in range(count)]
        body = [f"{''.join(taken)}= sizes"] if taken else []
        tests = " and ".join(self._tests) or "True"
        body += [*self._lines, f"return ({', '.join(results)},) if {tests} else None"]
        text = "\n    ".join(["def formula(given, sizes):", *body])
        # A path in the package: errors name the line of the caller, not one of this text.
        exec(compile(text, f"{__file__[:-3]}/formula", "exec"), self._space)
        return self._space["formula"]


def is_usual(types: Sequence[TensorType]) -> bool:
    """Whether results are not empty and surely fit in memory, as formulas demand."""
    return all([0 < math.prod(known(t.shape)) <= SMALL // t.dtype.size for t in types])
