"""The device of each node of an optimized step: free nodes are where they are done first.

List scheduling by earliest finish time: nodes in order, each on the device where it would be done
first, given when its inputs are there. A free node leaves the default device only if that saves
time, and all of them stay there if together they save none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from weft.ir.device import DeviceName
from weft.ir.node import Node, Value
from weft.ops.boundary.state import CONSTANT, placeholder
from weft.ops.declaration import op_of
from weft.passes.placement.cost import LOCAL, REMOTE, Link, nbytes, node_ns
from weft.passes.step import Step

LinkOf = Callable[[str, str], Link]


def link_between(one: str, other: str) -> Link:
    """The way between two devices, by their names: within a process, or between two."""
    a, b = DeviceName.parse(one), DeviceName.parse(other)
    return LOCAL if a.of_task == b.of_task else REMOTE


@dataclass
class Choice:
    """The device of each node, and why.

    Attributes:
        makespan: when the last node is done, in nanoseconds.
    """

    devices: dict[Node, str] = field(default_factory=dict[Node, str])
    reasons: dict[Node, str] = field(default_factory=dict[Node, str])
    makespan: float = 0.0


def chosen(step: Step, default: str, names: Sequence[str] = ()) -> dict[Node, str]:
    """The device of each node of an optimized step; see `choose`."""
    return choose(step, default, names).devices


def choose(
    step: Step, default: str, names: Sequence[str] = (), link_of: LinkOf = link_between
) -> Choice:
    """The device of each node.

    Args:
        step: its nodes are on the device that they name, free if they name none.
        default: where free nodes are unless it saves time that they are elsewhere.
        names: devices that have processors of their own, which compute at the same time; others
            take turns.
        link_of: the way between two devices.
    """
    stay = _Schedule(step, default, names, link_of, moves=False).run()
    fixed = {node.device for node in step.graph.nodes if node.device}
    if fixed <= {default} and len(names) < 2:
        return stay
    move = _Schedule(step, default, names, link_of, moves=True).run()
    return move if move.makespan < stay.makespan else stay


_EVERYWHERE: Final = (placeholder, CONSTANT)


class _Schedule:
    """One pass over the nodes."""

    def __init__(
        self, step: Step, default: str, names: Sequence[str], link_of: LinkOf, moves: bool
    ) -> None:
        self.step, self.default, self.link_of, self.moves = step, default, link_of, moves
        self.names = tuple(dict.fromkeys((default, *names)))
        self.free: dict[str, float] = dict.fromkeys(names, 0.0)  # when a device's work is done
        self.links: dict[tuple[str, str], Link] = {}
        self.done: dict[Node, float] = {}
        self.found = Choice()

    def run(self) -> Choice:
        """The schedule."""
        for node in self.step.graph.nodes:
            if op_of(node) in _EVERYWHERE:
                self.found.devices[node] = node.device or self.default
                continue
            device = node.device or self._best(node)
            done = self._finish(node, device)
            self.found.devices[node], self.done[node] = device, done
            if device in self.free:
                self.free[device] = done
            self.found.makespan = max(self.found.makespan, done)
        return self.found

    def _best(self, node: Node) -> str:
        """Where a free node is done first; the default device if others are no better."""
        if not self.moves:
            self.found.reasons[node] = "the default device"
            return self.default
        givers = [self.found.devices[v.node] for v in node.inputs if v.node in self.done]
        some = dict.fromkeys((self.default, *(self.names if self.free else ()), *givers))
        times = {device: self._finish(node, device) for device in some}
        best = min(some, key=times.__getitem__)  # the first one of equals
        self.found.reasons[node] = self._reason(node, best, times)
        return best

    def _reason(self, node: Node, best: str, times: Mapping[str, float]) -> str:
        if best == self.default:
            return "the default device"
        there = sum([nbytes(v) for v in node.inputs if self.found.devices.get(v.node) == best])
        saved = (times[self.default] - times[best]) / 1e3
        if there:
            return f"its inputs of {there:,} bytes are there, which saves {saved:.0f} us"
        return f"it is done {saved:.0f} us earlier there"

    def _finish(self, node: Node, device: str) -> float:
        ready = max([self._arrival(v, device) for v in node.inputs], default=0.0)
        return max(ready, self.free.get(device, 0.0)) + node_ns(node)

    def _arrival(self, value: Value, device: str) -> float:
        done = self.done.get(value.node)
        if done is None:
            return 0.0
        giver = self.found.devices[value.node]
        return done if giver == device else done + self._link(giver, device).ns(nbytes(value))

    def _link(self, one: str, other: str) -> Link:
        if (one, other) not in self.links:
            self.links[one, other] = self.link_of(one, other)
        return self.links[one, other]
