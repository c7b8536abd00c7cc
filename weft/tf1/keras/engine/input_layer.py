"""`Input`: the start of a model."""

from __future__ import annotations

from typing import Any

import weft.tf1 as tf
from weft.errors import ArgumentError
from weft.tf1.framework.graph import fail
from weft.tf1.keras.engine.graph_state import graph_state, history_of
from weft.tf1.keras.engine.layer import Layer
from weft.tf1.keras.engine.node import Node


class InputLayer(Layer):
    """Wraps a placeholder for the model's data, or a given tensor.

    Args:
        input_shape: of examples; `None` for sizes that vary.
        batch_size: the batch size, if it never varies.
        dtype: float32 by default.
        input_tensor: an existing tensor to wrap, instead of a placeholder.
        sparse, ragged: not supported.
        name: its name; `input_1` and so on by default.
        batch_input_shape: the shape with the batch axis.
    """

    def __init__(
        self,
        input_shape: Any = None,
        batch_size: int | None = None,
        dtype: Any = None,
        input_tensor: Any = None,
        sparse: bool = False,
        name: str | None = None,
        batch_input_shape: Any = None,
        ragged: bool = False,
        **options: Any,
    ) -> None:
        if sparse or ragged:
            raise fail(ArgumentError, "Input: sparse inputs are not supported")
        name = name or graph_state().unique_name("input")
        super().__init__(name=name, dtype=dtype or "float32", **options)
        if batch_input_shape is not None:
            batch_size, input_shape = batch_input_shape[0], tuple(batch_input_shape[1:])
        self.built, self.is_placeholder = True, input_tensor is None
        if input_tensor is None:
            if input_shape is None:
                raise fail(ArgumentError, f"{name}: expected a shape, got None")
            dims = (input_shape,) if isinstance(input_shape, int) else tuple(input_shape)
            self._batch_input_shape = (batch_size, *dims)
            with tf.control_dependencies(None):
                input_tensor = tf.placeholder(self.dtype, self._batch_input_shape, name=name)
        Node(self, [], (), {}, input_tensor)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {
            "batch_input_shape": self._batch_input_shape, "dtype": self.dtype, "sparse": False,
            "name": self.name,
        }  # fmt: skip


def Input(
    shape: Any = None,
    batch_size: int | None = None,
    name: str | None = None,
    dtype: Any = None,
    sparse: bool = False,
    tensor: Any = None,
    batch_shape: Any = None,
) -> Any:
    """A symbolic tensor for a model's data.

    Args:
        shape: without the batch axis; `None` for sizes that vary.
        batch_size: the batch size, if it never varies.
        name: of the input layer.
        dtype: float32 by default.
        sparse: not supported.
        tensor: an existing tensor to wrap, instead of a placeholder.
        batch_shape: the shape with the batch axis.
    """
    if batch_shape is not None:
        batch_size, shape = batch_shape[0], tuple(batch_shape[1:])
    if tensor is not None and dtype is None:
        dtype = tensor.dtype.base_dtype.name
    layer = InputLayer(shape, batch_size, dtype, tensor, sparse, name)
    return layer.output


def input_layer_of(tensor: Any) -> Any:
    """The input layer that produced a tensor.

    Raises:
        ArgumentError: the tensor is not the output of an input layer.
    """
    history = history_of(tensor)
    if history is None or not isinstance(history[0], InputLayer):
        raise fail(
            ArgumentError,
            f"Model: expected as inputs what Input(...) gives, got {tensor!r}",
        )
    return history[0]
