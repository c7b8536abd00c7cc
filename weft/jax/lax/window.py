"""Reductions over windows."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from weft.eager.tensor.dispatch import call
from weft.jax import numpy as _numpy
from weft.jax.array import Array, as_array, strong
from weft.jax.lax import elementwise as _elementwise
from weft.jax.lax.convolution import padtype_to_pads
from weft.jax.lax.slicing import slice
from weft.jax.lax.structure import pad
from weft.ops.declaration import REGISTRY

jnp: Any = _numpy
elementwise: Any = _elementwise

__all__ = ["reduce_window"]

_MAX: Final = REGISTRY["max_pool"]
_MEAN: Final = REGISTRY["avg_pool"]
_LARGEST: Final = (elementwise.max, jnp.maximum)
_SMALLEST: Final = (elementwise.min, jnp.minimum)
_TOTAL: Final = (elementwise.add, jnp.add, operator.add)


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
    extents = [(k - 1) * d + 1 for k, d in zip(window, spread, strict=True)]
    pads = padtype_to_pads(x.shape, extents, steps, padding)
    plain = x.dtype.is_floating and spread == (1,) * rank and _is_number(init_value)
    axes = [i for i in range(rank) if window[i] != 1 or steps[i] != 1 or pads[i] != (0, 0)]
    if plain and 1 <= len(axes) <= 3:
        start = float(np.asarray(init_value))
        if computation in _LARGEST and start == -np.inf:
            return _pooled(x, axes, window, steps, pads, largest=True)
        if computation in _SMALLEST and start == np.inf:
            return -_pooled(-x, axes, window, steps, pads, largest=True)
        if computation in _TOTAL and start == 0:
            return _pooled(x, axes, window, steps, pads, largest=False)
    return _combined(x, init_value, computation, window, steps, pads, spread)


def _is_number(x: Any) -> bool:
    return isinstance(x, int | float | np.generic) or (
        isinstance(x, Array) and x.lazy.array is not None
    )


def _pooled(
    x: Any, axes: Sequence[int], window: Any, steps: Any, pads: Any, largest: bool
) -> Array:
    """By a pooling kernel, which takes the batch first and features last."""
    rest = [i for i in range(x.ndim) if i not in axes]
    last = rest.pop() if rest else None
    lead = [x.shape[i] for i in rest]
    moved = jnp.transpose(x, (*rest, *axes, *([] if last is None else [last])))
    features = 1 if last is None else x.shape[last]
    image = moved.reshape((-1 if lead else 1, *[x.shape[i] for i in axes], features))
    options: dict[str, Any] = {
        "window": tuple([window[i] for i in axes]), "strides": tuple([steps[i] for i in axes]),
        "padding": tuple([pads[i] for i in axes]),
    }  # fmt: skip
    if largest:
        y = call(_MAX, image, **options)
    else:
        y = call(_MEAN, image, **options) * float(np.prod(options["window"]))
    y = y.reshape((*lead, *y.shape[1:-1], *([] if last is None else [features])))
    order = [*rest, *axes, *([] if last is None else [last])]
    return jnp.transpose(y, tuple([order.index(i) for i in range(x.ndim)]))


def _combined(
    x: Any, start: Any, computation: Callable[..., Any], window: Any, steps: Any, pads: Any,
    spread: Any,
) -> Array:  # fmt: skip
    """Any function: one call for each element of a window."""
    x = pad(x, start, [(a, b, 0) for a, b in pads])
    rows = zip(x.shape, window, steps, spread, strict=True)
    counts = [(n - (k - 1) * d - 1) // s + 1 for n, k, s, d in rows]
    found = jnp.broadcast_to(jnp.asarray(start, x.dtype), tuple(counts))
    for tap in np.ndindex(*window):
        begin = [t * d for t, d in zip(tap, spread, strict=True)]
        end = [b + (c - 1) * s + 1 for b, c, s in zip(begin, counts, steps, strict=True)]
        found = computation(found, slice(x, begin, end, steps))
    return found
