"""What functions share: type promotion and reductions."""

from __future__ import annotations

from typing import Any

from weft.eager.tensor.argument import dims_of
from weft.eager.tensor.dispatch import cast, lazy_of, wrap
from weft.eager.tensor.dtype.promotion import TORCH
from weft.errors import ArgumentError, DTypeError, ShapeError
from weft.ir.node import at_user_line
from weft.ir.shape import show
from weft.ops.warning import warn

REDUCTIONS = ("none", "mean", "sum")


def promoted(*xs: Any) -> list[Any]:
    """Tensors promoted to a common floating type; `None` stays."""
    lazies = [None if x is None else lazy_of(x) for x in xs]
    types = [lazy.type for lazy in lazies if lazy is not None]
    if all(t.dtype is types[0].dtype and t.dtype.is_floating for t in types):
        return list(xs)
    dtype = TORCH.floating(TORCH.result(types))
    return [
        x if lazy is None or lazy.type.dtype is dtype else wrap(cast(lazy, dtype))
        for x, lazy in zip(xs, lazies, strict=True)
    ]


def warn_of_sizes(name: str, input: Any, target: Any) -> None:
    """Warn if a loss would broadcast input and target: usually a mistake."""
    shapes = lazy_of(input).type.shape, lazy_of(target).type.shape
    if shapes[0] != shapes[1]:
        warn(
            f"{name}: the input of shape {show(shapes[0])} and the target of shape "
            f"{show(shapes[1])} broadcast, so that losses are of other pairs than meant, most "
            f"likely; give both one shape{at_user_line()}",
        )


def reduction_of(
    name: str, reduction: str, size_average: bool | None = None, reduce: bool | None = None,
    valid: tuple[str, ...] = REDUCTIONS,
) -> str:  # fmt: skip
    """The reduction that the arguments give; the deprecated `size_average`, `reduce` come first.

    Args:
        name: of the function, for the error.
        reduction: `mean` or `sum` of the losses, or `none`, which returns each of them.
        size_average, reduce: deprecated: `reduce=False` is the reduction `none`,
            `size_average=False` is `sum`.
        valid: the reductions that the function has.

    Raises:
        ArgumentError: the name is unknown.
    """
    for option, value in (("size_average", size_average), ("reduce", reduce)):
        if value is not None and type(value) is not bool:
            raise ArgumentError.here(f"{name}: expected {option} of True or False, got {value!r}")
    if size_average is not None or reduce is not None:
        if reduce is False:
            return "none"
        return "sum" if size_average is False else "mean"
    if reduction not in valid:
        raise ArgumentError.here(
            f"{name}: expected reduction {', '.join(valid)}, got {reduction!r}"
        )
    return reduction


def refuse_complex(name: str, *xs: Any) -> None:
    """Require real numbers.

    Raises:
        DTypeError: a tensor is complex.
    """
    for x in xs:
        dtype = lazy_of(x).type.dtype
        if dtype.is_complex:
            raise DTypeError.here(f"{name}: expected real numbers, got {dtype}")


def check_factors(name: str, losses: tuple[int, ...], weight: Any, what: str = "weight") -> None:
    """Require factors that broadcast to the losses without changing their shape.

    Factors (N, 1) of losses (N) would pair each factor with each loss.

    Raises:
        ShapeError: they do not.
    """
    factors = losses if weight is None else dims_of(weight)
    own = losses[len(losses) - len(factors) :] if len(factors) <= len(losses) else ()
    if len(own) != len(factors) or any(g not in (1, n) for g, n in zip(factors, own, strict=True)):
        raise ShapeError.here(
            f"{name}: expected a {what} that broadcasts to the losses' shape {show(losses)}, got "
            f"{show(factors)}; reshape it"
        )


def check_equal_factors(name: str, input: Any, weight: Any) -> None:
    """Require one factor for each element of the input.

    Raises:
        ShapeError: the shapes differ.
    """
    if weight is not None and dims_of(weight) != dims_of(input):
        raise ShapeError.here(
            f"{name}: expected a weight of the input's shape {show(dims_of(input))}, got "
            f"{show(dims_of(weight))}; weight.expand_as(input) broadcasts"
        )
