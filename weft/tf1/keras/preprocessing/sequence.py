"""Padding of sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.errors import ArgumentError
from weft.tf1.framework.graph import fail


def pad_sequences(
    sequences: Sequence[Any], maxlen: int | None = None, dtype: Any = "int32",
    padding: str = "pre", truncating: str = "pre", value: Any = 0.0,
) -> Any:  # fmt: skip
    """Sequences as rows of one array.

    Args:
        maxlen: the length of rows; by default that of the longest sequence.
        padding: whether `value` fills rows `"pre"`, at the start, or `"post"`, at the end.
        truncating: whether long sequences are cut `"pre"` or `"post"`.

    >>> pad_sequences([[1, 2, 3], [4]], maxlen=2).tolist()
    [[2, 3], [0, 4]]
    """
    for name, given in (("padding", padding), ("truncating", truncating)):
        if given not in ("pre", "post"):
            raise fail(
                ArgumentError, f"pad_sequences: expected {name} 'pre' or 'post', got {given!r}"
            )
    arrays = [np.asarray(s) for s in sequences]
    count = max([len(a) for a in arrays], default=0) if maxlen is None else maxlen
    rest = next((a.shape[1:] for a in arrays if len(a)), ())
    found = np.full((len(arrays), count, *rest), value, dtype)
    for row, array in zip(found, arrays, strict=True):
        kept = array[max(len(array) - count, 0) :] if truncating == "pre" else array[:count]
        if len(kept):
            row[slice(-len(kept), None) if padding == "pre" else slice(len(kept))] = kept
    return found
