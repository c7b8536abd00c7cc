"""`TensorFlowOpLayer`: an operation between layers, wrapped as a layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from weft.errors import StateError
from weft.ir.graph import Graph, current_graph, toposort
from weft.ir.node import Node as Operation
from weft.ir.node import Value
from weft.ir.parser import parse_graph
from weft.ir.printer import format_graph
from weft.ops.boundary.state import placeholder
from weft.ops.declaration import catalogue, op_of
from weft.tf1.framework.graph import fail
from weft.tf1.keras.engine import nest
from weft.tf1.keras.engine.graph_state import history_of
from weft.tf1.keras.engine.layer import Layer
from weft.tf1.keras.engine.node import Node
from weft.tf1.keras.engine.raw_history import WRAPPERS


class TensorFlowOpLayer(Layer):
    """An operation of a graph as a layer.

    Args:
        kind: TensorFlow's name of the operation.
        text: its nodes, from placeholders to outputs, in the graph's text form.
    """

    def __init__(self, kind: str, text: str, name: str | None = None, **options: Any) -> None:
        super().__init__(name=name, **options)
        self.built = self.supports_masking = True
        self.kind, self.text = kind, text
        self._graph = parse_graph(text)

    @classmethod
    def of(cls, op: Any, inputs: Sequence[Any]) -> Self:
        """The layer of an operation with these inputs; its other inputs become part of the layer.

        Raises:
            StateError: the operation has effects.
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
        name = op.name.replace("/", "_")  # weight files treat slashes as folders
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
        """None: whether it mixes steps is not known."""
        return None


def _type(value: Value) -> dict[str, Any]:
    return {"dtype": value.dtype, "shape": value.shape}


def _is_constant(x: Any) -> bool:
    """Whether a tensor is constant, whatever is fed and whatever variables hold."""
    nodes = toposort(current_graph(), [x.used.node], lambda node: [v.node for v in node.inputs])
    return not any([op_of(n) is placeholder or op_of(n).stateful for n in nodes])


def _again(wanted: Sequence[Value], known: dict[Value, Value]) -> list[Value]:
    """These values rebuilt in the current graph, with those in `known` replaced."""

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
    """Create the layer of an operation, as if it had been called."""
    inputs = [x for x in op.inputs if history_of(x) is not None or not _is_constant(x)]
    layer = TensorFlowOpLayer.of(op, inputs)
    Node(layer, nest.one_or_list(inputs), (), {}, nest.one_or_list(op.outputs))


WRAPPERS.append(_wrap)
