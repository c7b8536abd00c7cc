"""`tf.train`'s input functions: file names, and batches from queues."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.documentation import arguments_of
from weft.errors import ArgumentError, ShapeError
from weft.pipeline.batch import padded
from weft.pipeline.pipeline import Pipeline
from weft.pipeline.structure import stack
from weft.tf1.data.reader import Shared
from weft.tf1.data.seed import order_seed
from weft.tf1.framework.convert import convert_to_tensor, is_tensor, static_value
from weft.tf1.framework.host import host_op
from weft.tf1.framework.tensor_shape import as_shape
from weft.tf1.train.queue_runner import Queue, QueueRunner, add_queue_runner

__all__ = ["batch", "shuffle_batch", "slice_input_producer", "string_input_producer"]


def string_input_producer(
    string_tensor: Sequence[Any], num_epochs: int | None = None, shuffle: bool = True,
    seed: int | None = None, capacity: int = 32, name: str | None = None,
) -> Pipeline:  # fmt: skip
    """File names for a reader, shuffled in each epoch; endless by default.

    Args:
        string_tensor: the names.
        num_epochs: how often each name comes; without end by default.
        shuffle: whether each epoch has an order of its own.
        seed: of the orders.
        capacity, name: no effect.

    Raises:
        ArgumentError: there are no names.
    """
    del capacity, name
    known = _known(string_tensor, "string_input_producer")
    names = [n.decode() if isinstance(n, bytes) else str(n) for n in known]
    if not names:
        raise ArgumentError("string_input_producer: expected at least one name, got none")
    found = Pipeline.from_sequence(names)
    shuffled = found.shuffle(len(names), order_seed(seed)) if shuffle else found
    return shuffled.repeat(num_epochs)


@arguments_of(string_input_producer)
def slice_input_producer(
    tensor_list: Sequence[Any], num_epochs: int | None = None, shuffle: bool = True,
    seed: int | None = None, capacity: int = 32,
) -> list[Any]:  # fmt: skip
    """Matching rows of arrays, shuffled in each epoch.

    Args:
        tensor_list: arrays with the same number of rows.
    """
    del capacity
    arrays = tuple(np.asarray(_known(x, "slice_input_producer")) for x in tensor_list)
    rows = Pipeline.from_tensor_slices(arrays)
    if shuffle:
        rows = rows.shuffle(max(len(arrays[0]), 1), order_seed(seed))
    rows = rows.repeat(num_epochs)
    row = Shared(rows, "input_producer")
    kinds, shapes = [x.dtype for x in arrays], [x.shape[1:] for x in arrays]
    return _many("InputProducer", row.next, kinds, shapes, "input_producer")


def _known(x: Any, what: str) -> Any:
    """An argument; of a constant tensor, its value."""
    if not is_tensor(x):
        return x
    known = static_value(x)
    if known is None:
        raise ArgumentError(f"{what}: expected plain values or constants, got {x!r}")
    return known


def _many(kind: str, take: Any, dtypes: Any, shapes: Any, name: str) -> list[Any]:
    """The outputs of an operation that gives a tuple, also of one."""
    single = (lambda: take()[0]) if len(dtypes) == 1 else take
    return host_op(kind, (), single, dtypes, shapes, name).outputs


def batch(
    tensors: Any, batch_size: int, num_threads: int = 1, capacity: int = 32,
    enqueue_many: bool = False, shapes: Any = None, dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False, shared_name: str | None = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Batches of elements that threads compute; `start_queue_runners` starts them.

    Args:
        tensors: a list or a dictionary of tensors.
        batch_size: the number of elements in a batch.
        num_threads: how many threads compute elements.
        capacity: the most elements that wait.
        enqueue_many: whether the tensors are batches already.
        shapes: the shapes of the elements, where the tensors' static shapes do not tell them.
        dynamic_pad: pad elements of different shapes to the largest.
        allow_smaller_final_batch: whether the last batch may have fewer elements; otherwise they
            are left out.
        shared_name, name: no effect.
    """
    queue = Queue(max(capacity, batch_size))
    del shared_name, name
    options = enqueue_many, dynamic_pad, allow_smaller_final_batch
    return _batched(tensors, batch_size, num_threads, queue, options, shapes)


@arguments_of(batch)
def shuffle_batch(
    tensors: Any, batch_size: int, capacity: int, min_after_dequeue: int, num_threads: int = 1,
    seed: int | None = None, enqueue_many: bool = False, shapes: Any = None,
    allow_smaller_final_batch: bool = False, shared_name: str | None = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Batches of elements drawn from a queue of at least `min_after_dequeue` elements.

    Args:
        capacity: the most elements that wait.
        min_after_dequeue: the fewest elements that wait: a batch is drawn from them.
        seed: of the draws.

    Raises:
        ArgumentError: the capacity is too small.
    """
    if capacity < min_after_dequeue + batch_size:
        text = f"{min_after_dequeue} + {batch_size} at least, got {capacity}"
        raise ArgumentError(f"shuffle_batch: expected a capacity of {text}")
    chosen = order_seed(seed)
    drawn = secrets.randbits(64) if chosen is None else chosen
    queue = Queue(capacity, min_after_dequeue, drawn, steady=chosen is not None)
    del shared_name, name
    options = enqueue_many, False, allow_smaller_final_batch
    return _batched(tensors, batch_size, num_threads, queue, options, shapes)


def _batched(
    tensors: Any, size: int, threads: int, queue: Queue, options: tuple[bool, bool, bool],
    told: Any,
) -> Any:  # fmt: skip
    many, pad, smaller = options
    names = list(tensors) if isinstance(tensors, dict) else None
    single = not isinstance(tensors, dict | list | tuple)
    parts: Any = tensors.values() if isinstance(tensors, dict) else tensors
    given = [tensors] if single else list(parts)
    fetches = [convert_to_tensor(x) for x in given]
    rows = [None] * len(fetches) if told is None else [told] if single else list(told)
    whole = None if smaller else size
    shapes = [_dims(x, s, many, pad, whole) for x, s in zip(fetches, rows, strict=True)]
    add_queue_runner(QueueRunner(queue, fetches, threads, many))
    joined = padded if pad else stack
    take = lambda: joined(queue.take(size, smaller))  # noqa: E731
    dtypes = [x.dtype.base_dtype for x in fetches]
    found = _many("QueueDequeueMany", take, dtypes, shapes, "batch")
    if names:
        return dict(zip(names, found, strict=True))
    return found[0] if single else found


def _dims(x: Any, told: Any, many: bool, pad: bool, size: int | None) -> tuple[int | None, ...]:
    dims = x.shape.as_dims()
    if told is not None:  # the shape of an element
        dims = (*([None] if many else []), *(as_shape(told).as_dims() or ()))
    if dims is None or (None in dims[many:] and not pad):
        raise ShapeError(
            f"batch: expected tensors of known shapes, got {dims} of {x.name}; set_shape tells, "
            "or dynamic_pad pads"
        )
    return size, *dims[many:]
