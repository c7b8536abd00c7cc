"""`tf.data.experimental`, and `tf.contrib.data`: transformations for `Dataset.apply`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.pipeline import AUTOTUNE as AUTOTUNE
from weft.tf1.data.dataset import Dataset

__all__ = [
    "AUTOTUNE", "OptimizationOptions", "batch_and_drop_remainder", "enumerate_dataset",
    "map_and_batch", "parallel_interleave", "prefetch_to_device", "shuffle_and_repeat", "unbatch",
]  # fmt: skip

Apply = Callable[[Dataset], Dataset]


class OptimizationOptions:
    """Options of pipelines: accepted."""


def map_and_batch(
    map_func: Callable[..., Any], batch_size: Any, num_parallel_batches: int | None = None,
    drop_remainder: bool = False, num_parallel_calls: int | None = None,
) -> Apply:  # fmt: skip
    """A function of each element, then batches.

    Args:
        map_func: a function of tensors.
        batch_size, drop_remainder: as in `Dataset.batch`.
        num_parallel_batches, num_parallel_calls: how many threads map.
    """
    threads = num_parallel_calls or num_parallel_batches
    return lambda data: data.map(map_func, threads).batch(batch_size, drop_remainder)


def shuffle_and_repeat(buffer_size: Any, count: Any = None, seed: Any = None) -> Apply:
    """Another order each epoch, `count` epochs.

    Args:
        buffer_size, seed: as in `Dataset.shuffle`.
        count: the number of epochs; endless by default.
    """
    return lambda data: data.shuffle(buffer_size, seed).repeat(count)


def batch_and_drop_remainder(batch_size: Any) -> Apply:
    """Batches without a smaller one at the end."""
    return lambda data: data.batch(batch_size, drop_remainder=True)


def unbatch() -> Apply:
    """The rows of each element as separate elements."""
    return lambda data: data.unbatch()


def enumerate_dataset(start: Any = 0) -> Apply:
    """Pairs of a number and an element."""
    return lambda data: data.enumerate(start)


def prefetch_to_device(device: Any, buffer_size: Any = None) -> Apply:
    """Elements prepared ahead; there is one device."""
    del device
    return lambda data: data.prefetch(buffer_size or 1)


def parallel_interleave(
    map_func: Callable[..., Any], cycle_length: int, block_length: int = 1,
    sloppy: Any = False, buffer_output_elements: Any = None, prefetch_input_elements: Any = None,
) -> Apply:  # fmt: skip
    """Elements of several datasets in turn.

    Args:
        map_func: a function from an element to a dataset.
        cycle_length, block_length: as in `Dataset.interleave`.
        sloppy, buffer_output_elements, prefetch_input_elements: accepted.
    """
    del sloppy, buffer_output_elements, prefetch_input_elements
    return lambda data: data.interleave(map_func, cycle_length, block_length)
