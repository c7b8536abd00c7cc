"""`TensorFlowOpLayer`: an operation between layers, made a layer when a model meets it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from weft.errors import StateError
from weft.ir.graph import Graph, current_graph, toposort
from weft.ir.node import Node as Operation
from weft.ir.node import Value
from weft.ir.parser import parse_graph
from weft.ir.printer import format_graph
from weft.ops.base import catalogue, op_of
from weft.ops.boundary.state import placeholder
from weft.tf1.framework.graph import fail
from weft.tf1.keras.engine import nest
from weft.tf1.keras.engine.graph_state import history_of
from weft.tf1.keras.engine.layer import Layer
from weft.tf1.keras.engine.node import Node
from weft.tf1.keras.engine.raw_history import WRAPPERS


class TensorFlowOpLayer(Layer):
    """An operation of a graph as a layer.

    Args:
        kind: TensorFlow's name for what it does.
        text: the nodes of which it consists, from placeholders to outputs, as a graph's text.
    """

    def __init__(self, kind: str, text: str, name: str | None = None, **options: Any) -> None:
        super().__init__(name=name, **options)
        self.built = self.supports_masking = True
        self.kind, self.text = kind, text
        self._graph = parse_graph(text)

    @classmethod
    def of(cls, op: Any, inputs: Sequence[Any]) -> Self:
        """The layer of an operation, of which these are inputs; others are a part of the layer.

        Raises:
            StateError: it has effects.
        """
        graph = Graph()
        with graph.as_default():
            known = {x.used: catalogue.placeholder(**_type(x.used)) for x in inputs}
            graph.outputs = tuple(_again([y.value for y in op.outputs], known))
        if any([op_of(node).stateful for node in graph.nodes]):
            raise fail(
                StateError,
                f"Model: expected between layers operations without effects and random numbers, "
                f"got {op.name!r} ({op.type}); call it inside of a layer",
            )
        name = op.name.replace("/", "_")  # files have folders of layers
        return cls(op.type, format_graph(graph), name=f"tf_op_layer_{name}")

    def call(self, inputs: Any) -> Any:
        """The operation's outputs for other inputs."""
        given = nest.flatten(inputs)
        graph = given[0].graph
        op = graph.emit(self.kind, given, self._build, name=self.kind)
        return nest.one_or_list(op.outputs)

    def _build(self, *values: Value) -> Sequence[Value]:
        places = [n.outputs[0] for n in self._graph.nodes if op_of(n) is placeholder]
        return _again(self._graph.outputs, dict(zip(places, values, strict=True)))

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """None: what it does to steps is not known."""
        return None

    def get_config(self) -> dict[str, Any]:
        """The arguments to make a layer like this one."""
        return {**super().get_config(), "kind": self.kind, "text": self.text}


def _type(value: Value) -> dict[str, Any]:
    return {"dtype": value.dtype, "shape": value.shape}


def _is_constant(x: Any) -> bool:
    """Whether a tensor has one value, whatever is fed and whatever variables hold."""
    nodes = toposort(current_graph(), [x.used.node], lambda node: [v.node for v in node.inputs])
    return not any([op_of(n) is placeholder or op_of(n).stateful for n in nodes])


def _again(wanted: Sequence[Value], known: dict[Value, Value]) -> list[Value]:
    """These values once more in the current graph, where those that are `known` are others."""

    def before(node: Operation) -> list[Operation]:
        return [x.node for x in node.inputs if x not in known]

    roots = [y.node for y in wanted if y not in known]
    for node in toposort(current_graph(), roots, before):
        if any([y in known for y in node.outputs]):
            continue
        count = len(node.data_inputs)
        inputs = [known[x] for x in node.inputs]
        supplied = dict(zip(node.operands, inputs[count:], strict=True))
        made = op_of(node).node(tuple(inputs[:count]), {**node.attrs, **supplied})
        known.update(zip(node.outputs, made.outputs, strict=True))
    return [known[y] for y in wanted]


def _wrap(op: Any) -> None:
    """Make a layer of an operation, as if it had been called."""
    inputs = [x for x in op.inputs if history_of(x) is not None or not _is_constant(x)]
    layer = TensorFlowOpLayer.of(op, inputs)
    Node(layer, nest.one_or_list(inputs), (), {}, nest.one_or_list(op.outputs))


WRAPPERS.append(_wrap)
