"""The transformations of pipelines as methods, with tf.data's names."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from weft.pipeline.batch import Batch, PaddedBatch, Unbatch, bounded, padded
from weft.pipeline.caching import Cache
from weft.pipeline.combination import Concatenate
from weft.pipeline.failure import IgnoreErrors
from weft.pipeline.grouping import Bucket, Window
from weft.pipeline.mapping import Map
from weft.pipeline.nested import FlatMap, Interleave
from weft.pipeline.order import Repeat, Shuffle
from weft.pipeline.prefetching import Prefetch
from weft.pipeline.selection import Enumerate, Filter, Span, TakeWhile
from weft.pipeline.source import Items
from weft.pipeline.stage import Stage
from weft.pipeline.structure import joined, stack


class Transformable:
    """An object with a stage; each method returns one of the same kind with one more stage."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    def _with(self, stage: Stage) -> Self:
        return type(self)(stage)

    def _function(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A user's function as stages call it; APIs with other elements convert here."""
        if not callable(function):
            raise TypeError(f"a {type(function).__name__} is no function")
        return function

    def shuffle(
        self, buffer_size: int, seed: int | None = None, reshuffle_each_iteration: bool = True
    ) -> Self:
        """Elements in another order each epoch.

        If elements have indices, this is a permutation of all of them, computed from the seed and
        the epoch, and needs no memory. Otherwise each is drawn from a buffer of `buffer_size`.

        Args:
            buffer_size: the number of elements that the next one is drawn from.
            seed: of the orders.
            reshuffle_each_iteration: whether each epoch has an order of its own.
        """
        return self._with(
            Shuffle(self.stage, operator.index(buffer_size), seed, reshuffle_each_iteration)
        )

    def repeat(self, count: int | None = None) -> Self:
        """All elements `count` times; endless by default."""
        return self._with(Repeat(self.stage, -1 if count is None else operator.index(count)))

    def take(self, count: int) -> Self:
        """The first `count` elements; all for -1."""
        return self._with(Span(self.stage, "take", 0, None if count < 0 else operator.index(count)))

    def skip(self, count: int) -> Self:
        """All but the first `count` elements; none for -1."""
        if count < 0:
            return self.take(0)
        return self._with(Span(self.stage, "skip", operator.index(count)))

    def shard(self, num_shards: int, index: int) -> Self:
        """Elements `index`, `index + num_shards`, ...: one rank's shard.

        Args:
            num_shards: the number of shards.
            index: the number of this one.
        """
        return self._with(Span(self.stage, "shard", index, None, num_shards))

    def filter(self, predicate: Callable[..., Any]) -> Self:
        """The elements for which `predicate` is true."""
        return self._with(Filter(self.stage, self._function(predicate)))

    def take_while(self, predicate: Callable[..., Any]) -> Self:
        """The elements before the first for which `predicate` is false."""
        return self._with(TakeWhile(self.stage, self._function(predicate)))

    def enumerate(self, start: int = 0) -> Self:
        """Pairs of an index and an element.

        Args:
            start: the first index.
        """
        return self._with(Enumerate(self.stage, operator.index(start)))

    def concatenate(self, dataset: Transformable) -> Self:
        """The elements of this pipeline, then those of another.

        Args:
            dataset: the other one.
        """
        return self._with(Concatenate([self.stage, dataset.stage]))

    def map(
        self,
        map_func: Callable[..., Any],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
    ) -> Self:
        """`map_func` of each element; the parts of a tuple are separate arguments.

        Args:
            map_func: the function.
            num_parallel_calls: number of threads that call it; `AUTOTUNE` chooses it.
            deterministic: accepted; the order never depends on threads.
        """
        del deterministic
        return self._with(Map(self.stage, self._function(map_func), num_parallel_calls))

    def batch(self, batch_size: int, drop_remainder: bool = False) -> Self:
        """`batch_size` elements stacked along a new first axis.

        Args:
            batch_size: the number of elements.
            drop_remainder: whether a last batch of fewer elements is left out.

        Raises:
            ShapeError, TreeError: while iterating, elements differ in shape or structure.
        """
        return self._with(Batch(self.stage, operator.index(batch_size), drop_remainder))

    def padded_batch(
        self, batch_size: int, padded_shapes: Any = None, padding_values: Any = None,
        drop_remainder: bool = False,
    ) -> Self:  # fmt: skip
        """Batches of elements of different shapes, padded to the largest or to `padded_shapes`.

        Args:
            batch_size: the number of elements.
            padded_shapes: nested shapes; sizes that are unknown in them become the largest of the
                batch.
            padding_values: nested values to fill in; 0 and empty strings by default.
            drop_remainder: whether a last batch of fewer elements is left out.
        """
        stage = PaddedBatch(
            self.stage, operator.index(batch_size), padded_shapes, padding_values, drop_remainder
        )
        return self._with(stage)

    def unbatch(self) -> Self:
        """The rows of each element as separate elements."""
        return self._with(Unbatch(self.stage))

    def prefetch(self, buffer_size: int) -> Self:
        """The same elements, computed ahead by a thread; `AUTOTUNE` chooses how many.

        Args:
            buffer_size: the most elements that wait.
        """
        return self._with(Prefetch(self.stage, operator.index(buffer_size)))

    def flat_map(self, map_func: Callable[..., Any]) -> Self:
        """The elements of the datasets that `map_func` makes from elements, one after the other."""
        return self._with(FlatMap(self.stage, self._function(map_func)))

    def interleave(
        self, map_func: Callable[..., Any], cycle_length: int | None = None, block_length: int = 1,
        num_parallel_calls: int | None = None, deterministic: bool | None = None,
    ) -> Self:  # fmt: skip
        """The elements of `cycle_length` (4) such datasets in turn, `block_length` at a time.

        Args:
            map_func: makes a dataset of an element.
            cycle_length: how many datasets are open at a time.
            block_length: how many elements each gives in its turn.
            num_parallel_calls: if given, each dataset is read ahead by its own thread.
            deterministic: accepted; the order never depends on threads.
        """
        del deterministic
        function = self._function(map_func)
        return self._with(
            Interleave(self.stage, function, cycle_length, block_length, num_parallel_calls)
        )

    def window(
        self, size: int, shift: int | None = None, stride: int = 1, drop_remainder: bool = False
    ) -> Self:
        """Datasets of `size` elements `stride` apart; each starts `shift` after the previous one.

        As in TensorFlow, a window of tuples is a tuple of datasets.

        Args:
            size: the number of elements of a window.
            shift: the distance between windows; `size` by default.
            stride: the distance between elements of a window.
            drop_remainder: whether last windows of fewer elements are left out.
        """

        def made(elements: list[Any]) -> Any:
            return joined(elements, lambda column, where: self._with(Items(column)))

        return self._with(Window(self.stage, size, shift, stride, drop_remainder, made))

    def bucket_by_sequence_length(
        self, element_length_func: Callable[..., Any], bucket_boundaries: Sequence[int],
        bucket_batch_sizes: Sequence[int], padded_shapes: Any = None, padding_values: Any = None,
        pad_to_bucket_boundary: bool = False, no_padding: bool = False,
        drop_remainder: bool = False,
    ) -> Self:  # fmt: skip
        """Batches of elements of similar length, padded to the longest of the batch.

        Args:
            element_length_func: gives the length of an element.
            bucket_boundaries: rising lengths, at which the next bucket starts.
            bucket_batch_sizes: the batch size of each bucket.
            padded_shapes, padding_values: as in `padded_batch`.
            pad_to_bucket_boundary: whether elements get the greatest length of their bucket: one
                less than its boundary.
            no_padding: whether elements of a bucket have one shape already.
            drop_remainder: whether last batches of fewer elements are left out.

        Raises:
            ArgumentError: the number of batch sizes is not one more than that of boundaries.
            ShapeError: while iterating, an element to be padded to its boundary exceeds the last
                one.
        """

        def join(elements: list[Any], boundary: int | None) -> Any:
            if no_padding:
                return stack(elements)
            shapes = padded_shapes
            if pad_to_bucket_boundary:
                shapes = bounded(elements, shapes, boundary)
            return padded(elements, shapes, padding_values)

        function = self._function(element_length_func)
        sizes, drop = bucket_batch_sizes, drop_remainder
        return self._with(Bucket(self.stage, function, bucket_boundaries, sizes, drop, join))

    def cache(self, filename: str | Path = "") -> Self:
        """The elements of the first epoch, cached in memory or in a file, in all epochs.

        A file is written during a pass and renamed when complete; later processes read it. It holds
        arrays, numbers, strings and bytes.

        Args:
            filename: the file; in memory by default.
        """
        return self._with(Cache(self.stage, filename))

    def ignore_errors(self, log_warning: bool = False) -> Self:
        """The elements that raise no error; `skipped` counts the others.

        Args:
            log_warning: whether each error is logged.
        """
        return self._with(IgnoreErrors(self.stage, log_warning))

    def apply(self, transformation_func: Callable[[Self], Any]) -> Any:
        """`transformation_func(self)`."""
        return transformation_func(self)
