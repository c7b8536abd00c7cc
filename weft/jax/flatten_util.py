"""`jax.flatten_util`: a pytree as one vector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.func.tree import flatten
from weft.jax.numpy import api as _numpy
from weft.jax.numpy.kind import promoted
from weft.jax.transform import arrays

jnp: Any = _numpy

__all__ = ["ravel_pytree"]


def ravel_pytree(pytree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """The elements of all leaves as a vector, and a function from vectors to pytrees.

    >>> ravel_pytree({"a": 1.0, "b": jnp.arange(2.0)})[0].tolist()
    [1.0, 0.0, 1.0]
    """
    leaves, tree = flatten(arrays(pytree))
    if not leaves:
        return jnp.zeros(0), lambda _: tree.build([])
    shapes, kinds = [x.shape for x in leaves], [x.dtype for x in leaves]
    ends = np.cumsum([0, *[x.size for x in leaves]]).tolist()
    vector = jnp.concatenate([jnp.ravel(x) for x in promoted(*leaves)])

    def unravel(flat: Any) -> Any:
        rows = zip(ends[:-1], ends[1:], shapes, kinds, strict=True)
        return tree.build([flat[a:b].reshape(s).astype(k) for a, b, s, k in rows])

    return vector, unravel
