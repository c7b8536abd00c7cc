"""`tf.layers.Dense`: a fully connected layer object, whose variables are created once."""

from __future__ import annotations

from typing import Any

from weft.errors import ShapeError
from weft.tf1.elementwise.arithmetic import matmul
from weft.tf1.framework.collection import GraphKeys
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.dtypes import as_dtype
from weft.tf1.framework.graph import fail, get_default_graph
from weft.tf1.framework.tensor_shape import TensorShape, as_shape
from weft.tf1.linalg.contraction import tensordot
from weft.tf1.nn.activation import bias_add
from weft.tf1.variable.initializer import zeros_initializer
from weft.tf1.variable.variable_scope import get_variable, variable_scope


def zeros_unless(initializer: Any) -> Any:
    """The initializer of a bias: zeros by default."""
    return zeros_initializer() if initializer is None else initializer


def finished(y: Any, activation: Any, activity_regularizer: Any) -> Any:
    """A layer's output: activated, and its regularization added to the losses."""
    y = y if activation is None else activation(y)
    if activity_regularizer is not None:
        losses = GraphKeys.REGULARIZATION_LOSSES
        get_default_graph().add_to_collection(losses, activity_regularizer(y))
    return y


class Dense:
    """activation(inputs @ kernel + bias), over the last axis.

    Its variables are created in the scope of the first call, under `name`, made unique; later calls
    reuse them.

    Args:
        units: the size of the last axis of the output.
        name: of its scope; a unique `dense` by default.
        dtype: of its variables; that of the first inputs by default.

    Raises:
        ShapeError: the last dimension of the inputs is not known.

    >>> import weft.tf1 as tf
    >>> with tf.Graph().as_default():
    ...     layer = tf.layers.Dense(3, name="out")
    ...     print(layer(tf.zeros([2, 5])).shape, layer.kernel.name)
    (2, 3) out/kernel:0
    """

    def __init__(
        self,
        units: int,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: str | None = None,
        dtype: Any = None,
        _reuse: Any = None,
        _scope: str | None = None,
    ) -> None:
        self.units = int(units)
        self.activation, self.use_bias, self.trainable = activation, use_bias, trainable
        self.kernel: Any = None
        self.bias: Any = None
        self.dtype = None if dtype is None else as_dtype(dtype)
        self._kernel_options: dict[str, Any] = {
            "initializer": kernel_initializer, "regularizer": kernel_regularizer,
            "constraint": kernel_constraint, "trainable": trainable,
        }  # fmt: skip
        self._bias_options: dict[str, Any] = {
            "initializer": zeros_unless(bias_initializer),
            "regularizer": bias_regularizer, "constraint": bias_constraint, "trainable": trainable,
        }  # fmt: skip
        self._activity = activity_regularizer
        self._name, self._reuse = name or "dense", _reuse
        self._scope: Any = _scope

    @property
    def name(self) -> str:
        """The scope's name, as given."""
        return self._name

    @property
    def trainable_variables(self) -> list[Any]:
        """Kernel and bias, once they exist."""
        return [v for v in (self.kernel, self.bias) if v is not None and self.trainable]

    trainable_weights = trainable_variables

    @property
    def variables(self) -> list[Any]:
        """Kernel and bias, once they exist."""
        return [v for v in (self.kernel, self.bias) if v is not None]

    weights = variables

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        """The shape of the output for inputs of this shape."""
        return TensorShape([*as_shape(input_shape).as_list()[:-1], self.units])

    def build(self, input_shape: Any) -> None:
        """Create the variables in the current scope, for inputs of this shape."""
        size = as_shape(input_shape).as_list()[-1] if as_shape(input_shape).ndims else None
        if size is None:
            raise fail(
                ShapeError, f"dense: expected a known last dimension, got shape {input_shape}"
            )
        self.kernel = get_variable("kernel", [size, self.units], self.dtype, **self._kernel_options)
        if self.use_bias:
            self.bias = get_variable("bias", [self.units], self.dtype, **self._bias_options)

    def __call__(self, inputs: Any) -> Any:
        """The layer's output."""
        x = convert_to_tensor(inputs)
        if self.dtype is None:
            self.dtype = x.dtype.base_dtype
        first = self.kernel is None
        named = self._name if self._reuse and self._scope is None else self._scope
        reuse = self._reuse if first else True
        with variable_scope(named, default_name=self._name, values=[x], reuse=reuse) as own:
            if first:
                self._scope = own
                self.build(x.shape)
            flat = x.shape.ndims == 2
            y: Any = matmul(x, self.kernel) if flat else tensordot(x, self.kernel, 1)
            y = bias_add(y, self.bias) if self.use_bias else y
            return finished(y, self.activation, self._activity)

    apply = __call__
