"""Regularizers and initializers under contrib's names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.errors import ArgumentError
from weft.tf1.elementwise import arithmetic
from weft.tf1.framework.collection import GraphKeys
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.default_graph import get_collection
from weft.tf1.framework.graph import fail, get_default_graph, name_scope
from weft.tf1.nn import activation
from weft.tf1.reduction import reduce_sum
from weft.tf1.variable.initializer import VarianceScaling, xavier_initializer

__all__ = [
    "apply_regularization", "l1_l2_regularizer", "l1_regularizer", "l2_regularizer",
    "sum_regularizer", "variance_scaling_initializer", "xavier_initializer",
    "xavier_initializer_conv2d",
]  # fmt: skip

Regularizer = Callable[[Any], Any]
xavier_initializer_conv2d = xavier_initializer


def _scaled(kind: str, scale: Any, build: Callable[[Any], Any], scope: str | None) -> Regularizer:
    """scale * build(weights); nothing for a scale of 0.

    Raises:
        ArgumentError: a number is below 0 or an integer other than 0, as in TensorFlow.
    """
    if isinstance(scale, int) and scale != 0:
        raise fail(ArgumentError, f"{kind}: expected a floating scale, got {scale}")
    if isinstance(scale, float) and scale < 0:
        raise fail(ArgumentError, f"{kind}: expected scale >= 0, got {scale}")

    def regularizer(weights: Any) -> Any:
        if isinstance(scale, int | float) and scale == 0:
            return None
        with name_scope(scope, kind, [weights]):
            return scale * build(convert_to_tensor(weights))

    return regularizer


def l1_regularizer(scale: Any, scope: str | None = None) -> Regularizer:
    """scale * sum(abs(weights)), as a regularizer for `get_variable`."""
    return _scaled("l1_regularizer", scale, lambda w: reduce_sum(arithmetic.abs(w)), scope)


def l2_regularizer(scale: Any, scope: str | None = None) -> Regularizer:
    """scale * sum(weights ** 2) / 2, as a regularizer for `get_variable`."""
    return _scaled("l2_regularizer", scale, activation.l2_loss, scope)


def l1_l2_regularizer(
    scale_l1: float = 1.0, scale_l2: float = 1.0, scope: str | None = None
) -> Regularizer:
    """The sum of both."""
    return sum_regularizer([l1_regularizer(scale_l1), l2_regularizer(scale_l2)], scope)


def sum_regularizer(
    regularizer_list: Sequence[Regularizer | None], scope: str | None = None
) -> Regularizer:
    """The sum of several regularizers, without `None` among them."""
    chosen = [r for r in regularizer_list if r is not None]

    def regularizer(weights: Any) -> Any:
        with name_scope(scope, "sum_regularizer", [weights]):
            terms = [term for r in chosen if (term := r(weights)) is not None]
            return arithmetic.add_n(terms) if terms else None

    return regularizer


def apply_regularization(regularizer: Regularizer, weights_list: Any = None) -> Any:
    """The sum of a regularizer over variables, which is also added to the regularization losses.

    Args:
        regularizer: a function of a variable.
        weights_list: variables; by default those in `WEIGHTS`.

    Raises:
        ArgumentError: there are none.
    """
    weights = weights_list or get_collection(GraphKeys.WEIGHTS)
    if not weights:
        raise fail(ArgumentError, "apply_regularization: expected variables, got none")
    with name_scope(None, "get_regularization_penalty", weights) as scope:
        terms = [term for w in weights if (term := regularizer(w)) is not None]
        total = arithmetic.add_n(terms or [convert_to_tensor(0.0)], name=scope)
        get_default_graph().add_to_collection(GraphKeys.REGULARIZATION_LOSSES, total)
        return total


def variance_scaling_initializer(
    factor: float = 2.0, mode: str = "FAN_IN", uniform: bool = False, seed: int | None = None,
    dtype: Any = "float32",
) -> VarianceScaling:  # fmt: skip
    """He's initializer by default, with contrib's arguments."""
    distribution = "uniform" if uniform else "truncated_normal"
    return VarianceScaling(factor, mode.lower(), distribution, seed, dtype)
