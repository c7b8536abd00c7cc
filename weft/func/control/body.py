"""Bodies and branches: functions of nested tensors, traced for the types of their arguments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from weft.eager.functions.creation.constructor import tensor
from weft.eager.record.lazy import Drawn, Lazy, serials
from weft.eager.record.state import trace
from weft.eager.tensor.autograd.tracing import tracers
from weft.eager.tensor.dispatch import cast, lazy_of, wrap
from weft.eager.tensor.handle import Handle
from weft.errors import TreeError
from weft.func.function import DATA, Arguments, Function, trace_function
from weft.func.tree import Tree, flatten
from weft.ir.node import Source, TensorType, Value
from weft.ops.base import at_user_line, catalogue
from weft.ops.call import Subgraph, inline
from weft.ops.control.agreement import lines


class Nest(NamedTuple):
    """Nested tensors: the structure and the values."""

    tree: Tree
    lazies: tuple[Lazy, ...]

    @property
    def types(self) -> tuple[TensorType, ...]:
        """Types of the values."""
        return tuple([x.type for x in self.lazies])

    def arguments(self) -> list[tuple[Tree, Sequence[TensorType]]]:
        """Structure and types of each item of a tuple."""
        rest = iter(self.types)
        return [(part, list(islice(rest, part.size))) for part in self.tree.children]


def nest(structure: Any, what: str) -> Nest:
    """Nested tensors, arrays and numbers.

    Raises:
        TreeError: it contains something else.
    """
    leaves, tree = flatten(structure)
    return Nest(tree, tuple([lazy_of(_as_tensor(x, what)) for x in leaves]))


def _as_tensor(x: Any, what: str) -> Any:
    if isinstance(x, bool | int | float | complex | np.ndarray | np.generic):
        return tensor(x)
    if not isinstance(x, Handle):
        raise TreeError(
            f"{what}: expected nested tensors, arrays and numbers, got a {type(x).__name__} among"
            f" them{at_user_line()}"
        )
    return x


def tensors(tree: Tree, lazies: Sequence[Lazy]) -> Any:
    """Nested tensors that hold these values."""
    return tree.build([wrap(x) for x in lazies])


class Body(NamedTuple):
    """A traced function of tensors, with its captured values and side effects.

    Attributes:
        function: its inputs are the arguments, then `captured`; its outputs the result, then the
            new values of the arguments in `written` and of the tensors in `changed`.
        tree: the structure of the result.
        captured: outside values that it uses.
        drawn: which of these are random seeds: every iteration of a loop has its own.
        written: which arguments it changed in place.
        changed: outside tensors that it changed in place.
        line: where the function is defined, for messages.
    """

    function: Subgraph
    tree: Tree
    captured: tuple[Lazy, ...]
    drawn: tuple[bool, ...]
    written: tuple[int, ...]
    changed: tuple[Handle, ...]
    line: str

    @property
    def types(self) -> tuple[TensorType, ...]:
        """Types of the result."""
        return self.function.output_types[: self.tree.size]

    def apply(self, arguments: Sequence[Value], outside: dict[Lazy, Value]) -> Outcome:
        """Inline the function.

        Args:
            outside: values that include all captured ones.
        """
        inputs = [*arguments, *[outside[x] for x in self.captured]]
        function = self.function
        if function.backward is None:
            found = inline(function, inputs)
        else:  # the gradient belongs to the call
            found = catalogue.call.all(*inputs, function=function)
        count = self.tree.size
        behind = count + len(self.written)
        return Outcome(found[:count], found[count:behind], found[behind:])


class Outcome(NamedTuple):
    """The outputs of a body: its result, changed arguments, changed outside tensors."""

    result: Sequence[Value]
    written: Sequence[Value]
    changed: Sequence[Value]


def body_of(
    what: str, function: Function, arguments: Sequence[tuple[Tree, Sequence[TensorType]]],
    wanted: Sequence[TensorType] = (),
) -> Body:  # fmt: skip
    """Trace a function for arguments of these structures and types.

    Args:
        what: the operation, for messages.
        wanted: types that its first results should have; autocasts of them are undone.

    Raises:
        TreeError: a result is no tensor.
        TracerError: the function reads the value of an argument.
    """
    kinds = [t for _, types in arguments for t in types]
    tree = Tree(tuple, (), (Tree(tuple, (), tuple([t for t, _ in arguments])), Tree(dict)))
    apart = Arguments(tree, tracers(kinds), (DATA,) * len(kinds), (None,) * len(kinds))
    since, line = next(serials), _line_of(function)

    def whole(*args: Any) -> Any:
        leaves, found = flatten(function(*args))
        values = [_as_tensor(x, f"{what}: result of the function{line}") for x in leaves]
        if trace.now.autocast is not None:
            values[: len(wanted)] = map(_uncast, values, wanted)
        return found.build(values)

    traced = trace_function(whole, apart)
    drawn = [isinstance(x, Drawn) and x.serial > since for x in traced.captured]
    result = traced.result
    return Body(
        traced.function, result.tree, traced.captured, tuple(drawn), result.written,
        traced.changed, line,
    )  # fmt: skip


def _uncast(x: Any, wanted: TensorType) -> Any:
    lazy = lazy_of(x)
    both = lazy.type.dtype.is_floating and wanted.dtype.is_floating
    return wrap(cast(lazy, wanted.dtype)) if both else x


def _line_of(function: Function) -> str:
    code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
    return "" if code is None else f" (at {Source(code.co_filename, code.co_firstlineno)})"


def agree(
    what: str, left: tuple[Tree, Sequence[TensorType]], right: tuple[Tree, Sequence[TensorType]]
) -> None:
    """Refuse two nested structures that differ, or whose leaves have other types.

    Raises:
        TreeError: states `what` was expected, and both structures, one leaf per line.
    """
    if left[0] == right[0] and tuple(left[1]) == tuple(right[1]):
        return
    a, b = described(*left), described(*right)
    kinds = "" if a != b else f"\n  containers: {left[0]} | {right[0]}"
    raise TreeError(f"{what}:{lines(a, b)}{kinds}\n {at_user_line()}".rstrip())


def described(tree: Tree, types: Iterable[TensorType]) -> list[str]:
    """One line for each leaf: its path, if nested, and its type.

    >>> described(flatten({"h": 1, "c": [2]})[1], ["float32[3]", "int32[]"])
    ["['h'] float32[3]", "['c'][0] int32[]"]
    """
    return [f"{place} {kind}".strip() for place, kind in zip(_places(tree), types, strict=True)]


def _places(tree: Tree, before: str = "") -> list[str]:
    if tree.kind is None:
        return [before]
    keys = tree.keys or range(len(tree.children))
    pairs = zip(keys, tree.children, strict=False)
    return [place for key, child in pairs for place in _places(child, f"{before}[{key!r}]")]


def union(*groups: Iterable[Lazy]) -> tuple[Lazy, ...]:
    """All values, without duplicates."""
    return tuple(dict.fromkeys(x for group in groups for x in group))
