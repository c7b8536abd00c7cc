"""Where the operations of a session's graph are, and the log of it."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from weft.ir.device import DeviceName
from weft.ir.node import Node
from weft.passes.placement.place import Placed, place
from weft.passes.step import Request, Step, needed
from weft.tf1.framework.collection import GraphKeys
from weft.tf1.framework.graph import Graph
from weft.tf1.session.options import ConfigProto
from weft.tf1.variable.variable import Variable

_NOWHERE: Final = Placed({}, {})


class Placement:
    """Where a graph's operations are; what is built later is placed when it is run.

    Args:
        graph: the session's graph.
        devices: those that exist; the first is where what asks for nothing is by default.
        config: `allow_soft_placement` and `log_device_placement`.
        always: whether to place even where there is one device and nothing asks for another.
    """

    def __init__(
        self, graph: Graph, devices: Sequence[DeviceName], config: ConfigProto | None = None,
        always: bool = False,
    ) -> None:  # fmt: skip
        config = ConfigProto() if config is None else config
        self._graph: Final = graph
        self._devices: Final = devices
        self._soft: Final = config.allow_soft_placement
        self._logs: Final = config.log_device_placement
        self._logged: set[str] = set()
        self._seen = 0  # nodes of the graph that have been placed
        self._placed = _NOWHERE
        self._asks = always or len(devices) > 1

    def now(self, request: Request | None = None) -> Placed:
        """The devices of the nodes that ask for one, of those with them, and of variables.

        Args:
            request: only what it needs must be on devices that exist.

        Raises:
            ArgumentError: a device does not exist, with those that do; or what is to be on one
                device asks for several.
        """
        graph = self._graph.ir
        count = len(graph.nodes)
        if count != self._seen:
            # One device is where everything is, unless something asks for another
            self._asks = self._asks or any([n.device for n in graph.nodes[self._seen : count]])
            if self._asks:
                self._placed = self._place(())
            self._seen = count
        if request is not None and self._asks:
            nodes = needed(request)
            if any([node.device and node not in self._placed.devices for node in nodes]):
                return self._place(nodes)  # raises
        return self._placed

    def of(self, node: Node) -> str:
        """The device of a node that runs outside programs.

        Raises:
            ArgumentError: it asks for a device that does not exist.
        """
        found = self.now().devices.get(node)
        if found is None and node.device and self._asks:
            self._place([node])  # raises
        return found or str(self._devices[0])

    def _place(self, nodes: Collection[Node]) -> Placed:
        """The devices of all nodes, of which these must be on devices that exist."""
        local = self._graph.get_collection(GraphKeys.LOCAL_VARIABLES)
        own = {v.key for v in local if isinstance(v, Variable)}
        return place(self._graph.ir, self._devices, self._soft, self._devices[0], nodes, own)

    def log(self, request: Request, step: Step | None, found: Mapping[Node, str]) -> None:
        """Prints where the operations of a run are, as `log_device_placement` asks: each once.

        Args:
            request: the run.
            step: its optimized step, if something chose devices for its nodes.
            found: these devices.
        """
        if not self._logs:
            return
        chosen = {self._graph.owner(n.name): found[n] for n in step.graph.nodes} if step else {}
        run = set(needed(request))
        for op in self._graph.get_operations():
            if op.name not in self._logged and not run.isdisjoint(op.nodes):
                self._logged.add(op.name)
                device = self._device_of(op.nodes) or chosen.get(op.name) or self._devices[0]
                print(f"{op.name}: ({op.type}): {device}", file=sys.stderr)

    def _device_of(self, nodes: Iterable[Node]) -> str | None:
        return next(filter(None, map(self._placed.devices.get, nodes)), None)
