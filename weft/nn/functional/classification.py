"""Losses of classification: one value per row, averaged by default."""

from __future__ import annotations

from typing import Any

from weft.documentation import arguments_of
from weft.eager.tensor.argument import dims_of
from weft.eager.tensor.dispatch import lazy_of, recorded
from weft.errors import ArgumentError, ShapeError
from weft.ir.shape import show
from weft.nn.functional.common import check_factors, promoted, reduction_of
from weft.nn.functional.embedding import check_indices
from weft.ops.loss import classification as formulas

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cross_entropy",
    "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss", "nll_loss",
]  # fmt: skip

_cross_entropy = recorded(formulas.cross_entropy)


_soft_cross_entropy = recorded(formulas.soft_cross_entropy)


@arguments_of(reduction_of)
def cross_entropy(
    input: Any, target: Any, weight: Any = None, size_average: bool | None = None,
    ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    """`-log(softmax(input)[target])`.

    Args:
        input: logits (N, C), (N, C, d...) or (C).
        target: classes (N), (N, d...) or (), or probabilities of the shape of `input`.
        weight: a factor per class (C); the mean is weighted.
        ignore_index: a target value that is not counted.
        label_smoothing: the share of the target that is spread over all classes.

    Raises:
        ShapeError: the shapes do not fit.
        OutOfRangeError: at execution, a target is not a class; the message names this line.
    """
    if not 0.0 <= label_smoothing <= 1.0:
        raise ArgumentError.here(
            f"cross_entropy: expected label_smoothing from 0 to 1, got {label_smoothing}"
        )
    way = reduction_of("cross_entropy", reduction, size_average, reduce)
    smoothing = float(label_smoothing)
    if lazy_of(target).type.dtype.is_floating:
        _check_like("cross_entropy", input, target)
        _check_class_weight("cross_entropy", dims_of(input), weight)
        xs = promoted(input, target, weight)
        return _soft_cross_entropy(*xs, reduction=way, smoothing=smoothing)
    _check_classes("cross_entropy", input, target, weight)
    return _cross_entropy(
        input, target, weight, ignore_index=ignore_index, reduction=way, smoothing=smoothing
    )


_nll_loss = recorded(formulas.nll_loss)


@arguments_of(cross_entropy)
def nll_loss(
    input: Any, target: Any, weight: Any = None, size_average: bool | None = None,
    ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """`-input[target]`, for log probabilities.

    Args:
        input: log probabilities (N, C), (N, C, d...) or (C).
        target: classes (N), (N, d...) or ().
    """
    way = reduction_of("nll_loss", reduction, size_average, reduce)
    _check_classes("nll_loss", input, target, weight)
    return _nll_loss(input, target, weight, ignore_index=ignore_index, reduction=way)


def _check_like(name: str, input: Any, target: Any) -> None:
    expected, got = dims_of(input), dims_of(target)
    if expected != got:
        raise ShapeError.here(
            f"{name}: expected a target of shape {show(expected)} like the input, got {show(got)}"
            + (
                "; integers are classes: target.long()"
                if got == (expected[0], *expected[2:])
                else ""
            )
        )


def _check_classes(name: str, input: Any, target: Any, weight: Any) -> None:
    x, t = dims_of(input), dims_of(target)
    if not x:
        raise ShapeError.here(f"{name}: expected an input (N, C), got a scalar")
    expected = () if len(x) == 1 else (x[0], *x[2:])
    if t != expected:
        raise ShapeError.here(
            f"{name}: expected a target of shape {show(expected)} for an input {show(x)}, got "
            f"{show(t)}"
        )
    _check_class_weight(name, x, weight)


def _check_class_weight(name: str, x: tuple[int, ...], weight: Any) -> None:
    classes = x[0] if len(x) == 1 else x[1]
    if weight is not None and dims_of(weight) != (classes,):
        raise ShapeError.here(
            f"{name}: expected a weight a class, {show((classes,))}, got {show(dims_of(weight))}"
        )


_binary_cross_entropy = recorded(formulas.binary_cross_entropy)


@arguments_of(reduction_of)
def binary_cross_entropy(
    input: Any, target: Any, weight: Any = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """`-target * log(x) - (1 - target) * log(1 - x)`; logarithms are clipped at -100.

    Args:
        input: probabilities, any shape.
        target: probabilities, of the same shape.
        weight: factors that broadcast to the losses.

    Raises:
        OutOfRangeError: at execution, an input or target is outside [0, 1];
            `binary_cross_entropy_with_logits` takes any input.
    """
    way = reduction_of("binary_cross_entropy", reduction, size_average, reduce)
    _check_like("binary_cross_entropy", input, target)
    check_factors("binary_cross_entropy", dims_of(input), weight)
    return _binary_cross_entropy(*promoted(input, target, weight), reduction=way)


_binary_cross_entropy_with_logits = recorded(formulas.binary_cross_entropy_with_logits)


@arguments_of(binary_cross_entropy)
def binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: Any = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean", pos_weight: Any = None,
) -> Any:  # fmt: skip
    """`binary_cross_entropy` of `sigmoid(input)`, stable for any logits.

    Args:
        input: logits, any shape.
        weight: factors that broadcast to the losses.
        pos_weight: factors of the positive term, which broadcast.
    """
    way = reduction_of("binary_cross_entropy_with_logits", reduction, size_average, reduce)
    _check_like("binary_cross_entropy_with_logits", input, target)
    check_factors("binary_cross_entropy_with_logits", dims_of(input), weight)
    check_factors("binary_cross_entropy_with_logits", dims_of(input), pos_weight, "pos_weight")
    xs = promoted(input, target, weight, pos_weight)
    return _binary_cross_entropy_with_logits(*xs, reduction=way)


_multilabel_soft_margin_loss = recorded(formulas.multilabel_soft_margin_loss)


@arguments_of(reduction_of)
def multilabel_soft_margin_loss(
    input: Any, target: Any, weight: Any = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """The mean over classes of `binary_cross_entropy_with_logits`.

    Args:
        input: logits (N, C) or (C).
        target: 0 or 1, of the same shape.
        weight: factors that broadcast to the losses.
    """
    way = reduction_of("multilabel_soft_margin_loss", reduction, size_average, reduce)
    check_factors("multilabel_soft_margin_loss", dims_of(input), weight)
    check_factors("multilabel_soft_margin_loss", dims_of(input), target, "target")
    return _multilabel_soft_margin_loss(*promoted(input, target, weight), reduction=way)


_multilabel_margin_loss = recorded(formulas.multilabel_margin_loss)


@arguments_of(reduction_of)
def multilabel_margin_loss(
    input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """`sum over j, i of max(0, 1 - x[y[j]] + x[i]) / classes`, for all i that no y[j] is.

    Args:
        input: (classes) or (N, classes).
        target: integers of the same shape; those before the first negative one are the classes.

    Raises:
        ShapeError: the shapes differ from that.
        DTypeError: the target is not of integers.

    Example:
        >>> import weft as wf
        >>> x, y = wf.tensor([0.1, 0.2, 0.4, 0.8]), wf.tensor([3, 0, -1, 1])
        >>> round(multilabel_margin_loss(x, y).item(), 4)
        0.85
    """
    way = reduction_of("multilabel_margin_loss", reduction, size_average, reduce)
    if dims_of(input) == dims_of(target) == ():
        input, target = input.reshape(1), target.reshape(1)
    shape = dims_of(input)
    if dims_of(target) != shape or len(shape) not in (1, 2) or not shape[-1]:
        raise ShapeError.here(
            "multilabel_margin_loss: expected an input (classes) or (N, classes) and a target of "
            f"its shape, got {show(shape)} and {show(dims_of(target))}"
        )
    check_indices("multilabel_margin_loss", target)
    return _multilabel_margin_loss(input, target, reduction=way)


_multi_margin_loss = recorded(formulas.multi_margin_loss)


@arguments_of(reduction_of)
def multi_margin_loss(
    input: Any, target: Any, p: int = 1, margin: float = 1.0, weight: Any = None,
    size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """`sum over i != t of max(0, margin - x[t] + x[i]) ** p / classes`.

    Args:
        input: scores (N, classes) or (classes).
        target: the class t, (N) or ().
        p: 1 or 2.
        margin: by how much the score of the class should exceed the others.
        weight: a factor for each class.
    """
    if p not in (1, 2):
        raise ArgumentError.here(f"multi_margin_loss: expected p 1 or 2, got {p}")
    input = input if dims_of(input) else input.reshape(1)
    shape = dims_of(input)
    if len(shape) not in (1, 2) or not shape[-1] or dims_of(target) not in (shape[:-1], (1,)):
        raise ShapeError.here(
            f"multi_margin_loss: expected an input (classes) and a target (), or (N, classes) and "
            f"(N), got {show(shape)} and {show(dims_of(target))}"
        )
    if weight is not None and dims_of(weight) != shape[-1:]:
        raise ShapeError.here(
            f"multi_margin_loss: expected a weight a class, {show(shape[-1:])}, got "
            f"{show(dims_of(weight))}"
        )
    way = reduction_of("multi_margin_loss", reduction, size_average, reduce)
    return _multi_margin_loss(input, target, weight, p=int(p), margin=float(margin), reduction=way)
