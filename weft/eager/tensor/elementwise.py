"""Elementwise operations on tensors: dtype promotion, and a cache of their plans."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from weft.eager.record.call.interned_type import intern
from weft.eager.record.call.pattern import Pattern
from weft.eager.record.call.plan import MOST_PLANS, NONE, Plan, family_of, op_plan
from weft.eager.record.call.type_inference import Family
from weft.eager.record.pending.lazy import Lazy
from weft.eager.record.pending.state import trace
from weft.eager.tensor.dispatch import cast, kind_of, lazy_of, record, recorded, wrap
from weft.eager.tensor.dtype import promotion
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.scalar import Numbers, lacks, number, numbers_beside
from weft.errors import DTypeError
from weft.ir.dtype import DType, bool_, float16, float32, float64, uint8
from weft.ir.node import TensorType
from weft.ops.declaration import REGISTRY, Op
from weft.ops.elementwise.compare import whole_comparison

Found = tuple[Plan, Numbers | None]
Call = tuple[Family[Pattern] | None, Numbers | None]
_UNKNOWN: Final[Call] = (None, None)


class Plans(dict[Any, Plan]):
    """The plans of an operation by its operands' types; inputs for bare numbers.

    Only for operands that need no cast, whatever the default dtype. The last lookup is mostly the
    next one, and is recognized without a key: half the cost of a lookup. Keys are identities, of
    what plans keep: Python's cyclic collector need not look at them.

    Attributes:
        latest: the operands' types (classes of numbers), the rules, and what was found.
        calls: what is known of operands of any sizes, by their dtypes and ranks.
        numbers: numbers as inputs, by the classes and dtypes of the operands.
    """

    __slots__ = ("_kept", "calls", "latest", "numbers")
    latest: tuple[Any, Any, Any, Plan | None, Numbers | None]
    calls: dict[Any, Call]
    numbers: dict[Any, Numbers | None]

    def __init__(self) -> None:
        self.latest = (None, None, None, None, None)
        self.calls = {}
        self.numbers = {}
        self._kept = 0

    def find(self, x: Any, y: Any, rules: promotion.Rules) -> Found | None:
        """The plan for operands of these types, or classes."""
        key = (id(x), id(y), id(rules))
        plan = self.get(key)
        if plan is None:
            plan, numbers = self._resized(key, x, y, rules)
            if plan is None:
                return None
        elif y.__class__ is type:
            numbers = self.numbers[rules, x.dtype, y]
        elif x.__class__ is type:
            numbers = self.numbers[rules, x, y.dtype]
        else:
            numbers = None
        self.latest = (x, y, rules, plan, numbers)
        return plan, numbers

    def _resized(
        self, key: Any, x: Any, y: Any, rules: promotion.Rules
    ) -> tuple[Plan | None, Numbers | None]:
        """A plan for other sizes than before."""
        calls = self.calls
        given: Any = (x, y)
        if x.__class__ is TensorType:
            rank = len(x.shape)
            if y.__class__ is TensorType:
                family, numbers = calls.get((rules, x.dtype, rank, y.dtype, len(y.shape)), _UNKNOWN)
                sizes = x.shape + y.shape
            else:
                family, numbers = calls.get((rules, x.dtype, rank, y), _UNKNOWN)
                given, sizes = (x, numbers and numbers.type), x.shape
        elif y.__class__ is TensorType:
            family, numbers = calls.get((rules, x, y.dtype, len(y.shape)), _UNKNOWN)
            given, sizes = (numbers and numbers.type, y), y.shape
        else:
            return None, None
        known = None if family is None else family.find(given, sizes)
        if known is None:
            return None, None
        return self.add(key, Plan(known[1], given, known[0], NONE)), numbers

    def of(self, x: TensorType) -> Plan | None:
        """The plan for one operand of this type."""
        found = self.get(id(x))
        if found is not None:
            return found
        sizes: Any = x.shape
        family, _ = self.calls.get((None, x.dtype, len(sizes)), _UNKNOWN)
        known = None if family is None or type(x) is not TensorType else family.find((x,), sizes)
        if known is None:
            return None
        return self.add(id(x), Plan(known[1], (x,), known[0], NONE))

    def add(self, key: Any, plan: Plan) -> Plan:
        """Add a plan; unused ones are dropped when there are too many."""
        if len(self) >= MOST_PLANS and len(self) >= 2 * self._kept:
            for each in list(self):
                old = self.get(each)  # `None` if another thread drops plans, too
                # The local variable and the call refer to it, too
                if old is not None and sys.getrefcount(old) <= 2 + old.caches:
                    old.caches -= self.pop(each, None) is not None
            self._kept = len(self)
        self[key] = plan
        plan.caches += 1
        return plan

    def learn(self, key: Any, rules: Any, kinds: Sequence[Any], plan: Plan, numbers: Any) -> Plan:
        """Add a plan, and what is known of operands of other sizes.

        Args:
            kinds: types of the operands, classes of those that are `numbers`.
        """
        family = family_of(plan)
        if family is not None:
            self.calls[rules, *_dtypes(kinds, ranks=True)] = family, numbers
        self.numbers[rules, *_dtypes(kinds)] = numbers
        return self.add(key, plan)


def _dtypes(kinds: Sequence[Any], ranks: bool = False) -> list[Any]:
    """Dtypes of types, beside classes of numbers."""
    found: list[Any] = []
    for kind in kinds:
        found.append(kind if type(kind) is type else kind.dtype)
        if ranks and type(kind) is not type:
            found.append(len(kind.shape))
    return found


_plans: Final[dict[Op, Plans]] = {}


def plans_of(op: Op) -> Plans:
    """The cached plans of an elementwise operation."""
    found = _plans.get(op)
    if found is None:
        found = _plans[op] = Plans()
    return found


def unary(op: Op, x: Any, floats: bool = False) -> Any:
    """A unary elementwise operation; with `floats`, integers become floating-point first."""
    like = x if isinstance(x, Handle) else None
    lazy = lazy_of(x)
    dtype = lazy.type.dtype
    if floats and not dtype.is_inexact:
        lazy = cast(lazy, (promotion.TORCH if like is None else like.rules).floating(dtype))
    elif trace.now.autocast is None:
        kind = lazy.type
        plan = plans_of(op).learn(id(kind), None, (kind,), op_plan(op, (kind,), NONE), None)
        return wrap(trace.now.record(plan, (lazy,))[0], like)
    return wrap(record(op, (lazy,), {})[0], like)


_NUMBERS: Final = frozenset({bool, int, float, complex})
# What operations that take no booleans do with two of them
_OF_BOOLS: Final = {
    REGISTRY["add"]: REGISTRY["logical_or"],
    REGISTRY["multiply"]: REGISTRY["logical_and"],
    REGISTRY["maximum"]: REGISTRY["logical_or"],
    REGISTRY["minimum"]: REGISTRY["logical_and"],
}
_SUBTRACT: Final = REGISTRY["subtract"]
_ORDERINGS: Final = frozenset(
    {REGISTRY[name] for name in ("less", "less_equal", "greater", "greater_equal")}
)
_COMPARISONS: Final = _ORDERINGS | {REGISTRY["equal"], REGISTRY["not_equal"]}


def binary(op: Op, x: Any, y: Any, floats: bool = False) -> Any:
    """A binary elementwise operation, with dtype promotion; numbers are inputs.

    Args:
        floats: integers become floating-point first, as in a division.
    """
    like = x if isinstance(x, Handle) else y if isinstance(y, Handle) else None
    rules = promotion.TORCH if like is None else like.rules
    a = _operand(x, like is not None, rules)
    b = _operand(y, True, rules)
    dtype, called, plan = _plan_binary(op, a, b, floats, rules)
    if op in _COMPARISONS and dtype.is_floating and _are_whole(a, b):
        return _compared.on(like, a, b, name=op.name)
    if dtype is float16 and rules.wraps and any([lacks(z) for z in (a, b) if type(z) in _NUMBERS]):
        wide = [wrap(cast(z, float32), like) if isinstance(z, Lazy) else z for z in (a, b)]
        found = binary(op, wide[0], wide[1], floats)
        return found if found.lazy.type.dtype is bool_ else wrap(cast(found.lazy, dtype), like)
    bare = [type(z) for z in (a, b) if type(z) in _NUMBERS]
    exact = op in _COMPARISONS and int in bare and dtype.is_integer and not rules.wraps
    if exact:
        a, b, dtype = _beyond(a, b, dtype)
    elif plan is not None:
        numbers = numbers_beside(dtype, bare[0], rules) if bare else None
        kinds = [z.type if isinstance(z, Lazy) else type(z) for z in (a, b)]
        key = (id(kinds[0]), id(kinds[1]), id(rules))
        plan = plans_of(op).learn(key, rules, kinds, plan, numbers)
    given = [z if isinstance(z, Lazy) else number(z, dtype, rules) for z in (a, b)]
    pair = (cast(given[0], dtype), cast(given[1], dtype))
    found = record(called, pair, {}) if plan is None or exact else trace.now.record(plan, pair)
    return wrap(found[0], like)


def _are_whole(a: Any, b: Any) -> bool:
    return all([isinstance(x, Lazy) and x.type.dtype.is_integer for x in (a, b)])


def _beyond(a: Any, b: Any, dtype: DType) -> tuple[Any, Any, DType]:
    """A number to compare with: infinity in place of an integer that `dtype` cannot hold."""
    limits = np.iinfo(dtype.numpy)
    pair = [
        x if isinstance(x, Lazy) or limits.min <= x <= limits.max else math.copysign(math.inf, x)
        for x in (a, b)
    ]
    return pair[0], pair[1], float64 if any([isinstance(x, float) for x in pair]) else dtype


def _operand(x: Any, bare: bool, rules: promotion.Rules) -> Any:
    """A value, or a Python number itself, if it may stay `bare`."""
    if isinstance(x, np.generic):
        x = rules.bare(x)
    return x if bare and type(x) in _NUMBERS else lazy_of(x, None, rules)


def _plan_binary(
    op: Op, a: Any, b: Any, floats: bool, rules: promotion.Rules
) -> tuple[DType, Op, Plan | None]:
    """The common dtype, the operation, and the plan if no operand needs a cast, now or later."""
    dtype = common_type([a, b], rules)
    if floats:
        dtype = rules.floating(dtype)
    if op is _SUBTRACT and rules is promotion.TORCH:
        check_truths(a, b)
    if dtype is bool_:
        op = _OF_BOOLS.get(op, op)
        dtype = uint8 if op in _ORDERINGS else dtype
    lazies = [x for x in (a, b) if isinstance(x, Lazy)]
    if (
        not lazies
        or trace.now.autocast is not None
        or any(x.type.dtype is not dtype for x in lazies)
    ):
        return dtype, op, None
    kinds = [x.type if isinstance(x, Lazy) else intern(dtype, ()) for x in (a, b)]
    return dtype, op, op_plan(op, kinds, {})


def check_truths(*xs: Any) -> None:
    """Refuse subtraction with booleans, as PyTorch does.

    Raises:
        DTypeError: one of the tensors, values or numbers is boolean.
    """
    for x in xs:
        lazy = x.lazy if isinstance(x, Handle) else x
        if x is True or x is False or (isinstance(lazy, Lazy) and lazy.type.dtype is bool_):
            raise DTypeError.here(
                "subtract: expected numbers, got booleans; use logical_xor() of two of them, "
                "~x for 1 - x, and call float() or int() on them otherwise"
            )


def common_type(operands: Sequence[Any], rules: promotion.Rules) -> DType:
    """The dtype to which values and bare Python numbers are promoted."""
    lazies = [x for x in operands if isinstance(x, Lazy)]
    numbers = [x for x in operands if not isinstance(x, Lazy)]
    dtype = rules.result([x.type for x in lazies]) if lazies else bool_
    for x in numbers:
        dtype = rules.number(x, dtype)
    return dtype


def promoted(*xs: Any, floats: bool = False) -> list[Lazy]:
    """Tensors, arrays and numbers as values of their common dtype.

    Args:
        floats: integers become floating-point.
    """
    same: list[Lazy] = []
    for x in xs:
        if not isinstance(x, Handle):
            break
        lazy = x.lazy
        kind = lazy.type.dtype
        if (same and kind is not same[0].type.dtype) or (floats and kind.kind != "f"):
            break
        same.append(lazy)
    if len(same) == len(xs):
        return same
    like = kind_of(*xs)
    rules = promotion.TORCH if like is None else like.rules
    operands = [_operand(x, True, rules) for x in xs]
    dtype = common_type(operands, rules)
    if floats:
        dtype = rules.floating(dtype)
    return [cast(x, dtype) if isinstance(x, Lazy) else number(x, dtype, rules) for x in operands]


_compared: Final = recorded(whole_comparison, differentiable=False)
