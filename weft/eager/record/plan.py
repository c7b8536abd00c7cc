"""Call signatures: the types of a recorded call's results, checked once each, and its graph nodes.

Plans are interned: equal operations on equal types with equal attributes share one plan object, so
recordings are compared by identity.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from operator import index
from typing import Any, Final

from weft.eager.record.placed_type import common_device, device_of, placed
from weft.eager.record.type_inference import foreseen
from weft.ir.dtype import DType
from weft.ir.graph import Graph, current_graph
from weft.ir.node import TensorType, Value, user_source
from weft.ir.shape import known
from weft.ops.declaration import NO_GRADIENT, REGISTRY, Op
from weft.ops.declaration.attribute import freeze
from weft.ops.declaration.memory_check import check_room, has_room, in_memory
from weft.ops.indexing.row_sparse import RowSparse
from weft.ops.shape.creation import zeros_like
from weft.transform.gradient import Cotangent, dense, gradients

MOST_PLANS: Final = 1 << 13
"""About 10 MB; shapes that change at every step bring new ones each time."""


class Plan:
    """One kind of recorded call.

    Attributes:
        types: of the results.
        boundless: whether a result is a view larger than its memory, such as an expanded tensor.
        differentiable: whether a gradient may flow through it.
        inexact: whether a result is floating-point or complex.
        flows: for each result, a bit mask of the inputs that its gradient may reach.
        single: whether it has one result, whose gradient reaches all inputs or none.
        continuous: whether it is `single` and the gradient reaches all inputs.
        follows: how many leading inputs it sees with their history, as a backward pass does.
        traced: whether it calls a traced function.
        expand: adds the nodes to the current graph, given the inputs' values.
        kind: all that decides it besides the inputs' types; `None` if it is never shared.
        called: the operation or function that is called; `None` if it has no `kind`.
        routines: its launches and those of its gradients: `weft.eager.record.call_routine`.
    """

    __slots__ = (
        "boundless",
        "called",
        "continuous",
        "differentiable",
        "expand",
        "flows",
        "follows",
        "general",
        "inexact",
        "kind",
        "lasting",
        "name",
        "routines",
        "single",
        "takes_rows",
        "traced",
        "types",
        "variable",
    )

    def __init__(
        self, name: str, types: Sequence[TensorType], expand: Callable[..., Sequence[Cotangent]],
        differentiable: bool = True, follows: int = 0, takes_rows: bool = False, kind: Any = None,
        flows: Sequence[int] | None = None, view: bool = False, shared: bool = True,
    ) -> None:  # fmt: skip
        """`shared`: whether calls that differ in sizes may share a program."""
        for dtype, shape in types:
            check_room(name, known(shape), dtype, view)
        self.boundless = view and not all([has_room(known(t.shape), t.dtype) for t in types])
        self.name = name
        self.types = tuple([intern(t.dtype, known(t.shape), device_of(t)) for t in types])
        self.expand = expand
        self.differentiable = differentiable
        self.inexact = any([t.dtype.is_inexact for t in self.types])
        self.single = len(self.types) == 1 and flows is None
        if flows is None:
            flows = [-1 if differentiable and t.dtype.is_inexact else 0 for t in self.types]
        self.flows = tuple(flows)
        self.continuous = self.single and self.flows[0] != 0
        self.follows = follows
        self.lasting = False  # whether its types stay the same while those of other calls change
        self.traced = False
        self.variable = False  # whether it marks a variable of differentiation
        self.takes_rows = takes_rows  # whether inputs may be `RowSparse`
        self.called = None if kind is None else kind[0]
        self.kind = kind if shared else None
        self.general: tuple[object, tuple[int, ...]] | None = None  # kind and sizes apart
        self.routines: dict[Any, Any] = {}

    def __repr__(self) -> str:
        return f"<Plan {self.name}>"


_types: dict[tuple[Any, ...], TensorType] = {}
_plans: dict[Any, Plan] = {}


def intern(dtype: DType, shape: tuple[int, ...], device: int = 0) -> TensorType:
    """The one `TensorType` of this dtype and shape; its `id` may serve as a key.

    Args:
        device: the number of the CPU of such tensors.

    Raises:
        TypeError: a size is no integer, such as 2.0, which is equal to 2.
    """
    key = (dtype, shape, device) if device else (dtype, shape)
    known = _types.get(key)
    if known is None:
        exact = tuple([index(size) for size in shape])
        key = (dtype, exact, *key[2:])
        known = _types.setdefault(key, placed(TensorType(dtype, exact), device))
    return known


def remember(key: Any, plan: Plan) -> Plan:
    """Add a plan to the cache; unused ones are dropped when there are too many."""
    if len(_plans) >= MOST_PLANS:
        _forget()
    _plans[key] = plan
    return plan


def _forget() -> None:
    """Drop plans, except those of cached programs, which would have to be compiled again."""
    for further in further_plans:
        further.clear()
    for key in list(_plans):
        plan = _plans[key]
        if sys.getrefcount(plan) <= 3:  # references of `_plans`, the local variable and the call
            del _plans[key]
    if len(_plans) > MOST_PLANS // 2:
        _plans.clear()


further_plans: Final[list[dict[Any, Any]]] = []
"""Other caches of plans."""


recall: Final = _plans.get
"""The plan cached under a key, or `None`."""


def placeholders(types: Sequence[TensorType]) -> list[Value]:
    """Stand-ins for inputs of these types, in the current graph."""
    add = current_graph().add  # not through the catalogue: there is nothing to check
    return [
        add("placeholder", (), {"dtype": t.dtype, "shape": t.shape}, (t,)).outputs[0] for t in types
    ]


def op_plan(op: Op, types: Sequence[TensorType], attrs: dict[str, Any]) -> Plan:
    """The plan of a catalogue operation.

    Raises:
        WeftError: the inputs do not fit; the message names the user's line.
    """
    ids = tuple(map(id, types))
    try:
        found = recall((op, ids, tuple(attrs.items())))
    except TypeError:  # attributes that have to be frozen
        found = None
    if found is not None:
        return found
    frozen = {k: freeze(v) for k, v in attrs.items()}
    key = (op, ids, tuple(frozen.items()))
    found = recall(key)
    if found is not None:
        return found
    device = common_device(op.name, types)
    found = op.types(tuple(types), frozen)
    if device:
        found = tuple([placed(t, device) for t in found])

    def expand(*values: Value) -> Sequence[Cotangent]:
        return op.node(values, frozen).outputs

    kind = (op, *frozen.items())
    differentiable, view = op.vjp is not NO_GRADIENT, op.facts.view
    plan = Plan(op.name, found, expand, differentiable, kind=kind, view=view, shared=not device)
    return remember(key, plan)


def function_plan(
    function: Callable[..., Any], types: Sequence[TensorType], static: dict[str, Any],
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
    key = (function, tuple(map(id, types)), tuple(static.items()))
    found = recall(key)
    if found is not None:
        return found

    def expand(*values: Cotangent) -> Sequence[Cotangent]:
        result = function(*values, **static)
        return tuple(result) if isinstance(result, tuple | list) else (result,)

    name = getattr(function, "__name__", type(function).__name__).strip("_")
    device = common_device(name, types)
    with in_memory(name):
        outputs = foreseen(function, types, static, _derived)
    if device:
        outputs = tuple([placed(t, device) for t in outputs])
    kind = (function, *static.items())
    plan = Plan(
        name, outputs, expand, differentiable, 0, takes_rows, kind, view=view, shared=not device
    )
    return remember(key, plan)


def transfer_plan(kind: TensorType, device: int) -> Plan:
    """The plan of moving a tensor of this type to a CPU."""
    key = ("transfer", id(kind), device)
    found = recall(key)
    if found is None:
        identity = REGISTRY["identity"]

        def expand(*values: Value) -> Sequence[Cotangent]:
            return identity.node(values, {}).outputs

        found = remember(key, Plan("to", [placed(kind, device)], expand))
    return found


def _derived(
    function: Callable[..., Any], types: Sequence[TensorType], static: dict[str, Any]
) -> tuple[TensorType, ...]:
    """The types of a function's results."""
    graph = Graph()
    with graph.as_default(), graph.at(user_source()):  # looked up once, not for every node
        found = function(*placeholders(types), **static)
        ys = found if isinstance(found, tuple | list) else (found,)
        return tuple([dense(y).type for y in ys])


def gradient_plan(
    ys: Sequence[TensorType],
    given: tuple[bool, ...],
    xs: Sequence[TensorType],
    stop: int,
) -> Plan:
    """The plan of a backward pass.

    Its inputs are `ys`, the given cotangents, `xs`, and values to be treated as constants, in this
    order. Its results are the gradients, zeros for each x that none reaches.
    """
    key = ("gradients", tuple(map(id, ys)), given, tuple(map(id, xs)), stop)
    found = recall(key)
    if found is not None:
        return found
    first = len(ys) + sum(given)

    def expand(*values: Value) -> Sequence[Cotangent]:
        starts = iter(values[len(ys) : first])
        grad_ys = [next(starts) if g else None for g in given]
        targets = values[first : first + len(xs)]
        found = gradients(values[: len(ys)], targets, grad_ys, stop=values[first + len(xs) :])
        return [zeros_like(x) if g is None else g for g, x in zip(found, targets, strict=True)]

    kind = ("gradients", given, len(ys), stop)
    shared = not any(map(device_of, (*ys, *xs)))
    plan = Plan("gradients", xs, expand, follows=len(ys), kind=kind, shared=shared)
    return remember(key, plan)


def accepted_input(value: Cotangent, plan: Plan) -> Cotangent:
    """An input as a plan takes it: row-sparse only if the plan supports that."""
    return value.dense() if isinstance(value, RowSparse) and not plan.takes_rows else value
