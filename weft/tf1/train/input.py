"""`tf.train`'s input functions: file names, and batches from queues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.errors import ArgumentError, ShapeError
from weft.pipeline.batch import padded
from weft.pipeline.permutation import mix
from weft.pipeline.pipeline import Pipeline
from weft.pipeline.structure import stack
from weft.tf1.data.reader import Shared
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.graph import get_default_graph
from weft.tf1.framework.host import HostValue, delivered, string
from weft.tf1.train.queue_runner import Queue, QueueRunner, add_queue_runner


def string_input_producer(
    string_tensor: Sequence[Any],
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    name: str | None = None,
) -> Pipeline:
    """File names for a reader, shuffled in each epoch; endless by default.

    Raises:
        ArgumentError: there are no names.
    """
    del capacity, name
    names = [n.decode() if isinstance(n, bytes) else str(n) for n in string_tensor]
    if not names:
        raise ArgumentError("string_input_producer: expected at least one name, got none")
    found = Pipeline.from_sequence(names)
    return (found.shuffle(len(names), seed) if shuffle else found).repeat(num_epochs)


def slice_input_producer(
    tensor_list: Sequence[Any],
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
) -> list[Any]:
    """Matching rows of arrays, shuffled in each epoch."""
    del capacity
    arrays = tuple(np.asarray(x) for x in tensor_list)
    rows = Pipeline.from_tensor_slices(arrays)
    rows = (rows.shuffle(max(len(arrays[0]), 1), seed) if shuffle else rows).repeat(num_epochs)
    row = Shared(rows, "input_producer").value()
    return [_row(row.part(lambda r, i=i: r[i]), x) for i, x in enumerate(arrays)]


def _row(part: HostValue, array: Any) -> Any:
    part.shape = array.shape[1:]
    texts = array.dtype.kind in "USO"
    return part if texts else delivered(part, array.dtype, part.shape, "input_producer")


def batch(
    tensors: Any,
    batch_size: int,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    **_: Any,
) -> Any:
    """Batches of elements that threads compute; `start_queue_runners` starts them.

    Args:
        enqueue_many: whether the tensors are batches already.
        dynamic_pad: pad elements of different shapes to the largest.
    """
    queue = Queue(max(capacity, batch_size))
    options = enqueue_many, dynamic_pad, allow_smaller_final_batch
    return _batched(tensors, batch_size, num_threads, queue, options)


def shuffle_batch(
    tensors: Any,
    batch_size: int,
    capacity: int,
    min_after_dequeue: int,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    **_: Any,
) -> Any:
    """Batches of elements drawn from a queue of at least `min_after_dequeue` elements.

    Raises:
        ArgumentError: the capacity is too small.
    """
    if capacity < min_after_dequeue + batch_size:
        text = f"{min_after_dequeue} + {batch_size} at least, got {capacity}"
        raise ArgumentError(f"shuffle_batch: expected a capacity of {text}")
    graph_seed = get_default_graph().seed
    chosen = mix(graph_seed or 0, 0 if seed is None else seed + 1)
    queue = Queue(capacity, min_after_dequeue, chosen)
    options = enqueue_many, False, allow_smaller_final_batch
    return _batched(tensors, batch_size, num_threads, queue, options)


def _batched(
    tensors: Any, size: int, threads: int, queue: Queue, options: tuple[bool, bool, bool]
) -> Any:
    many, pad, smaller = options
    names = list(tensors) if isinstance(tensors, dict) else None
    single = not isinstance(tensors, dict | list | tuple)
    parts: Any = tensors.values() if isinstance(tensors, dict) else tensors
    given = [tensors] if single else list(parts)
    fetches = [x if isinstance(x, HostValue) else convert_to_tensor(x) for x in given]
    shapes = [_dims(x, many, pad, None if smaller else size) for x in fetches]
    add_queue_runner(QueueRunner(queue, fetches, threads, many))
    joined = padded if pad else stack
    taken = HostValue(lambda: joined(queue.take(size, smaller)), name="batch")
    found: list[Any] = []
    for number, x in enumerate(fetches):
        part = taken.part(lambda row, i=number: row[i])
        part.shape = shapes[number]
        texts = x.dtype is string
        found.append(part if texts else delivered(part, x.dtype, part.shape, "batch"))
    if names:
        return dict(zip(names, found, strict=True))
    return found[0] if single else found


def _dims(x: Any, many: bool, pad: bool, size: int | None) -> tuple[int | None, ...]:
    dims = x.shape if isinstance(x, HostValue) else x.shape.as_dims()
    if dims is None and isinstance(x, HostValue):
        dims = ()
    if dims is None or (None in dims[many:] and not pad):
        raise ShapeError(
            f"batch: expected tensors of known shapes, got {dims} of {x.name}; set_shape tells, "
            "or dynamic_pad pads"
        )
    return size, *dims[many:]
