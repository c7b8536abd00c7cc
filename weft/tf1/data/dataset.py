"""`tf.data.Dataset`: functions are graphs, and sources may be placeholders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.errors import DTypeError
from weft.pipeline.pipeline import Pipeline
from weft.pipeline.structure import leaves, map_leaves
from weft.tf1.data.iterator import Initializable, Iterator
from weft.tf1.data.spec import Spec, of_types, of_value, spec_map, typed
from weft.tf1.data.traced import Traced
from weft.tf1.errors import InvalidArgumentError
from weft.tf1.framework.convert import is_tensor, static_value
from weft.tf1.framework.dtypes import as_dtype
from weft.tf1.framework.host import HostConstant, HostValue, string

Make = Callable[[Sequence[Any]], Pipeline]
_range = range


class Dataset:
    """A source of elements and transformations of them.

    Args:
        make: the pipeline, from the values of `inputs`.
        spec: of its elements.
        inputs: tensors that the source needs, such as placeholders.
    """

    def __init__(self, make: Make, spec: Any, inputs: Sequence[Any] = ()) -> None:
        self.pipeline = make
        self.spec = spec
        self.inputs = list(inputs)

    # sources

    @staticmethod
    def from_tensor_slices(tensors: Any) -> Dataset:
        """Row i of each tensor or array is element i."""
        return _source(tensors, Pipeline.from_tensor_slices, lambda s: s.row())

    @staticmethod
    def from_tensors(tensors: Any) -> Dataset:
        """A dataset of one element."""
        return _source(tensors, Pipeline.from_tensors, lambda s: s)

    @staticmethod
    def from_generator(
        generator: Callable[..., Any],
        output_types: Any,
        output_shapes: Any = None,
        args: Sequence[Any] | None = None,
    ) -> Dataset:
        """The elements of a generator function, which is called again in each epoch."""
        spec = of_types(output_types, output_shapes)
        given = [np.asarray(a) for a in args or ()]

        def elements() -> Any:
            for element in generator(*given):
                yield typed(spec, tuple(element) if isinstance(element, list) else element)

        return Dataset(lambda _: Pipeline.from_generator(elements), spec)

    @staticmethod
    def range(*args: int) -> Dataset:
        """Integers, int64."""
        return Dataset(lambda _: Pipeline.range(*args), Spec(as_dtype(np.int64), ()))

    @staticmethod
    def zip(datasets: Any) -> Dataset:
        """Zipped elements."""
        parts: list[Dataset] = leaves(datasets)
        spec = map_leaves(lambda d: d.spec, datasets)
        make, inputs = _together(parts)

        def zipped(values: Sequence[Any]) -> Pipeline:
            made = iter(make(values))
            return Pipeline.zip(map_leaves(lambda _: next(made), datasets))

        return Dataset(zipped, spec, inputs)

    @staticmethod
    def list_files(
        file_pattern: Any, shuffle: bool | None = None, seed: int | None = None
    ) -> Dataset:
        """The names of files that match patterns."""
        make = lambda _: Pipeline.list_files(file_pattern, shuffle, seed)  # noqa: E731
        return Dataset(make, Spec(string, ()))

    # transformations

    def _then(self, change: Callable[[Pipeline], Pipeline], spec: Any = None) -> Dataset:
        make = self.pipeline
        found = self.spec if spec is None else spec
        return Dataset(lambda values: change(make(values)), found, self.inputs)

    def map(self, map_func: Callable[..., Any], num_parallel_calls: int | None = None) -> Dataset:
        """`map_func` of each element: a function of tensors, which is traced once."""
        traced = Traced(map_func, self.spec)
        return self._then(lambda p: p.map(traced, num_parallel_calls), traced.spec)

    def filter(self, predicate: Callable[..., Any]) -> Dataset:
        """The elements for which `predicate` returns true, a boolean tensor."""
        traced = Traced(predicate, self.spec)
        return self._then(lambda p: p.filter(traced))

    def flat_map(self, map_func: Callable[..., Any]) -> Dataset:
        """The elements of the datasets that `map_func` returns, one after the other."""
        function, spec = _nested(map_func, self.spec)
        return self._then(lambda p: p.flat_map(function), spec)

    def interleave(
        self,
        map_func: Callable[..., Any],
        cycle_length: int,
        block_length: int = 1,
        num_parallel_calls: int | None = None,
    ) -> Dataset:
        """The elements of `cycle_length` such datasets in turn."""
        function, spec = _nested(map_func, self.spec)
        parallel = num_parallel_calls
        return self._then(
            lambda p: p.interleave(function, cycle_length, block_length, parallel), spec
        )

    def batch(self, batch_size: int, drop_remainder: bool = False) -> Dataset:
        """`batch_size` elements stacked along a new first axis."""
        size = batch_size if drop_remainder else None
        spec = spec_map(lambda s: s.batched(size), self.spec)
        return self._then(lambda p: p.batch(batch_size, drop_remainder), spec)

    def padded_batch(
        self,
        batch_size: int,
        padded_shapes: Any,
        padding_values: Any = None,
        drop_remainder: bool = False,
    ) -> Dataset:
        """Batches of elements of different shapes, padded."""
        size = batch_size if drop_remainder else None
        spec = spec_map(
            lambda s: Spec(s.dtype, s.dims and tuple([None] * len(s.dims))).batched(size), self.spec
        )
        return self._then(
            lambda p: p.padded_batch(batch_size, padded_shapes, padding_values, drop_remainder),
            spec,
        )

    def unbatch(self) -> Dataset:
        """The rows of each element as separate elements."""
        return self._then(lambda p: p.unbatch(), spec_map(lambda s: s.row(), self.spec))

    def shuffle(
        self,
        buffer_size: int,
        seed: int | None = None,
        reshuffle_each_iteration: bool | None = None,
    ) -> Dataset:
        """Elements in another order each epoch; see `weft.data.Dataset.shuffle`."""
        every = reshuffle_each_iteration is not False
        return self._then(lambda p: p.shuffle(buffer_size, seed, every))

    def repeat(self, count: int | None = None) -> Dataset:
        """All elements `count` times; endless by default."""
        return self._then(lambda p: p.repeat(count))

    def take(self, count: int) -> Dataset:
        """The first `count` elements."""
        return self._then(lambda p: p.take(count))

    def skip(self, count: int) -> Dataset:
        """All but the first `count` elements."""
        return self._then(lambda p: p.skip(count))

    def shard(self, num_shards: int, index: int) -> Dataset:
        """Every `num_shards`-th element."""
        return self._then(lambda p: p.shard(num_shards, index))

    def prefetch(self, buffer_size: int) -> Dataset:
        """The same elements, computed ahead by a thread."""
        return self._then(lambda p: p.prefetch(buffer_size))

    def cache(self, filename: str = "") -> Dataset:
        """The elements of the first epoch, cached, in all epochs."""
        return self._then(lambda p: p.cache(filename))

    def enumerate(self, start: int = 0) -> Dataset:
        """Pairs of an index and an element."""
        return self._then(lambda p: p.enumerate(start), (Spec(as_dtype(np.int64), ()), self.spec))

    def concatenate(self, dataset: Dataset) -> Dataset:
        """The elements of this dataset, then those of another."""
        make, inputs = _together([self, dataset])

        def joined(values: Sequence[Any]) -> Pipeline:
            first, second = make(values)
            return first.concatenate(second)

        return Dataset(joined, self.spec, inputs)

    def apply(self, transformation_func: Callable[[Dataset], Dataset]) -> Dataset:
        """`transformation_func(self)`."""
        return transformation_func(self)

    # iterators

    def make_one_shot_iterator(self) -> Iterator:
        """An iterator that starts by itself, once per session.

        Raises:
            InvalidArgumentError: the dataset needs placeholders.
        """
        if self.inputs:
            text = "the dataset needs tensors; use make_initializable_iterator"
            raise InvalidArgumentError(None, None, f"make_one_shot_iterator: {text}")
        return Iterator(self.spec, lambda: self.pipeline([]))

    def make_initializable_iterator(self, shared_name: str | None = None) -> Initializable:
        """An iterator that starts when its `initializer` is run, with feeds if needed."""
        del shared_name
        return Initializable(self)

    @property
    def output_types(self) -> Any:
        """The element types, in the elements' structure."""
        return spec_map(lambda s: s.dtype, self.spec)

    @property
    def output_shapes(self) -> Any:
        """The shapes, in the elements' structure."""
        return spec_map(lambda s: s.shape, self.spec)


def _source(
    tensors: Any, begin: Callable[[Any], Pipeline], leaf: Callable[[Spec], Spec]
) -> Dataset:
    tensors = tuple(tensors) if isinstance(tensors, list) and _has_tensors(tensors) else tensors
    constants = map_leaves(_constant, tensors)
    inputs = [x for x in leaves(constants) if _is_input(x)]

    def make(values: Sequence[Any]) -> Pipeline:
        rest = iter(values)
        return begin(map_leaves(lambda x: next(rest) if _is_input(x) else x, constants))

    return Dataset(make, map_leaves(lambda x: leaf(of_value(x)), constants), inputs)


def _is_input(x: Any) -> bool:
    return is_tensor(x) or isinstance(x, HostValue)


def _has_tensors(items: Sequence[Any]) -> bool:
    return any(is_tensor(x) for x in items)


def _constant(x: Any) -> Any:
    if isinstance(x, HostConstant):
        return x.array
    known = static_value(x) if is_tensor(x) else None
    if known is not None:
        return known
    if _is_input(x) or isinstance(x, np.ndarray):
        return x
    array = np.asarray(x)
    if array.dtype == np.float64:
        return array.astype(np.float32)  # Python's numbers convert as in TensorFlow
    return array.astype(np.int32) if array.dtype == np.int64 else array


def _together(parts: Sequence[Dataset]) -> tuple[Callable[[Sequence[Any]], list[Pipeline]], Any]:
    """The pipelines of several datasets, from the values of all their inputs."""
    counts = [len(part.inputs) for part in parts]

    def make(values: Sequence[Any]) -> list[Pipeline]:
        rest = iter(values)
        return [
            part.pipeline([next(rest) for _ in _range(count)])
            for part, count in zip(parts, counts, strict=True)
        ]

    return make, [x for part in parts for x in part.inputs]


def _nested(function: Callable[..., Any], spec: Any) -> tuple[Callable[..., Any], Any]:
    """A function from elements to pipelines, and the spec of their elements."""
    traced = Traced(function, spec, keep=True)
    made: Any = traced.result
    if not isinstance(made, Dataset):
        text = f"expected the function to return a dataset, got {type(made).__name__}"
        raise DTypeError(f"flat_map: {text}")
    dataset = made

    def pipeline(*parts: Any) -> Pipeline:
        traced.enter(parts)
        return dataset.pipeline(traced.values(tuple(dataset.inputs)))

    return pipeline, dataset.spec
