"""`jax.ops`: reductions of segments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from weft.jax.numpy import api as _numpy

jnp: Any = _numpy

__all__ = [
    "index", "index_add", "index_mul", "index_update", "segment_max", "segment_min",
    "segment_prod", "segment_sum",
]  # fmt: skip


def _segments(combine: str, start: Callable[[Any], Any]) -> Callable[..., Any]:
    def reduced(
        data: Any, segment_ids: Any, num_segments: int | None = None,
        indices_are_sorted: bool = False, unique_indices: bool = False, **_: Any,
    ) -> Any:  # fmt: skip
        x, ids = jnp.asarray(data), jnp.asarray(segment_ids)
        count = int(ids.max()) + 1 if num_segments is None else num_segments
        whole = jnp.full((count, *x.shape[1:]), start(x.dtype), x.dtype)
        ids = jnp.where(ids < 0, count, ids)  # dropped, not counted from the end
        return getattr(whole.at[ids], combine)(x, mode="drop")

    reduced.__doc__ = f"`{combine}` of the rows with each number."
    return reduced


def _least(dtype: Any) -> Any:
    return -np.inf if dtype.is_inexact else np.iinfo(dtype.numpy).min


def _most(dtype: Any) -> Any:
    return np.inf if dtype.is_inexact else np.iinfo(dtype.numpy).max


segment_sum: Final = _segments("add", lambda _: 0)
segment_prod: Final = _segments("multiply", lambda _: 1)
segment_max: Final = _segments("max", _least)
segment_min: Final = _segments("min", _most)

# As in JAX before 0.2.22, where programs used them in place of `x.at`

index = np.s_


def index_update(x: Any, idx: Any, y: Any, *_: Any, **__: Any) -> Any:
    """`x.at[idx].set(y)`."""
    return jnp.asarray(x).at[idx].set(y)


def index_add(x: Any, idx: Any, y: Any, *_: Any, **__: Any) -> Any:
    """`x.at[idx].add(y)`."""
    return jnp.asarray(x).at[idx].add(y)


def index_mul(x: Any, idx: Any, y: Any, *_: Any, **__: Any) -> Any:
    """`x.at[idx].multiply(y)`."""
    return jnp.asarray(x).at[idx].multiply(y)
