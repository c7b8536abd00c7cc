"""Norms of gradients."""

from __future__ import annotations

from typing import Any

from weft.eager.functions.api import stack
from weft.errors import ArgumentError


def grad_norm(module: Any, norm_type: float | str, group_separator: str = "/") -> dict[str, Any]:
    """The norms of all gradients by name, and that of all together, `grad_2.0_norm_total`.

    Args:
        norm_type: the order; `"inf"` is the largest element.
        group_separator: between the kind and the parameter's name.

    Raises:
        ArgumentError: the order is not positive.
    """
    order = float(norm_type)
    if order <= 0:
        raise ArgumentError.here(f"grad_norm: expected a positive order, got {norm_type!r}")
    found = {
        f"grad_{order}_norm{group_separator}{name}": p.grad.detach().norm(order)
        for name, p in module.named_parameters()
        if p.grad is not None
    }
    if found:
        whole = stack(list(found.values())).norm(order)
        found[f"grad_{order}_norm_total"] = whole
    return found
