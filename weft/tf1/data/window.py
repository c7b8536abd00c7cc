"""Windows of a pipeline's elements."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np

from weft.pipeline.pipeline import Pipeline
from weft.pipeline.structure import leaves, map_leaves
from weft.tf1.errors import InvalidArgumentError


def in_windows(source: Pipeline, size: int, shift: int, stride: int, whole: bool) -> Pipeline:
    """The elements of each window, stacked."""
    if min(size, shift, stride) < 1:
        text = f"expected size, shift and stride of at least 1, got {size}, {shift} and {stride}"
        raise InvalidArgumentError(None, None, f"window: {text}")

    def windows() -> Any:
        running, held = iter(source), list[Any]()
        while True:
            held += islice(running, (size - 1) * stride + 1 - len(held))
            rows = held[: (size - 1) * stride + 1 : stride]
            if not rows or (whole and len(rows) < size):
                return
            columns = zip(*[leaves(row) for row in rows], strict=True)
            stacked = iter([np.stack(column) for column in columns])
            yield map_leaves(lambda _, found=stacked: next(found), rows[0])
            for _ in islice(running, max(shift - len(held), 0)):
                pass
            del held[:shift]

    return Pipeline.from_generator(windows)
