"""`tf.contrib.staging.StagingArea`: a step leaves there what a later one takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.documentation import Reads
from weft.errors import ArgumentError, DTypeError, TreeError
from weft.tf1.data_flow.component import (
    Components,
    name_list,
    require_length,
    shape_list,
    type_list,
)
from weft.tf1.data_flow.handle import dims_of, names_of, resource
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.dtypes import int32
from weft.tf1.framework.graph import fail, name_scope
from weft.tf1.framework.tensor import Operation, Tensor
from weft.tf1.framework.tensor_shape import unknown_shape

__all__ = ["StagingArea"]


class StagingArea(Components):
    """Elements that one step puts and a later one gets, so that loading and computing overlap.

    Args:
        dtypes: the element types of the components.
        shapes: their shapes; unknown ones by default.
        names: of the components: elements are dictionaries then.
        shared_name: staging areas of this name are the same one, in all sessions of a server.
        capacity: the most elements; 0 is no limit.
        memory_limit: the most bytes; 0 is no limit.

    Raises:
        ArgumentError: a limit is negative.
    """

    def __init__(
        self, dtypes: Any, shapes: Any = None, names: Any = None, shared_name: str | None = None,
        capacity: int = 0, memory_limit: int = 0,
    ) -> None:  # fmt: skip
        self._dtypes = type_list(dtypes)
        dims = shape_list(shapes, "StagingArea")
        if dims is not None:
            require_length(dims, self._dtypes, "shapes", "StagingArea")
        self._shapes = dims or [unknown_shape() for _ in self._dtypes]
        self._names = name_list(names, self._dtypes, "StagingArea")
        if capacity < 0 or memory_limit < 0:
            text = f"expected capacity and memory_limit >= 0, got {capacity} and {memory_limit}"
            raise fail(ArgumentError, f"StagingArea: {text}")
        self._capacity, self._memory_limit = int(capacity), int(memory_limit)
        options = {
            "capacity": self._capacity or -1,
            "memory_limit": self._memory_limit,
            "dtypes": names_of(self._dtypes),
            "shapes": dims_of(dims),
        }
        self._handle = resource("Stage", options, shared_name, "StagingArea")

    name = Reads[str]("_handle.spec.name", "The name of the staging area.")
    capacity = Reads[int]("_capacity", "The most elements; 0 is no limit.")
    memory_limit = Reads[int]("_memory_limit", "The most bytes; 0 is no limit.")

    def put(self, values: Any, name: str | None = None) -> Operation:
        """Adds an element; waits while there is no room.

        Args:
            values: a tensor, a list of tensors, or a dictionary if the components have names.
            name: of the operation.

        Raises:
            TreeError: there are not as many as components, or their names differ.
            DTypeError: one has another type.
        """
        with name_scope(name, f"{self.name}_put") as scope:
            tensors = [self._component(i, x) for i, x in enumerate(self._ordered(values))]
        return self._handle.call("Stage", "enqueue", tensors, name=scope, waits=True)

    def _ordered(self, values: Any) -> Sequence[Any]:
        if isinstance(values, dict):
            names = self._names or []
            if sorted(names) != sorted(values):
                text = f"expected a dictionary of {names}, got {sorted(values)}"
                raise fail(TreeError, f"{self.name}: {text}")
            return [values[name] for name in names]
        items = values if isinstance(values, list | tuple) else [values]
        if len(items) != len(self._dtypes):
            text = f"Unexpected number of inputs '{len(items)}' vs '{len(self._dtypes)}'"
            raise fail(TreeError, f"{self.name}: {text}")
        return items

    def _component(self, index: int, x: Any) -> Tensor:
        tensor = convert_to_tensor(x, name=f"component_{index}",
                                   preferred_dtype=self._dtypes[index])  # fmt: skip
        if tensor.dtype.base_dtype != self._dtypes[index]:
            text = f"Datatypes do not match. '{tensor.dtype}' != '{self._dtypes[index]}'"
            raise fail(DTypeError, f"{self.name}: {text}")
        tensor.shape.assert_is_compatible_with(self._shapes[index])
        return tensor

    def _taken(self, op: Operation) -> Any:
        if self._names:
            return dict(zip(self._names, op.outputs, strict=True))
        return list(op.outputs)

    def get(self, name: str | None = None) -> Any:
        """Takes the oldest element; waits until there is one.

        Returns:
            A list of tensors, or a dictionary if the components have names.
        """
        name = name or f"{self.name}_get"
        return self._taken(
            self._handle.call(
                "Unstage", "dequeue", (), self._dtypes, self._shapes, name, waits=True
            )
        )

    def peek(self, index: Any, name: str | None = None) -> Any:
        """The element at a place, which stays there; waits until there is one.

        Args:
            index: the place; 0 is the oldest.
            name: of the operation.
        """
        with name_scope(name, f"{self.name}_peek") as scope:
            place = convert_to_tensor(index, int32, name="index")
        return self._taken(
            self._handle.call(
                "StagePeek", "peek", [place], self._dtypes, self._shapes, scope, waits=True
            )
        )

    def size(self, name: str | None = None) -> Tensor:
        """The number of elements."""
        name = name or f"{self.name}_size"
        return self._handle.tensor_of("StageSize", "size", int32, name=name)

    def clear(self, name: str | None = None) -> Operation:
        """Removes all elements."""
        return self._handle.call("StageClear", "clear", name=name or f"{self.name}_clear")
