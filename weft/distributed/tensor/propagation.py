"""Sharding propagation: how operations redistribute their operands and place their results.

The dimensions of operands and result have labels, as in `einsum`: equal labels mean equal indices.
Along each dimension of the mesh, at most one label is sharded, in all operands that have it. If the
result does not have it, ranks get partial sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from weft.distributed.device_mesh import DeviceMesh
from weft.distributed.tensor.layout import Placements, Sizes, moved
from weft.distributed.tensor.placement import Partial, Placement, Replicate, Shard
from weft.distributed.tensor.redistribute import for_divided_work
from weft.errors import ArgumentError

Labels = tuple[int | None, ...]


@dataclass(frozen=True)
class Rule:
    """The sharding rule of an operation.

    Attributes:
        name: for error messages.
        operands: labels of each operand's dimensions; `None` for one that is broadcast.
        result: labels of its dimensions; `None` for one that no operand has.
        whole: labels of dimensions that cannot be sharded, such as that of a softmax.
        additive: whether it is linear in all operands together, like a sum or a transposition.
        products: the operands in each of which it is linear, like the factors of a product.
    """

    name: str
    operands: tuple[Labels, ...]
    result: Labels
    whole: frozenset[int] = frozenset()
    additive: bool = False
    products: tuple[int, ...] = ()


@dataclass(frozen=True)
class Operand:
    """A rank's local tensor, its placements, and the shape of the whole tensor."""

    local: Any
    placements: Placements
    shape: Sizes


def applied(
    rule: Rule, function: Callable[..., Any], operands: Sequence[Operand], mesh: DeviceMesh
) -> Operand:
    """Call a function on local tensors, after redistributing them as the rule requires.

    Raises:
        ArgumentError: a dimension is sharded that cannot be.
    """
    wanted: list[list[Placement]] = [[] for _ in operands]
    result: list[Placement] = []
    for i in range(mesh.ndim):
        places, placed = _along(rule, [x.placements[i] for x in operands])
        for row, place in zip(wanted, places, strict=True):
            row.append(place)
        result.append(placed)
    locals_ = [
        _prepared(x, tuple(row), result, mesh) for x, row in zip(operands, wanted, strict=True)
    ]
    return Operand(function(*locals_), tuple(result), _shape_of_result(rule, operands))


def _shape_of_result(rule: Rule, operands: Sequence[Operand]) -> Sizes:
    sizes = {
        label: n
        for labels, x in zip(rule.operands, operands, strict=True)
        for label, n in zip(labels, x.shape, strict=True)
    }
    return tuple([1 if label is None else sizes[label] for label in rule.result])


def _along(rule: Rule, places: Sequence[Placement]) -> tuple[list[Placement], Placement]:
    """Placements of operands and of the result along a dimension of the mesh."""
    places = [_unless_stretched(*pair) for pair in zip(rule.operands, places, strict=True)]
    for labels, place in zip(rule.operands, places, strict=True):
        if isinstance(place, Shard):
            label = labels[place.dim]
            _check(rule, label, place)
            return [_cut(x, label) for x in rule.operands], _of_result(rule, label)
    partial = [i for i, place in enumerate(places) if isinstance(place, Partial)]
    if rule.additive and len(partial) == len(places) > 0:
        return list(places), Partial()
    if len(partial) == 1 and partial[0] in rule.products:
        return list(places), Partial()
    return [Replicate() for _ in places], Replicate()


def _unless_stretched(labels: Labels, place: Placement) -> Placement:
    """The placement; a shard of a dimension that is broadcast becomes a replica."""
    stretched = isinstance(place, Shard) and labels[place.dim] is None
    return Replicate() if stretched else place


def _check(rule: Rule, label: int | None, place: Shard) -> None:
    if label in rule.whole:
        raise ArgumentError.here(
            f"{rule.name}: expected dimension {place.dim} whole on each rank, got {place}; call "
            f"redistribute() with Replicate() or Shard() of another one, or full_tensor()"
        )


def _cut(labels: Labels, label: int | None) -> Placement:
    return Shard(labels.index(label)) if label in labels else Replicate()


def _of_result(rule: Rule, label: int | None) -> Placement:
    return Shard(rule.result.index(label)) if label in rule.result else Partial()


def _prepared(x: Operand, wanted: Placements, result: Sequence[Placement], mesh: DeviceMesh) -> Any:
    """A local tensor as an operation needs it; its gradient is replicated or sharded."""
    local = moved(x.local, x.shape, x.placements, wanted, mesh)
    for i, (place, placed) in enumerate(zip(wanted, result, strict=True)):
        if isinstance(place, Replicate) and not isinstance(placed, Replicate):
            local = for_divided_work(local, place, mesh.get_all_groups()[i])
    return local
