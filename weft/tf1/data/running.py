"""Transformations that carry something from element to element: scans, sets, groups."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from weft.errors import ArgumentError
from weft.pipeline.call import called
from weft.pipeline.pipeline import Pipeline
from weft.pipeline.structure import leaves, map_leaves
from weft.tf1.data.dataset import Dataset, Nested
from weft.tf1.data.spec import Spec, of_value, spec_map
from weft.tf1.data.traced import Traced
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.dtypes import int64

__all__ = ["bucket_by_sequence_length", "group_by_window", "scan", "take_while", "unique"]

Apply = Callable[[Dataset], Dataset]


def then(
    data: Dataset, change: Callable[..., Pipeline], spec: Any = None, given: Sequence[Any] = ()
) -> Dataset:
    """The dataset of `change(pipeline, *given)`; tensors in `given` are further inputs."""
    return data._then(change, spec, given)  # pyright: ignore[reportPrivateUsage]


def take_while(predicate: Callable[..., Any]) -> Apply:
    """The elements before the first for which `predicate` returns false.

    Args:
        predicate: a function of tensors to a boolean.
    """

    def apply(data: Dataset) -> Dataset:
        traced = Traced(predicate, data.spec)
        change = lambda p, *outside: p.take_while(traced.given(outside).begun())  # noqa: E731
        return then(data, change, None, list(traced.captured))

    return apply


def unique() -> Apply:
    """Each element once, where it occurs first."""

    def change(source: Pipeline) -> Pipeline:
        def firsts() -> Iterator[Any]:
            seen = set[Any]()
            for element in source:
                key = element if isinstance(element, bytes) else np.asarray(element).tobytes()
                if key not in seen:
                    seen.add(key)
                    yield element

        return Pipeline.from_generator(firsts)

    def apply(data: Dataset) -> Dataset:
        if not isinstance(data.spec, Spec):
            raise ArgumentError.here("unique: expected elements of one tensor each")
        return then(data, change)

    return apply


def scan(initial_state: Any, scan_func: Callable[[Any, Any], Any]) -> Apply:
    """`state, result = scan_func(state, element)` for each element: the results.

    Args:
        initial_state: a tensor, or nested ones.
        scan_func: a function of tensors, which is traced once.
    """

    def apply(data: Dataset) -> Dataset:
        first = map_leaves(convert_to_tensor, initial_state)
        traced = Traced(scan_func, (map_leaves(of_value, first), data.spec))
        captured, states = list(traced.captured), leaves(first)

        def change(source: Pipeline, *given: Any) -> Pipeline:
            def results() -> Iterator[Any]:
                step, rest = traced.given(given[len(states) :]).begun(), iter(given)
                state = map_leaves(lambda _: next(rest), first)
                for element in source:
                    state, result = step(state, element)
                    yield result

            return Pipeline.from_generator(results)

        return then(data, change, traced.spec[1], [*states, *captured])

    return apply


def group_by_window(
    key_func: Callable[..., Any], reduce_func: Callable[[Any, Dataset], Dataset],
    window_size: int | None = None, window_size_func: Callable[[Any], Any] | None = None,
) -> Apply:  # fmt: skip
    """Elements with equal keys in windows, each reduced to a dataset, one after the other.

    Args:
        key_func: a function of an element's tensors to an int64.
        reduce_func: a function of a key and the dataset of a window's elements to a dataset, such
            as one batch of them.
        window_size: how many elements a window has; what is left at the end are smaller ones.
        window_size_func: a function of a key to the size, instead of `window_size`.

    Raises:
        ArgumentError: none of the sizes is given, or both are.
    """
    if (window_size is None) == (window_size_func is None):
        raise ArgumentError.here("group_by_window: expected window_size or window_size_func")
    one, most = Spec(int64, ()), window_size or 0

    def apply(data: Dataset) -> Dataset:
        current = threading.local()  # the elements of the window that is reduced
        window = Dataset(lambda _: Pipeline.from_generator(current.rows.__iter__), data.spec)
        keys, made = Traced(key_func, data.spec), Nested(lambda k: reduce_func(k, window), one)
        sizes = None if window_size_func is None else Traced(window_size_func, one)

        def change(source: Pipeline) -> Pipeline:
            def elements() -> Iterator[Any]:
                held: dict[int, list[Any]] = {}
                key_of, reduced = keys.begun(), made.begun()
                for number, element in enumerate(source):
                    key = int(called(key_of, element, "group_by_window", number))
                    rows = held.setdefault(key, [])
                    rows.append(element)
                    if len(rows) >= int(most if sizes is None else sizes(np.int64(key))):
                        current.rows = held.pop(key)
                        yield from reduced(np.int64(key))
                for key, current.rows in held.items():
                    yield from reduced(np.int64(key))

            return Pipeline.from_generator(elements)

        return then(data, change, made.spec)

    return apply


def bucket_by_sequence_length(
    element_length_func: Callable[..., Any], bucket_boundaries: Sequence[int],
    bucket_batch_sizes: Sequence[int], padded_shapes: Any = None, padding_values: Any = None,
    pad_to_bucket_boundary: bool = False, no_padding: bool = False, drop_remainder: bool = False,
) -> Apply:  # fmt: skip
    """Batches of elements of similar length, padded to the longest of the batch.

    Args:
        element_length_func: a function of an element's tensors to its length.
        bucket_boundaries: rising lengths, at which the next bucket starts.
        bucket_batch_sizes: the batch size of each bucket, one more than boundaries.
        padded_shapes, padding_values: as in `Dataset.padded_batch`.
        pad_to_bucket_boundary: whether elements get the greatest length of their bucket.
        no_padding: whether elements of a bucket have one shape already.
        drop_remainder: whether last batches of fewer elements are left out.
    """

    def apply(data: Dataset) -> Dataset:
        traced = Traced(element_length_func, data.spec)
        change = lambda p: p.bucket_by_sequence_length(  # noqa: E731
            traced.begun(), bucket_boundaries, bucket_batch_sizes, padded_shapes, padding_values,
            pad_to_bucket_boundary, no_padding, drop_remainder,
        )  # fmt: skip
        wide = lambda s: Spec(s.dtype, s.dims and (None,) * (len(s.dims) + 1))  # noqa: E731
        return then(data, change, spec_map(wide, data.spec))

    return apply
