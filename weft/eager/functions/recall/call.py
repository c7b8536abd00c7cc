"""What is known of the calls of a function, by the types of tensors and the other arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from types import EllipsisType
from typing import Any, Final, NamedTuple

from weft.eager.functions.indexing.basic_index import Part, cut_of
from weft.eager.record.call.plan import Plan, SizedPlan
from weft.eager.record.pending.lazy import Number
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.size import Size
from weft.eager.tensor.view.view_transform import Cut, Permuted, Shaped
from weft.ir.dtype import DType
from weft.ir.node import TensorType

MOST_CALLS: Final = 256  # of a shape: they keep their plans alive; forgotten together

Ref = tuple[str, int]
"""An input of a recorded call: an argument "x", a number "n", or the result "y" of an earlier one,
and which of these."""


class Shape(NamedTuple):
    """How a function is called, and what it records.

    Attributes:
        positional: how many arguments have no names.
        names: those of the others.
        tensors: which arguments are tensors.
        steps: the inputs of each recorded call.
        views: how many results are views of the only tensor: each a recorded call, or none.
        several: whether the results are a tuple.
        of_view: whether the tensor that they show is a view.
        listed: how many of the first arguments are the items of one.
        laid: whether it matters how the tensors lie in memory.
    """

    positional: int
    names: tuple[str, ...]
    tensors: tuple[int, ...]
    steps: tuple[tuple[Ref, ...], ...]
    views: int = 0
    several: bool = False
    of_view: bool = False
    listed: int = 0
    laid: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether one call is recorded, on all tensors in their order."""
        return self.steps == (tuple([("x", i) for i in self.tensors]),)


Found = tuple[Any, tuple[Plan, ...] | None, tuple[Number, ...], Any]
"""The class of the results, the plans, the numbers among their inputs, and the lenses of views."""
_NOTHING: Final[Found] = (None, None, (), None)


class _Sized:
    """What a call records in any sizes."""

    def __init__(self, shape: Shape, found: Found) -> None:
        self._kind, plans, self._numbers, _ = found
        self._plans = [*map(SizedPlan, plans or ())]
        self.last = self._plans[-1]
        self._steps = shape.steps
        self._place = {i: place for place, i in enumerate(shape.tensors)}
        self._plain = shape.is_plain

    def at(self, types: Sequence[TensorType]) -> Found | None:
        """What it records on tensors of these types; `None` if that is not known."""
        if self._plain:  # most calls
            plan = self._plans[0].at(types)
            return None if plan is None else (self._kind, (plan,), self._numbers, None)
        plans: list[Plan] = []
        for each, refs in zip(self._plans, self._steps, strict=True):
            given = [
                types[self._place[i]] if of == "x" else
                plans[i].types[0] if of == "y" else self._numbers[i].type
                for of, i in refs
            ]  # fmt: skip
            plan = each.at(given)
            if plan is None:
                return None
            plans.append(plan)
        return self._kind, tuple(plans), self._numbers, None


Dims = tuple[int, ...]
Seen = Callable[[Dims], tuple[Any, dict[str, Any]] | None]
"""The lens of a view of a tensor of some shape, and the attributes of what is recorded."""


class _SizedView:
    """What a view records in any sizes."""

    def __init__(self, found: Found, seen: Seen) -> None:
        self._kind, plans, _, _ = found
        assert plans is not None
        self.last = SizedPlan(plans[0])
        self._seen = seen

    def at(self, types: Sequence[TensorType]) -> Found | None:
        """What it records on a tensor of this type; `None` if that is not known."""
        dims: Any = types[0].shape  # always known
        seen = self._seen(dims)
        plan = None if seen is None else self.last.at(types, seen[1])
        return seen and plan and (self._kind, (plan,), (), (seen[0],))


def _seen(lens: Any, others: Sequence[Any], reshapes: bool) -> Seen | None:
    """How a lens depends on the shape of the tensor, if that is plain.

    Args:
        reshapes: whether the other arguments are the shape that is asked for.
    """
    if type(lens) in (Part, Cut) and len(others) == 1:
        entries = others[0] if type(others[0]) is tuple else (others[0],)
        if _CUTS.issuperset(map(type, entries)):
            return partial(_sliced, entries)
    if type(lens) is Permuted:  # which follows from the rank
        return partial(_permuted, lens)
    if type(lens) is Shaped and reshapes:
        wanted = tuple(others[0] if len(others) == 1 and type(others[0]) in _TUPLES else others)
        if wanted.count(-1) == 1 and all([(type(n) is int and n > 0) or n == -1 for n in wanted]):
            return partial(_reshaped, wanted, wanted.index(-1), -math.prod(wanted))
    return None


def _sliced(entries: tuple[Any, ...], dims: Dims) -> tuple[Cut, dict[str, Any]]:
    cut = cut_of(entries, dims)
    return cut, cut.static()


def _permuted(lens: Permuted, dims: Dims) -> tuple[Permuted, dict[str, Any]]:
    del dims
    return lens, {"perm": lens.perm}


def _reshaped(
    wanted: Dims, free: int, count: int, dims: Dims
) -> tuple[Shaped, dict[str, Any]] | None:
    rest, wrong = divmod(math.prod(dims), count)
    if wrong:
        return None
    shape = (*wanted[:free], rest, *wanted[free + 1 :])
    return Shaped(shape), {"shape": shape}


class Calls:
    """The calls of one shape.

    Attributes:
        latest: the types of the tensors (and their layouts), the other arguments, the class of the
            first tensor; and what was found.
        parts: the lenses of views of computed tensors, by the other arguments.
        by_dims: whether they depend on the tensor's shape, too, as that of `narrow(-1, 0, 2)` does
            and that of `x[-1]` does not.
        unused: how many calls were remembered since one came again.
        watched: how many calls were remembered.
    """

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        count = shape.positional + len(shape.names) + shape.laid * len(shape.tensors)
        self.latest: tuple[Any, ...] = (*[None] * (count + 1), *_NOTHING)
        self._found: dict[Any, tuple[Found, tuple[TensorType, ...]]] = {}  # by ids of these types
        self._sized: dict[Any, _Sized | _SizedView] = {}  # by dtypes and ranks
        self.parts: dict[Any, Part] = {}
        self.by_dims = False
        self.unused = 0
        self.watched = 0

    def find(self, types: Sequence[TensorType], others: Sequence[Any], kind: Any) -> Found:
        """What a call records, if it is known."""
        try:
            static = tuple([*map(hashable, others)]) if others else ()
        except TypeError:
            return _NOTHING
        found = None
        if self._found:
            found, _ = self._found.get((kind, static, *map(id, types)), (None, ()))
        if found is None and self._sized:
            sized = self._sized.get((kind, static, *_without_sizes(types)))
            if sized is not None:
                found = sized.at(types)
                if found is not None and not sized.last.made:  # these sizes come again
                    self._remember((kind, static, *map(id, types)), found, types)
        if found is None:
            return _NOTHING
        self.unused = 0
        self.latest = (*types, *others, kind, *found)
        return found

    def _remember(self, key: Any, found: Found, types: Sequence[TensorType]) -> None:
        if len(self._found) >= MOST_CALLS:
            self._found.clear()
        self._found[key] = found, tuple(types)

    def learn(
        self, types: Sequence[TensorType], others: Sequence[Any], found: Found, sizeless: bool,
        reshapes: bool = False,
    ) -> None:  # fmt: skip
        """Remember a call.

        Args:
            sizeless: whether sizes do not matter.
            reshapes: whether the other arguments are the shape of the result.

        Raises:
            TypeError: an argument is not known to stay what it is.
        """
        static = tuple([*map(hashable, others)])
        kind, _, _, lenses = found
        self.unused += 1
        if len(self._sized) >= MOST_CALLS:
            self._sized.clear()
        shape = self.shape
        seen = None
        if lenses is not None and not (shape.several or shape.laid):
            seen = _seen(lenses[0], others, reshapes)
        if sizeless and lenses is None and (shape.is_plain or not (shape.listed or shape.laid)):
            self._sized[kind, static, *_without_sizes(types)] = _Sized(self.shape, found)
        elif seen is not None:
            self._sized[kind, static, *_without_sizes(types)] = _SizedView(found, seen)
        else:
            self._remember((kind, static, *map(id, types)), found, types)

    def part(self, dims: Any, others: Sequence[Any]) -> Part | None:
        """The lens of a view of a computed tensor of this shape."""
        try:
            key = hashable(others)
            return self.parts.get((dims, key) if self.by_dims else key)
        except TypeError:
            return None

    def learn_part(self, dims: Any, others: Sequence[Any], lens: Part) -> None:
        """Remember the lens of a view of a computed tensor of this shape.

        Raises:
            TypeError: an argument is not known to stay what it is.
        """
        key = hashable(tuple(others))
        if not self.by_dims and lens.entries not in (tuple(others), *others):
            self.by_dims = True
            self.parts.clear()
        if len(self.parts) >= MOST_CALLS:
            self.parts.clear()
        self.parts[(dims, key) if self.by_dims else key] = lens


def _without_sizes(types: Sequence[TensorType]) -> list[Any]:
    found: list[Any] = []
    for kind in types:
        shape: Any = kind.shape  # always known
        found += (kind.dtype, len(shape), kind.__class__)
    return found


_BOOLS: Final = {False: "False", True: "True"}  # which equal 0 and 1
_BOUNDS: Final = frozenset({int, type(None)})
_PLAIN: Final = frozenset({int, str, type(None), DType, EllipsisType})
_CUTS: Final = frozenset({slice, EllipsisType, type(None)})
_TUPLES: Final = frozenset({tuple, Size})
_INTS: Final = frozenset({int})


def items_of(args: Sequence[Any]) -> tuple[Any, ...]:
    """The tensors in a list or tuple that is the first argument; none if it is another thing."""
    first: Any = args[0] if args else None
    is_list = type(first) in (list, tuple) and all([isinstance(x, Handle) for x in first])
    return tuple(first) if is_list else ()


def are_same(a: Any, b: Any) -> bool:
    """Whether two arguments, which are two objects, are known to mean the same."""
    kind = a.__class__
    if kind is not b.__class__:
        return False
    if kind is slice:
        start, stop, step = b.start, b.stop, b.step  # which may be tensors
        plain = start.__class__ in _BOUNDS and stop.__class__ in _BOUNDS
        return plain and step.__class__ in _BOUNDS and a == b
    if kind is tuple or kind is Size:
        return a == b and _INTS.issuperset(map(type, b))
    return (kind is int or kind is str) and a == b


def hashable(value: Any) -> Any:
    """An argument as a key that equals no other one's.

    Raises:
        TypeError: it is none of which that is known.
    """
    kind = value.__class__
    if kind in _PLAIN:
        return value
    if kind is tuple or kind is Size:
        return value if _INTS.issuperset(map(type, value)) else tuple([*map(hashable, value)])
    if kind is bool:
        return _BOOLS[value]
    if kind is float:
        return (float, value or repr(value))  # 0.0 equals -0.0
    if kind is slice:
        start, stop, step = value.start, value.stop, value.step
        if start.__class__ in _BOUNDS and stop.__class__ in _BOUNDS and step.__class__ in _BOUNDS:
            return (slice, start, stop, step)
        raise TypeError
    raise TypeError
