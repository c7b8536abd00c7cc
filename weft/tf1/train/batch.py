"""`tf.train.batch` and its relatives: batches from queues that threads fill."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.documentation import arguments_of
from weft.errors import ArgumentError
from weft.tf1.framework.graph import fail
from weft.tf1.train.batched import Wanted, batched

__all__ = [
    "batch", "batch_join", "maybe_batch", "maybe_batch_join", "maybe_shuffle_batch",
    "maybe_shuffle_batch_join", "shuffle_batch", "shuffle_batch_join",
]  # fmt: skip


def batch(
    tensors: Any, batch_size: Any, num_threads: int = 1, capacity: int = 32,
    enqueue_many: bool = False, shapes: Any = None, dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False, shared_name: str | None = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Batches of elements that threads compute; `start_queue_runners` starts them.

    Args:
        tensors: a tensor, a list or a dictionary of tensors.
        batch_size: the number of elements in a batch.
        num_threads: how many threads compute elements.
        capacity: the most elements that wait.
        enqueue_many: whether the tensors are batches already.
        shapes: the shapes of the elements, where the tensors' static shapes do not tell them.
        dynamic_pad: pad elements of different shapes to the largest.
        allow_smaller_final_batch: whether the last batch may have fewer elements; otherwise they
            are left out.
        shared_name: queues of this name are the same one, in all sessions of a server.
        name: of the operation.

    Returns:
        Tensors in the nesting of `tensors`; one tensor for a list of one.

    Raises:
        ShapeError: the shape of an element is not known.
    """
    return maybe_batch(
        tensors, True, batch_size, num_threads, capacity, enqueue_many, shapes, dynamic_pad,
        allow_smaller_final_batch, shared_name, name,
    )  # fmt: skip


@arguments_of(batch)
def maybe_batch(
    tensors: Any, keep_input: Any, batch_size: Any, num_threads: int = 1, capacity: int = 32,
    enqueue_many: bool = False, shapes: Any = None, dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False, shared_name: str | None = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Batches of some of the elements.

    Args:
        keep_input: whether an element is wanted; with `enqueue_many`, maybe a flag for each.
    """
    wanted = Wanted(
        "batch", batch_size, capacity, enqueue_many, shapes, allow_smaller_final_batch,
        shared_name, keep_input, dynamic_pad,
    )  # fmt: skip
    return batched([tensors], num_threads, wanted, name)


@arguments_of(batch)
def batch_join(
    tensors_list: Sequence[Any], batch_size: Any, capacity: int = 32, enqueue_many: bool = False,
    shapes: Any = None, dynamic_pad: bool = False, allow_smaller_final_batch: bool = False,
    shared_name: str | None = None, name: str | None = None,
) -> Any:  # fmt: skip
    """Batches of elements from several sources, each with a thread.

    Args:
        tensors_list: for each thread, a tensor, a list or a dictionary of tensors.
    """
    return maybe_batch_join(
        tensors_list, True, batch_size, capacity, enqueue_many, shapes, dynamic_pad,
        allow_smaller_final_batch, shared_name, name,
    )  # fmt: skip


@arguments_of(batch_join, maybe_batch)
def maybe_batch_join(
    tensors_list: Sequence[Any], keep_input: Any, batch_size: Any, capacity: int = 32,
    enqueue_many: bool = False, shapes: Any = None, dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False, shared_name: str | None = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Batches of some of the elements from several sources, each with a thread."""
    wanted = Wanted(
        "batch_join", batch_size, capacity, enqueue_many, shapes, allow_smaller_final_batch,
        shared_name, keep_input, dynamic_pad,
    )  # fmt: skip
    return batched(tensors_list, 1, wanted, name)


def _draw(capacity: int, least: int, seed: int | None) -> tuple[int, int | None]:
    if capacity <= least:
        text = f"capacity {capacity} must be bigger than min_after_dequeue {least}."
        raise fail(ArgumentError, f"shuffle_batch: {text}")
    return least, seed


@arguments_of(batch)
def shuffle_batch(
    tensors: Any, batch_size: Any, capacity: int, min_after_dequeue: int, num_threads: int = 1,
    seed: int | None = None, enqueue_many: bool = False, shapes: Any = None,
    allow_smaller_final_batch: bool = False, shared_name: str | None = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Batches of elements drawn from a queue of at least `min_after_dequeue` elements.

    With a seed and one thread, the draws do not depend on how fast the queue is filled.

    Args:
        min_after_dequeue: the fewest elements that wait: a batch is drawn from them.
        seed: of the draws.

    Raises:
        ArgumentError: the capacity is too small.
    """
    return maybe_shuffle_batch(
        tensors, batch_size, capacity, min_after_dequeue, True, num_threads, seed, enqueue_many,
        shapes, allow_smaller_final_batch, shared_name, name,
    )  # fmt: skip


@arguments_of(shuffle_batch, maybe_batch)
def maybe_shuffle_batch(
    tensors: Any, batch_size: Any, capacity: int, min_after_dequeue: int, keep_input: Any,
    num_threads: int = 1, seed: int | None = None, enqueue_many: bool = False,
    shapes: Any = None, allow_smaller_final_batch: bool = False, shared_name: str | None = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Batches drawn from some of the elements."""
    wanted = Wanted(
        "shuffle_batch", batch_size, capacity, enqueue_many, shapes, allow_smaller_final_batch,
        shared_name, keep_input, draw=_draw(capacity, min_after_dequeue, seed),
    )  # fmt: skip
    return batched([tensors], num_threads, wanted, name)


@arguments_of(shuffle_batch, batch_join)
def shuffle_batch_join(
    tensors_list: Sequence[Any], batch_size: Any, capacity: int, min_after_dequeue: int,
    seed: int | None = None, enqueue_many: bool = False, shapes: Any = None,
    allow_smaller_final_batch: bool = False, shared_name: str | None = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Batches drawn from elements of several sources, each with a thread."""
    return maybe_shuffle_batch_join(
        tensors_list, batch_size, capacity, min_after_dequeue, True, seed, enqueue_many, shapes,
        allow_smaller_final_batch, shared_name, name,
    )  # fmt: skip


@arguments_of(maybe_shuffle_batch, batch_join)
def maybe_shuffle_batch_join(
    tensors_list: Sequence[Any], batch_size: Any, capacity: int, min_after_dequeue: int,
    keep_input: Any, seed: int | None = None, enqueue_many: bool = False, shapes: Any = None,
    allow_smaller_final_batch: bool = False, shared_name: str | None = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Batches drawn from some of the elements of several sources, each with a thread."""
    wanted = Wanted(
        "shuffle_batch_join", batch_size, capacity, enqueue_many, shapes,
        allow_smaller_final_batch, shared_name, keep_input,
        draw=_draw(capacity, min_after_dequeue, seed),
    )  # fmt: skip
    return batched(tensors_list, 1, wanted, name)
