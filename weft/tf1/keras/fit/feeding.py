"""Data as fed to a step: checked arrays in the order of a model's inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from weft.errors import ArgumentError, ShapeError
from weft.tf1.framework.graph import fail

Array = np.ndarray[Any, Any]
Shape = Sequence[int | None]


class Slot(NamedTuple):
    """An input or output of a model: the layer's name, its shape, and its kind."""

    name: str
    shape: Shape
    role: str


class Batch:
    """A batch that is ready to be fed.

    Attributes:
        x, y: arrays of inputs and targets.
        weights: example weights, one array for each output; or none.
        rows: the batch size.
    """

    __slots__ = ("rows", "weights", "x", "y")

    def __init__(self, x: Sequence[Any], y: Sequence[Any], weights: Sequence[Any] | None) -> None:
        self.x, self.y, self.weights = x, y, weights
        arrays = [*x, *y]
        self.rows = len(arrays[0]) if arrays else 1


def arranged(given: Any, slots: Sequence[Slot], what: str) -> list[Any]:
    """Arrays in the order of slots, with matching ranks.

    Args:
        given: an array, several in a list or tuple, or by name.

    Raises:
        ArgumentError: the number of arrays or their names do not match.
        ShapeError: an array has another shape; the message names layer and shapes.
    """
    names = [slot.name for slot in slots]
    if isinstance(given, Mapping):
        missing = [n for n in names if n not in given]
        if missing:
            raise fail(ArgumentError, f"{what}: expected data for {names}, got {sorted(given)}")
        items = [given[n] for n in names]
    elif isinstance(given, list | tuple) and _is_several(given, len(slots)):
        items = list(given)
    else:
        items = [given]
    if len(items) != len(slots):
        raise fail(
            ArgumentError, f"{what}: expected {len(slots)} arrays, for {names}, got {len(items)}"
        )
    return [_fitting(as_array(x), slot) for x, slot in zip(items, slots, strict=True)]


def _is_several(given: Sequence[Any], count: int) -> bool:
    """Whether a list holds arrays, not numbers or rows."""
    if isinstance(given, tuple) or count > 1:
        return True
    return any(hasattr(x, "shape") and np.ndim(x) > 0 for x in given)


def as_array(x: Any) -> Array:
    """Data as an array; for pandas tables, their values."""
    return np.asarray(getattr(x, "values", x) if not hasattr(x, "__array__") else x)


def _fitting(x: Array, slot: Slot) -> Array:
    rank = len(slot.shape)
    if x.ndim == 1 or (x.ndim == rank - 1 and slot.shape[-1] == 1):
        x = x[..., None] if rank > 1 else x
    pairs = zip(x.shape[1:], slot.shape[1:], strict=False)
    if x.ndim != rank or any(b is not None and a != b for a, b in pairs):
        raise fail(
            ShapeError,
            f"{slot.name}: expected {slot.role} of shape {tuple(slot.shape)}, got {x.shape}",
        )
    return x


def require_equal_rows(arrays: Sequence[Any], names: Sequence[str]) -> None:
    """Check that arrays have equal batch sizes.

    Raises:
        ShapeError: they differ; the message lists them.
    """
    counts = [len(x) for x in arrays]
    if len(set(counts)) > 1:
        told = ", ".join(f"{n} has {c}" for n, c in zip(names, counts, strict=True))
        raise fail(ShapeError, f"fit: expected arrays with as many rows each, but {told}")


def refuse_mixed(y: Any, weights: Any) -> None:
    """Raise for targets given beside a loader, whose batches contain them.

    Raises:
        ArgumentError: there are some.
    """
    if y is not None or weights is not None:
        raise ArgumentError.here(
            "fit: expected targets and weights within the loader's batches, got them apart"
        )
