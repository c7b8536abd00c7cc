"""Variables as records beside the records of a graph, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from weft.ir.node import Value
from weft.tf1.framework.dtypes import as_dtype
from weft.tf1.framework.graph import Graph
from weft.tf1.framework.tensor import Operation, Tensor
from weft.tf1.framework.tensor_shape import TensorShape
from weft.tf1.variable.probe import feed_probe
from weft.tf1.variable.slice_info import SaveSliceInfo
from weft.tf1.variable.variable import Variable


class Elements(Protocol):
    """What a graph has of the records of a file."""

    def operation(self, name: str) -> Operation:
        """The operation that the file calls so."""
        ...

    def tensor(self, name: str) -> Tensor:
        """The tensor that the file calls so."""
        ...


def described(variable: Any) -> dict[str, Any]:
    """A variable as JSON: names of its tensors and operations."""
    place, probe, first = variable.slice_info, variable._probe, variable._initializer_op
    return {
        "op": variable.op.name,
        "handle": variable.handle.name,
        "snapshot": variable.snapshot.name,
        "initial": variable.initial_value.name,
        "given": variable._given.name,
        "initializer": None if first is None else first.name,
        "reads": [tensor.name for tensor in variable.reads],
        "probe": None if probe is None else [tensor.name for tensor in probe],
        "trainable": variable.trainable,
        "dtype": variable.dtype.base_dtype.name,
        "shape": variable.shape.as_dims(),
        "validate": variable._validate_shape,
        "place": None if place is None else vars(place),
    }


def found_in(
    graph: Graph, elements: Elements, told: Mapping[str, Any], handle: Callable[[str], Value]
) -> Variable:
    """The variable of a record, whose operations are in a graph.

    Args:
        graph: the graph.
        elements: gives its operations and tensors by the names of the file.
        told: the record.
        handle: gives values of Weft's graph by the names of the file.
    """
    made: Any = Variable.__new__(Variable)
    op = elements.operation(told["op"])
    made._graph, made._variable, made._handle = graph, op.outputs[0], handle(told["handle"])
    made._snapshot = elements.tensor(told["snapshot"])
    made._initial_value = elements.tensor(told["initial"])
    made._given = elements.tensor(told["given"])
    first = told["initializer"]
    made._initializer_op = None if first is None else elements.operation(first)
    made._reads = [elements.tensor(name) for name in told["reads"]]
    made._trainable, made._validate_shape = told["trainable"], told["validate"]
    made._constraint = made._caching_device = None
    made._dtype, made._shape = as_dtype(told["dtype"]), TensorShape(told["shape"])
    made._save_slice_info = None if told["place"] is None else SaveSliceInfo(**told["place"])
    made._probe = None
    if told["probe"] is not None:
        flag, held = [elements.tensor(name) for name in told["probe"]]
        made._probe = feed_probe(graph, flag, held, made.key)
    graph.keys[op.name] = made
    return made
