"""`Network`: a graph of layers between inputs and outputs, itself a layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import weft.tf1 as tf
from weft.errors import ArgumentError, StateError, UnknownKeyError
from weft.tf1.framework.graph import fail
from weft.tf1.keras.engine import nest
from weft.tf1.keras.engine.graph_state import history_of, mask_of, set_mask
from weft.tf1.keras.engine.input_layer import InputLayer, input_layer_of
from weft.tf1.keras.engine.layer import Layer
from weft.tf1.keras.engine.layer_order import order_of
from weft.tf1.keras.engine.node import Node
from weft.tf1.keras.engine.raw_history import find_history


class Network(Layer):
    """A graph of layers, traced from the outputs back to the inputs; or a subclass.

    Attributes:
        inputs, outputs: its tensors; `None` for a subclass that has seen no data yet.
        input_names, output_names: the names of the layers that produced them.
    """

    def __init__(self, name: str | None = None, **options: Any) -> None:
        super().__init__(name=name, **options)
        self.inputs: list[Any] | None = None
        self.outputs: list[Any] | None = None
        self.input_names: list[str] = []
        self.output_names: list[str] = []
        self.supports_masking = True
        self.nested_inputs: Any = None
        self.nested_outputs: Any = None
        self.graph_nodes: list[Node] = []
        self._graph_layers: list[Any] | None = None

    def connect(self, inputs: Any, outputs: Any) -> None:
        """Become the graph of layers between these tensors.

        Raises:
            ArgumentError: inputs are not from `Input`, outputs do not depend on them alone, or two
                layers have the same name.
        """
        self._autocast = False
        self.nested_inputs, self.nested_outputs = inputs, outputs
        self.inputs, self.outputs = nest.flatten(inputs), nest.flatten(outputs)
        starts = [input_layer_of(x) for x in self.inputs]
        find_history(self.outputs)
        for y in self.outputs:
            if history_of(y) is None:
                raise fail(
                    ArgumentError,
                    f"Model: expected as outputs what follows from the inputs, got {y!r}",
                )
        order = order_of(self.inputs, self.outputs)
        self.graph_nodes, self._graph_layers = order.nodes, order.layers
        self.input_names = [x.name for x in starts]
        self.output_names = _unique([_history(y)[0].name for y in self.outputs])
        _require_unique([layer.name for layer in order.layers])
        self._graph_of_name = self.outputs[0].graph
        self.built = True

    @property
    def is_graph_network(self) -> bool:
        """Whether it was made from inputs and outputs."""
        return self._graph_layers is not None

    @property
    def input(self) -> Any:
        """The input, or a list of several."""
        return super().input if self.inputs is None else nest.one_or_list(self.inputs)

    @property
    def output(self) -> Any:
        """The output, or a list of several."""
        return super().output if self.outputs is None else nest.one_or_list(self.outputs)

    # -- layers

    @property
    def layers(self) -> list[Any]:
        """The layers: from inputs to outputs; for a subclass, in the order of its attributes."""
        return list(self._children())

    def _children(self) -> list[Any]:
        layers = self.__dict__.get("_graph_layers")
        return super()._children() if layers is None else layers

    def get_layer(self, name: str | None = None, index: int | None = None) -> Any:
        """The layer with a name or an index.

        Raises:
            UnknownKeyError: there is none.
        """
        if index is not None:
            if index < len(self.layers):
                return self.layers[index]
            raise fail(
                UnknownKeyError,
                f"get_layer: expected an index below {len(self.layers)}, got {index}",
            )
        for layer in self.layers:
            if layer.name == name:
                return layer
        names = [layer.name for layer in self.layers]
        raise fail(UnknownKeyError, f"get_layer: expected one of {names}, got {name!r}")

    @property
    def weights(self) -> list[Any]:
        """All weights, layer by layer.

        Raises:
            StateError: the weights do not exist yet.
        """
        if not self.built:
            raise fail(
                StateError,
                f"{self.name}: expected a model with weights; they are made when it is called on "
                "data, or by build(input_shape)",
            )
        inner = [v for layer in self._children() for v in layer.weights]
        own = [*self._trainable_weights, *self._other_weights]
        return list({id(v): v for v in [*inner, *own]}.values())

    # -- calls

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        """The outputs for other inputs, by the same layers."""
        if not self.is_graph_network:
            raise NotImplementedError(f"{type(self).__name__}: call is not defined")
        return self._run(inputs, training, mask)[0]

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The masks of the outputs."""
        if not self.is_graph_network:
            return None
        return nest.one_or_list(self._masks)

    def _run(self, inputs: Any, training: Any, mask: Any) -> tuple[Any, list[Any]]:
        old_inputs = self.inputs or []
        new_inputs = list(nest.flatten(self._in_order(inputs)))
        if len(new_inputs) != len(old_inputs):
            raise fail(
                ArgumentError,
                f"{self.name}: expected {len(old_inputs)} inputs {self.input_names}, got "
                f"{len(new_inputs)}",
            )
        known: dict[Any, Any] = {}
        for x, new in zip(old_inputs, new_inputs, strict=True):
            dtype = x.dtype.base_dtype
            known[x] = new if new.dtype.base_dtype is dtype else tf.cast(new, dtype)
        for new, m in zip(known.values(), nest.flatten(mask), strict=False):
            set_mask(new, m)
        for node in self.graph_nodes:
            _run_node(node, known, training)
        self._masks = [mask_of(known[y]) for y in self.outputs or []]
        return nest.mapped(lambda y: known[y], self.nested_outputs), self._masks

    def _in_order(self, inputs: Any) -> Any:
        """Inputs given by name, in the order of the model's inputs."""
        if isinstance(inputs, dict) and not isinstance(self.nested_inputs, dict):
            return [inputs[name] for name in self.input_names if name in inputs]
        return inputs

    def _build_once(self, inputs: Any) -> None:
        self.built = True  # layers create their weights when they are called

    def build(self, input_shape: Any = None) -> None:
        """Create the weights, by a call on inputs of this shape."""
        if self.is_graph_network or self.built or input_shape is None:
            self.built = True
            return
        shape = tuple(input_shape) if isinstance(input_shape, tf.TensorShape) else input_shape
        self._call_on_stand_ins(shape)

    def _call_on_stand_ins(self, shape: Any) -> None:
        several = isinstance(shape, list) and isinstance(shape[0], list | tuple)
        stands = [tf.placeholder("float32", s) for s in (shape if several else [shape])]
        self.built = True
        self(stands if several else stands[0])


def _run_node(node: Node, known: dict[Any, Any], training: Any) -> None:
    """Call a node's layer on new tensors instead of the old ones."""

    def new(x: Any) -> Any:
        return known.get(x, x) if tf.is_tensor(x) else x

    if isinstance(node.layer, InputLayer):
        return
    kwargs = {k: nest.mapped(new, v) for k, v in node.kwargs.items() if k != "mask"}
    if training is not None and "training" in kwargs and not _was_given(node):
        kwargs["training"] = training
    outputs = node.layer(nest.mapped(new, node.inputs), *nest.mapped(new, node.args), **kwargs)
    for old, y in zip(node.output_tensors, nest.flatten(outputs), strict=True):
        known[old] = y


def _was_given(node: Node) -> bool:
    """Whether the call got a `training` argument."""
    return node.kwargs.get("training") is not None


def _history(x: Any) -> tuple[Any, int, int]:
    history = history_of(x)
    assert history is not None
    return history


def _unique(names: Sequence[str]) -> list[str]:
    """Names made unique by numbers."""
    unique: list[str] = []
    for name in names:
        count = sum(1 for n in unique if n == name or n.startswith(f"{name}_"))
        unique.append(f"{name}_{count}" if name in unique else name)
    return unique


def _require_unique(names: Sequence[str]) -> None:
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise fail(ArgumentError, f"Model: expected layers of different names, got twice {twice}")
