"""Selection between values: `where`, masks, clamping and interpolation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft import ops
from weft.eager.functions.deprecated import older
from weft.eager.functions.elementwise.binary import factor_of
from weft.eager.functions.elementwise.declared import maximum, minimum
from weft.eager.record.pending.lazy import Lazy
from weft.eager.tensor.argument import check_same_type
from weft.eager.tensor.dispatch import cast, kind_of, lazy_of, record, recorded, wrap
from weft.eager.tensor.dtype.promotion import TORCH
from weft.eager.tensor.elementwise import promoted
from weft.eager.tensor.handle import Handle
from weft.errors import DTypeError
from weft.ir.dtype import bfloat16, bool_, float16
from weft.ir.node import Value
from weft.ops.declaration import REGISTRY, catalogue
from weft.ops.elementwise import combination

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

__all__ = [
    "addcdiv", "addcmul", "clamp", "clamp_max", "clamp_min", "clip", "lerp", "masked_fill",
]  # fmt: skip

SELECT = REGISTRY["select"]


def chosen(condition: Any, x: Any, other: Any) -> Tensor:
    """`x` where the condition is true, `other` elsewhere, with broadcasting."""
    like = kind_of(condition, x, other)
    a, b = promoted(x, other)
    return wrap(record(SELECT, (truth(condition), a, b), {})[0], like)


def check_mask(name: str, mask: Any) -> None:
    """Refuse bytes as a mask, as PyTorch does.

    Raises:
        DTypeError: names the dtype.
    """
    if isinstance(mask, Handle) and mask.rules is TORCH and mask.lazy.type.dtype is not bool_:
        raise DTypeError.here(
            f"{name}: expected a mask of booleans, got {mask.lazy.type.dtype}; call bool()"
        )


def truth(x: Any) -> Lazy:
    """A value as booleans: whether an element differs from 0."""
    return cast(lazy_of(x), bool_)


def masked_fill(x: Any, mask: Any, value: Any) -> Tensor:
    """`value` where the mask is true, `x` elsewhere; the dtype stays that of `x`.

    Raises:
        DTypeError: a value whose dtype does not fit or with more than one element, or a mask that
            is not boolean.
    """
    check_mask("masked_fill", mask)
    lazy = lazy_of(x)
    dtype = lazy.type.dtype
    filler = lazy_of(value, dtype)
    if filler.type.shape != ():
        raise DTypeError.here(
            f"masked_fill: expected a number, got a tensor of shape {filler.type.shape}; use "
            f"where(mask, value, x)"
        )
    masked = (truth(mask), cast(filler, dtype), lazy)
    return wrap(record(SELECT, masked, {})[0], kind_of(x))


# Limits


@recorded
def _clip(x: Value, low: Value, high: Value) -> Value:
    return catalogue.clip(x, low, high)


def clamp(x: Any, min: Any = None, max: Any = None) -> Tensor:
    """`x` clamped to limits, which are numbers or tensors.

    Raises:
        DTypeError: no limit is given.
    """
    if min is None and max is None:
        raise DTypeError.here("clamp: expected min, max or both, got neither")
    if max is None:
        return maximum(x, min)
    if min is None:
        return minimum(x, max)
    like = kind_of(x, min, max)
    return _clip.on(like, *promoted(x, min, max))


def clip(
    x: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None
) -> Tensor:
    """`clamp` under NumPy's name, also with NumPy's argument names."""
    return clamp(x, a_min if min is None else min, a_max if max is None else max)


def clamp_min(x: Any, min: Any) -> Tensor:
    """`x`, but at least the limit."""
    return maximum(x, min)


def clamp_max(x: Any, max: Any) -> Tensor:
    """`x`, but at most the limit."""
    return minimum(x, max)


# Mixtures


@recorded
def _lerp(start: Value, end: Value, weight: Value) -> Value:
    return ops.lerp(start, end, weight)


def lerp(x: Any, end: Any, weight: Any) -> Tensor:
    """`x + weight * (end - x)`, computed in float32 for half precision.

    Raises:
        DTypeError: tensors of different dtypes.
    """
    check_same_type("lerp", x, end)
    if isinstance(x, Handle) and x.lazy.type.dtype in (bfloat16, float16):
        given: list[Any] = [x, end, weight]
        wide = [y.float() if isinstance(y, Handle) else y for y in given]  # pyright: ignore[reportAttributeAccessIssue]
        found: Any = lerp(*wide)
        return found.to(given[0].dtype)
    like = kind_of(x, end, weight)
    return _lerp.on(like, *promoted(x, end, weight))


_addcmul = recorded(combination.addcmul)


_addcdiv = recorded(combination.addcdiv)


@older("value")
def addcmul(x: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Tensor:
    """`x + value * tensor1 * tensor2`, elementwise with broadcasting.

    Raises:
        DTypeError: a factor that the result's dtype cannot hold.
    """
    like = kind_of(x, tensor1, tensor2)
    inputs = promoted(x, tensor1, tensor2)
    value = factor_of("addcmul", "value", value, inputs[0].type.dtype)
    return _addcmul.on(like, *inputs, lazy_of(value, inputs[0].type.dtype))


@older("value")
def addcdiv(x: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Tensor:
    """`x + value * tensor1 / tensor2`, elementwise with broadcasting.

    Raises:
        DTypeError: integers divided by integers.
    """
    like = kind_of(x, tensor1, tensor2)
    if not any([y.type.dtype.is_inexact for y in promoted(tensor1, tensor2)]):
        raise DTypeError.here(
            "addcdiv: expected floating numbers, got integers; divide them yourself"
        )
    return _addcdiv.on(like, *promoted(x, tensor1, tensor2, value, floats=True))
