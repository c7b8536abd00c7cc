"""Gradient clipping: `clip_grad_norm_`, `clip_grad_value_`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from weft.documentation import arguments_of
from weft.eager.functions.creation.constructor import zeros
from weft.eager.record.call.placed_type import device_of
from weft.eager.record.pending.lazy import Lazy
from weft.eager.tensor.device import moved
from weft.eager.tensor.dispatch import recorded, wrap
from weft.eager.tensor.handle import Handle
from weft.errors import GradientError
from weft.ir.node import TensorType
from weft.ops.reduction import total_norm
from weft.transport.division import groups_of

__all__ = ["clip_grad_norm_", "clip_grad_value_", "get_total_norm"]

_limited = recorded(total_norm.limited, differentiable=False)


_size_of_all = recorded(total_norm.size_of_all, differentiable=False)


_bounded = recorded(total_norm.bounded, differentiable=False)


def _with_gradients(parameters: Any) -> list[Any]:
    each: Iterable[Any] = [parameters] if isinstance(parameters, Handle) else parameters
    return [p for p in each if p.grad is not None]


def _together(tensors: list[Any]) -> list[Any]:
    """Tensors of several devices on that of the first one."""
    first = tensors[0].lazy.type
    return [x if _here(x, first) else wrap(moved(x.lazy, device_of(first))) for x in tensors]


def _here(x: Any, first: TensorType) -> bool:
    return device_of(x.lazy.type) == device_of(first)


def _replaced(tensors: list[Any], new: Iterable[Lazy]) -> None:
    """Change tensors in place to new values, which may be elsewhere."""
    for x, lazy in zip(tensors, new, strict=True):
        x.replace(moved(lazy, device_of(x.lazy.type)))


def _check_finite(total: Any, wanted: bool) -> None:
    if wanted and not math.isfinite(total.item()):
        raise GradientError.here(
            f"clip_grad_norm_: the norm of the gradients is {total.item()}, so they cannot be "
            f"clipped; find its origin with weft.find_nan"
        )


def get_total_norm(
    tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: Any = None
) -> Any:
    """The norm of all elements of all tensors, as of one vector.

    Args:
        tensors: several, or one.
        norm_type: the p of the p-norm; may be `inf`.
        error_if_nonfinite: raise if the norm is infinite or NaN, which needs its value.
        foreach: accepted; the norm is computed in one program anyway.
    """
    several = [tensors] if isinstance(tensors, Handle) else list(tensors)
    total = _size_of_all(*_together(several), p=float(norm_type)) if several else zeros(())
    _check_finite(total, error_if_nonfinite)
    return total


def clip_grad_norm_(
    parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False,
    foreach: Any = None,
) -> Any:  # fmt: skip
    """Scale all gradients down, in place, if their norm exceeds `max_norm`.

    It is the norm of whole gradients: where parameters are sharded over ranks, as by `fully_shard`,
        all ranks call this.

    Args:
        parameters: an iterable of tensors, or one.
        max_norm: the largest norm.
        norm_type: the p of the p-norm; may be `inf`.
        error_if_nonfinite: raise if the norm is infinite or NaN, which needs its value.
        foreach: accepted; all gradients are scaled in one program anyway.

    Returns:
        The norm before clipping, as of one vector of all gradients.

    Source: Pascanu et al., "On the difficulty of training recurrent neural networks" (2013).
    """
    params = _with_gradients(parameters)
    grads = [p.grad for p in params]
    if not grads:
        return zeros(())
    groups = tuple([groups_of(p) for p in params])
    static = {"p": float(norm_type), "groups": groups}
    total, *scaled = _limited.record((float(max_norm), *_together(grads)), static)
    norm = wrap(total)
    _check_finite(norm, error_if_nonfinite)
    _replaced(grads, scaled)
    return norm


@arguments_of(clip_grad_norm_)
def clip_grad_value_(parameters: Any, clip_value: float, foreach: Any = None) -> None:
    """Clip every element of all gradients, in place, to [-clip_value, clip_value].

    Args:
        clip_value: the largest magnitude.
    """
    grads = [p.grad for p in _with_gradients(parameters)]
    if grads:
        _replaced(grads, _bounded.record((float(clip_value), *_together(grads)), {}))
