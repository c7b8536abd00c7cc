"""Softmax and its relatives: probabilities along a dimension."""

from __future__ import annotations

from typing import Any

from weft.documentation import arguments_of
from weft.eager.functions.random.generator import next_counter
from weft.eager.functions.recall.memory import of_any_sizes
from weft.eager.tensor.argument import dims_of
from weft.eager.tensor.dispatch import lazy_of, recorded
from weft.errors import ShapeError
from weft.ir.dtype import as_dtype
from weft.ir.node import Value
from weft.ops.declaration import catalogue
from weft.ops.declaration.fact import Autocast
from weft.ops.random import relaxed

__all__ = ["gumbel_softmax", "log_softmax", "softmax", "softmin"]


@recorded(autocast=Autocast.FLOAT32)
def _softmax(x: Value, *, dim: int) -> Value:
    return catalogue.softmax(x, axis=dim)


@recorded(autocast=Autocast.FLOAT32)
def _log_softmax(x: Value, *, dim: int) -> Value:
    return catalogue.log_softmax(x, axis=dim)


@recorded
def _negative(x: Value) -> Value:
    return -x


def _rows(name: str, input: Any, dim: int | None, dtype: Any) -> tuple[Any, int]:
    """The input in the requested type, and the axis."""
    rank = len(dims_of(input))
    if dim is None:  # PyTorch's default, with its warning
        dim = 0 if rank in (0, 1, 3) else 1
    most = max(rank, 1)
    if not -most <= dim < most:
        raise ShapeError.here(f"{name}: expected a dimension from {-most} to {most - 1}, got {dim}")
    if rank == 0:
        input, dim = _as_vector(input), 0
    return (input if dtype is None else _as_type(input, dtype=as_dtype(dtype))), dim


@recorded
def _as_type(x: Value, *, dtype: Any) -> Value:
    return catalogue.cast(x, dtype=dtype)


@recorded
def _as_vector(x: Value) -> Value:
    return catalogue.reshape(x, shape=(1,))


@recorded
def _as_scalar(x: Value) -> Value:
    return catalogue.reshape(x, shape=())


@of_any_sizes
def softmax(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """`exp(x) / sum(exp(x))` along `dim`, computed in `dtype` if given.

    Args:
        input: any shape.
        dim: the dimension along which the results add up to 1; by default 0 for ranks 0, 1 and 3,
            else 1.
        dtype: the type of computation and result, by default the input's.
    """
    x, axis = _rows("softmax", input, dim, dtype)
    return _ranked(_softmax(x, dim=axis), input)


@of_any_sizes
@arguments_of(softmax)
def log_softmax(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """`log(softmax(x))` along `dim`, computed in `dtype` if given."""
    x, axis = _rows("log_softmax", input, dim, dtype)
    return _ranked(_log_softmax(x, dim=axis), input)


@arguments_of(softmax)
def softmin(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """`softmax(-x)` along `dim`."""
    return softmax(_negative(input), dim, dtype=dtype)


def _ranked(y: Any, input: Any) -> Any:
    """Scalars give scalars."""
    return y if lazy_of(input).type.shape else _as_scalar(y)


_one_hot_of_largest = recorded(relaxed.one_hot_of_largest)
_gumbel_softmax = recorded(relaxed.gumbel_softmax)


def gumbel_softmax(
    logits: Any, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Any:
    """Differentiable samples from a categorical distribution (Jang et al., 2016).

    Args:
        logits: logarithms of probabilities, of any scale.
        tau: temperature.
        hard: one-hot results, with the gradient of the soft ones.
        eps: has no effect.
        dim: the dimension along which they are those of one distribution.
    """
    y = _gumbel_softmax(logits, next_counter(), tau=float(tau), dim=dim)
    return _one_hot_of_largest(y, dim=dim) if hard else y
