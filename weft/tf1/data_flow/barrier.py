"""`tf.Barrier`: elements whose components come at different times."""

from __future__ import annotations

from typing import Any

from weft.documentation import Reads
from weft.errors import ArgumentError, ShapeError
from weft.tf1.data_flow.component import require_length, shape_list, type_list
from weft.tf1.data_flow.handle import dims_of, names_of, resource
from weft.tf1.framework.convert import convert_to_tensor, static_value
from weft.tf1.framework.dtypes import int32, int64, string
from weft.tf1.framework.graph import fail, name_scope
from weft.tf1.framework.tensor import Operation, Tensor
from weft.tf1.framework.tensor_shape import TensorShape, unknown_shape

__all__ = ["Barrier"]


class Barrier:
    """Values by key, whose components are inserted separately; complete ones can be taken.

    They leave in the order in which their keys first came.

    Args:
        types: the element types of a value's components.
        shapes: their shapes, which must be given before a run.
        shared_name: barriers of this name are the same one, in all sessions of a server.
        name: of the operation.

    Raises:
        ShapeError: a shape has no elements.
    """

    def __init__(
        self, types: Any, shapes: Any = None, shared_name: str | None = None, name: str = "barrier"
    ) -> None:
        self._types = type_list(types)
        dims = shape_list(shapes, "Barrier")
        for index, shape in enumerate(dims or ()):
            if shape.num_elements() == 0:
                text = f"Empty tensors are not supported, but received shape '{shape}'"
                raise fail(ShapeError, f"Barrier: {text} at index {index}")
        if dims is not None:
            require_length(dims, self._types, "shapes", "Barrier")
        self._shapes = dims or [unknown_shape() for _ in self._types]
        options = {"dtypes": names_of(self._types), "shapes": dims_of(dims)}
        self._handle = resource("Barrier", options, shared_name, name)
        self._short = self.name.split("/")[-1]

    barrier_ref = Reads[Tensor]("_handle.tensor", "The reference of the barrier.")
    name = Reads[str]("barrier_ref.op.name", "The name of the barrier's operation.")

    def insert_many(
        self, component_index: int, keys: Any, values: Any, name: str | None = None
    ) -> Operation:
        """Sets one component of the values of keys.

        Args:
            component_index: which component.
            keys: a vector of texts.
            values: a row for each key.
            name: of the operation.

        Raises:
            CancelledError: at execution, if the barrier is closed and a key is new.
        """
        index = int(component_index)
        if not 0 <= index < len(self._types):
            text = f"The component ID is out of range {index} > num_components"
            raise fail(ArgumentError, f"insert_many: {text} (= {len(self._types)})")
        with name_scope(name or f"{self._short}_BarrierInsertMany") as scope:
            rows = [
                convert_to_tensor(keys, string, name="keys"),
                convert_to_tensor(values, self._types[index], name="values"),
            ]
        options = {"component_index": index}
        kind = "BarrierInsertMany"
        return self._handle.call(kind, "insert_many", rows, name=scope, options=options)

    def take_many(
        self, num_elements: Any, allow_small_batch: bool = False, timeout: int | None = None,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, list[Tensor]]:  # fmt: skip
        """The next complete values; waits until there are so many.

        Args:
            num_elements: how many.
            allow_small_batch: whether fewer will do once the barrier is closed.
            timeout: none is supported.
            name: of the operation.

        Returns:
            The indices of the insertions that brought the keys, the keys, and the components.

        Raises:
            OutOfRangeError: at execution, if the barrier is closed and has too few.
        """
        if timeout not in (None, -1):
            raise fail(ArgumentError, "take_many: Timeout not supported yet: expected None")
        with name_scope(name or f"{self._short}_BarrierTakeMany") as scope:
            count = convert_to_tensor(num_elements, int32, name="num_elements")
        known = None if allow_small_batch else static_value(count)
        size = TensorShape([None if known is None else int(known)])
        shapes = [size, size, *[size.concatenate(s) for s in self._shapes]]
        options = {"allow_small_batch": bool(allow_small_batch)}
        op = self._handle.call(
            "BarrierTakeMany", "take_many", [count], [int64, string, *self._types], shapes, scope,
            waits=True, options=options,
        )  # fmt: skip
        indices, keys, *values = op.outputs
        return indices, keys, values

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """Accepts no more keys; components of known ones may still come.

        Args:
            cancel_pending_enqueues: whether those may not come either.
            name: of the operation.
        """
        options = {"cancel_pending_enqueues": bool(cancel_pending_enqueues)}
        name = name or f"{self._short}_BarrierClose"
        return self._handle.call("BarrierClose", "close", name=name, options=options)

    def ready_size(self, name: str | None = None) -> Tensor:
        """The number of complete values."""
        name = name or f"{self._short}_BarrierReadySize"
        return self._handle.tensor_of("BarrierReadySize", "ready_size", int32, name=name)

    def incomplete_size(self, name: str | None = None) -> Tensor:
        """The number of values that lack a component."""
        name = name or f"{self._short}_BarrierIncompleteSize"
        return self._handle.tensor_of("BarrierIncompleteSize", "incomplete_size", int32, name=name)
