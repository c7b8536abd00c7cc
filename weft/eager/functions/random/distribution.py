"""Random tensors drawn with probabilities given by tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.eager.functions.random.generator import Generator, next_counter, scalar
from weft.eager.tensor.dispatch import lazy_of, recorded
from weft.errors import DTypeError, ShapeError
from weft.ir.dtype import as_dtype, float32
from weft.ir.shape import broadcast, known, show
from weft.ops.random import distribution as draws

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor


bernoulli_node = recorded(draws.bernoulli_node, differentiable=False)
_multinomial = recorded(draws.multinomial, differentiable=False)


def bernoulli(
    x: Any, p: float | None = None, *, generator: Generator | None = None, dtype: Any = None
) -> Tensor:
    """Ones with the probabilities in `x` (or `p` everywhere), otherwise zeros, in the dtype of `x`.

    Args:
        dtype: of the result, instead.

    Raises:
        ShapeError: `p` is not between 0 and 1.
        OutOfRangeError: when computed, an element of `x` is not between 0 and 1.

    >>> import weft as wf
    >>> wf.bernoulli(wf.tensor([0.0, 1.0])).tolist()
    [0.0, 1.0]
    """
    kind = lazy_of(x).type
    chances = x if p is None else probability(p, "bernoulli")
    own = kind.dtype if dtype is None else as_dtype(dtype)
    static = {"shape": known(kind.shape), "dtype": own, "check": p is None}
    return bernoulli_node(next_counter(generator), chances, **static)


def probability(p: float, name: str) -> Tensor:
    """A probability as a tensor.

    Raises:
        ShapeError: it is not between 0 and 1.
    """
    if not 0 <= p <= 1:
        raise ShapeError.here(f"{name}: expected p from 0 to 1, got {p}")
    return scalar(p, float32)


_binomial = recorded(draws.binomial, differentiable=False)


def binomial(count: Any, prob: Any, *, generator: Generator | None = None) -> Tensor:
    """Binomial samples: how many of `count` trials with probability `prob` succeed, broadcast.

    Returns:
        In the dtype of `count`; NaN where that is no natural number or a probability is not between
        0 and 1.

    Raises:
        DTypeError: no floating-point tensors of one dtype.

    >>> import weft as wf
    >>> wf.binomial(wf.tensor([3.0, 4.0]), wf.tensor([0.0, 1.0])).tolist()
    [0.0, 4.0]
    """
    kinds = [lazy_of(x).type for x in (count, prob)]
    if kinds[0].dtype is not kinds[1].dtype or not kinds[0].dtype.is_floating:
        raise DTypeError.here(
            f"binomial: expected floating-point tensors of one dtype, got {kinds[0].dtype} and "
            f"{kinds[1].dtype}"
        )
    shape = known(broadcast(*[known(kind.shape) for kind in kinds]))
    static = {"shape": shape, "dtype": kinds[0].dtype}
    return _binomial(next_counter(generator), count, prob, **static)


_poisson = recorded(draws.poisson, differentiable=False)


def poisson(x: Any, generator: Generator | None = None) -> Tensor:
    """Poisson samples with rates `x`, in the dtype of `x`.

    Raises:
        DTypeError: `x` is not floating-point.
        OutOfRangeError: when computed, an element is negative or NaN.

    >>> import weft as wf
    >>> wf.poisson(wf.zeros(2)).tolist()
    [0.0, 0.0]
    """
    kind = lazy_of(x).type
    if not kind.dtype.is_floating:
        raise DTypeError.here(f"poisson: expected floating rates, got {kind.dtype}")
    return _poisson(next_counter(generator), x, dtype=kind.dtype)


def multinomial(
    weights: Any, num_samples: int, replacement: bool = False, *,
    generator: Generator | None = None,
) -> Tensor:  # fmt: skip
    """Draw indices, each with a probability proportional to its weight.

    Args:
        weights: not negative, shape (classes,) or (rows, classes).
        replacement: whether an index may be drawn again.

    Returns:
        int64, shape (num_samples,) or (rows, num_samples).

    Raises:
        ShapeError: weights of another rank, no samples, or more than classes without replacement.
        DTypeError: weights that are not floating-point.
        OutOfRangeError: when computed, negative or infinite weights, or all 0 in a row.

    Example:
        >>> import weft as wf
        >>> wf.multinomial(wf.tensor([0.0, 3.0, 0.0]), 2, replacement=True).tolist()
        [1, 1]
    """
    shape, kind = known(lazy_of(weights).type.shape), lazy_of(weights).type.dtype
    if not kind.is_floating:
        raise DTypeError.here(f"multinomial: expected floating weights, got {kind}")
    if num_samples < 1:
        raise ShapeError.here(f"multinomial: expected at least one sample, got {num_samples}")
    if len(shape) not in (1, 2):
        raise ShapeError.here(f"multinomial: expected weights of rank 1 or 2, got {show(shape)}")
    if not replacement and num_samples > shape[-1]:
        raise ShapeError.here(
            f"multinomial: cannot draw {num_samples} of {shape[-1]} classes without replacement; "
            f"pass replacement=True"
        )
    static = {"count": num_samples, "replacement": replacement}
    return _multinomial(next_counter(generator), weights, **static)
