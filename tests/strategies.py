"""Hypothesis strategies for arrays: shapes, dtypes, special values.

>>> from hypothesis import given
>>> @given(arrays(dtype=dtypes("f"), shape=shapes(max_rank=3)))
... def test_something(x): ...
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from weft.ir.dtype import DTYPES, DType

Array = np.ndarray[Any, Any]

# Sizes at which kernels change: empty, one, around vectors of 4 to 64 elements and their tails.
SIZES = (0, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65)
SPECIAL_FLOATS = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan)


def at_most(count: int, **more: Any) -> settings:
    """Settings of a test that draws so many examples in `make soak`, which draws others each time.

    `make test` draws the same ones always: a third of them.
    """
    if settings.get_current_profile_name() != "fresh":
        count = min(count, max(5, count // 3))
    return settings(max_examples=count, **more)


def dims(low: int = 0, high: int = 65) -> st.SearchStrategy[int]:
    """One dimension, mostly a size at which kernels change."""
    return st.one_of(
        st.sampled_from([s for s in SIZES if low <= s <= high] or [low]),
        st.integers(low, high),
    )


@st.composite
def shapes(
    draw: st.DrawFn,
    min_rank: int = 0,
    max_rank: int = 4,
    low: int = 0,
    high: int = 65,
    max_size: int = 4096,
) -> tuple[int, ...]:
    """A shape of at most `max_size` elements."""
    shape: list[int] = []
    room = max_size
    for _ in range(draw(st.integers(min_rank, max_rank))):
        shape.append(draw(dims(low, max(low, min(high, room)))))
        room //= max(shape[-1], 1)
    return tuple(shape)


@st.composite
def broadcastable(draw: st.DrawFn, count: int = 2, **options: Any) -> tuple[tuple[int, ...], ...]:
    """Shapes that broadcast against each other."""
    full = draw(shapes(**options))
    found: list[tuple[int, ...]] = []
    for _ in range(count):
        own = full[draw(st.integers(0, len(full))) :]
        found.append(tuple(1 if draw(st.booleans()) and d else d for d in own))
    return tuple(found)


def dtypes(kinds: str = "biuf") -> st.SearchStrategy[DType]:
    """An element type of the given kinds: b boolean, i signed, u unsigned, f floating."""
    return st.sampled_from([d for d in DTYPES.values() if d.kind in kinds])


@st.composite
def axes(draw: st.DrawFn, rank: int) -> tuple[int, ...] | None:
    """Axes to reduce: all, none, or some, counted from either end."""
    if draw(st.booleans()) and draw(st.booleans()):
        return None
    chosen = [a for a in range(rank) if draw(st.booleans())]
    return tuple(a - rank if draw(st.booleans()) else a for a in draw(st.permutations(chosen)))


@st.composite
def arrays(
    draw: st.DrawFn,
    dtype: DType | st.SearchStrategy[DType],
    shape: Sequence[int] | st.SearchStrategy[tuple[int, ...]] | None = None,
    low: float = -3,
    high: float = 3,
    specials: bool = False,
) -> Array:
    """An array of random numbers in [low, high).

    With `specials`, some elements are infinities, NaN, negative zero and the type's limits.
    """
    kind = draw(dtype) if isinstance(dtype, st.SearchStrategy) else dtype
    if shape is None:
        shape = shapes()
    dims_ = draw(shape) if isinstance(shape, st.SearchStrategy) else tuple(shape)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    found = _random(rng, kind, dims_, low, high)
    if specials and found.size:
        places = rng.random(dims_) < 0.2
        found = np.where(places, rng.choice(_limits(kind), dims_), found).astype(kind.numpy)
    return found


def _random(
    rng: np.random.Generator, kind: DType, shape: tuple[int, ...], low: float, high: float
) -> Array:
    if kind.kind == "b":
        return np.asarray(rng.integers(0, 2, shape)).astype(np.bool_)
    if kind.is_integer:
        limits = np.iinfo(kind.numpy)
        first, last = max(int(low), limits.min), min(int(high), limits.max)
        return np.asarray(rng.integers(first, last, shape, dtype=kind.numpy, endpoint=True))
    return np.asarray(rng.uniform(low, high, shape)).astype(kind.numpy)


def _limits(kind: DType) -> Array:
    if kind.is_floating:
        return np.array(SPECIAL_FLOATS).astype(kind.numpy)
    if kind.kind == "b":
        return np.array([False, True])
    limits = np.iinfo(kind.numpy)
    return np.array([limits.min, limits.max, 0, 1], kind.numpy)
