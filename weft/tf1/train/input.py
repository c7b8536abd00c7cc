"""`tf.train`'s producers: queues of file names, numbers and rows, filled by threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.documentation import arguments_of
from weft.errors import ArgumentError, ShapeError
from weft.tf1.data_flow.handle import resource
from weft.tf1.data_flow.queue import FIFOQueue, draw_seeds
from weft.tf1.data_flow.queue_base import QueueBase
from weft.tf1.elementwise.arithmetic import cast
from weft.tf1.framework.convert import convert_to_tensor, is_tensor
from weft.tf1.framework.dtypes import float32, int32, string
from weft.tf1.framework.graph import fail, name_scope
from weft.tf1.framework.host import host_tensor
from weft.tf1.framework.tensor import Operation, Tensor
from weft.tf1.indexing.slicing import gather
from weft.tf1.shaping.arrangement import shape as shape_of
from weft.tf1.summary import operation as summary
from weft.tf1.train.queue_runner import QueueRunner, add_queue_runner

__all__ = [
    "input_producer", "limit_epochs", "match_filenames_once", "range_input_producer",
    "slice_input_producer", "string_input_producer",
]  # fmt: skip


def match_filenames_once(pattern: Any, name: str | None = None) -> Tensor:
    """The names of the files that match, as they are when a session first asks; sorted.

    Args:
        pattern: a pattern such as `data-*.csv`, or a list of them.
        name: of the operation.
    """
    with name_scope(name, "matching_filenames") as scope:
        patterns = convert_to_tensor(pattern, string, name="pattern")
        found = resource("MatchingFilesOnce", {}, None, "files")
        return found.tensor_of("MatchingFiles", "next", string, [None], scope, [patterns])


def limit_epochs(tensor: Any, num_epochs: int | None = None, name: str | None = None) -> Any:
    """The same tensor in so many runs; then `OutOfRangeError`.

    Args:
        tensor: any tensor.
        num_epochs: how often it may be computed; without end by default.
        name: of the operation.

    Raises:
        ArgumentError: the number is less than 1.
    """
    if num_epochs is None:
        return tensor
    with name_scope(name, "limit_epochs", [tensor]):
        return _epochs(convert_to_tensor(tensor), num_epochs, shuffle=False)


def _epochs(
    rows: Tensor, num_epochs: int | None, shuffle: bool, seed: int | None = None,
    not_empty: bool = False,
) -> Tensor:  # fmt: skip
    if num_epochs is not None and num_epochs <= 0:
        raise fail(ArgumentError, f"num_epochs must be > 0 not {num_epochs}.")
    seeds = draw_seeds(seed, None) if shuffle else None
    options = {
        "num_epochs": num_epochs, "shuffle": bool(shuffle), "random_seeds": seeds,
        "not_empty": not_empty,
    }  # fmt: skip
    counter = resource("InputEpochs", options, None, "epochs")
    return counter.tensor_of("InputEpoch", "next", rows.dtype, rows.shape, "epoch", [rows])


def input_producer(
    input_tensor: Any, element_shape: Any = None, num_epochs: int | None = None,
    shuffle: bool = True, seed: int | None = None, capacity: int = 32,
    shared_name: str | None = None, summary_name: str | None = None, name: str | None = None,
    cancel_op: Operation | None = None,
) -> QueueBase:  # fmt: skip
    """A queue of a tensor's rows, filled by a thread that `start_queue_runners` starts.

    Args:
        input_tensor: the rows.
        element_shape: the shape of a row, if the tensor does not tell it.
        num_epochs: how often each row comes; without end by default.
        shuffle: whether each epoch has an order of its own.
        seed: of the orders.
        capacity: the most rows that wait.
        shared_name: queues of this name are the same one, in all sessions of a server.
        summary_name: the name of a summary of how full the queue is.
        name: of the scope.
        cancel_op: closes the queue when the coordinator stops.

    Raises:
        ShapeError: the shape of a row is not known.
    """
    with name_scope(name, "input_producer", [input_tensor]):
        rows = convert_to_tensor(input_tensor, name="input_tensor")
        return _produced(
            rows, element_shape, num_epochs, shuffle, seed, capacity, shared_name, summary_name,
            cancel_op,
        )  # fmt: skip


def _produced(
    rows: Tensor, element_shape: Any, num_epochs: int | None, shuffle: bool, seed: int | None,
    capacity: int, shared_name: str | None, summary_name: str | None,
    cancel_op: Operation | None, not_empty: bool = False,
) -> QueueBase:  # fmt: skip
    row_shape = rows.shape.with_rank_at_least(1)[1:].merge_with(element_shape)
    if not row_shape.is_fully_defined():
        raise fail(
            ShapeError,
            "input_producer: Either `input_tensor` must have a fully defined shape or "
            "`element_shape` must be specified",
        )
    epoch = _epochs(rows, num_epochs, shuffle, seed, not_empty)
    queue = FIFOQueue(capacity, [rows.dtype.base_dtype], [row_shape], shared_name=shared_name,
                      name="input_producer")  # fmt: skip
    fill = queue.enqueue_many([epoch])
    add_queue_runner(QueueRunner(queue, [fill], cancel_op=cancel_op))
    if summary_name is not None:
        summary.scalar(summary_name, cast(queue.size(), float32) * (1.0 / capacity))
    return queue


@arguments_of(input_producer)
def string_input_producer(
    string_tensor: Any, num_epochs: int | None = None, shuffle: bool = True,
    seed: int | None = None, capacity: int = 32, shared_name: str | None = None,
    name: str | None = None, cancel_op: Operation | None = None,
) -> QueueBase:  # fmt: skip
    """A queue of texts, such as names of files for a reader.

    Args:
        string_tensor: the texts.

    Raises:
        ArgumentError: there are none.
    """
    if not is_tensor(string_tensor) and not len(string_tensor):
        text = "requires a non-null input tensor: expected at least one name, got none"
        raise fail(ArgumentError, f"string_input_producer {text}")
    with name_scope(name, "input_producer", [string_tensor]):
        rows = convert_to_tensor(string_tensor, string, name="input_tensor")
        return _produced(
            rows, [], num_epochs, shuffle, seed, capacity, shared_name,
            f"fraction_of_{capacity}_full", cancel_op, not_empty=True,
        )  # fmt: skip


@arguments_of(input_producer)
def range_input_producer(
    limit: Any, num_epochs: int | None = None, shuffle: bool = True, seed: int | None = None,
    capacity: int = 32, shared_name: str | None = None, name: str | None = None,
) -> QueueBase:  # fmt: skip
    """A queue of the integers below a limit.

    Args:
        limit: the number of integers.
    """
    with name_scope(name, "input_producer", [limit]):
        count = convert_to_tensor(limit, int32, name="limit")
        rows = host_tensor("Range", [count], _numbers_below, int32, [None], "range")
        return _produced(
            rows, [], num_epochs, shuffle, seed, capacity, shared_name,
            f"fraction_of_{capacity}_full", None,
        )  # fmt: skip


def _numbers_below(count: Any) -> Any:
    return list(range(int(count)))


@arguments_of(input_producer)
def slice_input_producer(
    tensor_list: Sequence[Any], num_epochs: int | None = None, shuffle: bool = True,
    seed: int | None = None, capacity: int = 32, shared_name: str | None = None,
    name: str | None = None,
) -> list[Tensor]:  # fmt: skip
    """Matching rows of tensors.

    Args:
        tensor_list: tensors with the same number of rows.

    Raises:
        ArgumentError: there are none.
    """
    if not tensor_list:
        text = "Expected at least one tensor in slice_input_producer()."
        raise fail(ArgumentError, text)
    with name_scope(name, "input_producer", list(tensor_list)):
        tensors = [convert_to_tensor(x) for x in tensor_list]
        size = _row_count(tensors[0])
        queue = range_input_producer(size, num_epochs, shuffle, seed, capacity, shared_name)
        index = queue.dequeue()
        return [_row(x, index) for x in tensors]


def _row_count(x: Tensor) -> Any:
    known = x.shape.with_rank_at_least(1)[0].value
    if known is not None:
        return known
    if x.dtype is string:
        return host_tensor("Size", [x], len, int32, ())
    return shape_of(x)[0]


def _row(x: Tensor, index: Tensor) -> Tensor:
    if x.dtype is not string:
        return gather(x, index)
    return host_tensor("Gather", [x, index], lambda rows, i: rows[i], string, x.shape[1:])
