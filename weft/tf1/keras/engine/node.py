"""`Node`: one call of a layer on tensors derived from Keras inputs."""

from __future__ import annotations

from typing import Any

from weft.tf1.keras.engine import nest
from weft.tf1.keras.engine.graph_state import graph_state, history_of


class Node:
    """A call, registered with its layer; its outputs know their origin.

    Attributes:
        layer: the called layer.
        inputs: as given.
        args, kwargs: further arguments.
        outputs: as `call` returned them.
        inbound_nodes: the calls that produced the inputs.
    """

    def __init__(self, layer: Any, inputs: Any, args: Any, kwargs: Any, outputs: Any) -> None:
        self.layer, self.inputs, self.outputs = layer, inputs, outputs
        self.args, self.kwargs = args, dict(kwargs)
        self.input_tensors = nest.tensors_in([inputs, args, kwargs])
        self.output_tensors = nest.flatten(outputs)
        found = [history_of(x) for x in self.input_tensors]
        self.histories = [h for h in found if h is not None]
        self.inbound_nodes: list[Node] = [h[0].inbound_nodes[h[1]] for h in self.histories]
        number = len(layer.inbound_nodes)
        layer.inbound_nodes.append(self)
        for index, y in enumerate(self.output_tensors):
            graph_state(y.graph).histories[y] = (layer, number, index)
