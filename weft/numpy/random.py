"""Random numbers under NumPy's names, drawn by the generator of `weft`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.eager.functions.random import generator as drawn
from weft.eager.tensor.dispatch import wrap
from weft.ir.dtype import float64, int64
from weft.numpy.convert import NEW

if TYPE_CHECKING:
    from weft.numpy.array import ndarray

__all__ = [
    "normal", "permutation", "rand", "randint", "randn", "random", "random_sample", "seed",
    "uniform",
]  # fmt: skip


def _array(x: Any) -> ndarray:
    return wrap(x.lazy, NEW)  # pyright: ignore[reportReturnType]


def _shape(size: Any) -> tuple[int, ...]:
    return () if size is None else (size,) if isinstance(size, int) else tuple(size)


def seed(seed: int) -> None:
    """Seed the generator."""
    drawn.manual_seed(seed)


def randn(*dims: int) -> ndarray:
    """Normally distributed numbers with mean 0 and variance 1."""
    return _array(drawn.randn(dims, dtype=float64))


def rand(*dims: int) -> ndarray:
    """Numbers between 0 and 1."""
    return _array(drawn.rand(dims, dtype=float64))


def random_sample(size: Any = None) -> ndarray:
    """Numbers between 0 and 1."""
    return rand(*_shape(size))


random = random_sample


def normal(loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> ndarray:
    """Normally distributed numbers with a mean and a standard deviation."""
    return randn(*_shape(size)) * scale + loc  # pyright: ignore


def uniform(low: Any = 0.0, high: Any = 1.0, size: Any = None) -> ndarray:
    """Uniform numbers between two limits."""
    return rand(*_shape(size)) * (high - low) + low  # pyright: ignore


def randint(low: int, high: int | None = None, size: Any = None) -> ndarray:
    """Uniform integers in [`low` (0), `high`)."""
    first, last = (0, low) if high is None else (low, high)
    return _array(drawn.randint(first, last, _shape(size), dtype=int64))


def permutation(n: int) -> ndarray:
    """The integers in [0, n) in random order."""
    return _array(drawn.randperm(n))
