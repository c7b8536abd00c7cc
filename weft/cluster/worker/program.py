"""The programs of a task's stages, as a master registers them."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, MutableMapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np

from weft.cluster.route import Post, Route, task_of
from weft.cluster.rpc import Message
from weft.cluster.wire import partition_head, partition_of
from weft.ir.node import TensorType
from weft.passes.partition import Partition
from weft.runtime.device.cpu import CpuDevice
from weft.runtime.staged import StagedProgram

Array = np.ndarray[Any, Any]
LARGE: Final = 1 << 16
"""Constants of so many bytes are sent to a task once a session, whatever programs have them."""
Constant = tuple[str, bool]
"""The digest of a large constant, empty for a small one; whether the message has its value."""


@dataclass(frozen=True)
class Program:
    """The compiled stages of a task.

    Attributes:
        route: what they receive and send.
        types: of the values of the partition.
        stages: run at `run`.
        early: their positions in the partition.
        later: run at `finish`, if there is one.
        outside: values that are sent to other tasks.
        givers: the tasks that give the values that come from others.
    """

    route: Route
    types: Sequence[TensorType]
    stages: StagedProgram
    early: tuple[int, ...]
    later: StagedProgram | None
    outside: frozenset[int]
    givers: Mapping[int, str]


def registration(
    partition: Partition, route: Route, own: set[str], sent: Collection[str]
) -> tuple[dict[str, Any], list[Array]]:
    """The head and the arrays of the message that registers a task's stages.

    Args:
        partition: of the step.
        route: of the task.
        own: full names of its devices.
        sent: digests of the constants that it has.
    """
    aside: list[Array] = []
    head: dict[str, Any] = {
        "partition": partition_head(partition, own, aside),
        "route": asdict(route),
    }
    head["constants"], arrays = packed(aside, sent)
    return head, arrays


def program_of(
    message: Message, constants: MutableMapping[str, Array], devices: Mapping[str, CpuDevice]
) -> Program:
    """The program that a message registers.

    Args:
        message: what `registration` made.
        constants: those that were sent before, by digest; new ones are added.
        devices: of this task, by full name.
    """
    head = message.head
    aside = unpacked(head["constants"], message.arrays, constants)
    partition, route = partition_of(head["partition"], aside), _route_of(head["route"])
    own = [i for i, stage in enumerate(partition.stages) if stage.device in devices]
    first = [i for i in own if i not in route.later]
    later = _staged(partition, route.later, devices) if route.later else None
    posted = [v for post in route.posts for v in post.values]
    outside = frozenset((*route.first, *route.last, *posted))
    stages = _staged(partition, first, devices)
    givers = {v: task_of(s.device) for s in partition.stages for v in s.outputs}
    read = {v for i in own for v in partition.stages[i].inputs}
    given = {v: task for v, task in givers.items() if v in read and task != route.task}
    return Program(route, partition.types, stages, tuple(first), later, outside, given)


def _staged(
    partition: Partition, stages: Sequence[int], devices: Mapping[str, CpuDevice]
) -> StagedProgram:
    """The program of some stages."""
    some = replace(partition, stages=tuple([partition.stages[i] for i in stages]))
    return StagedProgram(some, devices)


def packed(aside: Sequence[Array], sent: Collection[str]) -> tuple[list[Constant], list[Array]]:
    """What tells of each array how it travels, and those that are in the message.

    Args:
        aside: the constants of a part of a graph.
        sent: digests of those that the receiver has.
    """
    told: list[Constant] = []
    arrays: list[Array] = []
    there = set(sent)
    for array in aside:
        large = array.nbytes >= LARGE and not array.dtype.hasobject
        digest = _digest(array) if large else ""
        inside = digest not in there
        told.append((digest, inside))
        if inside:
            arrays.append(array)
        if digest:
            there.add(digest)
    return told, arrays


def digests_of(told: Sequence[Constant]) -> set[str]:
    """Digests of the large constants of a message, which its receiver has once it has answered."""
    return {digest for digest, _ in told if digest}


def unpacked(
    told: Sequence[Constant], arrays: Sequence[Array], constants: MutableMapping[str, Array]
) -> list[Array]:
    """The arrays that `packed` was given."""
    rest = iter(arrays)
    found: list[Array] = []
    for digest, inside in told:
        array = next(rest) if inside else constants[digest]
        if digest:
            constants[digest] = array
        found.append(array)
    return found


def _digest(array: Array) -> str:
    text = hashlib.blake2b(f"{array.dtype} {array.shape}".encode(), digest_size=20)
    text.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return text.hexdigest()


def _route_of(head: Mapping[str, Any]) -> Route:
    posts = tuple([Post(p["stage"], p["to"], tuple(p["values"]), p["kind"]) for p in head["posts"]])
    values = {name: tuple(head[name]) for name in ("feeds", "first", "last", "later")}
    return Route(head["task"], posts=posts, prompt=head["prompt"], **values)
