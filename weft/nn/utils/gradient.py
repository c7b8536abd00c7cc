"""Limits of gradients: `clip_grad_norm_`, `clip_grad_value_`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from weft.eager.functions.creation.constructor import zeros
from weft.eager.tensor.dispatch import recorded, wrap
from weft.eager.tensor.handle import Handle
from weft.errors import GradientError
from weft.ir.dtype import float32
from weft.ir.node import Value
from weft.ir.shape import known, size
from weft.ops.base import at_user_line, catalogue, constant_of
from weft.transport.division import groups_of


def _wide(x: Value) -> Value:
    return catalogue.cast(x, dtype=float32) if x.dtype.size == 2 else x


Groups = tuple[tuple[int, ...], ...]


def _norm_of(xs: Sequence[Value], p: float, groups: Groups) -> Value:
    """The p-norm of all elements of all values.

    Args:
        groups: for each value the numbers of the groups of ranks that have its other parts.
    """
    kinds = dict.fromkeys(groups)
    parts = [
        _part(
            [catalogue.abs(_wide(x)) for x, g in zip(xs, groups, strict=True) if g == kind], p, kind
        )
        for kind in kinds
    ]
    if p == math.inf:
        return parts[0] if len(parts) == 1 else catalogue.max(catalogue.stack(*parts))
    total = parts[0] if len(parts) == 1 else catalogue.add_n(*parts)
    if p == 2:
        return catalogue.sqrt(total)
    return total if p in (0, 1) else catalogue.power(total, 1 / p)


def _part(sizes: Sequence[Value], p: float, groups: tuple[int, ...]) -> Value:
    """What the norm of some absolute values is computed from: a maximum or a sum of powers."""
    if p in (0, math.inf):
        most = catalogue.stack(*[_largest(s) for s in sizes])
        if p == math.inf:
            return _over_ranks(catalogue.max(most), "max", groups)
        # in how many values there is something but 0, as in PyTorch
        some = catalogue.not_equal(_over_ranks(most, "max", groups), constant_of(0, most.dtype))
        return catalogue.sum(catalogue.cast(some, dtype=most.dtype))
    if p == 2:
        powers = [catalogue.sum(s * s) for s in sizes]
    else:
        powers = [catalogue.sum(s if p == 1 else catalogue.power(s, p)) for s in sizes]
    return _over_ranks(catalogue.add_n(*powers), "sum", groups)


def _largest(x: Value) -> Value:
    """The largest of numbers that are not negative; 0 where there are none."""
    return catalogue.max(x) if size(known(x.shape)) else constant_of(0, x.dtype)


def _over_ranks(x: Value, reduction: str, groups: tuple[int, ...]) -> Value:
    for group in groups:
        x = catalogue.all_reduce.all(x, reduction=reduction, group=group)[0]
    return x


@recorded(differentiable=False)
def _limited(most: Value, *grads: Value, p: float, groups: Groups) -> tuple[Value, ...]:
    total = _norm_of(grads, p, groups)
    share = catalogue.cast(most, dtype=total.dtype) / (total + 1e-6)
    factor = catalogue.minimum(share, constant_of(1, total.dtype))
    return total, *[g * catalogue.cast(factor, dtype=g.dtype) for g in grads]


@recorded(differentiable=False)
def _size_of_all(*xs: Value, p: float) -> Value:
    return _norm_of(xs, p, ((),) * len(xs))


@recorded(differentiable=False)
def _bounded(most: Value, *grads: Value) -> tuple[Value, ...]:
    found: list[Value] = []
    for g in grads:
        bound = catalogue.cast(most, dtype=g.dtype)
        found.append(catalogue.minimum(catalogue.maximum(g, -bound), bound))
    return tuple(found)


def _with_gradients(parameters: Any) -> list[Any]:
    each: Iterable[Any] = [parameters] if isinstance(parameters, Handle) else parameters
    return [p for p in each if p.grad is not None]


def _check_finite(total: Any, wanted: bool) -> None:
    if wanted and not math.isfinite(total.item()):
        raise GradientError(
            f"clip_grad_norm_: the norm of the gradients is {total.item()}, so they cannot be "
            f"limited; look for its origin with weft.find_nan{at_user_line()}"
        )


def get_total_norm(
    tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: Any = None
) -> Any:
    """The norm of all elements of all tensors, as if they were one vector."""
    given = [tensors] if isinstance(tensors, Handle) else list(tensors)
    total = _size_of_all(*given, p=float(norm_type)) if given else zeros(())
    _check_finite(total, error_if_nonfinite)
    return total


def clip_grad_norm_(
    parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False,
    foreach: Any = None,
) -> Any:  # fmt: skip
    """Scale all gradients down, in place, where their norm exceeds `max_norm`.

    The norm is that of whole gradients: where parameters are divided among ranks, as by
    `fully_shard`, all ranks call this.

    Args:
        parameters: an iterable of tensors, or one.
        norm_type: the p of the p-norm; may be `inf`.
        error_if_nonfinite: raise where the norm is infinite or NaN; looks at the value.
        foreach: accepted; all gradients are scaled in one program anyway.

    Returns:
        The norm before, as of one vector of all gradients.

    Source: Pascanu et al., "On the difficulty of training recurrent neural networks" (2013).
    """
    params = _with_gradients(parameters)
    grads = [p.grad for p in params]
    if not grads:
        return zeros(())
    groups = tuple([groups_of(p) for p in params])
    static = {"p": float(norm_type), "groups": groups}
    total, *scaled = _limited.record((float(max_norm), *grads), static)
    found = wrap(total)
    _check_finite(found, error_if_nonfinite)
    for g, lazy in zip(grads, scaled, strict=True):
        g.replace(lazy)
    return found


def clip_grad_value_(parameters: Any, clip_value: float, foreach: Any = None) -> None:
    """Limit every element of all gradients, in place, to [-clip_value, clip_value]."""
    grads = [p.grad for p in _with_gradients(parameters)]
    if grads:
        for g, lazy in zip(grads, _bounded.record((float(clip_value), *grads), {}), strict=True):
            g.replace(lazy)
