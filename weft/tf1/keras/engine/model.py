"""`Model` and `Sequential`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import weft.tf1 as tf
from weft.errors import ArgumentError, DTypeError, StateError
from weft.tf1.framework.graph import fail
from weft.tf1.keras.engine import call_context, nest, sessions
from weft.tf1.keras.engine.input_layer import Input, InputLayer, input_layer_of
from weft.tf1.keras.engine.layer import Layer
from weft.tf1.keras.fit.feeding import as_array
from weft.tf1.keras.layers import table
from weft.tf1.keras.storage.network_config import layer_from
from weft.tf1.keras.storage.serialization import serialize
from weft.tf1.keras.storage.stored_model import Storage


class Model(Storage):
    """A model of layers between inputs and outputs; or a subclass that defines `call`.

    Args:
        inputs: results of `Input(...)`: a tensor, several in a list, or by name.
        outputs: layers' outputs.
        name: its name; `model` and so on by default.
        options: arguments that all layers have, by name: see `Layer`.

    Raises:
        ArgumentError: the outputs do not depend on the inputs alone.

    >>> import weft.tf1 as tf
    >>> with tf.Graph().as_default():
    ...     x = tf.keras.Input([2])
    ...     y = tf.keras.layers.Dense(1, kernel_initializer="ones")(x)
    ...     model = tf.keras.Model(x, y)
    ...     model.predict([[1, 2]], verbose=0).tolist()
    [[3.0]]
    """

    def __init__(
        self, inputs: Any = None, outputs: Any = None, name: str | None = None, **options: Any
    ) -> None:
        super().__init__(name=name, **options)
        if inputs is not None or outputs is not None:
            if inputs is None or outputs is None:
                raise fail(ArgumentError, "Model: expected inputs and outputs, got one of them")
            self.connect(inputs, outputs)


class Sequential(Model):
    """Layers one after the other.

    The input shape comes from the first layer (`input_shape`), or from the first data.

    Args:
        layers: the first ones; `add` appends others.
        name: its name; `sequential` and so on by default.

    >>> import weft.tf1 as tf
    >>> with tf.Graph().as_default():
    ...     model = tf.keras.Sequential([tf.keras.layers.Flatten(input_shape=(2, 2))])
    ...     model.predict([[[1, 2], [3, 4]]], verbose=0).tolist()
    [[1.0, 2.0, 3.0, 4.0]]
    """

    _casts = False

    def __init__(self, layers: Sequence[Layer] | None = None, name: str | None = None) -> None:
        super().__init__(name=name)
        self._sequence: list[Any] = []
        for layer in layers or []:
            self.add(layer)

    def _children(self) -> list[Any]:
        return self.__dict__.get("_sequence", [])

    @property
    def layers(self) -> list[Any]:
        """The layers, without the input layer."""
        return [x for x in self._children() if not isinstance(x, InputLayer)]

    def add(self, layer: Any) -> None:
        """Append a layer.

        Raises:
            DTypeError: the argument is not a layer.
        """
        if tf.is_tensor(layer) and not isinstance(layer, Layer):
            layer = input_layer_of(layer)
        if not isinstance(layer, Layer):
            raise fail(DTypeError, f"Sequential.add: expected a layer, got {layer!r}")
        self._refuse_name(layer)
        if self.outputs is not None:
            self._put(layer, self.outputs[0])
        elif isinstance(layer, InputLayer):
            self.inputs, self.outputs = [layer.output], [layer.output]
            self._sequence = [*self._sequence, layer]
        elif not self._sequence and (start := _start(layer)) is not None:
            self.inputs, self.outputs = [start], [start]
            self._put(layer, start)
        else:
            self._sequence = [*self._sequence, layer]

    def _refuse_name(self, layer: Layer) -> None:
        if any(x.name == layer.name for x in self.layers):
            raise fail(
                ArgumentError,
                f"Sequential.add: expected a layer of another name, there is a {layer.name!r}",
            )

    def _put(self, layer: Layer, x: Any) -> None:
        """Call a layer on the current outputs."""
        y = layer(x)
        if len(nest.flatten(y)) != 1:
            raise fail(
                ArgumentError,
                f"Sequential.add: expected a layer with one output, {layer.name} has several; "
                "use Model(inputs, outputs)",
            )
        self._sequence = [*self._sequence, layer]
        self.connect(nest.one_or_list(self.inputs or []), y)

    def pop(self) -> None:
        """Remove the last layer.

        Raises:
            StateError: there are no layers.
        """
        if not self.layers:
            raise fail(StateError, "Sequential.pop: expected a layer, there is none")
        kept, inputs = self._sequence[:-1], self.inputs
        if inputs is None:
            self._sequence = kept
            return
        for node in self._sequence[-1].inbound_nodes[-1:]:
            before = node.inputs
            self._sequence, self.outputs = kept, [before]
            if kept:
                self.connect(nest.one_or_list(inputs), before)

    def build(self, input_shape: Any = None) -> None:
        """Create the weights, for inputs of this shape, with the batch axis."""
        if self.outputs is None and input_shape is not None:
            self._begin(Input(batch_shape=tuple(tf.TensorShape(input_shape).as_list())))
        self.built = True

    def _build_once(self, inputs: Any) -> None:
        if self.outputs is None:
            with tf.control_dependencies(None):
                self.build([None, *inputs.shape.as_list()[1:]])  # batches of any size
            sessions.take_waiting()
        self.built = True

    def _begin(self, x: Any) -> None:
        layers, self._sequence = self._sequence, []
        self.inputs, self.outputs = [x], [x]
        with call_context.outside():
            for layer in layers:
                self._put(layer, self.outputs[0])

    def _see(self, x: Any) -> None:
        """Start from an input for data of this shape."""
        items = list(x.values()) if isinstance(x, Mapping) else x
        array = as_array(items[0] if isinstance(items, list | tuple) and len(items) == 1 else items)
        with self.graph.as_default():
            kind = "float32" if array.dtype.kind == "f" else array.dtype.name
            self._begin(Input(array.shape[1:] or (1,), dtype=kind))

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        """The outputs for other inputs, by the same layers."""
        if self.is_graph_network:
            return super().call(inputs, training, mask)
        x = inputs
        for layer in self.layers:
            x = layer(x)
        return x

    def get_config(self) -> dict[str, Any]:
        """The layers' configurations, as data."""
        layers = [serialize(layer) for layer in self.layers]
        shape = None if self.inputs is None else self.inputs[0].shape.as_list()
        return {"name": self.name, "layers": layers, "build_input_shape": shape}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """A model from `get_config`."""
        model = cls(name=config["name"])
        for one in config["layers"]:
            model.add(layer_from(one))
        if model.inputs is None and config.get("build_input_shape"):
            model.build(config["build_input_shape"])
        return model

    def predict_classes(self, x: Any, batch_size: int = 32, verbose: int = 0) -> Any:
        """The most probable classes."""
        found = self.predict(x, batch_size=batch_size, verbose=verbose)
        return found.argmax(-1) if found.shape[-1] > 1 else (found > 0.5).astype("int32")

    def predict_proba(self, x: Any, batch_size: int = 32, verbose: int = 0) -> Any:
        """The result of `predict`."""
        return self.predict(x, batch_size=batch_size, verbose=verbose)


table.LAYERS.update(Model=Model, Sequential=Sequential)


def _start(layer: Layer) -> Any:
    """An input tensor, if the model's first layer gives the shape of its inputs."""
    if isinstance(layer, Model) and layer.inputs is not None:
        first = layer.inputs[0]
        shape = first.shape.as_list()
        return Input(batch_shape=shape, dtype=first.dtype.base_dtype.name)
    shape = layer.first_shape
    if shape is None:
        return None
    return Input(batch_shape=shape, dtype=layer.dtype, name=f"{layer.name}_input")
