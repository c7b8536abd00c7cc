"""Losses of regression and of distances: one value per element, averaged by default."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.documentation import arguments_of
from weft.eager.tensor.argument import dims_of
from weft.eager.tensor.dispatch import recorded
from weft.errors import ArgumentError, ShapeError
from weft.ir.shape import show
from weft.nn.functional.common import (
    check_equal_factors,
    check_factors,
    promoted,
    reduction_of,
    refuse_complex,
    warn_of_sizes,
)
from weft.ops.loss import regression as formulas

__all__ = [
    "cosine_embedding_loss", "gaussian_nll_loss", "hinge_embedding_loss", "huber_loss", "kl_div",
    "l1_loss", "margin_ranking_loss", "mse_loss", "poisson_nll_loss", "smooth_l1_loss",
    "soft_margin_loss", "triplet_margin_loss", "triplet_margin_with_distance_loss",
]  # fmt: skip

_mse_loss = recorded(formulas.mse_loss)


@arguments_of(reduction_of)
def mse_loss(
    input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", weight: Any = None,
) -> Any:  # fmt: skip
    """Squared differences.

    Args:
        input: predictions, any shape.
        target: the values they should have, of the same shape.
        weight: a factor for each element, of the input's shape; a mean is divided by their sum.
    """
    warn_of_sizes("mse_loss", input, target)
    check_equal_factors("mse_loss", input, weight)
    way = reduction_of("mse_loss", reduction, size_average, reduce)
    refuse_complex("mse_loss", input, target)
    return _mse_loss(*promoted(input, target, weight), reduction=way)


_l1_loss = recorded(formulas.l1_loss)


@arguments_of(mse_loss)
def l1_loss(
    input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", weight: Any = None,
) -> Any:  # fmt: skip
    """Absolute differences."""
    warn_of_sizes("l1_loss", input, target)
    check_equal_factors("l1_loss", input, weight)
    way = reduction_of("l1_loss", reduction, size_average, reduce)
    return _l1_loss(*promoted(input, target, weight), reduction=way)


_smooth_l1_loss = recorded(formulas.smooth_l1_loss)


@arguments_of(mse_loss)
def smooth_l1_loss(
    input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", beta: float = 1.0,
) -> Any:  # fmt: skip
    """Absolute differences; squared (and scaled) below `beta`.

    Args:
        beta: the difference from which on the loss is linear.
    """
    if beta == 0:
        return l1_loss(input, target, size_average, reduce, reduction)
    if not beta >= 0:
        raise ArgumentError.here(f"smooth_l1_loss: expected beta >= 0, got {beta}")
    warn_of_sizes("smooth_l1_loss", input, target)
    way = reduction_of("smooth_l1_loss", reduction, size_average, reduce)
    return _smooth_l1_loss(*promoted(input, target), beta=float(beta), reduction=way)


_huber_loss = recorded(formulas.huber_loss)


@arguments_of(mse_loss)
def huber_loss(
    input: Any, target: Any, reduction: str = "mean", delta: float = 1.0, weight: Any = None
) -> Any:
    """Half the squared differences; linear beyond `delta` (Huber, 1964).

    Args:
        delta: the difference from which on the loss is linear.
    """
    if not delta > 0:
        raise ArgumentError.here(f"huber_loss: expected delta > 0, got {delta}")
    warn_of_sizes("huber_loss", input, target)
    check_equal_factors("huber_loss", input, weight)
    way = reduction_of("huber_loss", reduction)
    return _huber_loss(*promoted(input, target, weight), delta=float(delta), reduction=way)


_kl_div = recorded(formulas.kl_div)


@arguments_of(reduction_of)
def kl_div(
    input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", log_target: bool = False,
) -> Any:  # fmt: skip
    """Kullback-Leibler divergence: `target * (log(target) - input)`.

    Args:
        input: log probabilities.
        target: probabilities, or their logarithms with `log_target`.
        reduction: `mean`, `sum` or `none`; or `batchmean`, the sum divided by the number of rows,
            as the definition has it.
        log_target: the target contains logarithms of probabilities.
    """
    valid = ("none", "batchmean", "mean", "sum")
    way = reduction_of("kl_div", reduction, size_average, reduce, valid)
    return _kl_div(*promoted(input, target), log_target=bool(log_target), reduction=way)


_hinge_embedding_loss = recorded(formulas.hinge_embedding_loss)


@arguments_of(reduction_of)
def hinge_embedding_loss(
    input: Any, target: Any, margin: float = 1.0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """`x` where the target is 1, `max(0, margin - x)` where it is -1.

    Args:
        input: distances, any shape.
        target: 1 or -1, of the same shape.
        margin: the distance from which on a target of -1 has no loss.
    """
    way = reduction_of("hinge_embedding_loss", reduction, size_average, reduce)
    return _hinge_embedding_loss(*promoted(input, target), margin=float(margin), reduction=way)


_margin_ranking_loss = recorded(formulas.margin_ranking_loss)


@arguments_of(reduction_of)
def margin_ranking_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """`max(0, -target * (x1 - x2) + margin)`.

    Args:
        input1, input2: the scores to compare.
        target: 1 where the first should be larger, -1 where the second should.
        margin: by how much it should be larger.
    """
    way = reduction_of("margin_ranking_loss", reduction, size_average, reduce)
    _check_ranks("margin_ranking_loss", input1, input2, target)
    xs = promoted(input1, input2, target)
    return _margin_ranking_loss(*xs, margin=float(margin), reduction=way)


_soft_margin_loss = recorded(formulas.soft_margin_loss)


@arguments_of(reduction_of)
def soft_margin_loss(
    input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """`log(1 + exp(-target * x))`, targets 1 and -1.

    Args:
        input: scores, any shape.
        target: 1 or -1, of the same shape.
    """
    way = reduction_of("soft_margin_loss", reduction, size_average, reduce)
    check_factors("soft_margin_loss", dims_of(input), target, "target")
    return _soft_margin_loss(*promoted(input, target), reduction=way)


_triplet_margin_loss = recorded(formulas.triplet_margin_loss)


@arguments_of(reduction_of)
def triplet_margin_loss(
    anchor: Any, positive: Any, negative: Any, margin: float = 1.0, p: float = 2,
    eps: float = 1e-6, swap: bool = False, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """`max(0, margin + distance to the positive - distance to the negative)`.

    Args:
        anchor: (N, D) or (D).
        positive: an example of the anchor's class, of its shape.
        negative: an example of another class, of its shape.
        margin: how much farther than the positive one the negative one should be.
        p: the exponent of the distance's norm.
        eps: is added to differences, so that the gradient is defined where they are 0.
        swap: use the distance from the positive to the negative if that is smaller.

    Raises:
        ArgumentError: the margin is not positive.
    """
    _check_margin("triplet_margin_loss", margin)
    _check_ranks("triplet_margin_loss", anchor, positive, negative)
    way = reduction_of("triplet_margin_loss", reduction, size_average, reduce)
    return _triplet_margin_loss(
        *promoted(anchor, positive, negative), margin=float(margin), power=float(p),
        eps=float(eps), swap=bool(swap), reduction=way,
    )  # fmt: skip


def _check_ranks(name: str, *xs: Any) -> None:
    """Vectors (N) beside (N, 1) would pair each element with each."""
    shapes = [dims_of(x) for x in xs]
    if len({len(s) for s in shapes}) > 1:
        raise ShapeError.here(
            f"{name}: expected inputs of one rank, got {', '.join(map(show, shapes))}; reshape them"
        )


def _check_margin(name: str, margin: float) -> None:
    if margin <= 0:
        raise ArgumentError.here(f"{name}: expected margin > 0, got {margin}")


_margin_of_distances = recorded(formulas.margin_of_distances)


@arguments_of(triplet_margin_loss)
def triplet_margin_with_distance_loss(
    anchor: Any, positive: Any, negative: Any, *,
    distance_function: Callable[[Any, Any], Any] | None = None,
    margin: float = 1.0, swap: bool = False, reduction: str = "mean",
) -> Any:  # fmt: skip
    """`triplet_margin_loss` with a custom distance, a function of two tensors.

    Args:
        distance_function: gives the distances of two tensors; by default their 2-norm.
    """
    if distance_function is None:
        return triplet_margin_loss(
            anchor, positive, negative, margin, swap=swap, reduction=reduction
        )
    _check_margin("triplet_margin_with_distance_loss", margin)
    way = reduction_of("triplet_margin_with_distance_loss", reduction)
    other = distance_function(positive, negative) if swap else None
    return _margin_of_distances(
        distance_function(anchor, positive), distance_function(anchor, negative), other,
        margin=float(margin), reduction=way,
    )  # fmt: skip


_cosine_embedding_loss = recorded(formulas.cosine_embedding_loss)


@arguments_of(reduction_of)
def cosine_embedding_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """`1 - cos(x1, x2)` where the target is 1, `max(0, cos(x1, x2) - margin)` where it is -1.

    Args:
        input1, input2: (N, D) or (D).
        target: (N) or ().
        margin: the similarity up to which a target of -1 has no loss.

    Raises:
        ShapeError: the ranks differ from that.
    """
    ranks = [len(dims_of(x)) for x in (input1, input2, target)]
    if ranks not in ([2, 2, 1], [1, 1, 0]):
        raise ShapeError.here(
            f"cosine_embedding_loss: expected inputs (N, D) and a target (N), or (D) and (), got "
            f"{', '.join(show(dims_of(x)) for x in (input1, input2, target))}"
        )
    way = reduction_of("cosine_embedding_loss", reduction, size_average, reduce)
    xs = promoted(input1, input2, target)
    return _cosine_embedding_loss(*xs, margin=float(margin), reduction=way)


_poisson_nll_loss = recorded(formulas.poisson_nll_loss)


@arguments_of(reduction_of)
def poisson_nll_loss(
    input: Any, target: Any, log_input: bool = True, full: bool = False,
    size_average: bool | None = None, eps: float = 1e-8, reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """Negative log likelihood of Poisson counts with the rate `exp(input)` or `input`.

    Args:
        input: rates, or their logarithms, any shape.
        target: counts, of the same shape.
        log_input: the input contains logarithms.
        full: add Stirling's approximation of `log(target!)`.
        eps: is added to rates, so that no logarithm of 0 occurs, if `log_input` is false.
    """
    way = reduction_of("poisson_nll_loss", reduction, size_average, reduce)
    return _poisson_nll_loss(
        *promoted(input, target), log_input=bool(log_input), full=bool(full), eps=float(eps),
        reduction=way,
    )  # fmt: skip


_gaussian_nll_loss = recorded(formulas.gaussian_nll_loss)


@arguments_of(reduction_of)
def gaussian_nll_loss(
    input: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-6,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """Negative log likelihood of normal numbers with mean `input` and variance `var`.

    Args:
        input: means, any shape.
        target: samples, of the same shape.
        var: of the shape of `input`, or with one dimension of 1, or without the last one; or a
            number.
        full: add the constant `log(2 pi) / 2`.
        eps: the least variance.

    Raises:
        ShapeError: `var` has another shape.
        OutOfRangeError: at execution, a variance is negative.
    """
    shape, own = dims_of(input), dims_of(var)
    others = [b for a, b in zip(shape, own, strict=False) if a != b]
    if (
        not isinstance(var, float)
        and own != shape[:-1]
        and (len(own) != len(shape) or others not in ([], [1]))
    ):
        raise ShapeError.here(
            f"gaussian_nll_loss: expected var of shape {show(shape)}, with at most one dimension "
            f"of 1 in place, or {show(shape[:-1])}, got {show(own)}"
        )
    way = reduction_of("gaussian_nll_loss", reduction)
    xs = promoted(input, target, var)
    return _gaussian_nll_loss(*xs, full=bool(full), eps=float(eps), reduction=way)
