"""What all queues of the graph have: enqueue, dequeue, close, size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.documentation import Reads, arguments_of
from weft.errors import DTypeError, TreeError
from weft.tf1.data_flow.component import Components, common_shape, require_length
from weft.tf1.data_flow.handle import Handle, handle_of, one_of
from weft.tf1.framework.convert import convert_to_tensor, is_tensor, static_value
from weft.tf1.framework.dtypes import as_dtype, bool_, int32
from weft.tf1.framework.graph import fail, name_scope
from weft.tf1.framework.tensor import Operation, Tensor
from weft.tf1.framework.tensor_shape import Dimension, TensorShape, as_shape, unknown_shape

__all__ = ["QueueBase"]


class QueueBase(Components):
    """A queue of elements that steps put in and take out; each is a tuple of tensors.

    Args:
        dtypes: the element types of the components.
        shapes: their shapes; unknown ones by default.
        names: of the components: elements are dictionaries then.
        queue_ref: the reference of the queue.

    Raises:
        ArgumentError: shapes or names are not as many as the components.
    """

    def __init__(
        self, dtypes: Sequence[Any], shapes: Sequence[Any] | None, names: Sequence[str] | None,
        queue_ref: Tensor,
    ) -> None:  # fmt: skip
        self._dtypes = [as_dtype(d) for d in dtypes]
        if shapes is not None:
            require_length(shapes, dtypes, "shapes", "queue")
        if names is not None:
            require_length(names, dtypes, "names", "queue")
        self._shapes = [as_shape(s) for s in shapes or [unknown_shape() for _ in dtypes]]
        self._names = None if names is None else list(names)
        self._handle: Handle = handle_of(queue_ref)
        self._short = queue_ref.op.name.split("/")[-1]

    @staticmethod
    def from_list(index: Any, queues: list[Any]) -> QueueBase:
        """The queue at an index that each run computes.

        Args:
            index: a scalar integer tensor.
            queues: queues with the same components.

        Raises:
            DTypeError: they are no queues, or their components differ.
        """
        if not queues or not all(isinstance(q, QueueBase) for q in queues):
            raise fail(DTypeError, "from_list: A list of queues expected")
        first: QueueBase = queues[0]
        if not all(first.dtypes == q.dtypes for q in queues):
            raise fail(DTypeError, "from_list: Queues do not have matching component dtypes.")
        if not all(first.names == q.names for q in queues):
            raise fail(DTypeError, "from_list: Queues do not have matching component names.")
        shapes = [common_shape(s) for s in zip(*[q.shapes for q in queues], strict=True)]
        chosen = convert_to_tensor(index, preferred_dtype=int32)
        handle = one_of(chosen, [q._handle for q in queues], "Gather")
        return QueueBase(first.dtypes, shapes, first.names, handle.tensor)

    queue_ref = Reads[Tensor]("_handle.tensor", "The reference of the queue.")
    name = Reads[str]("queue_ref.op.name", "The name of the queue's operation.")

    def enqueue(self, vals: Any, name: str | None = None) -> Operation:
        """Adds an element; waits while the queue is full.

        Args:
            vals: a tensor, a list of tensors, or a dictionary if the components have names.
            name: of the operation.

        Raises:
            CancelledError: at execution, if the queue is closed.
        """
        with name_scope(name, f"{self._short}_enqueue", _tensors_in(vals)) as scope:
            tensors = self._converted(vals)
            for tensor, shape in zip(tensors, self._shapes, strict=False):
                tensor.shape.assert_is_compatible_with(shape)
            return self._handle.call("QueueEnqueueV2", "enqueue", tensors, name=scope, waits=True)

    def enqueue_many(self, vals: Any, name: str | None = None) -> Operation:
        """Adds the rows of tensors as elements; waits while the queue is full.

        Args:
            vals: a tensor, a list of tensors with as many rows, or a dictionary if the components
                have names.
            name: of the operation.

        Raises:
            CancelledError: at execution, if the queue is closed.
        """
        with name_scope(name, f"{self._short}_EnqueueMany", _tensors_in(vals)) as scope:
            tensors = self._converted(vals)
            size = Dimension(None)
            for tensor, shape in zip(tensors, self._shapes, strict=False):
                dims = tensor.shape.with_rank_at_least(1)
                size = size.merge_with(dims[0])
                dims[1:].assert_is_compatible_with(shape)
            kind = "QueueEnqueueManyV2"
            return self._handle.call(kind, "enqueue_many", tensors, name=scope, waits=True)

    def enqueue_kept(self, keep: Tensor, vals: Any, many: bool) -> Operation:
        """Enqueues what a flag says is wanted; with `many`, there may be a flag for each row."""
        kind, method = ("QueueEnqueueManyV2", "maybe_enqueue_many") if many else (
            "QueueEnqueueV2", "maybe_enqueue")  # fmt: skip
        tensors = [keep, *self._converted(vals)]
        return self._handle.call(kind, method, tensors, name=f"{self._short}_{kind[5:-2]}",
                                 waits=True)  # fmt: skip

    def dequeue(self, name: str | None = None) -> Any:
        """The next element; waits until there is one.

        Returns:
            A tensor, a list of tensors, or a dictionary if the components have names.

        Raises:
            OutOfRangeError: at execution, if the queue is closed and empty.
        """
        name = name or f"{self._short}_Dequeue"
        op = self._handle.call("QueueDequeueV2", "dequeue", (), self._dtypes, self._shapes, name,
                               waits=True)  # fmt: skip
        return self._nested(op.outputs)

    def dequeue_many(self, n: Any, name: str | None = None) -> Any:
        """The next `n` elements, as tensors with a row for each; waits until there are so many.

        Args:
            n: their number.
            name: of the operation.

        Raises:
            OutOfRangeError: at execution, if the queue is closed and has fewer.
        """
        name = name or f"{self._short}_DequeueMany"
        return self._many("QueueDequeueManyV2", "dequeue_many", n, name)

    @arguments_of(dequeue_many)
    def dequeue_up_to(self, n: Any, name: str | None = None) -> Any:
        """The next `n` elements, or fewer if the queue is closed and has fewer, but one at least.

        Raises:
            OutOfRangeError: at execution, if the queue is closed and empty.
        """
        name = name or f"{self._short}_DequeueUpTo"
        return self._many("QueueDequeueUpToV2", "dequeue_up_to", n, name)

    def _many(self, kind: str, method: str, n: Any, name: str) -> Any:
        with name_scope(name) as scope:
            count = convert_to_tensor(n, int32, name="n")
        known = static_value(count) if method == "dequeue_many" else None
        size = TensorShape([None if known is None or known < 0 else int(known)])
        shapes = [size.concatenate(s) for s in self._shapes]
        op = self._handle.call(kind, method, [count], self._dtypes, shapes, scope, waits=True)
        return self._nested(op.outputs)

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """Accepts no more elements; what is there may still be taken.

        Args:
            cancel_pending_enqueues: whether enqueues that wait raise `CancelledError`; otherwise
                the queue is closed after them.
            name: of the operation.
        """
        options = {"cancel_pending_enqueues": bool(cancel_pending_enqueues)}
        name = name or f"{self._short}_Close"
        return self._handle.call("QueueCloseV2", "close", name=name, waits=True, options=options)

    def is_closed(self, name: str | None = None) -> Tensor:
        """Whether the queue is closed."""
        name = name or f"{self._short}_Is_Closed"
        return self._handle.tensor_of("QueueIsClosedV2", "is_closed", bool_, name=name)

    def size(self, name: str | None = None) -> Tensor:
        """The number of elements."""
        name = name or f"{self._short}_Size"
        return self._handle.tensor_of("QueueSizeV2", "size", int32, name=name)

    def _converted(self, vals: Any) -> list[Tensor]:
        """The tensors of an element, in the order of the components."""
        if isinstance(vals, dict):
            vals = self._by_name(vals)
        elif self._names:
            text = "You must enqueue a dictionary in a Queue with names"
            raise fail(TreeError, f"{self.name}: {text}")
        items = vals if isinstance(vals, list | tuple) else [vals]
        if len(items) != len(self._dtypes):
            text = f"expected {len(self._dtypes)} components, got {len(items)}"
            raise fail(TreeError, f"{self.name}: {text}")
        return [self._component(i, x) for i, x in enumerate(items)]

    def _component(self, index: int, x: Any) -> Tensor:
        wanted = self._dtypes[index].base_dtype
        if is_tensor(x) and x.dtype.base_dtype != wanted:
            text = f"expected component {index} of type {wanted.name}, got {x.dtype.name}"
            raise fail(TreeError, f"{self.name}: {text}")
        return convert_to_tensor(x, wanted, name=f"component_{index}")

    def _by_name(self, vals: dict[str, Any]) -> list[Any]:
        if not self._names:
            text = "Queue must have names to enqueue a dictionary"
            raise fail(TreeError, f"{self.name}: {text}")
        if sorted(self._names, key=str) != sorted(vals, key=str):
            text = "Keys in dictionary to enqueue do not match names of Queue."
            got = f"Dictionary: {sorted(vals)}, Queue: {sorted(self._names)}"
            raise fail(TreeError, f"{self.name}: {text} {got}")
        return [vals[name] for name in self._names]

    def _nested(self, tensors: Sequence[Tensor]) -> Any:
        if self._names:
            return dict(zip(self._names, tensors, strict=True))
        return tensors[0] if len(tensors) == 1 else list(tensors)


def _tensors_in(vals: Any) -> list[Any]:
    if isinstance(vals, dict):
        return list(vals.values())
    return list(vals) if isinstance(vals, list | tuple) else [vals]
