"""Pooling over any axes of an array, by the kernels for images."""

from __future__ import annotations

import math
from typing import Any

from weft.ir.node import Value
from weft.ir.shape import known
from weft.ops.declaration import catalogue
from weft.ops.pooling.window import avg_pool, max_pool


def pooled(
    x: Value, *, axes: tuple[int, ...], window: tuple[int, ...], strides: Any, padding: Any,
    kind: str,
) -> Value:  # fmt: skip
    """The largest, the smallest or the sum of the elements in each window.

    Args:
        axes: one to three; `window`, `strides` and `padding` have an entry for each.
        kind: `max`, `min` or `sum`.
    """
    dims = known(x.shape)
    rest = [i for i in range(len(dims)) if i not in axes]
    lead, last = rest[:-1], rest[-1:]
    order = (*lead, *axes, *last)
    count = math.prod([dims[i] for i in lead])
    image = catalogue.reshape(
        catalogue.transpose(x, perm=order),
        shape=(count, *[dims[i] for i in axes], math.prod([dims[i] for i in last])),
    )
    options: dict[str, Any] = {"window": window, "strides": strides, "padding": padding}
    if kind == "sum":
        y = avg_pool(image, **options) * float(math.prod(window))
    else:
        y = max_pool(image, **options) if kind == "max" else -max_pool(-image, **options)
    shape = [*[dims[i] for i in lead], *known(y.shape)[1:-1], *[dims[i] for i in last]]
    back = tuple([order.index(i) for i in range(len(dims))])
    return catalogue.transpose(catalogue.reshape(y, shape=tuple(shape)), perm=back)
