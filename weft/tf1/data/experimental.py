"""`tf.data.experimental`, and `tf.contrib.data`: transformations for `Dataset.apply`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from weft.pipeline import AUTOTUNE as AUTOTUNE
from weft.pipeline.pipeline import Pipeline
from weft.pipeline.stage import INFINITE, UNKNOWN
from weft.tf1.data.dataset import Dataset, together
from weft.tf1.data.running import bucket_by_sequence_length as bucket_by_sequence_length
from weft.tf1.data.running import group_by_window as group_by_window
from weft.tf1.data.running import scan as scan
from weft.tf1.data.running import take_while as take_while
from weft.tf1.data.running import then
from weft.tf1.data.running import unique as unique
from weft.tf1.data.seed import order_seed
from weft.tf1.data.spec import Spec, common, tensors_of
from weft.tf1.errors import InvalidArgumentError
from weft.tf1.framework.dtypes import as_dtype, int64

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "Counter",
    "OptimizationOptions",
    "batch_and_drop_remainder",
    "bucket_by_sequence_length",
    "cardinality",
    "choose_from_datasets",
    "enumerate_dataset",
    "get_single_element",
    "group_by_window",
    "ignore_errors",
    "map_and_batch",
    "parallel_interleave",
    "prefetch_to_device",
    "sample_from_datasets",
    "scan",
    "shuffle_and_repeat",
    "take_while",
    "unbatch",
    "unique",
]  # fmt: skip

INFINITE_CARDINALITY: Final = INFINITE
UNKNOWN_CARDINALITY: Final = UNKNOWN

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


def ignore_errors(log_warning: bool = False) -> Apply:
    """The elements that raise no error.

    Args:
        log_warning: whether each error is logged.
    """
    return lambda data: then(data, lambda p: p.ignore_errors(log_warning))


def Counter(start: int = 0, step: int = 1, dtype: Any = int64) -> Dataset:
    """Numbers from `start` on, without an end."""
    kind = as_dtype(dtype)
    count = lambda: map(kind.ir.numpy.type, itertools.count(start, step))  # noqa: E731
    return Dataset(lambda _: Pipeline.from_generator(count), Spec(kind, ()))


def sample_from_datasets(
    datasets: Sequence[Dataset], weights: Sequence[float] | None = None, seed: Any = None
) -> Dataset:
    """Each element from a dataset drawn by `weights`; ended ones are skipped.

    Args:
        datasets: the datasets.
        weights: of each; all are equally likely by default.
        seed: of the draws.
    """
    drawn = order_seed(seed)
    sample = lambda parts: Pipeline.sample_from_datasets(parts, weights, drawn)  # noqa: E731
    return _joined(datasets, sample, len(datasets))


def choose_from_datasets(datasets: Sequence[Dataset], choice_dataset: Dataset) -> Dataset:
    """Each element from the dataset whose number is the next element of another.

    Args:
        datasets: the datasets.
        choice_dataset: of their numbers.
    """

    def choose(parts: Sequence[Pipeline]) -> Pipeline:
        return Pipeline.choose_from_datasets(parts[:-1], parts[-1], stop_on_empty_dataset=False)

    return _joined([*datasets, choice_dataset], choose, len(datasets))


def _joined(
    datasets: Sequence[Dataset], join: Callable[[Sequence[Pipeline]], Pipeline], count: int
) -> Dataset:
    make, inputs = together(datasets)
    spec = datasets[0].spec
    for other in datasets[1:count]:
        spec = common(spec, other.spec)
    return Dataset(lambda values: join(make(values)), spec, inputs)


def cardinality(dataset: Dataset) -> Any:
    """The number of elements, `INFINITE_CARDINALITY` or `UNKNOWN_CARDINALITY`; a tensor."""

    def count(_: Any, *values: Any) -> Any:
        return np.int64(dataset.pipeline([x[()] for x in values]).cardinality())

    return tensors_of(Spec(int64, ()), count, "DatasetCardinality", dataset.inputs)


def get_single_element(dataset: Dataset) -> Any:
    """The tensors of a dataset's only element.

    Raises:
        InvalidArgumentError: when run, there are none or several.
    """

    def only(_: Any, *values: Any) -> Any:
        found = list(dataset.pipeline([x[()] for x in values]).take(2))
        if len(found) != 1:
            text = "expected a dataset of one element, got " + ("several" if found else "none")
            raise InvalidArgumentError(None, None, f"get_single_element: {text}")
        return found[0]

    return tensors_of(dataset.spec, only, "DatasetToSingleElement", dataset.inputs)
