"""`tf.ConditionalAccumulator`: gradients of several workers, of which stale ones are dropped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.documentation import Reads, arguments_of
from weft.errors import ArgumentError
from weft.tf1.data_flow.handle import Handle, handle_of, resource
from weft.tf1.elementwise.arithmetic import cast
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.dtypes import DType, as_dtype, int32, int64
from weft.tf1.framework.graph import fail, name_scope
from weft.tf1.framework.indexed_slices import IndexedSlices
from weft.tf1.framework.tensor import Operation, Tensor
from weft.tf1.framework.tensor_shape import as_shape

__all__ = ["ConditionalAccumulator", "ConditionalAccumulatorBase", "SparseConditionalAccumulator"]


class ConditionalAccumulatorBase:
    """What accumulators have in common.

    Args:
        dtype: the element type of the gradients.
        shape: their shape, as far as it is known.
        accumulator_ref: the reference of the accumulator.
    """

    _prefix = "Accumulator"

    def __init__(self, dtype: Any, shape: Any, accumulator_ref: Tensor) -> None:
        self._dtype = as_dtype(dtype)
        self._shape = as_shape(shape)
        self._handle: Handle = handle_of(accumulator_ref)
        self._short = accumulator_ref.op.name.split("/")[-1]

    accumulator_ref = Reads[Tensor]("_handle.tensor", "The reference of the accumulator.")
    name = Reads[str]("_short", "The name of the accumulator's operation, without its scope.")
    dtype = Reads[DType]("_dtype", "The element type of the gradients.")

    def num_accumulated(self, name: str | None = None) -> Tensor:
        """The number of gradients since the last take."""
        name = name or f"{self._short}_NumAccumulated"
        kind = f"{self._prefix}NumAccumulated"
        return self._handle.tensor_of(kind, "num_accumulated", int32, name=name)

    def num_stale(self, name: str | None = None) -> Tensor:
        """The number of gradients that were dropped, ever."""
        name = name or f"{self._short}_NumStale"
        return self._handle.tensor_of("AccumulatorNumStale", "num_stale", int32, name=name)

    def set_global_step(self, new_global_step: Any, name: str | None = None) -> Operation:
        """Sets the step: gradients of earlier ones are dropped.

        Args:
            new_global_step: an integer or a tensor.
            name: of the operation.
        """
        kind = f"{self._prefix}SetGlobalStep"
        with name_scope(name or kind) as scope:
            step = _step(new_global_step)
        return self._handle.call(kind, "set_global_step", [step], name=scope)

    def _apply(
        self, kind: str, local_step: Any, gradient: Sequence[Tensor], name: str | None
    ) -> Operation:
        with name_scope(name or kind) as scope:
            step = _step(local_step)
        return self._handle.call(kind, "apply_gradient", [step, *gradient], name=scope)

    def _take(
        self, kind: str, num_required: Any, dtypes: Sequence[Any], shapes: Sequence[Any],
        name: str | None,
    ) -> Sequence[Tensor]:  # fmt: skip
        with name_scope(name or kind) as scope:
            count = convert_to_tensor(num_required, int32, name="num_required")
        call = self._handle.call
        return call(kind, "take_gradient", [count], dtypes, shapes, scope, waits=True).outputs


def _step(step: Any) -> Tensor:
    return cast(convert_to_tensor(step), int64)


def _options(dtype: Any, shape: Any, reduction_type: str) -> dict[str, Any]:
    if reduction_type not in ("MEAN", "SUM"):
        text = f"expected reduction_type to be MEAN or SUM, got {reduction_type!r}"
        raise fail(ArgumentError, f"accumulator: {text}")
    dims = as_shape(shape).as_dims()
    return {"dtype": as_dtype(dtype).name, "shape": dims, "reduction_type": reduction_type}


class ConditionalAccumulator(ConditionalAccumulatorBase):
    """Sums dense gradients that are not older than its step, until enough have come.

    Args:
        dtype: the element type of the gradients.
        shape: their shape, as far as it is known.
        shared_name: accumulators of this name are the same one, in all sessions of a server.
        name: of the operation.
        reduction_type: `MEAN` or `SUM`: what a take gives.

    Raises:
        ArgumentError: the reduction is neither.
    """

    _prefix = "ResourceAccumulator"

    def __init__(
        self, dtype: Any, shape: Any = None, shared_name: str | None = None,
        name: str = "conditional_accumulator", reduction_type: str = "MEAN",
    ) -> None:  # fmt: skip
        options = _options(dtype, shape, reduction_type)
        handle = resource("ConditionalAccumulator", options, shared_name, name)
        super().__init__(dtype, shape, handle.tensor)

    def apply_grad(self, grad: Any, local_step: Any = 0, name: str | None = None) -> Operation:
        """Adds a gradient; drops it if it is of an earlier step than the accumulator's.

        Args:
            grad: the gradient.
            local_step: the step in which it was computed.
            name: of the operation.

        Raises:
            ShapeError: its shape is wrong.
        """
        tensor = convert_to_tensor(grad, self._dtype)
        tensor.shape.assert_is_compatible_with(self._shape)
        return self._apply("ResourceAccumulatorApplyGradient", local_step, [tensor], name)

    def take_grad(self, num_required: Any, name: str | None = None) -> Tensor:
        """The mean or the sum; waits until so many gradients have come. Begins the next step.

        Args:
            num_required: how many.
            name: of the operation.

        Raises:
            InvalidArgumentError: at execution, if that is less than 1.
        """
        kind = "ResourceAccumulatorTakeGradient"
        return self._take(kind, num_required, [self._dtype], [self._shape], name)[0]


@arguments_of(ConditionalAccumulator)
class SparseConditionalAccumulator(ConditionalAccumulatorBase):
    """Sums gradients that are rows with their indices; a mean is over those that have the row.

    Args:
        shape: the shape of the dense gradient, as far as it is known.
    """

    def __init__(
        self, dtype: Any, shape: Any = None, shared_name: str | None = None,
        name: str = "sparse_conditional_accumulator", reduction_type: str = "MEAN",
    ) -> None:  # fmt: skip
        options = _options(dtype, shape, reduction_type)
        handle = resource("SparseConditionalAccumulator", options, shared_name, name)
        super().__init__(dtype, shape, handle.tensor)

    def apply_indexed_slices_grad(
        self, grad: IndexedSlices, local_step: Any = 0, name: str | None = None
    ) -> Operation:
        """Adds a gradient; drops it if it is of an earlier step than the accumulator's.

        Args:
            grad: the gradient.
            local_step: the step in which it was computed.
            name: of the operation.
        """
        return self.apply_grad(grad.indices, grad.values, grad.dense_shape, local_step, name)

    def apply_grad(
        self, grad_indices: Any, grad_values: Any, grad_shape: Any = None, local_step: Any = 0,
        name: str | None = None,
    ) -> Operation:  # fmt: skip
        """Adds a gradient; drops it if it is of an earlier step than the accumulator's.

        Args:
            grad_indices: the indices of its rows.
            grad_values: the rows.
            grad_shape: the shape of the dense gradient, which must fit the accumulator's.
            local_step: the step in which it was computed.
            name: of the operation.
        """
        tensors = [_indices(grad_indices), convert_to_tensor(grad_values, self._dtype)]
        if grad_shape is not None:
            tensors.append(_indices(grad_shape))
        return self._apply("SparseAccumulatorApplyGradient", local_step, tensors, name)

    def take_grad(self, num_required: Any, name: str | None = None) -> tuple[Tensor, ...]:
        """Indices, rows and the shape; waits until so many gradients have come.

        Args:
            num_required: how many.
            name: of the operation.

        Raises:
            InvalidArgumentError: at execution, if that is less than 1.
        """
        kind, types = "SparseAccumulatorTakeGradient", [int64, self._dtype, int64]
        return tuple(self._take(kind, num_required, types, [[None], None, [None]], name))

    @arguments_of(take_grad)
    def take_indexed_slices_grad(self, num_required: Any, name: str | None = None) -> IndexedSlices:
        """The same as `IndexedSlices`."""
        indices, values, shape = self.take_grad(num_required, name)
        return IndexedSlices(values, indices, shape)


def _indices(value: Any) -> Tensor:
    return cast(convert_to_tensor(value, preferred_dtype=int64), int64)
