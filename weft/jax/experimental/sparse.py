"""`jax.experimental.sparse`: matrices of which only some elements are held."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from weft.errors import ShapeError
from weft.jax.numpy import api as _numpy
from weft.jax.tree_util import register_pytree_node_class

__all__ = ["BCOO"]

jnp: Any = _numpy


@register_pytree_node_class
class BCOO:
    """An array as its elements and their indices, one row each; elements of one place add up.

    Indices outside the array, which fill up to a given number of elements, count for nothing.

    >>> from weft.jax.numpy import eye, arange
    >>> m = BCOO.fromdense(2 * eye(3))
    >>> m.nse, (m @ arange(3.0)).tolist()
    (3, [0.0, 2.0, 4.0])
    """

    n_batch = n_dense = 0

    def __init__(
        self, args: tuple[Any, Any], *, shape: Any, indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> None:  # fmt: skip
        self.data, self.indices = map(jnp.asarray, args)
        self.shape = tuple(shape)
        self.indices_sorted, self.unique_indices = indices_sorted, unique_indices

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> BCOO:
        """The elements of an array that are not 0; `nse` of them, filled up or cut."""
        x = jnp.asarray(mat)
        count = int((x != 0).sum()) if nse is None else nse
        places = jnp.nonzero(x, size=count, fill_value=x.shape)
        data = x.at[places].get(mode="fill", fill_value=0)
        indices = jnp.stack(places, 1).astype(index_dtype)
        return cls((data, indices), shape=x.shape, indices_sorted=True, unique_indices=True)

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return self.data.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements, also of those that are not held."""
        return math.prod(self.shape)

    @property
    def nse(self) -> int:
        """The number of elements that are held."""
        return self.data.shape[0]

    @property
    def T(self) -> BCOO:
        """The transposed array."""
        turned = self.data, self.indices[:, ::-1]
        return BCOO(turned, shape=self.shape[::-1], unique_indices=self.unique_indices)

    def transpose(self) -> BCOO:
        """The transposed array."""
        return self.T

    def todense(self) -> Any:
        """All elements."""
        places = tuple([self.indices[:, i] for i in range(self.ndim)])
        return jnp.zeros(self.shape, self.dtype).at[places].add(self.data)

    def sum(self) -> Any:
        """The sum of all elements."""
        return self.todense().sum()

    def __matmul__(self, other: Any) -> Any:
        y = other.todense() if isinstance(other, BCOO) else jnp.asarray(other)
        if self.ndim != 2 or y.ndim not in (1, 2) or self.shape[1] != y.shape[0]:
            raise ShapeError.here(f"BCOO: expected shapes to multiply, got {self.shape}, {y.shape}")
        rows, columns = self.indices[:, 0], self.indices[:, 1]
        parts = self.data.reshape(-1, *[1] * (y.ndim - 1)) * y[columns]
        return jnp.zeros((self.shape[0], *y.shape[1:]), parts.dtype).at[rows].add(parts)

    def __rmatmul__(self, other: Any) -> Any:
        return (self.T @ jnp.asarray(other).T).T

    def __mul__(self, number: Any) -> BCOO:
        if jnp.ndim(number):
            raise ShapeError.here("BCOO: expected a number as a factor; take todense() for arrays")
        return self._with(self.data * number)

    __rmul__ = __mul__

    def __neg__(self) -> BCOO:
        return self._with(-self.data)

    def _with(self, data: Any) -> BCOO:
        return BCOO((data, self.indices), shape=self.shape, unique_indices=self.unique_indices)

    def __repr__(self) -> str:
        return f"BCOO({self.dtype}{[*self.shape]}, nse={self.nse})"

    def tree_flatten(self) -> tuple[tuple[Any, Any], Any]:
        """The elements and indices, and what is static."""
        return (self.data, self.indices), (self.shape, self.indices_sorted, self.unique_indices)

    @classmethod
    def tree_unflatten(cls, static: Any, children: Any) -> BCOO:
        """An array of elements and indices, which may stand for others."""
        self = object.__new__(cls)
        self.data, self.indices = children
        self.shape, self.indices_sorted, self.unique_indices = static
        return self
