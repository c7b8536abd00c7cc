"""Variables that stages of other devices read in place, as their memory is in the same process.

Without this a stage of the variable's device would copy it for the others once a step. It may be
read in place if it changes only after all that read it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import NamedTuple

from weft.ir.graph import Graph
from weft.ir.node import Node
from weft.ops.boundary.state import variable
from weft.ops.declaration import op_of
from weft.passes.partition import Partition, Stage
from weft.passes.prune import prune


class Lent(NamedTuple):
    """A variable that is read in place.

    Attributes:
        node: reads it, for messages.
    """

    device: str
    key: str
    node: Node


def lend(partition: Partition, in_turn: bool) -> tuple[Partition, dict[int, Lent]]:
    """The partition without the copies of variables, and the values that are variables' memory.

    Args:
        in_turn: whether each stage begins when the one before it is done.
    """
    found = _candidates(partition)
    before = _before(partition, found, in_turn)
    for number in list(found):
        if not _is_safe(partition, number, found[number].key, before):
            del found[number]
    # A stage that only gave variables has nothing to do.
    stages = [_without(stage, found) for stage in partition.stages]
    idle = {i for i, s in enumerate(stages) if not (s.outputs or s.step.updates)}
    if not found or not _is_as_ordered(partition, found, idle, in_turn):
        return partition, {}
    kept = [replace(s, after=()) for i, s in enumerate(stages) if i not in idle]
    return replace(partition, stages=tuple(kept)), found


def _candidates(partition: Partition) -> dict[int, Lent]:
    found: dict[int, Lent] = {}
    for stage in partition.stages:
        for number, value in zip(stage.outputs, stage.step.fetches, strict=True):
            node = value.node
            plain = op_of(node) is variable and not node.attrs.get("counter")
            if plain and number not in partition.fetches:
                found[number] = Lent(stage.device, str(node.attrs["key"]), node)
    return found


def _before(partition: Partition, without: Collection[int], in_turn: bool) -> list[set[int]]:
    """For each stage, those that are done before it begins, whatever happens."""
    giver = {v: i for i, s in enumerate(partition.stages) for v in s.outputs if v not in without}
    last: dict[str, int] = {}
    found: list[set[int]] = []
    for number, stage in enumerate(partition.stages):
        direct = [giver[v] for v in stage.inputs if v in giver]
        if stage.device in last:
            direct.append(last[stage.device])
        if in_turn and number:
            direct.append(number - 1)
        found.append({x for d in direct for x in (d, *found[d])})
        last[stage.device] = number
    return found


def _is_as_ordered(
    partition: Partition, without: Collection[int], idle: set[int], in_turn: bool
) -> bool:
    """Whether no stage loses one that came before it."""
    whole, less = (_before(partition, x, in_turn) for x in ((), without))
    return all([a - idle <= b for a, b in zip(whole, less, strict=True)])


def _is_safe(partition: Partition, value: int, key: str, before: list[set[int]]) -> bool:
    """Whether a variable changes only after all that read it in place."""
    readers = {i for i, s in enumerate(partition.stages) if value in s.inputs}
    return all([
        readers <= before[i] for i, s in enumerate(partition.stages) if key in s.step.updates
    ])  # fmt: skip


def _without(stage: Stage, values: Mapping[int, Lent]) -> Stage:
    pairs = list(zip(stage.outputs, stage.step.fetches, strict=True))
    kept = [pair for pair in pairs if pair[0] not in values]
    if len(kept) == len(pairs):
        return stage
    outputs = [value for _, value in kept]
    graph = Graph(stage.step.graph.nodes, (*outputs, *stage.step.new_values.values()))
    step = prune(stage.step.with_graph(graph))
    return replace(stage, step=step, outputs=tuple([number for number, _ in kept]))
