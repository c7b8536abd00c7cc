"""`Called`: the inputs and outputs of a layer's calls."""

from __future__ import annotations

from typing import Any

from weft.errors import StateError
from weft.tf1.framework.graph import fail
from weft.tf1.keras.engine import nest
from weft.tf1.keras.engine.node import Node
from weft.tf1.keras.engine.tracking import Tracked


class Called(Tracked):
    """The part of a layer that stores its calls."""

    @property
    def input(self) -> Any:
        """The input of the layer's only call.

        Raises:
            StateError: it was called never or several times.
        """
        return self._only_node("input").inputs

    @property
    def output(self) -> Any:
        """The output of the layer's only call.

        Raises:
            StateError: it was called never or several times.
        """
        return self._only_node("output").outputs

    @property
    def input_shape(self) -> Any:
        """The shape of `input`."""
        return nest.mapped(nest.shape_of, self.input)

    @property
    def output_shape(self) -> Any:
        """The shape of `output`."""
        return nest.mapped(nest.shape_of, self.output)

    def get_input_at(self, node_index: int) -> Any:
        """The input of call `node_index`."""
        return self.inbound_nodes[node_index].inputs

    def get_output_at(self, node_index: int) -> Any:
        """The output of call `node_index`."""
        return self.inbound_nodes[node_index].outputs

    def _only_node(self, what: str) -> Node:
        nodes = self.inbound_nodes
        shapes = {str(nest.mapped(nest.shape_of, n.outputs)) for n in nodes}
        if len(nodes) == 1 or (nodes and "shape" in what and len(shapes) == 1):
            return nodes[0]
        raise fail(
            StateError,
            f"{self.name}.{what}: expected one call of the layer, there were {len(nodes)}; "
            f"get_{what}_at(i) is that of one of them",
        )
