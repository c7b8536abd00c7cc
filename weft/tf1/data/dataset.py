"""`tf.data.Dataset`: functions are graphs, and sources may be placeholders."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.documentation import arguments_of
from weft.errors import DTypeError, GraphError
from weft.ops.resource.host_value import text_array
from weft.pipeline.file.files import matching_files
from weft.pipeline.pipeline import Pipeline
from weft.pipeline.structure import leaves, map_leaves
from weft.tf1.data.capture import argument, filled, is_input, plain, values_at_start
from weft.tf1.data.generated import Generated
from weft.tf1.data.iterator import Initializable, Iterator
from weft.tf1.data.seed import order_seed
from weft.tf1.data.spec import (
    Spec,
    Specified,
    common,
    of_types,
    of_value,
    per_leaf,
    spec_map,
    tensors_of,
)
from weft.tf1.data.traced import Traced
from weft.tf1.data.window import in_windows
from weft.tf1.errors import InvalidArgumentError
from weft.tf1.framework.convert import convert_to_tensor, is_tensor, static_value
from weft.tf1.framework.dtypes import as_dtype, string
from weft.tf1.framework.graph import computes_at_once, fail
from weft.tf1.framework.host import is_text
from weft.tf1.framework.tensor_shape import as_shape

Make = Callable[[Sequence[Any]], Pipeline]
_range = range


class Dataset(Specified):
    """A source of elements and transformations of them.

    Args:
        make: the pipeline, from the values of `inputs`.
        spec: of its elements.
        inputs: tensors that the source needs, such as placeholders.
        check: called with their values when an iterator is initialized.
    """

    def __init__(
        self, make: Make, spec: Any, inputs: Sequence[Any] = (),
        check: Callable[[Sequence[Any]], None] = lambda _: None,
    ) -> None:  # fmt: skip
        self.pipeline = make
        self.spec = spec
        self.inputs = list(inputs)
        self.check = check

    # sources

    @staticmethod
    @arguments_of(Pipeline.from_tensor_slices)
    def from_tensor_slices(tensors: Any) -> Dataset:
        """Row i of each tensor or array is element i."""
        return _source(tensors, Pipeline.from_tensor_slices, lambda s: s.row())

    @staticmethod
    @arguments_of(Pipeline.from_tensors)
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
        """The elements of a generator function, which is called again in each epoch.

        Args:
            generator: its elements have the structure of `output_types`; a list is one tensor.
            output_types: nested types, one for each tensor of an element.
            output_shapes: their shapes; unknown by default.
            args: its arguments: values, which may be tensors, as arrays.

        Raises:
            InvalidArgumentError: in a run, for an element of another structure, type or shape.
        """
        spec = of_types(output_types, output_shapes)
        given = [a if is_input(a) else np.asarray(a) for a in args or ()]

        def make(values: Sequence[Any]) -> Pipeline:
            rest = iter(values)
            now = [np.asarray(next(rest)) if is_input(a) else a for a in given]
            return Pipeline.from_generator(lambda: Generated(generator(*now), spec))

        return Dataset(make, spec, [a for a in given if is_input(a)])

    @staticmethod
    def range(*args: Any) -> Dataset:
        """Integers, int64, as in Python's `range`; limits may be tensors."""
        given = list(map(argument, args))
        make = lambda values: Pipeline.range(*map(int, filled(given, values)))  # noqa: E731
        return Dataset(make, Spec(as_dtype(np.int64), ()), [a for a in given if is_input(a)])

    @staticmethod
    def zip(datasets: Any) -> Dataset:
        """Zipped elements.

        Args:
            datasets: nested datasets; an element has their structure.
        """
        parts: list[Dataset] = leaves(datasets)
        spec = map_leaves(lambda d: d.spec, datasets)
        make, inputs = together(parts)

        def zipped(values: Sequence[Any]) -> Pipeline:
            made = iter(make(values))
            return Pipeline.zip(map_leaves(lambda _: next(made), datasets))

        return Dataset(zipped, spec, inputs)

    @staticmethod
    @arguments_of(Pipeline.list_files)
    def list_files(
        file_pattern: Any, shuffle: bool | None = None, seed: int | None = None
    ) -> Dataset:
        """The names of files that match patterns, shuffled in each epoch by default.

        Raises:
            InvalidArgumentError: when an iterator is initialized, if no file matches. An iterator
                that starts by itself has no elements then, as in TensorFlow.
        """
        given = argument(file_pattern)
        own = order_seed(seed)

        def make(values: Sequence[Any]) -> Pipeline:
            names = Pipeline.from_sequence(matching_files(*filled([given], values)))
            return names if shuffle is False else names.shuffle(1, own)

        def check(values: Sequence[Any]) -> None:
            if not matching_files(*filled([given], values)):
                text = f"list_files: no files matched pattern {file_pattern!r}"
                raise InvalidArgumentError(None, None, text)

        inputs = [given] if is_input(given) else []
        return Dataset(make, Spec(string, ()), inputs, check)

    # transformations

    def _then(
        self, change: Callable[..., Pipeline], spec: Any = None, given: Sequence[Any] = ()
    ) -> Dataset:
        """The dataset of `change(pipeline, *given)`; tensors in `given` are further inputs."""
        make, count = self.pipeline, len(self.inputs)
        arguments = list(map(argument, given))
        more = [a for a in arguments if is_input(a)]

        def changed(values: Sequence[Any]) -> Pipeline:
            return change(make(values[:count]), *filled(arguments, values[count:]))

        found = self.spec if spec is None else spec
        check = lambda values: self.check(values[:count])  # noqa: E731
        kind = type(self) if spec is None else Dataset
        return kind(changed, found, [*self.inputs, *more], check)

    @arguments_of(Pipeline.map)
    def map(self, map_func: Callable[..., Any], num_parallel_calls: int | None = None) -> Dataset:
        """`map_func` of each element: a function of tensors, which is traced once."""
        traced = Traced(map_func, self.spec)

        def change(p: Pipeline, threads: Any, *outside: Any) -> Pipeline:
            return p.map(traced.given(outside).begun(), threads)

        return self._then(change, traced.spec, [num_parallel_calls, *traced.captured])

    def filter(self, predicate: Callable[..., Any]) -> Dataset:
        """The elements for which `predicate` returns true, a boolean tensor."""
        traced = Traced(predicate, self.spec)
        change = lambda p, *outside: p.filter(traced.given(outside).begun())  # noqa: E731
        return self._then(change, None, list(traced.captured))

    def flat_map(self, map_func: Callable[..., Any]) -> Dataset:
        """The elements of the datasets that `map_func` returns, one after the other."""
        nested = Nested(map_func, self.spec)
        return self._then(lambda p: p.flat_map(nested.begun()), nested.spec)

    @arguments_of(Pipeline.interleave)
    def interleave(
        self, map_func: Callable[..., Any], cycle_length: Any, block_length: Any = 1,
        num_parallel_calls: Any = None,
    ) -> Dataset:  # fmt: skip
        """The elements of `cycle_length` such datasets in turn."""
        nested = Nested(map_func, self.spec)
        given = [cycle_length, block_length, num_parallel_calls]
        return self._then(lambda p, *xs: p.interleave(nested.begun(), *xs), nested.spec, given)

    @arguments_of(Pipeline.batch)
    def batch(self, batch_size: Any, drop_remainder: Any = False) -> Dataset:
        """`batch_size` elements stacked along a new first axis."""
        spec = self._batched(self.spec, batch_size, drop_remainder)
        given = [batch_size, drop_remainder]
        return self._then(lambda p, *xs: p.batch(*xs), spec, given)

    def _batched(self, spec: Any, batch_size: Any, drop_remainder: Any) -> Any:
        """The spec of batches; their size is known if all have it."""
        size, whole = argument(batch_size), argument(drop_remainder)
        known = size if whole is True and not is_input(size) else None
        return spec_map(lambda s: s.batched(known), spec)

    @arguments_of(Pipeline.padded_batch)
    def padded_batch(
        self, batch_size: Any, padded_shapes: Any, padding_values: Any = None,
        drop_remainder: Any = False,
    ) -> Dataset:  # fmt: skip
        """Batches of elements of different shapes, padded."""
        wide = lambda s: Spec(s.dtype, s.dims and tuple([None] * len(s.dims)))  # noqa: E731
        spec = self._batched(spec_map(wide, self.spec), batch_size, drop_remainder)

        shapes = per_leaf(self.spec, padded_shapes, lambda s: as_shape(s).as_list())
        values = () if padding_values is None else per_leaf(self.spec, padding_values, plain)
        fill = values if isinstance(values, tuple) else (values,)

        def change(p: Pipeline, size: int, whole: bool, *fill: Any) -> Pipeline:
            given = fill[0] if len(fill) == 1 else fill or None
            return p.padded_batch(size, shapes, given, whole)

        return self._then(change, spec, [batch_size, drop_remainder, *fill])

    def unbatch(self) -> Dataset:
        """The rows of each element as separate elements."""
        return self._then(lambda p: p.unbatch(), spec_map(lambda s: s.row(), self.spec))

    def window(
        self, size: Any, shift: Any = None, stride: Any = 1, drop_remainder: Any = False
    ) -> Windows:
        """Datasets of consecutive elements, of equal shapes.

        Args:
            size: how many elements a window has.
            shift: how many elements after the start of a window the next one starts; `size` by
                default.
            stride: how far apart a window's elements are.
            drop_remainder: whether windows at the end with fewer elements are left out.
        """
        given = [size, size if shift is None else shift, stride, drop_remainder]
        spec = spec_map(lambda s: s.batched(None), self.spec)
        one = self._then(lambda p, *xs: in_windows(p, *xs), spec, given)
        return Windows(one.pipeline, spec, one.inputs, one.check)

    def reduce(self, initial_state: Any, reduce_func: Callable[[Any, Any], Any]) -> Any:
        """`state = reduce_func(state, element)` over all elements: the last state, as tensors.

        Args:
            initial_state: a tensor, or nested ones.
            reduce_func: a function of tensors, which is traced once.
        """
        first = map_leaves(convert_to_tensor, initial_state)
        spec = map_leaves(of_value, first)
        traced = Traced(reduce_func, (spec, self.spec))
        states, captured = leaves(first), list(traced.captured)

        def run(_: Any, *arrays: Any) -> Any:
            given = iter(arrays)
            state = map_leaves(lambda _: next(given), first)
            step = traced.given([next(given) for _ in captured]).begun()
            for element in self.pipeline([x[()] for x in given]):
                state = step(state, element)
            return state

        return tensors_of(traced.spec, run, "ReduceDataset", [*states, *captured, *self.inputs])

    def as_numpy_iterator(self) -> Any:
        """An iterator over NumPy elements."""
        return iter(self.pipeline(values_at_start(self.inputs)()))

    @arguments_of(Pipeline.shuffle)
    def shuffle(
        self,
        buffer_size: Any,
        seed: Any = None,
        reshuffle_each_iteration: bool | None = None,
    ) -> Dataset:
        """Elements in another order each epoch; see `weft.data.Dataset.shuffle`.

        The orders follow from the graph's seed and `seed`, if there is one."""
        every = reshuffle_each_iteration is not False
        told = argument(seed)
        own = told if is_input(told) else order_seed(told)
        return self._then(lambda p, size, s: p.shuffle(size, s, every), None, [buffer_size, own])

    def repeat(self, count: Any = None) -> Dataset:
        """All elements `count` times; endless by default."""
        return self._then(lambda p, count: p.repeat(count), None, [count])

    def take(self, count: Any) -> Dataset:
        """The first `count` elements."""
        return self._then(lambda p, count: p.take(count), None, [count])

    def skip(self, count: Any) -> Dataset:
        """All but the first `count` elements."""
        return self._then(lambda p, count: p.skip(count), None, [count])

    @arguments_of(Pipeline.shard)
    def shard(self, num_shards: Any, index: Any) -> Dataset:
        """Every `num_shards`-th element."""
        return self._then(lambda p, *xs: p.shard(*xs), None, [num_shards, index])

    @arguments_of(Pipeline.prefetch)
    def prefetch(self, buffer_size: Any) -> Dataset:
        """The same elements, computed ahead by a thread."""
        return self._then(lambda p, size: p.prefetch(size), None, [buffer_size])

    @arguments_of(Pipeline.cache)
    def cache(self, filename: Any = "") -> Dataset:
        """The elements of the first epoch, cached, in all epochs."""
        change = lambda p, name: p.cache(os.fsdecode(name))  # noqa: E731
        return self._then(change, None, [filename])

    @arguments_of(Pipeline.enumerate)
    def enumerate(self, start: Any = 0) -> Dataset:
        """Pairs of an index and an element."""
        spec = (Spec(as_dtype(np.int64), ()), self.spec)
        return self._then(lambda p, start: p.enumerate(start), spec, [start])

    @arguments_of(Pipeline.concatenate)
    def concatenate(self, dataset: Dataset) -> Dataset:
        """The elements of this dataset, then those of another.

        Raises:
            DTypeError: the elements differ in structure or type.
        """
        spec = common(self.spec, dataset.spec)
        make, inputs = together([self, dataset])

        def joined(values: Sequence[Any]) -> Pipeline:
            first, second = make(values)
            return first.concatenate(second)

        return Dataset(joined, spec, inputs)

    def apply(self, transformation_func: Callable[[Dataset], Dataset]) -> Dataset:
        """`transformation_func(self)`."""
        return transformation_func(self)

    def with_options(self, options: Any) -> Dataset:
        """Itself: options of pipelines change no elements.

        Args:
            options: of the pipeline, without effect.
        """
        del options
        return self

    # iterators

    def __iter__(self) -> Iterator:
        """An iterator over tensors, in eager execution.

        Raises:
            GraphError: operations are added to a graph.
        """
        if not computes_at_once():
            text = "expected eager execution to iterate; in a graph, use make_one_shot_iterator"
            raise fail(GraphError, f"Dataset: {text}")
        return self.make_one_shot_iterator()

    def make_one_shot_iterator(self) -> Iterator:
        """An iterator that starts by itself, once per session.

        Raises:
            InvalidArgumentError: the dataset depends on feeds, variables or random numbers.
        """
        values = values_at_start(self.inputs)
        return Iterator(self.spec, lambda: self.pipeline(values()))

    def make_initializable_iterator(self, shared_name: str | None = None) -> Initializable:
        """An iterator that starts when its `initializer` is run, with feeds if needed.

        Args:
            shared_name: no effect.
        """
        del shared_name
        return Initializable(self)


def _source(
    tensors: Any, begin: Callable[[Any], Pipeline], leaf: Callable[[Spec], Spec]
) -> Dataset:
    if isinstance(tensors, list) and any(map(is_tensor, tensors)):
        tensors = tuple(tensors)
    constants = map_leaves(_constant, tensors)
    inputs = [x for x in leaves(constants) if is_input(x)]

    def make(values: Sequence[Any]) -> Pipeline:
        rest = iter(values)
        return begin(map_leaves(lambda x: next(rest) if is_input(x) else x, constants))

    return Dataset(make, map_leaves(lambda x: leaf(of_value(x)), constants), inputs)


def _constant(x: Any) -> Any:
    if is_tensor(x) and not is_input(x):
        return x.numpy()
    known = static_value(x) if is_tensor(x) else None
    if known is not None:
        return known
    if is_input(x) or (isinstance(x, np.ndarray | np.generic) and not is_text(x)):
        return x
    if is_text(x):
        return text_array(x)[()]
    array = np.asarray(x)
    if array.dtype == np.float64:
        return array.astype(np.float32)  # Python's numbers convert as in TensorFlow
    return array.astype(np.int32) if array.dtype == np.int64 else array


def together(parts: Sequence[Dataset]) -> tuple[Callable[[Sequence[Any]], list[Pipeline]], Any]:
    """The pipelines of several datasets, from the values of all their inputs."""
    counts = [len(part.inputs) for part in parts]

    def make(values: Sequence[Any]) -> list[Pipeline]:
        rest = iter(values)
        return [
            part.pipeline([next(rest) for _ in _range(count)])
            for part, count in zip(parts, counts, strict=True)
        ]

    return make, [x for part in parts for x in part.inputs]


class Nested:
    """A function from elements to datasets.

    Raises:
        DTypeError: it returns something else.
    """

    def __init__(self, function: Callable[..., Any], spec: Any) -> None:
        self.traced = Traced(function, spec, keep=True)
        made: Any = self.traced.result
        if not isinstance(made, Dataset):
            text = f"expected the function to return a dataset, got {type(made).__name__}"
            raise DTypeError(f"flat_map: {text}")
        self.dataset, self.spec = made, made.spec

    def begun(self) -> Callable[..., Pipeline]:
        """The function for a new pass."""
        traced, dataset = self.traced.begun(), self.dataset

        def pipeline(*parts: Any) -> Pipeline:
            traced.enter(parts)
            return dataset.pipeline(traced.values(tuple(dataset.inputs)))

        return pipeline


class Windows(Dataset):
    """Datasets as elements: what functions of elements take, and what iterators give."""

    def map(self, map_func: Callable[..., Any], num_parallel_calls: int | None = None) -> Dataset:
        """`map_func` of each window."""
        return self._rows().map(_of_datasets(map_func), num_parallel_calls)

    def filter(self, predicate: Callable[..., Any]) -> Windows:
        """The windows for which `predicate` returns true."""
        found = self._rows().filter(_of_datasets(predicate))
        return Windows(found.pipeline, self.spec, found.inputs, found.check)

    def flat_map(self, map_func: Callable[..., Any]) -> Dataset:
        """The elements of the datasets that `map_func` makes of windows, one after the other."""
        return self._rows().flat_map(_of_datasets(map_func))

    def interleave(
        self, map_func: Callable[..., Any], cycle_length: Any, block_length: Any = 1,
        num_parallel_calls: Any = None,
    ) -> Dataset:  # fmt: skip
        """The elements of `cycle_length` such datasets in turn."""
        function = _of_datasets(map_func)
        return self._rows().interleave(function, cycle_length, block_length, num_parallel_calls)

    def __iter__(self) -> Any:
        """An iterator over datasets, in eager execution."""
        return (map_leaves(Dataset.from_tensor_slices, rows) for rows in self._rows())

    def _rows(self) -> Dataset:
        """Windows as the rows in them, stacked."""
        return Dataset(self.pipeline, self.spec, self.inputs, self.check)


def _of_datasets(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of datasets as one of their rows, stacked."""
    return lambda *rows: function(*[map_leaves(Dataset.from_tensor_slices, x) for x in rows])
