"""`tf.import_graph_def`: operations of a file, added to the default graph."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.errors import ArgumentError, GraphError
from weft.formats.atomic_file import write_file
from weft.ir.node import Node, Value
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.graph import Graph, fail, get_default_graph
from weft.tf1.framework.graph_def import GraphDef
from weft.tf1.framework.node_def import NodeDef
from weft.tf1.framework.tensor import Operation, Tensor

__all__ = ["import_graph_def", "write_graph"]


def import_graph_def(
    graph_def: GraphDef, input_map: Mapping[str, Any] | None = None,
    return_elements: Sequence[str] | None = None, name: str | None = None, op_dict: Any = None,
    producer_op_list: Any = None,
) -> list[Any] | None:  # fmt: skip
    """Add the operations of a `GraphDef` that Weft wrote.

    Args:
        graph_def: the operations.
        input_map: by the names of tensors in it, tensors to use instead.
        return_elements: names of operations and tensors to return.
        name: what names are prefixed with, by default `import`; empty for no prefix.
        op_dict, producer_op_list: no effect.

    Raises:
        ArgumentError: a name of `input_map` or `return_elements` is not in it.
    """
    del op_dict, producer_op_list
    if not isinstance(graph_def, GraphDef):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise fail(ArgumentError, f"import_graph_def: expected a tf.GraphDef, got {graph_def!r}")
    graph = get_default_graph()
    prefix = "import" if name is None else name
    if prefix:
        prefix = prefix if prefix.endswith("/") else graph.unique_name(prefix) + "/"
    given = {_tensor_name(key): value for key, value in (input_map or {}).items()}
    placed = Placed(graph, graph_def, prefix, given)
    if return_elements is None:
        return None
    return [placed.element(each) for each in return_elements]


def _tensor_name(name: str) -> str:
    return name if ":" in name else f"{name}:0"


class Placed:
    """The operations of a `GraphDef` in a graph, to which they are added.

    Args:
        graph: the graph.
        found: the operations.
        prefix: what names begin with.
        given: by the names of tensors, what to use instead.
        clear_devices: leave the devices away.

    Raises:
        ArgumentError: `given` has a name that is not there.
    """

    def __init__(
        self, graph: Graph, found: GraphDef, prefix: str, given: Mapping[str, Any],
        clear_devices: bool = False,
    ) -> None:  # fmt: skip
        self.graph, self.prefix = graph, prefix
        self._clear = clear_devices
        self._tensors: dict[str, Tensor] = {}
        self._operations: dict[str, Operation] = {}
        self._values: dict[Value, Value] = {}
        self._nodes: dict[Node, Node] = {}
        self.names = {n.name: graph.unique(prefix + n.name) for n in found.node}
        self._check(found, given)
        with graph.as_default():
            instead = {n: convert_to_tensor(x) for n, x in given.items()}
        fixed: dict[Value, Value] = {}
        for node in found.node:
            for index, output in enumerate(node.outputs):
                if f"{node.name}:{index}" in instead:
                    used = instead[f"{node.name}:{index}"].used
                    fixed |= {output.value: used, output.used: used}
        ir = found.pruned()
        for node in ir.nodes:
            self._add(node, fixed)
        for node, before in ir.edges.items():
            for each in before:
                graph.ir.add_control_edge(self._nodes[node], self._nodes[each])
        for node, other in ir.colocated():
            graph.ir.colocate([self._nodes[node]], [self._nodes[other]])
        for node in found.node:
            self._operation(node, instead)

    def _check(self, found: GraphDef, given: Mapping[str, Any]) -> None:
        known = {f"{n.name}:{i}" for n in found.node for i in range(len(n.outputs))}
        unknown = sorted(given.keys() - known)
        if unknown:
            text = f"expected names of the graph in input_map, got {unknown}"
            raise fail(ArgumentError, f"import_graph_def: {text}")

    def _add(self, node: Node, fixed: Mapping[Value, Value]) -> None:
        name = self.graph.ir.unique_name(self.names.get(node.name, self.prefix + node.name))
        inputs = [fixed[v] if v in fixed else self._values[v] for v in node.inputs]
        attrs = dict(node.attrs)
        if isinstance(key := attrs.get("key"), str):  # of a variable or a counter in a session
            attrs["key"] = key.removesuffix(node.name) + name if key.endswith(node.name) else name
        control = tuple([self._nodes[n] for n in node.control if n in self._nodes])
        device = "" if self._clear else node.device
        new = Node(
            node.op, tuple(inputs), attrs, node.types, name, node.operands, control, device,
            node.source, node.regions,
        )  # fmt: skip
        self._nodes[node] = self.graph.ir.append(new)
        self._values.update(zip(node.outputs, new.outputs, strict=True))

    def _operation(self, node: NodeDef, instead: Mapping[str, Tensor]) -> None:
        reads = [_tensor_name(name) for name in node.input if not name.startswith("^")]
        inputs = [instead.get(name, self._tensors.get(name)) for name in reads]
        missing = [n for n, x in zip(reads, inputs, strict=True) if x is None]
        if missing:
            raise fail(GraphError, f"import_graph_def: {node.name!r} reads {missing}, which are "
                                   "not among the nodes before it")  # fmt: skip
        before = [n[1:] for n in node.input if n.startswith("^")]
        control = [self._operations[n] for n in before if n in self._operations]
        op = Operation.__new__(Operation)
        kept: list[Any] = inputs
        op.setup(self.graph, node.op, self.names[node.name], kept, control, node.attr)
        op.place("" if self._clear else node.device, [self._group(x) for x in node.groups])
        outputs: list[Tensor] = []
        for index, output in enumerate(node.outputs):
            value = self._values[output.value]
            tensor = Tensor(op, index, value)
            if output.is_ref:
                tensor = Tensor(op, index, value, tensor.dtype._as_ref)  # pyright: ignore[reportPrivateUsage]
            tensor.rebind(value, self._values[output.used])
            self._tensors[f"{node.name}:{index}"] = tensor
            outputs.append(tensor)
        self._operations[node.name] = op
        nodes = tuple([self._nodes[n] for n in node.nodes if n in self._nodes])
        self.graph.put(op, outputs, nodes)

    def _group(self, group: bytes) -> bytes:
        head, _, name = group.decode().partition("@")
        return f"{head}@{self.names.get(name, self.prefix + name)}".encode()

    def operation(self, name: str) -> Operation:
        """The operation that the file calls so."""
        return self._operations[name]

    def tensor(self, name: str) -> Tensor:
        """The tensor that the file calls so."""
        return self._tensors[name]

    def value(self, name: str, found: GraphDef) -> Value:
        """The value of Weft's graph that the file calls so."""
        node, _, index = name.rpartition(":")
        return self._values[found.ir.find(node).outputs[int(index)]]

    def element(self, name: str) -> Any:
        """The operation or tensor that the file calls so.

        Raises:
            ArgumentError: there is none.
        """
        table: Mapping[str, Any] = self._tensors if ":" in name else self._operations
        if name not in table:
            text = f"expected names of the graph in return_elements, got {name!r}"
            raise fail(ArgumentError, f"import_graph_def: {text}")
        return table[name]


def write_graph(graph_or_graph_def: Any, logdir: Any, name: str, as_text: bool = True) -> str:
    """Write a graph to a file; returns its path.

    Args:
        graph_or_graph_def: a graph, or records of one.
        logdir: the folder, made if needed.
        name: of the file.
        as_text: names, types and edges to be read by people, instead of what can be read back.
    """
    given = graph_or_graph_def
    found: GraphDef = given.as_graph_def() if isinstance(given, Graph) else given
    path = os.path.join(logdir, name)
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    write_file(Path(path), [str(found).encode() if as_text else found.SerializeToString()])
    return path
