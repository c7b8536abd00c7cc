"""Collation of samples into a batch, as in PyTorch's `default_collate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from weft.eager.functions.api import Tensor, stack, tensor
from weft.eager.tensor.dispatch import leaf, wrap
from weft.errors import DTypeError, ShapeError, TreeError
from weft.pipeline.structure import stack as stack_arrays

__all__ = ["default_collate", "default_convert"]


def default_collate(batch: Sequence[Any]) -> Any:
    """A batch of samples: tensors, arrays and numbers are stacked, strings are listed.

    Dicts and named tuples keep their type; tuples and lists become lists. Python's floats become
    float64, its integers int64.

    Args:
        batch: the samples, all of one structure.

    Raises:
        ShapeError: shapes differ.
        TreeError: sizes of tuples or keys of dicts differ.
        DTypeError: samples have another type.

    >>> default_collate([(1, "a"), (2, "b")])
    [tensor([1, 2]), ['a', 'b']]
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return _tensors(batch)
    if isinstance(first, np.ndarray):
        return _arrays(batch)
    if isinstance(first, bool | int | float | np.number | np.bool_):
        return wrap(leaf(np.asarray(batch)))
    if isinstance(first, str | bytes):
        return list(batch)
    if isinstance(first, Mapping):
        return _mappings(batch)
    if isinstance(first, Sequence):
        return _sequences(batch)
    raise DTypeError(
        "default_collate: expected samples of tensors, arrays, numbers, texts, dicts or lists, "
        f"got {type(first).__name__}; give the loader a collate_fn"
    )


def _tensors(batch: Sequence[Any]) -> Any:
    if any(x.requires_grad for x in batch):
        return stack(list(batch))
    return _arrays([x.array if x.window is None else x.numpy() for x in batch])


def _arrays(batch: Sequence[Any]) -> Any:
    try:
        return wrap(leaf(stack_arrays(batch)))
    except ShapeError as error:
        text = str(error).replace("batch: ", "default_collate: ").replace("padded_batch", "")
        raise ShapeError(text.split(";")[0] + "; give the loader a collate_fn that pads") from None


def _mappings(batch: Sequence[Any]) -> Any:
    first = batch[0]
    for number, sample in enumerate(batch):
        if not isinstance(sample, Mapping) or sample.keys() != first.keys():
            got = f"{sorted(map(str, sample))} in sample {number}"
            text = f"expected the keys {sorted(map(str, first))}, got {got}"
            raise TreeError(f"default_collate: {text}")
    found = {key: default_collate([sample[key] for sample in batch]) for key in first}
    return found if type(first) is dict else type(first)(found)


def _sequences(batch: Sequence[Any]) -> Any:
    first = batch[0]
    for number, sample in enumerate(batch):
        if not isinstance(sample, Sequence) or len(sample) != len(first):
            size = f"{len(sample)}" if isinstance(sample, Sequence) else type(sample).__name__
            text = f"expected {len(first)} parts in each sample, got {size} in sample {number}"
            raise TreeError(f"default_collate: {text}")
    parts = [default_collate(part) for part in zip(*batch, strict=True)]
    kind: Any = type(first)
    return kind(*parts) if hasattr(first, "_fields") else parts


def default_convert(data: Any) -> Any:
    """NumPy arrays and numbers as tensors, also inside dicts, tuples and lists.

    Args:
        data: arrays, numbers, or nested containers of them; other things are left as they are.
    """
    if isinstance(data, np.ndarray | np.number | np.bool_):
        return tensor(data) if np.asarray(data).dtype.kind in "biufc" else data
    if isinstance(data, dict):
        return {key: default_convert(x) for key, x in data.items()}
    if isinstance(data, tuple):
        parts = [default_convert(x) for x in data]
        return type(data)(*parts) if hasattr(data, "_fields") else parts
    return [default_convert(x) for x in data] if isinstance(data, list) else data
