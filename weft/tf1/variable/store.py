"""A graph's variables by name: created once, whole or in parts, and shared."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from weft.errors import GraphError
from weft.ir.shape import known as known_shape
from weft.tf1.framework.collection import GraphKeys
from weft.tf1.framework.convert import convert_to_tensor, is_tensor
from weft.tf1.framework.default_graph import colocate_with, control_dependencies
from weft.tf1.framework.dtypes import DType, as_dtype, float32
from weft.tf1.framework.graph import fail, get_default_graph, name_scope
from weft.tf1.framework.tensor_shape import TensorShape, as_shape
from weft.tf1.indexing.slicing import slice as slice_of
from weft.tf1.variable import initializer as init_ops
from weft.tf1.variable.partitioned import PartitionedVariable
from weft.tf1.variable.slice_info import PartitionInfo, SaveSliceInfo, even_parts
from weft.tf1.variable.variable import Variable


class AutoReuse:
    """The value of `AUTO_REUSE`."""

    def __repr__(self) -> str:
        return "AUTO_REUSE"

    def __bool__(self) -> bool:
        return True


AUTO_REUSE = AutoReuse()


class VariableStore:
    """The variables of a graph by name, and those in parts."""

    def __init__(self) -> None:
        self.variables: dict[str, Variable] = {}
        self.partitioned: dict[str, PartitionedVariable] = {}

    def get(self, name: str, **options: Any) -> Any:
        """The variable of this name: see `get_variable`."""
        partitioner = options.pop("partitioner", None)
        dims: Any = options.get("shape")
        scalar = isinstance(dims, Sequence) and not dims
        if partitioner is not None and not scalar:
            return self._in_parts(name, partitioner, **options)
        if options.get("reuse") is True and name in self.partitioned:
            return self._in_parts(name, None, **options)
        if f"{name}/part_0" in self.variables:
            raise fail(
                GraphError,
                f"get_variable: {name!r} exists in parts, such as {name}/part_0; pass the "
                "partitioner that made them",
            )
        return self._whole(name, **options)

    def _whole(self, name: str, reuse: Any = False, **options: Any) -> Variable:
        existing = self.variables.get(name)
        if existing is not None:
            if not reuse:
                raise fail(
                    GraphError,
                    f"get_variable: {name!r} exists already: {existing.handle.node.describe()}; "
                    "did you mean reuse=True or reuse=tf.AUTO_REUSE?",
                )
            _check_shared(existing, name, options)
            return existing
        _check_may_create(name, reuse)
        variable = self.variables[name] = _make(name, **options)
        return variable

    def _in_parts(
        self, name: str, partitioner: Callable[..., Any] | None, reuse: Any = False,
        shape: Any = None, dtype: DType | None = None, initializer: Any = None, **options: Any,
    ) -> PartitionedVariable:  # fmt: skip
        if name in self.variables:
            raise fail(GraphError, f"get_variable: {name!r} exists already, in one part")
        whole = _whole_shape(name, shape, initializer)
        kind = dtype or float32
        counts = None if partitioner is None else _counts(name, partitioner, whole, kind)
        existing = self.partitioned.get(name)
        if existing is not None:
            if reuse is False:
                raise fail(
                    GraphError,
                    f"get_variable: {name!r} exists already, in parts; "
                    "did you mean reuse=True or reuse=tf.AUTO_REUSE?",
                )
            _check_shared(existing, name, {"shape": shape, "dtype": dtype})
            if counts is not None and counts != existing.partitions:
                found = existing.partitions
                text = f"get_variable: {name!r} has parts {found}, expected {counts}"
                raise fail(GraphError, text)
            return existing
        _check_may_create(name, reuse)
        counts = counts or [1] * len(whole)
        axis = next((a for a, count in enumerate(counts) if count > 1), 0)
        parts = [
            self._part(f"{name}/part_{i}", name, whole, place, initializer, kind, reuse, options)
            for i, place in enumerate(even_parts(whole, counts[axis], axis))
        ]
        made = PartitionedVariable(name, whole, parts[0].dtype.base_dtype, parts, counts)
        self.partitioned[name] = made
        return made

    def _part(
        self, part_name: str, name: str, whole: list[int], place: tuple[list[int], list[int]],
        initializer: Any, dtype: DType, reuse: Any, options: dict[str, Any],
    ) -> Variable:  # fmt: skip
        offset, dims = place
        shape: Any = dims
        with name_scope(part_name + "/PartitionedInitializer"):
            if initializer is not None and (is_tensor(initializer) or not callable(initializer)):
                given = is_tensor(initializer)
                value = convert_to_tensor(initializer, None if given else dtype)
                dtype, shape = value.dtype.base_dtype, None
                initializer = slice_of(value, offset, dims)
        with name_scope(None):
            part = self._whole(
                part_name, reuse, shape=shape, dtype=dtype, initializer=initializer,
                partition_info=PartitionInfo(whole, offset), **options,
            )  # fmt: skip
        part.slice_info = SaveSliceInfo(name, whole, offset, dims)
        return part


def _check_may_create(name: str, reuse: Any) -> None:
    if reuse and reuse is not AUTO_REUSE:
        raise fail(
            GraphError,
            f"get_variable: there is no variable {name!r} to reuse; did you mean tf.AUTO_REUSE?",
        )


def _whole_shape(name: str, shape: Any, initializer: Any) -> list[int]:
    found = as_shape(shape)
    if initializer is not None and (is_tensor(initializer) or not callable(initializer)):
        found = found.merge_with(convert_to_tensor(initializer).shape)
    if not found.is_fully_defined():
        text = f"get_variable: {name!r} in parts needs a known shape, got {found}"
        raise fail(GraphError, text)
    return list(known_shape(found.as_dims()))


def _counts(
    name: str, partitioner: Callable[..., Any], shape: Sequence[int], dtype: DType
) -> list[int]:
    """The number of parts along each axis, checked."""
    if not callable(partitioner):  # pyright: ignore[reportUnnecessaryComparison]
        text = f"get_variable: expected a function as partitioner of {name!r}, got {partitioner!r}"
        raise fail(GraphError, text)
    found = partitioner(shape=TensorShape(shape), dtype=dtype)
    fits = isinstance(found, list | tuple) and len(found) == len(shape) and min(found) >= 1
    fits = fits and all(count <= max(size, 1) for count, size in zip(found, shape, strict=True))
    if not fits or math.prod(found) != max(found):
        raise fail(
            GraphError,
            f"get_variable: expected a partitioner that gives {len(shape)} numbers of parts, of "
            f"which one may be above 1, up to the size of its axis, got {found!r} for {name!r} "
            f"of shape {list(shape)}",
        )
    return list(found)


def _check_shared(existing: Any, name: str, options: dict[str, Any]) -> None:
    shape, dtype = options.get("shape"), options.get("dtype")
    if shape is not None and not existing.shape.is_compatible_with(as_shape(shape)):
        raise fail(
            GraphError,
            f"get_variable: {name!r} has shape {existing.shape}, expected {as_shape(shape)}",
        )
    if dtype is not None and existing.dtype.base_dtype is not as_dtype(dtype):
        raise fail(
            GraphError,
            f"get_variable: {name!r} has type {existing.dtype.base_dtype.name}, "
            f"expected {as_dtype(dtype).name}",
        )


def _make(
    name: str, shape: Any = None, dtype: DType | None = None, initializer: Any = None,
    regularizer: Any = None, partition_info: PartitionInfo | None = None, **options: Any,
) -> Variable:  # fmt: skip
    if isinstance(initializer, type):
        initializer = initializer()
    if initializer is None:
        initializer = _default_initializer(name, dtype or float32)
    initial = initializer
    if callable(initializer) and not is_tensor(initializer):
        dims = None if shape is None else as_shape(shape)
        if dims is None or not dims.is_fully_defined():
            raise fail(
                GraphError,
                f"get_variable: {name!r} needs a known shape, got {TensorShape(dims)}",
            )
        sizes = list(known_shape(dims.as_dims()))
        initial = lambda: init_ops.call(initializer, sizes, dtype, partition_info)  # noqa: E731
    elif shape is not None and not is_tensor(initializer):
        raise fail(GraphError, f"get_variable: {name!r} has a value as initializer, omit the shape")
    with control_dependencies(None):
        variable = Variable(initial_value=initial, name=name, dtype=dtype, **options)
        if regularizer is not None:
            with colocate_with(variable), name_scope(name + "/Regularizer/"):
                loss = regularizer(variable)
            if loss is not None:
                get_default_graph().add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)
    return variable


def _default_initializer(name: str, dtype: DType) -> Any:
    if dtype.is_floating:
        return init_ops.glorot_uniform_initializer()
    if dtype.is_integer or dtype.is_bool:
        return init_ops.zeros_initializer()
    raise fail(GraphError, f"get_variable: {name!r} of type {dtype.name} needs an initializer")
