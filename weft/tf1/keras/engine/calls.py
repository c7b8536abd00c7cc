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
        """The shape of the input, if all calls had one of this shape.

        Raises:
            StateError: it was called never, or with several shapes.
        """
        return self._only_shape("input")

    @property
    def output_shape(self) -> Any:
        """The shape of the output, if all calls gave one of this shape.

        Raises:
            StateError: it was called never, or with several shapes.
        """
        return self._only_shape("output")

    def get_input_at(self, node_index: int) -> Any:
        """The input of call `node_index`."""
        return self.inbound_nodes[node_index].inputs

    def get_output_at(self, node_index: int) -> Any:
        """The output of call `node_index`."""
        return self.inbound_nodes[node_index].outputs

    def _only_node(self, what: str) -> Node:
        if len(self.inbound_nodes) == 1:
            return self.inbound_nodes[0]
        raise fail(
            StateError,
            f"{self.name}.{what}: expected one call of the layer, there were "
            f"{len(self.inbound_nodes)}; get_{what}_at(i) is that of one of them",
        )

    def _only_shape(self, what: str) -> Any:
        values = [getattr(node, f"{what}s") for node in self.inbound_nodes]
        shapes = [nest.mapped(nest.shape_of, value) for value in values]
        if len(shapes) > 1 and all([str(shape) == str(shapes[0]) for shape in shapes]):
            return shapes[0]
        return nest.mapped(nest.shape_of, getattr(self, what))
