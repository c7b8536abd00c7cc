"""Reductions over windows."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from weft.eager.tensor.dispatch import recorded
from weft.jax.array import Array, as_array, given, strong
from weft.jax.lax import elementwise as _elementwise
from weft.jax.lax.convolution import padtype_to_pads, spans
from weft.jax.lax.slicing import slice
from weft.jax.lax.structure import pad
from weft.jax.numpy import api as _numpy
from weft.ops.pooling import any_axes

jnp: Any = _numpy
elementwise: Any = _elementwise

__all__ = ["reduce_window"]

_KINDS: Final = {
    "max": ((elementwise.max, jnp.maximum), -np.inf),
    "min": ((elementwise.min, jnp.minimum), np.inf),
    "sum": ((elementwise.add, jnp.add, operator.add), 0.0),
}
_pooled: Final = recorded(any_axes.pooled)


def reduce_window(
    operand: Any, init_value: Any, computation: Callable[..., Any],
    window_dimensions: Sequence[int], window_strides: Any = None, padding: Any = "VALID",
    base_dilation: Any = None, window_dilation: Any = None,
) -> Array:  # fmt: skip
    """Elements in each window combined by a function of two, beginning with a value.

    Windows over images (batch, ..., feature) of `lax.max` and `lax.add` are pooling kernels.

    >>> reduce_window(jnp.arange(4.0), -jnp.inf, elementwise.max, (2,), (2,), "VALID").tolist()
    [1.0, 3.0]
    """
    x, rank = strong(as_array(operand)), jnp.ndim(operand)
    window = tuple(window_dimensions)
    steps = (1,) * rank if window_strides is None else tuple(window_strides)
    spread = (1,) * rank if window_dilation is None else tuple(window_dilation)
    if base_dilation is not None and any([d != 1 for d in base_dilation]):
        x = pad(x, init_value, [(0, 0, d - 1) for d in base_dilation])
    pads = padtype_to_pads(x.shape, spans(window, spread), steps, padding)
    axes = [i for i in range(rank) if window[i] != 1 or steps[i] != 1 or pads[i] != (0, 0)]
    plain = x.dtype.is_floating and spread == (1,) * rank and _is_number(init_value)
    if plain and 1 <= len(axes) <= 3:
        start = float(np.asarray(init_value))
        kinds = [
            k for k, (functions, n) in _KINDS.items() if computation in functions and start == n
        ]
        if kinds:
            rows = [tuple([row[i] for i in axes]) for row in (window, steps, pads)]
            options = dict(zip(("window", "strides", "padding"), rows, strict=True))
            return given(_pooled(x, axes=tuple(axes), kind=kinds[0], **options))
    return _combined(x, init_value, computation, window, steps, pads, spread)


def _is_number(x: Any) -> bool:
    return isinstance(x, int | float | np.generic) or (
        isinstance(x, Array) and x.lazy.array is not None
    )


def _combined(
    x: Any, start: Any, computation: Callable[..., Any], window: Sequence[int],
    steps: Sequence[int], pads: Any, spread: Sequence[int],
) -> Array:  # fmt: skip
    """Any function: one call for each element of a window."""
    x = pad(x, start, [(a, b, 0) for a, b in pads])
    seen = zip(x.shape, spans(window, spread), steps, strict=True)
    counts = [(n - extent) // s + 1 for n, extent, s in seen]
    found = jnp.broadcast_to(jnp.asarray(start, x.dtype), tuple(counts))
    for tap in np.ndindex(*window):
        begin = [t * d for t, d in zip(tap, spread, strict=True)]
        reach = zip(begin, spans(counts, steps), strict=True)
        found = computation(found, slice(x, begin, [b + n for b, n in reach], steps))
    return found
