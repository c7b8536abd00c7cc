"""Batches of equal elements, padded batches, and unbatching."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.errors import ArgumentError, ShapeError, TreeError
from weft.pipeline.stage import (
    INFINITE,
    UNKNOWN,
    Array,
    Behind,
    Context,
    Cursor,
    Stage,
    State,
    View,
)
from weft.pipeline.structure import joined, leaves, split


class Batch(Stage):
    """Batches of `size` elements along a new first axis; a smaller last one is kept or dropped."""

    def __init__(self, source: Stage, size: int, drop: bool = False) -> None:
        if size < 1:
            raise ArgumentError(f"batch: expected a batch size of 1 or more, got {size}")
        self.name = f"batch({size})"  # states taken with other batch sizes do not fit
        self.inputs = (source,)
        self.size = size
        self.drop = drop

    def indexed(self, context: Context) -> View | None:
        """Batches by index."""
        view = self.inputs[0].view(context)
        return None if view is None else _Batches(view, self)

    def stream(self, context: Context) -> Cursor:
        """Batches in order."""
        return _Batch(self.inputs[0].open(context), self)

    def count(self) -> int:
        """The number of batches."""
        count = self.inputs[0].count()
        return count if count < 0 else self.batches(count)

    def batches(self, count: int) -> int:
        """How many batches that many elements make."""
        return count // self.size if self.drop else -(-count // self.size)


class _Batches(View):
    def __init__(self, view: View, batch: Batch) -> None:
        self.view = view
        self.each = batch.size
        self.size = batch.batches(view.size)

    def item(self, index: int) -> Any:
        first = index * self.each
        return self.view.gather(np.arange(first, min(first + self.each, self.view.size)))


class _Batch(Behind):
    def __init__(self, source: Cursor, batch: Batch) -> None:
        super().__init__(source)
        self.size = batch.size
        self.drop = batch.drop

    def __next__(self) -> Any:
        return self._checked(*self.source.gather(self.size))

    def next_packed(self) -> Any:
        return self._checked(*self.source.packed(self.size))

    def _checked(self, batch: Any, count: int) -> Any:
        if count == 0 or (self.drop and count < self.size):
            raise StopIteration
        return batch


class PaddedBatch(Stage):
    """Batches of elements of different sizes, padded to the largest or to given shapes.

    `shapes` and `values` are None, one for all leaves, or a structure like the elements'; a None in
    a shape stands for the largest size in the batch.
    """

    def __init__(
        self, source: Stage, size: int, shapes: Any = None, values: Any = None, drop: bool = False
    ) -> None:
        if size < 1:
            raise ArgumentError(f"padded_batch: expected a batch size of 1 or more, got {size}")
        self.name = f"padded_batch({size})"  # states taken with other batch sizes do not fit
        self.inputs = (source,)
        self.size = size
        self.shapes, self.values = shapes, values
        self.drop = drop

    def stream(self, context: Context) -> Cursor:
        """Batches in order."""
        return _Padded(self.inputs[0].open(context), self)

    def count(self) -> int:
        """The number of batches."""
        count = self.inputs[0].count()
        if count < 0:
            return count
        return count // self.size if self.drop else -(-count // self.size)


class _Padded(Behind):
    def __init__(self, source: Cursor, stage: PaddedBatch) -> None:
        super().__init__(source)
        self.stage = stage

    def __next__(self) -> Any:
        stage, elements = self.stage, list[Any]()
        for element in self.source:
            elements.append(element)
            if len(elements) == stage.size:
                break
        if not elements or (stage.drop and len(elements) < stage.size):
            raise StopIteration
        return padded(elements, stage.shapes, stage.values)


def padded(elements: list[Any], shapes: Any = None, values: Any = None) -> Any:
    """Elements stacked into one, each leaf padded to the largest size of each axis.

    Raises:
        ShapeError: leaves have different ranks, or are larger than the given shape.

    >>> padded([np.array([1]), np.array([2, 3])])
    array([[1, 0],
           [2, 3]])
    """
    count = len(leaves(elements[0]))
    wanted = iter(_per_leaf(shapes, count, "padded_shapes"))
    fill = iter(_per_leaf(values, count, "padding_values"))
    return joined(elements, lambda column, where: _pad(column, next(wanted), next(fill), where))


def bounded(elements: list[Any], shapes: Any, boundary: int | None) -> Any:
    """Shapes whose unknown sizes are set from the bucket's boundary.

    Raises:
        ShapeError: no boundary is large enough.
    """
    if boundary is None:
        raise ShapeError(
            "bucket_by_sequence_length: pad_to_bucket_boundary, but an element is as long as the "
            "last boundary or longer; filter such elements or add a boundary"
        )
    ranks = [np.ndim(x) for x in leaves(elements[0])]
    per_leaf = _per_leaf(shapes, len(ranks), "padded_shapes")
    filled = [
        [boundary - 1 if n is None or n < 0 else n for n in (shape or [None] * rank)]
        for shape, rank in zip(per_leaf, ranks, strict=True)
    ]
    return filled[0] if len(filled) == 1 else tuple(filled)


def _per_leaf(value: Any, count: int, what: str) -> list[Any]:
    if value is None or not isinstance(value, tuple | dict | list):
        return [value] * count
    if isinstance(value, list) or (value and all(x is None or type(x) is int for x in value)):
        return [value] * count if count == 1 or isinstance(value, list) else list(value)
    values: list[Any] = list(value.values()) if isinstance(value, dict) else list(value)
    if len(values) != count:
        raise TreeError(f"{what}: expected one for each of {count} leaves, got {len(values)}")
    return values


def _pad(column: list[Any], wanted: Any, fill: Any, where: str) -> Array:
    arrays = [np.asarray(x) for x in column]
    ranks = sorted({x.ndim for x in arrays})
    if len(ranks) > 1:
        raise ShapeError(f"padded_batch: expected {where} of one rank, got ranks {ranks}")
    longest = np.array([x.shape for x in arrays], int).reshape(len(arrays), -1).max(0)
    shape = tuple(int(n) for n in longest)
    if wanted is not None:
        limits = [n if w is None or w < 0 else w for n, w in zip(shape, wanted, strict=True)]
        if any(n > limit for n, limit in zip(shape, limits, strict=True)):
            raise ShapeError(f"padded_batch: expected {where} within {tuple(wanted)}, got {shape}")
        shape = tuple(limits)
    zero: Any = "" if arrays[0].dtype.kind in "US" else 0
    dtype = object if arrays[0].dtype.kind in "US" else np.result_type(*arrays)
    out = np.full((len(arrays), *shape), zero if fill is None else fill, dtype)
    for number, x in enumerate(arrays):
        out[(number, *[slice(0, n) for n in x.shape])] = x
    return out


class Unbatch(Stage):
    """The elements of batches."""

    def __init__(self, source: Stage) -> None:
        self.inputs = (source,)

    def stream(self, context: Context) -> Cursor:
        """Elements in order."""
        return _Unbatch(self.inputs[0].open(context))

    def count(self) -> int:
        """UNKNOWN, unless the input is empty or endless."""
        count = self.inputs[0].count()
        return count if count in (0, INFINITE) else UNKNOWN


class _Unbatch(Behind):
    """Its state is the input's before the current batch, and the position in the batch."""

    def __init__(self, source: Cursor) -> None:
        super().__init__(source)
        self.before = source.state()
        self.rows: list[Any] = []
        self.given = 0

    def __next__(self) -> Any:
        while self.given >= len(self.rows):
            self.before, self.given, self.rows = self.source.state(), 0, []
            self.rows = split(next(self.source))
        row = self.rows[self.given]
        self.given += 1
        return row

    def state(self) -> State:
        return {"input": self.before, "given": self.given}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.before, self.given = state["input"], state["given"]
        self.rows = split(next(self.source)) if self.given else []
