"""Placement of a user's graph: the device of each node that may not be elsewhere.

Nodes that ask for nothing are left to the cost model (`weft.passes.placement.choose`), once shapes
are known.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from weft.errors import ArgumentError
from weft.ir.device import DeviceName
from weft.ir.graph import Graph
from weft.ir.node import Node
from weft.ops.boundary.state import counter, variable
from weft.ops.declaration import op_of
from weft.ops.resource.call import resource_call
from weft.passes.placement.constraint import Group, groups_of


@dataclass(frozen=True)
class Placed:
    """The device of each node that may not be elsewhere, and why.

    Attributes:
        devices: full names: of nodes that ask for a device, or are with one that does, and of all
            that keeps a state.
        reasons: in words.
        wishes: full names of devices that do not exist, of nodes that got others instead.
    """

    devices: dict[Node, str]
    reasons: dict[Node, str]
    wishes: dict[Node, str] = field(default_factory=dict[Node, str])

    @property
    def apart(self) -> dict[Node, str]:
        """For one device: what those nodes asked for, which share no kernels with others.

        So results are bitwise those of a process that has these devices.
        """
        return {node: self.wishes.get(node, "") for node in self.devices}

    @property
    def homes(self) -> dict[str, str]:
        """The device of each variable and counter, by key."""
        return {
            str(n.attrs["key"]): d
            for n, d in self.devices.items()
            if op_of(n) in (variable, counter)
        }


def place(
    graph: Graph, devices: Sequence[DeviceName], soft: bool = False,
    default: DeviceName | None = None, needed: Collection[Node] | None = None,
    own: Collection[str] = (),
) -> Placed:  # fmt: skip
    """Places what asks for a device.

    Args:
        devices: those that exist, with full names.
        soft: whether another device of the same process will do where one does not exist.
        default: of the session's own task; the first device by default.
        needed: only these must be on devices that exist; all by default.
        own: keys of variables that each session has for itself.

    What sessions share (variables, queues, tables) and names no job is on the first device, in the
    order of names, that will do, as in TensorFlow 1.15: so sessions of all tasks mean the same one.
    Everything else is as near to the default as may be.

    Raises:
        ArgumentError: a device does not exist, or what is to be on one device asks for several.
    """
    first = devices[0] if default is None else default
    near = sorted(devices, key=lambda d: (d != first, d.of_task != first.of_task))
    by_name = sorted(devices, key=str)
    found = Placed({}, {})
    for group in groups_of(graph, soft):
        kept = [node for node in group.nodes if _keeps(node)]
        if not group.asking and not kept:
            continue
        shared = any([_is_shared(node, own) for node in kept]) and group.device.job is None
        device = _chosen(group, by_name if shared else near, soft)
        if device is None:
            if needed is None or not set(needed).isdisjoint(group.nodes):
                raise _missing(group, devices)
            continue
        for node in group.nodes:
            found.devices[node] = str(device)
            found.reasons[node] = _reason(node, group, shared)
            if not device.agrees(group.device):
                found.wishes[node] = str(first.merged(group.device))
    return found


def _keeps(node: Node) -> bool:
    return op_of(node) in (variable, counter, resource_call)


def _is_shared(node: Node, own: Collection[str]) -> bool:
    """Whether what a node keeps is not of one session alone."""
    return op_of(node) is not counter and node.attrs.get("key") not in own


def _chosen(group: Group, devices: Sequence[DeviceName], soft: bool) -> DeviceName | None:
    """The first device that a group may have."""
    wishes = (group.device, group.device.of_task) if soft else (group.device,)
    return next((d for wish in wishes for d in devices if d.agrees(wish)), None)


def _missing(group: Group, devices: Sequence[DeviceName]) -> ArgumentError:
    asking = next((a for a in group.asking if a.device == group.device), group.asking[0])
    together = "" if asking.device == group.device else f" ({group.device} with what is with it)"
    names = ", ".join(map(str, devices))
    near = any([d.agrees(group.device.of_task) for d in devices])
    advice = "; allow_soft_placement=True takes another of the same process" if near else ""
    return ArgumentError(
        f"device: {asking}{together}, which does not exist; expected one of {names}{advice}"
    )


def _reason(node: Node, group: Group, shared: bool) -> str:
    for asking in group.asking:
        if asking.node is node:
            return f"asked for {asking.device}"
    for link in group.links:
        if link.node is node:
            return f"{link.why} {link.other.name}"
    for link in group.links:
        if link.other is node:
            return f"{link.node.name} {link.why} it"
    if group.asking:
        return f"asked for by {group.asking[0].node.name} within it"
    return "the first by name, as sessions share it" if shared else "the default device"
