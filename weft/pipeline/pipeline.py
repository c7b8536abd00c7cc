"""Stages put together by methods, with the names of tf.data: what all faces offer."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import numpy as np

from weft.errors import ArgumentError
from weft.pipeline.batch import Batch, PaddedBatch, Unbatch
from weft.pipeline.combination import Concatenate, Sample, Zip
from weft.pipeline.iterator import Iterator, check_state
from weft.pipeline.mapping import Map
from weft.pipeline.order import Repeat, Shuffle
from weft.pipeline.prefetching import Prefetch
from weft.pipeline.selection import Enumerate, Filter, Span
from weft.pipeline.source import Items, Made, Numbers, Slices
from weft.pipeline.stage import INFINITE, Context, Stage, State
from weft.pipeline.structure import map_leaves

_range = range


class Pipeline:
    """A source and transformations of its elements; iterating it begins an epoch.

    Elements are NumPy arrays, numbers, texts and other objects in nested tuples and dicts. Every
    method gives a new pipeline. Functions must not change the arrays that they are given.

    >>> squares = Pipeline.range(10).map(lambda x: x * x).batch(4)
    >>> [batch.tolist() for batch in squares]
    [[0, 1, 4, 9], [16, 25, 36, 49], [64, 81]]
    """

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self._epoch = 0
        self._seed: int | None = None
        self._pass: weakref.ref[Iterator] | None = None
        self._waiting: State | None = None

    def _with(self, stage: Stage) -> Self:
        return type(self)(stage)

    def _function(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A user's function as stages call it; faces that show other elements translate."""
        return function

    def _shown(self) -> Callable[[Any], Any] | None:
        """What elements are turned into before the user gets them."""
        return None

    def _fresh_seed(self) -> int:
        """The seed of stages that were given none."""
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])

    # sources

    @classmethod
    def from_tensor_slices(cls, tensors: Any) -> Self:
        """Row i of each array is element i; arrays may be nested in tuples and dicts.

        Raises:
            ShapeError: first dimensions differ.
        """
        return cls(Slices(tensors))

    @classmethod
    def from_tensors(cls, tensors: Any) -> Self:
        """One element, as it is given."""
        return cls(Items([tensors]))

    @classmethod
    def from_sequence(cls, items: Sequence[Any]) -> Self:
        """Whatever has `__getitem__` and `__len__`; `map` then loads what an item only names."""
        return cls(Items(items))

    @classmethod
    def from_generator(cls, generator: Callable[[], Iterable[Any]], *args: Any, **_: Any) -> Self:
        """What a function yields that is called anew in each epoch.

        `args` may be TensorFlow's `output_types` and `output_shapes`, which are not needed.

        Raises:
            ArgumentError: a running generator in place of the function.
        """
        if not callable(generator):
            got = type(generator).__name__
            raise ArgumentError(
                f"from_generator: expected a function that returns something to iterate, got {got}"
            )
        return cls(Made(generator))

    @classmethod
    def range(cls, *args: int, output_type: Any = None) -> Self:
        """Whole numbers, int64, as Python's `range` counts."""
        numbers = cls(Numbers(_range(*args)))
        if output_type is None:
            return numbers
        kind = np.dtype(getattr(output_type, "numpy", output_type))
        return numbers._with(Map(numbers.stage, kind.type))

    @classmethod
    def zip(cls, *datasets: Any) -> Self:
        """Elements side by side, as many as the shortest has: `zip(a, b)` or `zip((a, b))`."""
        shape = datasets[0] if len(datasets) == 1 else datasets
        return cls(Zip(map_leaves(lambda d: d.stage, shape)))

    @classmethod
    def sample_from_datasets(
        cls,
        datasets: Sequence[Pipeline],
        weights: Sequence[float] | None = None,
        seed: int | None = None,
        stop_on_empty_dataset: bool = False,
    ) -> Self:
        """Each element from a dataset drawn by `weights`; those that have ended are left out."""
        stages = [d.stage for d in datasets]
        return cls(Sample(stages, weights, seed, stop_on_empty_dataset))

    @classmethod
    def choose_from_datasets(
        cls, datasets: Sequence[Pipeline], choice: Pipeline, stop_on_empty_dataset: bool = True
    ) -> Self:
        """Each element from the dataset whose number `choice` gives."""
        stages = [d.stage for d in datasets]
        return cls(Sample(stages, None, 0, stop_on_empty_dataset, choice.stage))

    # order and selection

    def shuffle(
        self, buffer_size: int, seed: int | None = None, reshuffle_each_iteration: bool = True
    ) -> Self:
        """Elements in another order each epoch.

        Where elements have numbers, this is a permutation of all of them, computed from the seed
        and the epoch, and needs no memory. Else each is drawn from a buffer of `buffer_size`.
        """
        return self._with(Shuffle(self.stage, buffer_size, seed, reshuffle_each_iteration))

    def repeat(self, count: int | None = None) -> Self:
        """All elements `count` times, by default without end."""
        return self._with(Repeat(self.stage, -1 if count is None else count))

    def take(self, count: int) -> Self:
        """The first `count` elements; all for -1."""
        return self._with(Span(self.stage, "take", 0, None if count < 0 else count))

    def skip(self, count: int) -> Self:
        """All but the first `count` elements; none for -1."""
        if count < 0:
            return self.take(0)
        return self._with(Span(self.stage, "skip", count))

    def shard(self, num_shards: int, index: int) -> Self:
        """Elements `index`, `index + num_shards`, ...: the part of one of several ranks."""
        return self._with(Span(self.stage, "shard", index, None, num_shards))

    def filter(self, predicate: Callable[..., Any]) -> Self:
        """The elements for which `predicate` is true."""
        return self._with(Filter(self.stage, self._function(predicate)))

    def enumerate(self, start: int = 0) -> Self:
        """Pairs of a number and an element."""
        return self._with(Enumerate(self.stage, start))

    def concatenate(self, dataset: Pipeline) -> Self:
        """The elements of this, then those of another."""
        return self._with(Concatenate([self.stage, dataset.stage]))

    # transformations

    def map(
        self,
        map_func: Callable[..., Any],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
    ) -> Self:
        """`map_func` of each element, which gets a tuple's parts as arguments.

        Args:
            num_parallel_calls: threads that call it; `AUTOTUNE` finds their number.
            deterministic: accepted; the order never depends on threads.
        """
        del deterministic
        return self._with(Map(self.stage, self._function(map_func), num_parallel_calls))

    def batch(self, batch_size: int, drop_remainder: bool = False) -> Self:
        """`batch_size` elements as one, with a new first axis.

        Raises:
            ShapeError, TreeError: while iterating, elements differ in shape or structure.
        """
        return self._with(Batch(self.stage, batch_size, drop_remainder))

    def padded_batch(
        self,
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
    ) -> Self:
        """Batches of elements of various shapes, padded to the longest or to `padded_shapes`."""
        stage = PaddedBatch(self.stage, batch_size, padded_shapes, padding_values, drop_remainder)
        return self._with(stage)

    def unbatch(self) -> Self:
        """The rows of each element as elements."""
        return self._with(Unbatch(self.stage))

    def prefetch(self, buffer_size: int) -> Self:
        """The same elements, made ahead by a thread; `AUTOTUNE` finds how many."""
        return self._with(Prefetch(self.stage, buffer_size))

    def apply(self, transformation_func: Callable[[Self], Any]) -> Any:
        """`transformation_func(self)`."""
        return transformation_func(self)

    # iteration

    def cardinality(self) -> int:
        """How many elements there are: INFINITE is -1, UNKNOWN is -2."""
        return self.stage.count()

    def __len__(self) -> int:
        count = self.stage.count()
        if count < 0:
            what = "without end" if count == INFINITE else "of unknown length"
            raise TypeError(f"len: the dataset is {what}")
        return count

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator:
        return self._iterate(self._shown())

    def as_numpy_iterator(self) -> Iterator:
        """A pass whose elements are NumPy arrays."""
        return self._iterate(None)

    def _iterate(self, shown: Callable[[Any], Any] | None) -> Iterator:
        state, self._waiting = self._waiting, None
        if self._seed is None:
            self._seed = self._fresh_seed()
        running = Iterator(self.stage, Context(self._epoch, self._seed), shown)
        if state is not None:
            running.load_state_dict(state)
            self._seed = running.context.seed
        self._epoch = running.context.epoch + 1
        self._pass = weakref.ref(running)
        return running

    def state_dict(self) -> State:
        """Where the running pass is; between passes, where the next will begin."""
        if self._waiting is not None:
            return self._waiting
        running = self._pass() if self._pass is not None else None
        if running is not None and not running.ended:
            return running.state_dict()
        if self._seed is None:
            self._seed = self._fresh_seed()
        return Iterator(self.stage, Context(self._epoch, self._seed)).state_dict()

    def load_state_dict(self, state: State) -> None:
        """Let the next pass go on where `state_dict` was taken.

        Raises:
            StateError: the state is of another pipeline.
        """
        check_state(self.stage, state)
        self._waiting = state
