"""`tf.GraphDef`: operations as records, and as the bytes of a file.

The bytes are TensorFlow's message, with names, types and edges, which TensorBoard draws, and beside
it what Weft needs to run the graph again, in fields that TensorFlow does not have:

    GraphDef    node = 1, versions = 4; GRAPH: operations and nodes as JSON; ARRAY: large constants
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np

from weft.errors import DataError, GraphError
from weft.formats import wire
from weft.formats.event import graph as drawing
from weft.ir.dtype import as_dtype
from weft.ir.graph import Graph as IRGraph
from weft.ir.graph import in_order_of_creation
from weft.ir.node import Literal, Value
from weft.ir.parser import parse_graph
from weft.ir.printer import format_graph
from weft.tf1.framework import dtypes
from weft.tf1.framework.node_def import NodeDef, Output
from weft.tf1.framework.parsed import Parsed
from weft.tf1.framework.tensor_shape import TensorShape

__all__ = ["GraphDef"]

GRAPH: Final = 10_001
ARRAY: Final = 10_002


class GraphDef(Parsed):
    """Operations as records.

    Args:
        node: the records.
        ir: Weft's graph with their nodes.

    Example:
        >>> import weft.tf1 as tf
        >>> with tf.Graph().as_default() as graph:
        ...     y = tf.square(tf.placeholder(tf.float32, [2], name="x"), name="y")
        >>> written = tf.GraphDef.FromString(graph.as_graph_def().SerializeToString())
        >>> with tf.Graph().as_default(), tf.Session() as session:
        ...     (y,) = tf.import_graph_def(written, return_elements=["y:0"])
        ...     y.name, session.run(y, {"import/x:0": [2, 3]})
        ('import/y:0', array([4., 9.], dtype=float32))
    """

    def __init__(self, node: Iterable[NodeDef] = (), ir: IRGraph | None = None) -> None:
        self.node = list(node)
        self.ir = IRGraph() if ir is None else ir

    def pruned(self) -> IRGraph:
        """Weft's graph of only the nodes that the records need."""
        roots = [n for each in self.node for n in each.nodes if n in self.ir]
        roots += [v.node for each in self.node for o in each.outputs for v in (o.value, o.used)]
        found = IRGraph(in_order_of_creation(self.ir, roots, self.ir.predecessors))
        for node in found.nodes:
            for before in self.ir.edges.get(node, ()):
                found.add_control_edge(node, before)
            found.colocate([node], [n for n in self.ir.colocations.get(node, ()) if n in found])
        return found

    def drawn(self) -> bytes:
        """The bytes of TensorFlow's message."""
        return drawing.graph_def([node.drawn() for node in self.node])

    def SerializeToString(self) -> bytes:
        """The bytes of a file."""
        arrays: list[np.ndarray[Any, Any]] = []
        text = format_graph(self.pruned(), aside=arrays)
        told: dict[str, Any] = {"graph": text, "node": [_described(node) for node in self.node]}
        told["array"] = [[as_dtype(x.dtype).name, x.shape] for x in arrays]
        parts = [wire.delimited(ARRAY, np.ascontiguousarray(x).tobytes()) for x in arrays]
        return b"".join([self.drawn(), wire.delimited(GRAPH, json.dumps(told)), *parts])

    def ParseFromString(self, serialized: bytes) -> int:
        """Take over the graph of a file; returns the number of bytes.

        Raises:
            DataError: the bytes are damaged, or another library wrote them.
        """
        found = [f for f in wire.fields(serialized, what="GraphDef") if f.number in (GRAPH, ARRAY)]
        if not found:
            raise DataError.here(
                "GraphDef: expected a graph that Weft wrote; it runs no graphs of TensorFlow: "
                "build the graph in Python, and restore its checkpoint"
            )
        told: Any = json.loads(bytes(found[0].value))
        try:
            kinds = [(dtypes.as_dtype(name).ir.numpy, shape) for name, shape in told["array"]]
            pairs = zip(found[1:], kinds, strict=True)
            arrays = [np.frombuffer(f.value, kind).reshape(shape) for f, (kind, shape) in pairs]
            self.ir = parse_graph(told["graph"], arrays, Missing)
            self.node = [_record(self.ir, each) for each in told["node"]]
        except (LookupError, ValueError, TypeError) as error:
            raise DataError.here(f"GraphDef: damaged: {error}") from None
        return len(serialized)

    def CopyFrom(self, other: GraphDef) -> None:
        """Take over the records of another."""
        self.node, self.ir = list(other.node), other.ir

    def ByteSize(self) -> int:
        """The number of bytes of a file."""
        return len(self.SerializeToString())

    def __str__(self) -> str:
        lines = [line for node in self.node for line in ("node {", *_inner(str(node)), "}")]
        return "\n".join([*lines, ""])


class Missing:
    """What stands for a Python object, which no file has: use of it is an error.

    Args:
        name: of its class.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def _refuse(self) -> GraphError:
        return GraphError.here(
            f"expected what a file of a graph has, got an operation that calls Python "
            f"({self._name}), such as tf.py_func, an iterator or a summary: make it again in the "
            f"program"
        )

    def __call__(self, *args: Any, **options: Any) -> Any:
        raise self._refuse()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise self._refuse()


def _inner(text: str) -> list[str]:
    return ["  " + line for line in text.splitlines()]


def _described(node: NodeDef) -> dict[str, Any]:
    """A record as JSON."""
    return {
        "name": node.name, "op": node.op, "input": node.input, "device": node.device,
        "attr": {k: v for k, x in node.attr.items() if (v := _plain(x)) is not Ellipsis},
        "outputs": [[o.value.name, o.used.name, o.is_ref] for o in node.outputs],
        "nodes": [n.name for n in node.nodes], "groups": [each.decode() for each in node.groups],
    }  # fmt: skip


def _record(ir: IRGraph, told: Mapping[str, Any]) -> NodeDef:
    outputs = [Output(value_in(ir, a), value_in(ir, b), ref) for a, b, ref in told["outputs"]]
    nodes = [ir.find(name) for name in told["nodes"]]
    attr = {name: _attribute(value) for name, value in told["attr"].items()}
    groups = [each.encode() for each in told["groups"]]
    return NodeDef(
        told["name"], told["op"], told["input"], told["device"], attr, outputs, nodes, groups
    )


def value_in(ir: IRGraph, name: str) -> Value:
    """The value that is called `node:index`."""
    node, _, index = name.rpartition(":")
    return ir.find(node).outputs[int(index)]


def _plain(value: Any) -> Any:
    """An attribute as JSON; `...` if it has no such form."""
    if isinstance(value, dtypes.DType):
        return {"dtype": value.name}
    if isinstance(value, TensorShape):
        return {"shape": value.as_dims()}
    if isinstance(value, Literal) or not isinstance(value, str | int | float | list | None):
        return ...
    try:
        json.dumps(value)
    except TypeError:
        return ...
    return value


def _attribute(value: Any) -> Any:
    if isinstance(value, Mapping):
        told: Mapping[str, Any] = value
        return dtypes.as_dtype(told["dtype"]) if "dtype" in told else TensorShape(told["shape"])
    return value
