"""What distributions and transforms share: broadcasting, probabilities and logits, triangles."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np

import weft.eager.functions.api as wf
from weft.eager.functions.api import Tensor
from weft.errors import ArgumentError
from weft.special import expit

__all__ = [
    "broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits",
    "tril_matrix_to_vec", "vec_to_tril_matrix",
]  # fmt: skip

EULER: Final = 0.57721566490153286
NUMBERS: Final = (int, float, np.integer, np.floating)


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Tensors, arrays and numbers as tensors of one shape.

    A number takes the dtype of the first floating-point tensor, or the default one.

    Raises:
        ArgumentError: something else is given.
    """
    for value in values:
        if not isinstance(value, (Tensor, np.ndarray, *NUMBERS)):
            raise ArgumentError.here(
                f"broadcast_all: expected tensors, arrays and numbers, got {type(value).__name__}"
            )
    given = [v if isinstance(v, NUMBERS) else wf.as_tensor(v) for v in values]
    kind = floating_kind(given)
    whole: Any = [wf.tensor(v, dtype=kind) if isinstance(v, NUMBERS) else v for v in given]
    alike = all([x.shape == whole[0].shape for x in whole])  # and computed values stay so
    return tuple(whole if alike else wf.broadcast_tensors(*whole))


def floating_kind(values: Iterable[Any]) -> Any:
    """The dtype of the first floating-point tensor, or the default one."""
    kinds = [x.dtype for x in values if isinstance(x, Tensor) and x.dtype.is_floating]
    return kinds[0] if kinds else wf.get_default_dtype()


def formula(of: Any) -> Any:
    """A method, or a constant, of a class that is declared by formulas."""
    return of


def quantity(of: Callable[[Any], Any]) -> Any:
    """A property of a class that is declared by formulas."""
    return property(of)


class lazy_property:
    """A property that is computed once, and is then an attribute of the instance."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        with wf.enable_grad():
            value = self.wrapped(instance)
        vars(instance)[self.wrapped.__name__] = value
        return value


def sum_rightmost(x: Any, count: int) -> Any:
    """The sum over the last `count` axes."""
    return x.sum(tuple(range(-count, 0))) if count else x


def standard_normal(shape: Iterable[int], dtype: Any, device: Any = None) -> Tensor:
    """Draws of the standard normal distribution."""
    return wf.randn(tuple(shape), dtype=dtype, device=device)


def clamp_probs(probs: Any) -> Any:
    """Probabilities, moved to within [eps, 1 - eps] of their dtype."""
    eps = wf.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def logits_to_probs(logits: Any, is_binary: bool = False) -> Any:
    """Probabilities from log odds, or along the last axis from their logarithms."""
    return expit(logits) if is_binary else wf.softmax(logits, -1)


def probs_to_logits(probs: Any, is_binary: bool = False) -> Any:
    """Log odds of probabilities, or along the last axis their logarithms."""
    inside = clamp_probs(probs)
    return inside.log() - (-inside).log1p() if is_binary else inside.log()


def tril_matrix_to_vec(mat: Any, diag: int = 0) -> Any:
    """The lower triangle of matrices (..., n, n), row by row.

    Raises:
        ArgumentError: there is no such diagonal.
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        text = f"tril_matrix_to_vec: expected diag from {-n} to {n - 1}, got {diag}"
        raise ArgumentError.here(text)
    rows, columns = np.tril_indices(n, diag)
    return mat.reshape((*mat.shape[:-2], n * n))[..., rows * n + columns]


def vec_to_tril_matrix(vec: Any, diag: int = 0) -> Any:
    """Matrices with this lower triangle, given row by row, and zeros elsewhere.

    Raises:
        ArgumentError: no square matrix has so many elements there.
    """
    count = vec.shape[-1]
    sizes = [
        n for n in range(1, count + abs(diag) + 2) if len(np.tril_indices(n, diag)[0]) == count
    ]
    if not sizes:
        raise ArgumentError.here(
            f"vec_to_tril_matrix: expected the triangle of a square matrix, got {count} elements"
        )
    n = sizes[0] if count else max(sizes)
    place = np.full((n, n), count)  # of the zero behind the elements
    place[np.tril_indices(n, diag)] = np.arange(count)
    padded = wf.cat([vec, vec.new_zeros((*vec.shape[:-1], 1))], -1)
    return padded[..., place.ravel()].reshape((*vec.shape[:-1], n, n))
