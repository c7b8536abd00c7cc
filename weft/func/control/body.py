"""Bodies and branches: functions of nested tensors, traced for the types of their arguments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from weft.eager.functions.creation.constructor import tensor
from weft.eager.record.pending.lazy import Drawn, Lazy, serials
from weft.eager.record.pending.state import trace
from weft.eager.tensor.autograd.tracing import tracers
from weft.eager.tensor.dispatch import cast, lazy_of
from weft.eager.tensor.handle import Handle, handle_of
from weft.errors import TreeError
from weft.func.function import DATA, Arguments, Function, trace_function
from weft.func.tree import Tree, flatten
from weft.ir.dtype import DType
from weft.ir.node import Source, TensorType, Value, at_user_line
from weft.ops.call import Subgraph, inline
from weft.ops.control.agreement import lines
from weft.ops.declaration import catalogue


class Argument(NamedTuple):
    """Nested tensors as a body takes them.

    Attributes:
        kinds: the class of each tensor.
        weak: which were Python numbers, whose type gives way to that of others.
    """

    tree: Tree
    types: Sequence[TensorType]
    kinds: Sequence[type[Any]]
    weak: Sequence[bool]


class Nest(NamedTuple):
    """Nested tensors: the structure, the leaves as given, and their values.

    Attributes:
        kinds: the class of the tensor for each leaf.
    """

    tree: Tree
    leaves: tuple[Any, ...]
    lazies: tuple[Lazy, ...]
    kinds: tuple[type[Any], ...]

    @property
    def types(self) -> tuple[TensorType, ...]:
        """Types of the values."""
        return tuple([x.type for x in self.lazies])

    @property
    def weak(self) -> list[bool]:
        """Which leaves are Python numbers."""
        return list(map(_is_number, self.leaves))

    def handles(self) -> list[Any]:
        """The leaves as tensors; those that are, themselves."""
        rows = zip(self.leaves, self.kinds, self.lazies, strict=True)
        return [x if isinstance(x, Handle) else handle_of(k, v) for x, k, v in rows]

    @property
    def argument(self) -> Argument:
        """The nest as one argument."""
        return Argument(self.tree, self.types, self.kinds, self.weak)

    def arguments(self) -> list[Argument]:
        """Each item of a tuple."""
        rest = iter(zip(self.types, self.kinds, self.weak, strict=True))
        found: list[Argument] = []
        for part in self.tree.children:
            columns = list(zip(*islice(rest, part.size), strict=True)) or [(), (), ()]
            found.append(Argument(part, *columns))
        return found

    def like(self, other: Nest) -> Nest:
        """The same, where numbers and arrays take the class of the first tensor in `other`."""
        kind = next((x.kind for x in other.leaves if isinstance(x, Handle)), None)
        if kind is None:
            return self
        return self.of_kinds([kind] * len(self.kinds))

    def of_kinds(self, kinds: Sequence[type[Any]]) -> Nest:
        """The same, where numbers and arrays take other classes."""
        rows = zip(self.leaves, self.kinds, kinds, strict=True)
        return self._replace(
            kinds=tuple([k if isinstance(x, Handle) else new for x, k, new in rows])
        )

    def of_dtypes(self, dtypes: Sequence[DType]) -> Nest:
        """The same, where numbers have other types."""
        rows = zip(self.leaves, self.lazies, dtypes, strict=True)
        return self._replace(
            lazies=tuple([v if v.type.dtype is d else cast(lazy_of(x, d), d) for x, v, d in rows])
        )


def nest(structure: Any, what: str) -> Nest:
    """Nested tensors, arrays and numbers.

    Numbers and arrays take the class of the first tensor among them.

    Raises:
        TreeError: it contains something else.
    """
    leaves, tree = flatten(structure)
    lazies = tuple([lazy_of(_as_tensor(x, what)) for x in leaves])
    kinds = tuple([x.kind if isinstance(x, Handle) else Handle.default for x in leaves])
    found = Nest(tree, tuple(leaves), lazies, kinds)
    return found.like(found)


def _is_number(x: Any) -> bool:
    return type(x) in (int, float, complex) or getattr(x, "weak", False) is True


def _as_tensor(x: Any, what: str) -> Any:
    if isinstance(x, bool | int | float | complex | np.ndarray | np.generic):
        return tensor(x)
    if not isinstance(x, Handle):
        raise TreeError.here(
            f"{what}: expected nested tensors, arrays and numbers, got a {type(x).__name__} among"
            f" them"
        )
    return x


def tensors(tree: Tree, lazies: Sequence[Lazy], kinds: Sequence[type[Any]]) -> Any:
    """Nested tensors of these classes that hold these values."""
    return tree.build(list(map(handle_of, kinds, lazies)))


class Body(NamedTuple):
    """A traced function of tensors, with its captured values and side effects.

    Attributes:
        function: its inputs are the arguments, then `captured`; its outputs the result, then the
            new values of the arguments in `written` and of the tensors in `changed`.
        tree: the structure of the result.
        kinds: the class of each tensor of the result; `None` for numbers and arrays.
        weak: which results are Python numbers, or such arguments as they were.
        captured: outside values that it uses.
        drawn: which of these are random seeds: every iteration of a loop has its own.
        written: which arguments it changed in place.
        changed: outside tensors that it changed in place.
        line: where the function is defined, for messages.
    """

    function: Subgraph
    tree: Tree
    kinds: tuple[type[Any] | None, ...]
    weak: tuple[bool, ...]
    captured: tuple[Lazy, ...]
    drawn: tuple[bool, ...]
    written: tuple[int, ...]
    changed: tuple[Handle, ...]
    line: str

    @property
    def types(self) -> tuple[TensorType, ...]:
        """Types of the result."""
        return self.function.output_types[: self.tree.size]

    def apply(
        self, arguments: Sequence[Value], outside: dict[Lazy, Value], wanted: Sequence[DType] = ()
    ) -> Outcome:
        """Inline the function.

        Args:
            outside: values that include all captured ones.
            wanted: types of the first results.
        """
        inputs = [*arguments, *[outside[x] for x in self.captured]]
        function = self.function
        if function.backward is None:
            found = inline(function, inputs)
        else:  # the gradient belongs to the call
            found = catalogue.call.all(*inputs, function=function)
        count = self.tree.size
        behind = count + len(self.written)
        first = [
            y if y.dtype is d else catalogue.cast(y, dtype=d)
            for y, d in zip(found, wanted, strict=False)
        ]
        result = [*first, *found[len(first) : count]]
        return Outcome(result, found[count:behind], found[behind:])


class Outcome(NamedTuple):
    """The outputs of a body: its result, changed arguments, changed outside tensors."""

    result: Sequence[Value]
    written: Sequence[Value]
    changed: Sequence[Value]


def body_of(
    what: str, function: Function, arguments: Sequence[Argument],
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
    types = [t for part in arguments for t in part.types]
    kinds = [k for part in arguments for k in part.kinds]
    weak = [w for part in arguments for w in part.weak]
    tree = Tree(tuple, (), (Tree(tuple, (), tuple([a.tree for a in arguments])), Tree(dict)))
    apart = Arguments(tree, tracers(types), (DATA,) * len(types), tuple(kinds))
    since, line = next(serials), _line_of(function)
    given: list[Lazy] = []
    numbers: list[bool] = []
    classes: list[type[Any] | None] = []

    def whole(*args: Any) -> Any:
        leaves, found = flatten(function(*args))
        values = [_as_tensor(x, f"{what}: result of the function{line}") for x in leaves]
        soft = {x for x, w in zip(given, weak, strict=True) if w}
        numbers.extend(
            [_is_number(x) or y.lazy in soft for x, y in zip(leaves, values, strict=True)]
        )
        classes.extend([x.kind if isinstance(x, Handle) else None for x in leaves])
        if trace.now.autocast is not None:
            values[: len(wanted)] = map(_uncast, values, wanted)
        return found.build(values)

    traced = trace_function(whole, apart, begin=given.extend)
    drawn = [isinstance(x, Drawn) and x.serial > since for x in traced.captured]
    result = traced.result
    return Body(
        traced.function, result.tree, tuple(classes), tuple(numbers), traced.captured,
        tuple(drawn), result.written, traced.changed, line,
    )  # fmt: skip


def gives_way(weak: bool, dtype: DType, to: DType) -> bool:
    """Whether a Python number, of type `dtype` so far, may have the type `to`.

    >>> from weft.ir.dtype import float16, int64
    >>> gives_way(True, int64, float16), gives_way(True, float16, int64)
    (True, False)
    """
    return dtype is to or (weak and _rank(dtype) <= _rank(to))


def _rank(dtype: DType) -> int:
    return "biufc".index(dtype.kind.replace("u", "i"))


def _uncast(x: Any, wanted: TensorType) -> Any:
    both = x.lazy.type.dtype.is_floating and wanted.dtype.is_floating
    return handle_of(x.kind, cast(x.lazy, wanted.dtype)) if both else x


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
