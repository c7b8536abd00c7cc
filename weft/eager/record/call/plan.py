"""Call signatures: the types of a recorded call's results, checked once each, and its graph nodes.

Plans are interned: equal operations on equal types with equal attributes share one plan object, so
recordings are compared by identity. Plans that differ only in sizes share a pattern, from which a
plan for other sizes is made without checking the call anew.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from weft.eager.record.call.attribute_pattern import refilled, without
from weft.eager.record.call.interned_type import intern
from weft.eager.record.call.pattern import Expand, Pattern, Static, shared_pattern
from weft.eager.record.call.pieces import PIECES, types_of_pieces
from weft.eager.record.call.placed_type import common_device, device_of, placed
from weft.eager.record.call.type_inference import Family
from weft.ir.graph import Graph, current_graph
from weft.ir.node import TensorType, Value, user_source
from weft.ir.shape import known
from weft.ir.signed_zero import told_apart
from weft.ops.boundary.state import stop_gradient
from weft.ops.declaration import NO_GRADIENT, REGISTRY, Op
from weft.ops.declaration.attribute import freeze
from weft.ops.declaration.memory_check import check_room, has_room, in_memory
from weft.ops.indexing.row_sparse import RowSparse
from weft.transform.gradient import Cotangent, dense

MOST_PLANS: Final = 1 << 13
"""About 10 MB; shapes that change at every step bring new ones each time."""
MOST_FAMILIES: Final = 1 << 12
"""Forgotten together; plans keep their patterns."""


class Plan:
    """One kind of recorded call.

    Attributes:
        pattern: what it shares with calls of other sizes.
        given: the types of the inputs.
        types: of the results.
        static: the attributes.
        caches: how many caches keep it.
        routines: its launches and those of its gradients: `weft.eager.record.listing.call_routine`.
    """

    # `single`, `continuous` and `follows` are the pattern's, which every recorded call reads.
    __slots__ = (
        "_packed", "_routines", "caches", "continuous", "follows", "given", "pattern", "single",
        "static", "types",
    )  # fmt: skip

    def __init__(
        self, pattern: Pattern, given: Sequence[TensorType], types: tuple[TensorType, ...],
        static: Static,
    ) -> None:  # fmt: skip
        self.pattern = pattern
        self.given = given  # also keeps them: their identities are part of keys
        self.types = types
        self.static = static
        self.single = pattern.single
        self.continuous = pattern.continuous
        self.follows = pattern.follows
        self.caches = 0
        self._routines: dict[Any, Any] | None = None
        self._packed: bytes | None = None

    @property
    def routines(self) -> dict[Any, Any]:
        """Made once it is used."""
        if self._routines is None:
            self._routines = {}
        return self._routines

    @property
    def name(self) -> str:
        """Of the operation or function."""
        return self.pattern.name

    @property
    def boundless(self) -> bool:
        """Whether a result is a view larger than its memory."""
        return self.pattern.boundless

    @property
    def inexact(self) -> bool:
        """Whether a result is floating-point or complex."""
        return self.pattern.inexact

    @property
    def variable(self) -> bool:
        """Whether it marks a variable of differentiation."""
        return self.pattern.variable

    @property
    def sizes(self) -> list[int]:
        """In what it differs from others of its pattern, in the inputs, the results and the
        attributes."""
        found: list[int] = []
        if self.pattern.shared:
            for kind in self.given:
                found += kind.shape  # pyright: ignore[reportOperatorIssue]  # always known
            for kind in self.types:
                found += kind.shape  # pyright: ignore[reportOperatorIssue]
            for value in self.static.values():
                without(value, found)
        return found

    @property
    def packed(self) -> bytes:
        """The sizes as native code takes them; none if one is too large for that."""
        if self._packed is None:
            try:
                self._packed = array("q", self.sizes).tobytes()
            except OverflowError:
                self._packed = b""
        return self._packed

    def expand(self, *values: Any) -> Sequence[Cotangent]:
        """Add the nodes to the current graph, given the inputs' values."""
        return self.pattern.expand(values, self.static)

    def __repr__(self) -> str:
        return f"<Plan {self.name}>"


def plan_of(
    name: str, given: Sequence[TensorType], types: Sequence[TensorType],
    expand: Callable[..., Sequence[Cotangent]], differentiable: bool = True,
    flows: Sequence[int] | None = None,
) -> Plan:  # fmt: skip
    """A plan that shares nothing with plans for other sizes.

    Args:
        expand: adds the nodes to the current graph, given the inputs' values.
    """

    def expanded(values: Sequence[Any], static: Mapping[str, Any]) -> Sequence[Cotangent]:
        del static
        return expand(*values)

    for dtype, shape in types:
        check_room(name, known(shape), dtype)
    pattern = Pattern(name, types, expanded, differentiable, flows=flows)
    return Plan(pattern, given, interned(types), {})


def interned(types: Sequence[TensorType]) -> tuple[TensorType, ...]:
    """Types as those of values."""
    return tuple([intern(t.dtype, known(t.shape), device_of(t)) for t in types])


_plans: Final[dict[Any, Plan]] = {}
_kept: Final = [0]  # how many of them programs used when the others were dropped
_families: Final[dict[Any, Family[Pattern] | None]] = {}  # `None` if met once only


def remember(key: Any, plan: Plan) -> Plan:
    """Add a plan to the cache; unused ones are dropped when there are too many."""
    if len(_plans) >= MOST_PLANS and len(_plans) >= 2 * _kept[0]:
        _forget()
    _plans[key] = plan
    plan.caches += 1
    return plan


def _forget() -> None:
    """Drop plans, except those of cached programs, which would have to be compiled again."""
    for key in list(_plans):
        plan = _plans.get(key)  # `None` if another thread drops plans, too
        # The local variable and the call refer to it, too
        if plan is not None and sys.getrefcount(plan) <= 2 + plan.caches:
            plan.caches -= _plans.pop(key, None) is not None
    _kept[0] = len(_plans)


recall: Final = _plans.get
"""The plan cached under a key, or `None`."""


def placeholders(types: Sequence[TensorType]) -> list[Value]:
    """Stand-ins for inputs of these types, in the current graph."""
    add = current_graph().add  # not through the catalogue: there is nothing to check
    return [
        add("placeholder", (), {"dtype": t.dtype, "shape": t.shape}, (t,)).outputs[0] for t in types
    ]


def op_plan(op: Op, types: Sequence[TensorType], attrs: Static) -> Plan:
    """The plan of a catalogue operation.

    Raises:
        WeftError: the inputs do not fit; the message names the user's line.
    """
    key = (id(op), *map(id, types), *(attrs and _parts(attrs)))
    try:
        found = recall(key)
    except TypeError:  # attributes that have to be frozen
        attrs = {k: freeze(v) for k, v in attrs.items()}
        key = (id(op), *map(id, types), *(attrs and _parts(attrs)))
        found = recall(key)
    return found or remember(key, _resized(op, types, attrs) or _op_plan(op, types, attrs))


NONE: Final[Static] = {}
"""The attributes of calls without any."""


def family_of(plan: Plan) -> Family[Pattern] | None:
    """What is known of calls that differ from a plan in sizes."""
    return _families.get(_key(plan.pattern.called, plan.given, plan.static, []))


def _op_plan(op: Op, types: Sequence[TensorType], attrs: Static) -> Plan:
    def expand(values: Sequence[Any], static: Mapping[str, Any]) -> Sequence[Cotangent]:
        return op.node(tuple(values), static).outputs

    def derive(types: Sequence[TensorType], static: Static) -> tuple[TensorType, ...]:
        return op.types(tuple(types), static)

    flows = op.vjp is not NO_GRADIENT and op is not stop_gradient
    frozen = {k: freeze(v) for k, v in attrs.items()}
    return _checked(op.name, op, types, frozen, derive, expand, flows, op.facts.view)


def function_plan(
    function: Callable[..., Any], types: Sequence[TensorType], static: Static,
    differentiable: bool = True, takes_rows: bool = False, view: bool = False,
) -> Plan:  # fmt: skip
    """The plan of a function from graph values to one or several graph values.

    Args:
        function: pure; called as `function(*values, **static)` whenever nodes are needed.
        static: hashable arguments that decide the structure.
        view: whether its result is a view of its first input, without memory of its own.

    Raises:
        WeftError: whatever the function's operations raise for these types.
    """
    key = (function, *map(id, types), *(static and _parts(static)))
    found = recall(key)
    if found is not None:
        return found
    found = _resized(function, types, static)
    if found is not None:
        return remember(key, found)

    def expand(values: Sequence[Any], static: Mapping[str, Any]) -> Sequence[Cotangent]:
        result = function(*values, **static)
        return tuple(result) if isinstance(result, tuple | list) else (result,)

    def derive(types: Sequence[TensorType], static: Static) -> tuple[TensorType, ...]:
        if function in PIECES:
            return types_of_pieces(PIECES[function](**static), types, partial(_derived, function))
        return _derived(function, types, static)

    name = getattr(function, "__name__", type(function).__name__).strip("_")
    with in_memory(name):
        found = _checked(name, function, types, static, derive, expand, differentiable, view)
    found.pattern.takes_rows = takes_rows
    return remember(key, found)


def _derived(
    function: Callable[..., Any], types: Sequence[TensorType], static: Static
) -> tuple[TensorType, ...]:
    """The types of a function's results."""
    graph = Graph()
    with graph.as_default(), graph.at(user_source()):  # looked up once, not for every node
        found = function(*placeholders(types), **static)
        ys = found if isinstance(found, tuple | list) else (found,)
        return tuple([dense(y).type for y in ys])


class SizedPlan:
    """Gives the plans of a call in other sizes, where that is known without checking it anew.

    Args:
        like: a plan of the call.

    Attributes:
        made: whether the latest plan is new.
    """

    def __init__(self, like: Plan) -> None:
        self.made = False
        called, self._static = like.pattern.called, like.static
        sizes: list[int] = []
        self._key = _key(called, like.given, self._static, sizes)
        self._family: Family[Pattern] | None = None
        self._count = sum([len(known(t.shape)) for t in like.given])
        self._rest = sizes[self._count :]  # those among the attributes
        self._form = [without(value, []) for value in self._static.values()]
        self._head = id(called) if isinstance(called, Op) else called
        self._tail = tuple(_parts(self._static))

    def at(self, types: Sequence[TensorType], static: Static | None = None) -> Plan | None:
        """The plan for inputs of these types, whose ranks and dtypes are those of the call.

        Args:
            static: attributes that differ from the call's in integers; by default the same.
        """
        tail = self._tail if static is None else _parts(static)
        key = (self._head, *map(id, types), *tail)
        found = recall(key)
        self.made = found is None
        if found is not None:
            return found
        family = self._family
        if family is None:
            family = self._family = _families.get(self._key)
            if family is None:
                return None
        sizes: list[int] = []
        for kind in types:
            sizes += kind.shape  # pyright: ignore[reportOperatorIssue]  # always known
        if static is None:
            static = self._static
            sizes += self._rest
        elif [without(value, sizes) for value in static.values()] != self._form:
            return None
        known = family.find(types, sizes)
        return known and remember(key, Plan(known[1], types, known[0], static))


def _key(
    called: Any, types: Sequence[TensorType], static: Static, sizes: list[int]
) -> tuple[Any, ...]:
    """A call without its sizes, which are appended to `sizes`; empty on other CPUs."""
    key: list[Any] = [called]
    for kind in types:
        if kind.__class__ is not TensorType:
            return ()
        shape: Any = kind.shape  # always known
        key.append(kind.dtype)
        key.append(len(shape))
        sizes += shape
    for name, value in static.items():
        kind = value.__class__
        if kind is int:
            sizes.append(value)
        key.append(name)
        key.append(int if kind is int else told_apart(without(value, sizes)))
    return tuple(key)


def _parts(static: Static) -> Iterable[Any]:
    """Attributes as parts of a key."""
    if float in map(type, static.values()):
        return [(k, told_apart(v)) for k, v in static.items()]
    return static.items()


def _resized(called: Any, types: Sequence[TensorType], static: Static) -> Plan | None:
    """The plan of a call, if the types of its results follow from those for other sizes."""
    sizes: list[int] = []
    family = _families.get(_key(called, types, static, sizes))
    found = None if family is None else family.find(types, sizes)
    return None if found is None else Plan(found[1], types, found[0], static)


def _checked(
    name: str, called: Any, types: Sequence[TensorType], static: Static,
    derive: Callable[[Sequence[TensorType], Static], tuple[TensorType, ...]], expand: Expand,
    differentiable: bool, view: bool,
) -> Plan:  # fmt: skip
    """The plan of a call that is checked, and learned for calls of other sizes."""
    device = common_device(name, types)
    results = derive(types, static)
    for dtype, shape in results:
        check_room(name, known(shape), dtype, view)
    boundless = view and not all([has_room(known(t.shape), t.dtype) for t in results])
    if device:
        results = tuple([placed(t, device) for t in results])
        pattern = Pattern(name, results, expand, differentiable, called, boundless=boundless)
        return Plan(pattern, types, interned(results), static)
    sizes: list[int] = []
    key = _key(called, types, static, sizes)
    pattern = shared_pattern(key, name, results, expand, differentiable, called, boundless)

    def derived(sizes: Sequence[int]) -> tuple[TensorType, ...]:
        left = iter(sizes)
        other = [TensorType(t.dtype, refilled(known(t.shape), left)) for t in types]
        return derive(other, {k: refilled(v, left) for k, v in static.items()})

    if key not in _families:
        if len(_families) >= MOST_FAMILIES:
            _families.clear()
        _families[key] = None
    else:
        family = _families[key]
        if family is None:
            count = sum([len(known(t.shape)) for t in types])
            family = _families[key] = Family(len(sizes), count)
        family.learn(types, sizes, results, pattern, derived)
    return Plan(pattern, types, interned(results), static)


def transfer_plan(kind: TensorType, device: int) -> Plan:
    """The plan of moving a tensor of this type to a CPU."""
    key = ("transfer", id(kind), device)
    found = recall(key)
    if found is None:
        identity = REGISTRY["identity"]

        def expand(*values: Value) -> Sequence[Cotangent]:
            return identity.node(values, {}).outputs

        found = remember(key, plan_of("to", (kind,), [placed(kind, device)], expand))
    return found


def accepted_input(value: Cotangent, plan: Plan) -> Cotangent:
    """An input as a plan takes it: row-sparse only if the plan supports that."""
    return value.dense() if isinstance(value, RowSparse) and not plan.pattern.takes_rows else value
