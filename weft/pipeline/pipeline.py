"""`Pipeline`: stages chained by methods, with tf.data's names; the base of all APIs."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import numpy as np

from weft.errors import ArgumentError, DTypeError
from weft.ops.refusal import guard_methods
from weft.pipeline.combination import Sample, Zip
from weft.pipeline.failure import IgnoreErrors
from weft.pipeline.file.sources import FileSources
from weft.pipeline.iterator import Iterator, check_state
from weft.pipeline.mapping import Map
from weft.pipeline.profile import Profile, measured
from weft.pipeline.signature import Signature
from weft.pipeline.source import Items, Made, Numbers, Slices
from weft.pipeline.stage import INFINITE, Context, Draws, Stage, State
from weft.pipeline.structure import map_leaves

_range = range


class Pipeline(FileSources):
    """A source and transformations of its elements; each iteration is an epoch.

    Elements are NumPy arrays, numbers, strings and other objects in nested tuples and dicts. Every
    method returns a new pipeline. Functions must not modify the arrays that they get.

    >>> squares = Pipeline.range(10).map(lambda x: x * x).batch(4)
    >>> [batch.tolist() for batch in squares]
    [[0, 1, 4, 9], [16, 25, 36, 49], [64, 81]]
    """

    def __init__(self, stage: Stage | None = None) -> None:
        name = type(self).__name__
        if not isinstance(stage, Stage):
            got = "" if stage is None else type(stage).__name__
            raise DTypeError.here(
                f"{name}: expected one of the class methods that make a dataset, such as "
                f"{name}.from_tensor_slices(...) or {name}.range(...), got {name}({got})"
            )
        super().__init__(stage)
        self._epoch = 0
        self._seed: int | None = None
        self._pass: weakref.ref[Iterator] | None = None
        self._waiting: State | None = None

    def _shown(self) -> Callable[[Any], Any] | None:
        """Converts elements before the user gets them."""
        return None

    def _draws(self) -> Draws | None:
        """The random stream of user functions."""
        return None

    def _fresh_seed(self) -> int:
        """The seed for stages without one."""
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])

    # sources

    @classmethod
    def from_tensor_slices(cls, tensors: Any) -> Self:
        """Row i of each array is element i; arrays may be nested in tuples and dicts.

        Args:
            tensors: nested tensors or arrays with the same number of rows.

        Raises:
            ShapeError: first dimensions differ.
        """
        return cls(Slices(tensors))

    @classmethod
    def from_tensors(cls, tensors: Any) -> Self:
        """A pipeline of one element.

        Args:
            tensors: the element: nested tensors or arrays.
        """
        return cls(Items([tensors]))

    @classmethod
    def from_sequence(cls, items: Sequence[Any]) -> Self:
        """The items of an object with `__getitem__` and `__len__`; `map` may load them.

        Args:
            items: the object.
        """
        if not (hasattr(items, "__getitem__") and hasattr(items, "__len__")):
            got = type(items).__name__
            raise DTypeError(
                f"from_sequence: expected an object with __getitem__ and __len__, got {got}"
            )
        return cls(Items(items))

    @classmethod
    def from_generator(
        cls, generator: Callable[..., Iterable[Any]], output_types: Any = None,
        output_shapes: Any = None, args: Sequence[Any] = (), output_signature: Any = None,
    ) -> Self:  # fmt: skip
        """The elements of a generator function, which is called again in each epoch.

        Args:
            generator: the function.
            output_types: element types, in the elements' structure: numbers become arrays of these
                types, and elements of another structure raise. Optional.
            output_shapes: shapes likewise, with None for unknown sizes.
            args: arguments of the function.
            output_signature: specs with `dtype` and `shape`, instead of both.

        Raises:
            ArgumentError: a running generator instead of a function.
            TreeError, ShapeError, DTypeError: while iterating, an element differs from its spec.

        >>> pairs = Pipeline.from_generator(lambda n: ((i, [i]) for i in range(n)),
        ...                                 ("float32", "int32"), ((), (None,)), args=(2,))
        >>> [(x.dtype.name, y.tolist()) for x, y in pairs]
        [('float32', [0]), ('float32', [1])]
        """
        if not callable(generator):
            got = type(generator).__name__
            raise ArgumentError(
                f"from_generator: expected a function that returns something to iterate, got {got}"
            )
        made = cls(Made(functools.partial(generator, *args)))
        if output_types is None and output_signature is None:
            return made
        signature = Signature(output_types, output_shapes, output_signature)
        return made._with(Map(made.stage, signature, None, "signature"))

    @classmethod
    def range(cls, *args: int, output_type: Any = None) -> Self:
        """Integers, int64, as in Python's `range`.

        Args:
            output_type: another dtype.
        """
        numbers = cls(Numbers(_range(*args)))
        if output_type is None:
            return numbers
        dtype = np.dtype(getattr(output_type, "numpy", output_type))
        return numbers._with(Map(numbers.stage, dtype.type))

    @classmethod
    def zip(cls, *datasets: Any) -> Self:
        """Zipped elements, as many as the shortest pipeline has: `zip(a, b)` or `zip((a, b))`."""
        shape = datasets[0] if len(datasets) == 1 else datasets
        return cls(Zip(map_leaves(lambda d: d.stage, shape)))

    @classmethod
    def sample_from_datasets(
        cls, datasets: Sequence[Pipeline], weights: Sequence[float] | None = None,
        seed: int | None = None, stop_on_empty_dataset: bool = False,
    ) -> Self:  # fmt: skip
        """Each element from a dataset sampled by `weights`; ended ones are skipped.

        Args:
            datasets: the datasets.
            weights: of each; all are equally likely by default.
            seed: of the draws.
            stop_on_empty_dataset: whether to end with the first dataset that ends.
        """
        stages = [d.stage for d in datasets]
        return cls(Sample(stages, weights, seed, stop_on_empty_dataset))

    @classmethod
    def choose_from_datasets(
        cls, datasets: Sequence[Pipeline], choice: Pipeline, stop_on_empty_dataset: bool = True
    ) -> Self:
        """Each element from the dataset that `choice` selects by index.

        Args:
            datasets: the datasets.
            choice: a dataset of indices.
            stop_on_empty_dataset: whether to end with the first dataset that ends.
        """
        stages = [d.stage for d in datasets]
        return cls(Sample(stages, None, 0, stop_on_empty_dataset, choice.stage))

    # iteration

    @property
    def skipped(self) -> int:
        """The number of elements that `ignore_errors` has skipped so far."""
        return sum(s.skipped for s in self.stage.walk() if isinstance(s, IgnoreErrors))

    def reduce(self, initial_state: Any, reduce_func: Callable[[Any, Any], Any]) -> Any:
        """`reduce_func(state, element)` over the elements of an epoch, from an initial state.

        Args:
            initial_state: the first state.
            reduce_func: gives the next state.

        >>> int(Pipeline.range(5).reduce(0, lambda total, x: total + x))
        10
        """
        return functools.reduce(reduce_func, self, initial_state)

    def profile(self, count: int = -1) -> Profile:
        """Iterate over `count` elements, by default an epoch, and report each stage's time.

        >>> profile = Pipeline.range(1000).map(lambda x: x * x).batch(10).profile()
        >>> profile.slowest.name
        'map(<lambda>)'
        """
        return measured(
            self.stage, Context(self._epoch, self._seed or 0, draws=self._draws()), count
        )

    def cardinality(self) -> int:
        """The number of elements; INFINITE is -1, UNKNOWN is -2."""
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
        """An iterator over NumPy elements."""
        return self._iterate(None)

    def _iterate(self, shown: Callable[[Any], Any] | None) -> Iterator:
        state, self._waiting = self._waiting, None
        if self._seed is None:
            self._seed = self._fresh_seed()
        context = Context(self._epoch, self._seed, draws=self._draws())
        running = Iterator(self.stage, context, shown)
        if state is not None:
            running.load_state_dict(state)
            self._seed = running.context.seed
        self._epoch = running.context.epoch + 1
        self._pass = weakref.ref(running)
        return running

    def state_dict(self) -> State:
        """The state of the running pass; between passes, the start of the next one."""
        if self._waiting is not None:
            return self._waiting
        running = self._pass() if self._pass is not None else None
        if running is not None and not running.ended:
            return running.state_dict()
        if self._seed is None:
            self._seed = self._fresh_seed()
        return Iterator(self.stage, Context(self._epoch, self._seed)).state_dict()

    def load_state_dict(self, state: State) -> None:
        """Let the next pass resume where `state_dict` was called.

        Args:
            state: what `state_dict` returned.

        Raises:
            StateError: the state belongs to another pipeline.
        """
        check_state(self.stage, state)
        self._waiting = state


guard_methods(Pipeline, object)
