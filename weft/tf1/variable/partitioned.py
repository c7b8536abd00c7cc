"""`PartitionedVariable`: several variables that are parts of one along an axis."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from weft.documentation import Reads, named
from weft.errors import DTypeError, GraphError
from weft.tf1.control import dependency
from weft.tf1.framework.default_graph import control_dependencies
from weft.tf1.framework.dtypes import DType, as_dtype
from weft.tf1.framework.graph import fail, name_scope
from weft.tf1.framework.tensor import Overloads, Tensor
from weft.tf1.framework.tensor_shape import TensorShape, as_shape
from weft.tf1.shaping import arrangement
from weft.tf1.variable.variable import Variable

__all__ = ["PartitionedVariable"]


def _changed(name: str, change: Callable[..., Any], what: str):
    @named(name, f"""{what}; returns the new parts.

    Args:
        value, use_locking, name, read_value: as in `assign`.
    """)  # fmt: skip
    def changed(
        self: PartitionedVariable, value: Any, use_locking: bool = False, name: str | None = None,
        read_value: bool = True,
    ) -> list[Any]:  # fmt: skip
        return self.each_part(change, value, use_locking, name, read_value)

    return changed


class PartitionedVariable(Overloads):
    """Variables that together are one: iterate over it for them, use it as a tensor for the whole.

    Args:
        name: the name of the whole.
        shape: its shape.
        dtype: its element type.
        variable_list: the parts, which know their places (`_set_save_slice_info`).
        partitions: the number of parts along each axis.

    Raises:
        GraphError: there are no parts, or one does not fit.

    Example:
        >>> import weft.tf1 as tf
        >>> with tf.Graph().as_default():
        ...     halves = tf.fixed_size_partitioner(2)
        ...     v = tf.get_variable("v", [5, 3], partitioner=halves)
        ...     [part.shape.as_list() for part in v], v.as_tensor().shape.as_list()
        ([[3, 3], [2, 3]], [5, 3])
    """

    def __init__(
        self, name: str, shape: Any, dtype: Any, variable_list: Sequence[Variable],
        partitions: Sequence[int],
    ) -> None:  # fmt: skip
        parts = _listed(variable_list, "a list of variables")
        self._partitions: list[int] = _listed(partitions, "a list of numbers of parts")
        self._name, self._shape, self._dtype = name, as_shape(shape), as_dtype(dtype)
        if not parts or min(self._partitions, default=1) < 1:
            raise fail(
                GraphError,
                f"PartitionedVariable: expected parts, and at least one along each axis, got "
                f"{len(parts)} for partitions={self._partitions}",
            )
        dims = self._shape.as_list()
        for part in parts:
            info = part.slice_info
            if info is None or info.full_shape != dims or len(dims) != len(self._partitions):
                raise fail(
                    GraphError,
                    f"PartitionedVariable: expected parts of {dims} divided by "
                    f"{self._partitions}, got {part.name} with "
                    f"{None if info is None else info.spec}",
                )
        self._parts = sorted(parts, key=_offset)

    def __iter__(self) -> Iterator[Variable]:
        return iter(self._parts)

    def __len__(self) -> int:
        self._axis()
        return len(self._parts)

    def _axis(self) -> int:
        divided = self._partition_axes()
        if len(divided) > 1:
            text = f"{self._name}: expected parts along one axis, got {self._partitions}"
            raise fail(GraphError, text)
        return divided[0]

    def _partition_axes(self) -> list[int]:
        return [axis for axis, count in enumerate(self._partitions) if count > 1] or [0]

    def _get_variable_list(self) -> list[Variable]:
        return self._parts

    partitions = Reads[list[int]]("_partitions", "The number of parts along each axis.")

    def _get_partitions(self) -> list[int]:
        return self._partitions

    # its value
    def as_tensor(self) -> Tensor:
        """The whole, as it was at the start of the step."""
        with control_dependencies(None):
            return self._concat()

    def _concat(self) -> Tensor:
        """The whole, after the current control dependencies."""
        if len(self._parts) == 1:
            with name_scope(None):
                return dependency.identity(self._parts[0], name=self._name)
        axis = self._axis()
        with name_scope(self._name + "/ConcatPartitions/"):
            whole = arrangement.concat(self._parts, axis)
        with name_scope(None):
            return dependency.identity(whole, name=self._name)

    def _as_graph_tensor(self) -> Tensor:
        return self.as_tensor()

    # properties
    name = Reads[str]("_name", "The name of the whole.")

    @property
    def graph(self) -> Any:
        """The graph of the parts."""
        return self._parts[0].graph

    dtype = Reads[DType]("_dtype", "The element type.")
    shape = Reads[TensorShape]("_shape", "The shape of the whole.")

    def get_shape(self) -> TensorShape:
        """The shape of the whole."""
        return self._shape

    # changes
    def assign(
        self, value: Any, use_locking: bool = False, name: str | None = None,
        read_value: bool = True,
    ) -> list[Any]:  # fmt: skip
        """Set each part to its part of a tensor, or of a list; returns the new parts.

        Args:
            value: the whole, a list of parts, or a variable of the same partitions.
            use_locking, read_value: as in `Variable.assign`.
            name: of each operation.
        """
        return self.each_part(Variable.assign, value, use_locking, name, read_value)

    assign_add = _changed("assign_add", Variable.assign_add, "Add to each part")
    assign_sub = _changed("assign_sub", Variable.assign_sub, "Subtract from each part")

    def each_part(self, change: Callable[..., Any], value: Any, *options: Any) -> list[Any]:
        """Change each part by its part of a value; returns the new parts."""
        axis = self._axis()
        if isinstance(value, list | PartitionedVariable):
            values: list[Any] = list(value)
        else:
            sizes = [part.shape.as_list()[axis] for part in self._parts]
            values = arrangement.split(value, sizes, axis=axis)
        pairs = zip(self._parts, values, strict=True)
        return [change(part, new, *options) for part, new in pairs]

    def __repr__(self) -> str:
        return f"<tf.PartitionedVariable {self._name!r} shape={self._shape} parts={self._parts}>"


def _offset(part: Variable) -> list[int]:
    info = part.slice_info
    return [] if info is None else info.var_offset


def _listed(items: Any, what: str) -> list[Any]:
    if not isinstance(items, list | tuple):
        raise fail(DTypeError, f"PartitionedVariable: expected {what}, got {items!r}")
    return list(items)
