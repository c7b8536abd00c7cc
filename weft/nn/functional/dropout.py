"""Dropout of elements, or of whole channels, in training."""

from __future__ import annotations

from typing import Any

from weft.documentation import arguments_of
from weft.eager.functions.random.generator import next_counter
from weft.eager.tensor.argument import dims_of
from weft.eager.tensor.dispatch import lazy_of, recorded, wrap
from weft.eager.tensor.view.inplace import write
from weft.errors import ArgumentError, ShapeError
from weft.ir.node import Value
from weft.ir.shape import known, show
from weft.ops.declaration import catalogue
from weft.ops.layer.alpha_dropout import alpha_dropout as alpha_dropout_node
from weft.ops.random import counter_based as nodes
from weft.ops.random.counter_based import SEED

__all__ = [
    "alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout",
]  # fmt: skip


@recorded
def _dropout(x: Value, counter: Value, *, p: float, shared: int) -> Value:
    """`shared`: how many trailing dimensions share one random decision."""
    mask = nodes.bernoulli(counter, SEED, _decisions(x, shared), 1.0 - p)
    return catalogue.dropout(x, mask, rate=p)


def _decisions(x: Value, shared: int) -> tuple[int, ...]:
    dims = known(x.shape)
    return (*dims[: len(dims) - shared], *[1] * shared)


@recorded
def _alpha_dropout(x: Value, counter: Value, *, p: float, shared: int) -> Value:
    mask = nodes.bernoulli(counter, SEED, _decisions(x, shared), 1.0 - p)
    return alpha_dropout_node(x, mask, rate=p)


def check_rate(name: str, p: float) -> None:
    """Require a probability."""
    if not 0.0 <= p <= 1.0:
        raise ArgumentError.here(f"{name}: expected a probability p from 0 to 1, got {p}")


def _drop(
    name: str, function: Any, x: Any, p: float, training: bool, inplace: bool, shared: int = 0
) -> Any:
    check_rate(name, p)
    if not training or p == 0.0:
        lazy_of(x)  # refuses what is none
        return x
    lazy = function.record((x, next_counter()), {"p": float(p), "shared": shared})[0]
    return write(x, lazy, name) if inplace else wrap(lazy, x)


def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """0 with probability `p`, else `x / (1 - p)`, in training; `x` otherwise.

    Args:
        input: any shape.
        p: the probability of leaving an element or channel out.
        training: whether anything is left out.
        inplace: replace the input by the result.

    Source: Srivastava et al., "Dropout" (2014).
    """
    return _drop("dropout", _dropout, input, p, training, inplace)


@arguments_of(dropout)
def alpha_dropout(input: Any, p: float = 0.5, training: bool = False, inplace: bool = False) -> Any:
    """Dropout that keeps mean and variance, for networks with `selu`."""
    return _drop("alpha_dropout", _alpha_dropout, input, p, training, inplace)


def _inner(name: str, input: Any, ranks: tuple[int, ...], spatial: int | None) -> int:
    """The number of dimensions of a channel."""
    shape = dims_of(input)
    if len(shape) not in ranks:
        listed = " or ".join(map(str, ranks))
        raise ShapeError.here(
            f"{name}: expected an input of rank {listed}, got shape {show(shape)}"
        )
    return max(len(shape) - 2, 0) if spatial is None else spatial


@arguments_of(dropout)
def dropout1d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Dropout of whole channels of (N, C, L) or (C, L)."""
    shared = _inner("dropout1d", input, (2, 3), 1)
    return _drop("dropout1d", _dropout, input, p, training, inplace, shared)


@arguments_of(dropout)
def dropout2d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Dropout of whole channels of (N, C, H, W), (N, C, L) or (N, C)."""
    shared = _inner("dropout2d", input, (2, 3, 4), None)
    return _drop("dropout2d", _dropout, input, p, training, inplace, shared)


@arguments_of(dropout)
def dropout3d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Dropout of whole channels of (N, C, D, H, W) or (C, D, H, W)."""
    shared = _inner("dropout3d", input, (4, 5), 3)
    return _drop("dropout3d", _dropout, input, p, training, inplace, shared)


@arguments_of(dropout)
def feature_alpha_dropout(
    input: Any, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Any:
    """`alpha_dropout` of whole channels, dimension 1."""
    shared = max(len(dims_of(input)) - 2, 0)
    return _drop("feature_alpha_dropout", _alpha_dropout, input, p, training, inplace, shared)
