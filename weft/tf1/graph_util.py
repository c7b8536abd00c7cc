"""`tf.graph_util`: parts of a graph, with its variables as constants."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from weft.errors import ArgumentError
from weft.ir.graph import Graph as IRGraph
from weft.ir.graph import rewrite
from weft.ir.node import Literal, Node, Value
from weft.ops.boundary import state
from weft.ops.declaration import op_of
from weft.runtime.memory.distant import values_of
from weft.tf1.framework.graph import fail
from weft.tf1.framework.graph_def import GraphDef
from weft.tf1.framework.node_def import NodeDef, Output

__all__ = ["convert_variables_to_constants", "extract_sub_graph", "remove_training_nodes"]

_PASSED_ON = ("Identity", "CheckNumerics")


def extract_sub_graph(graph_def: GraphDef, dest_nodes: Sequence[str]) -> GraphDef:
    """The operations that some need.

    Args:
        graph_def: the operations.
        dest_nodes: the names of those that are needed.

    Raises:
        ArgumentError: one is not there, or the names are one text.
    """
    if isinstance(dest_nodes, str):
        raise fail(ArgumentError, "extract_sub_graph: dest_nodes must be a list.")
    by_name = {node.name: node for node in graph_def.node}
    for name in dest_nodes:
        if name not in by_name:
            raise fail(ArgumentError, f"{name} is not in graph")
    needed: set[str] = set()
    waiting = list(dest_nodes)
    while waiting:
        name = waiting.pop()
        if name in by_name and name not in needed:
            needed.add(name)
            waiting += map(_operation, by_name[name].input)
    return GraphDef([node for node in graph_def.node if node.name in needed], graph_def.ir)


def _operation(name: str) -> str:
    return name.removeprefix("^").partition(":")[0]


def remove_training_nodes(
    input_graph: GraphDef, protected_nodes: Iterable[str] | None = None
) -> GraphDef:
    """The operations without those that pass their input on.

    Args:
        input_graph: the operations.
        protected_nodes: names of those that stay.
    """
    kept = set(protected_nodes or ())
    instead: dict[str, str] = {}
    found: list[NodeDef] = []
    for node in input_graph.node:
        inputs = [_replaced(name, instead) for name in node.input]
        gone = node.op in _PASSED_ON and node.name not in kept and len(inputs) == 1
        if gone and not inputs[0].startswith("^"):
            instead[node.name] = inputs[0]
        else:
            found.append(dataclasses.replace(node, input=inputs))
    return GraphDef(found, input_graph.ir)


def _replaced(name: str, instead: dict[str, str]) -> str:
    if name.startswith("^"):
        return "^" + _operation(_replaced(name[1:], instead))
    return instead.get(name.removesuffix(":0"), name)


def convert_variables_to_constants(
    sess: Any, input_graph_def: GraphDef, output_node_names: Sequence[str],
    variable_names_whitelist: Iterable[str] | None = None,
    variable_names_blacklist: Iterable[str] | None = None,
) -> GraphDef:  # fmt: skip
    """The operations that some need, with constants for the variables.

    Args:
        sess: has the values.
        input_graph_def: the operations.
        output_node_names: the names of those that are needed.
        variable_names_whitelist: the variables that become constants, by default all.
        variable_names_blacklist: variables that stay.

    Raises:
        ArgumentError: an operation is not there, or a variable has no value.

    Example:
        >>> import weft.tf1 as tf
        >>> with tf.Graph().as_default() as graph, tf.Session() as session:
        ...     y = tf.add(tf.placeholder(tf.float32, name="x"), tf.Variable(2.0), name="y")
        ...     session.run(tf.global_variables_initializer())
        ...     frozen = tf.graph_util.convert_variables_to_constants(
        ...         session, graph.as_graph_def(), ["y"]
        ...     )
        >>> [node.op for node in frozen.node]
        ['Placeholder', 'Const', 'Identity', 'AddV2']
    """
    part = extract_sub_graph(input_graph_def, output_node_names)
    ir = part.pruned()
    chosen = {
        node.name: node
        for node in ir.nodes
        if op_of(node) is state.variable
        and (variable_names_whitelist is None or node.name in variable_names_whitelist)
        and node.name not in (variable_names_blacklist or ())
    }
    held = values_of(sess.state, [node.attrs["key"] for node in chosen.values()])
    frozen: dict[str, Literal] = {}
    for name, node in chosen.items():
        if node.attrs["key"] not in held:
            raise fail(ArgumentError, f"expected a variable with a value, {name!r} has none")
        frozen[name] = Literal(held[node.attrs["key"]])

    def constants(node: Node, out: IRGraph) -> Sequence[Value] | None:
        if node.name in frozen:
            attrs = {"value": frozen[node.name]}
            return out.append(_again("constant", (), attrs, node)).outputs
        if op_of(node) is state.read and node.inputs[0].node.name in frozen:
            return out.append(_again("identity", node.inputs, {}, node)).outputs
        return None

    ir = rewrite(ir, constants)
    return GraphDef([_frozen(node, ir, frozen) for node in part.node], ir)


def _again(op: str, inputs: Sequence[Value], attrs: dict[str, Any], node: Node) -> Node:
    """Another operation in place of a node."""
    return Node(op, tuple(inputs), attrs, node.types, node.name, (), node.control, node.device,
                node.source)  # fmt: skip


def _frozen(node: NodeDef, ir: IRGraph, frozen: dict[str, Literal]) -> NodeDef:
    """A record, whose results are in the rewritten graph."""
    constant = node.op == "VariableV2" and node.name in frozen
    outputs = [
        Output(_found(ir, o.value), _found(ir, o.used), o.is_ref and not constant)
        for o in node.outputs
    ]
    nodes = [ir.find(n.name) for n in node.nodes]
    kind = "Const" if constant else node.op
    return dataclasses.replace(node, op=kind, outputs=outputs, nodes=nodes)


def _found(ir: IRGraph, value: Value) -> Value:
    return ir.find(value.node.name).outputs[value.index]
