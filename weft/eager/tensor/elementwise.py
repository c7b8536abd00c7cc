"""Elementwise operations on tensors: dtype promotion, and a cache of their plans."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from weft.eager.record.lazy import Lazy
from weft.eager.record.plan import Plan, further_plans, intern, op_plan
from weft.eager.record.state import trace
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


class Plans(dict[Any, Found]):
    """The plans of an operation by its operands' types; inputs for bare numbers.

    Only for operands that need no cast, whatever the default dtype. The last lookup is mostly the
    next one, and is recognized without a key: half the cost of a lookup.

    Attributes:
        latest: the operands' types (classes of numbers), the rules, and the entry found.
    """

    __slots__ = ("latest",)
    latest: tuple[Any, Any, Any, Found | None]

    def __init__(self) -> None:
        self.latest = (None, None, None, None)

    def find(self, x: TensorType, y: Any, rules: promotion.Rules) -> Found | None:
        """The entry for operands of type `x` and of type, or class, `y`."""
        found = self.get((rules, id(x), id(y) if type(y) is TensorType else y))
        if found is not None:
            self.latest = (x, y, rules, found)
        return found

    def clear(self) -> None:
        """Forget them all."""
        self.latest = (None, None, None, None)
        super().clear()


_plans: Final[dict[Op, Plans]] = {}


def plans_of(op: Op) -> Plans:
    """The cached plans of an elementwise operation."""
    found = _plans.get(op)
    if found is None:
        found = _plans[op] = Plans()
        further_plans.append(found)
    return found


def unary(op: Op, x: Any, floats: bool = False) -> Any:
    """A unary elementwise operation; with `floats`, integers become floating-point first."""
    like = x if isinstance(x, Handle) else None
    lazy = lazy_of(x)
    dtype = lazy.type.dtype
    if floats and not dtype.is_inexact:
        lazy = cast(lazy, (promotion.TORCH if like is None else like.rules).floating(dtype))
    elif trace.now.autocast is None:
        plans_of(op)[id(lazy.type)] = op_plan(op, (lazy.type,), {}), None
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
    a, kind_a = _operand(x, like is not None, rules)
    b, kind_b = _operand(y, True, rules)
    dtype, called, plan = _plan_binary(op, a, b, floats, rules)
    if op in _COMPARISONS and dtype.is_floating and _are_whole(a, b):
        return _compared.on(like, a, b, name=op.name)
    if dtype is float16 and rules.wraps and any([lacks(z) for z in (a, b) if type(z) in _NUMBERS]):
        wide = [wrap(cast(z, float32), like) if isinstance(z, Lazy) else z for z in (a, b)]
        found = binary(op, wide[0], wide[1], floats)
        return found if found.lazy.type.dtype is bool_ else wrap(cast(found.lazy, dtype), like)
    bare = [kind for kind in (kind_a, kind_b) if kind in _NUMBERS]
    exact = op in _COMPARISONS and int in bare and dtype.is_integer and not rules.wraps
    if exact:
        a, b, dtype = _beyond(a, b, dtype)
    elif plan is not None and any([isinstance(z, Lazy) and z.type.dtype is dtype for z in (a, b)]):
        numbers = numbers_beside(dtype, bare[0], rules) if bare else None
        plans_of(op)[rules, kind_a, kind_b] = plan, numbers  # whatever the default dtype is
    if kind_a in _NUMBERS:
        a = number(a, dtype, rules)
    if kind_b in _NUMBERS:
        b = number(b, dtype, rules)
    return wrap(record(called, (cast(a, dtype), cast(b, dtype)), {})[0], like)


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


def _operand(x: Any, bare: bool, rules: promotion.Rules) -> tuple[Any, Any]:
    """A value (or a Python number itself, if it may stay `bare`) and a key for its type."""
    if bare and type(x) in _NUMBERS:
        return x, type(x)
    lazy = lazy_of(x, None, rules)
    return lazy, id(lazy.type)


def _plan_binary(
    op: Op, a: Any, b: Any, floats: bool, rules: promotion.Rules
) -> tuple[DType, Op, Plan | None]:
    """The common dtype, the operation, and the plan if no operand needs a cast."""
    dtype = common_type([a, b], rules)
    if floats:
        dtype = rules.floating(dtype)
    if op is _SUBTRACT and rules is promotion.TORCH:
        check_truths(a, b)
    if dtype is bool_:
        op = _OF_BOOLS.get(op, op)
        dtype = uint8 if op in _ORDERINGS else dtype
    if any(x.type.dtype is not dtype for x in (a, b) if isinstance(x, Lazy)):
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
    like = kind_of(*xs)
    if like is not None:
        kind = like.lazy.type.dtype
        if kind.is_floating or not floats:
            same = [x.lazy for x in xs if isinstance(x, Handle)]
            if len(same) == len(xs) and all([x.type.dtype is kind for x in same]):
                return same
    rules = promotion.TORCH if like is None else like.rules
    operands = [x if type(x) in _NUMBERS else lazy_of(x, None, rules) for x in xs]
    dtype = common_type(operands, rules)
    if floats:
        dtype = rules.floating(dtype)
    return [cast(x, dtype) if isinstance(x, Lazy) else number(x, dtype, rules) for x in operands]


_compared: Final = recorded(whole_comparison, differentiable=False)
