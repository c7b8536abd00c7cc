"""Splitting a batch into micro-batches, and merging their results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.eager.functions.api import cat
from weft.eager.tensor.handle import Handle
from weft.errors import ShapeError
from weft.func.tree import flatten


def split(x: Any, count: int, what: str) -> list[Any]:
    """Split all tensors in a structure into `count` equal parts; other values are shared.

    Raises:
        ShapeError: a tensor has no rows, or `count` does not divide their number.
    """
    leaves, tree = flatten(x)
    columns = [_parts(leaf, count, what) for leaf in leaves]
    return [tree.build([column[i] for column in columns]) for i in range(count)]


def _parts(x: Any, count: int, what: str) -> list[Any]:
    if not isinstance(x, Handle):
        return [x] * count
    tensor: Any = x
    rows = tensor.shape[0] if tensor.ndim else 0
    if rows == 0 or rows % count:
        shape = tuple(tensor.shape)
        raise ShapeError.here(
            f"step: {what}: expected a first dimension that the {count} micro-batches divide, got "
            f"shape {shape}; drop the rest of the data, or pad it"
        )
    size = rows // count
    return [tensor[i * size : (i + 1) * size] for i in range(count)]


def merge(parts: Sequence[Any]) -> Any:
    """Concatenate structures of tensors along the first dimension; scalars become a list."""
    columns = [flatten(part)[0] for part in parts]
    tree = flatten(parts[0])[1]
    rows = zip(*columns, strict=True)
    return tree.build([cat(row, 0) if row[0].ndim else list(row) for row in rows])
