"""Placements on meshes with several dimensions: redistribution, one dimension at a time.

If several dimensions of a mesh shard the same dimension of a tensor, the first shards it, and each
of the others shards the shards.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from weft.distributed.device_mesh import DeviceMesh
from weft.distributed.tensor.placement import Partial, Placement, Replicate, Shard
from weft.distributed.tensor.redistribute import redistribute
from weft.errors import ArgumentError
from weft.ops.communication.shard import rows_of

Placements = tuple[Placement, ...]
Sizes = tuple[int, ...]


def normalized(
    placements: Iterable[Placement] | None, mesh: DeviceMesh, ndim: int, name: str
) -> Placements:
    """One placement for each dimension of the mesh, with no negative dimensions.

    Raises:
        ArgumentError: another number of placements, or a dimension that the tensor lacks.
    """
    chosen = (Replicate(),) * mesh.ndim if placements is None else tuple(placements)
    if len(chosen) != mesh.ndim:
        raise ArgumentError.here(
            f"{name}: expected a placement for each of the {mesh.ndim} dimensions of the mesh, got "
            f"{chosen}"
        )
    for p in chosen:
        if isinstance(p, Shard) and not -ndim <= p.dim < ndim:
            raise ArgumentError.here(
                f"{name}: expected a dimension of a tensor that has {ndim}, got {p}"
            )
    return tuple([Shard(p.dim % ndim) if isinstance(p, Shard) else p for p in chosen])


def whole_shape(local: Sequence[int], placements: Placements, mesh: DeviceMesh) -> Sizes:
    """The shape of the whole tensor, given that of its equal shards."""
    sizes = list(local)
    for p, count in zip(placements, mesh.shape, strict=True):
        if isinstance(p, Shard):
            sizes[p.dim] *= count
    return tuple(sizes)


def own_place(shape: Sizes, placements: Placements, mesh: DeviceMesh) -> tuple[slice, ...]:
    """The region of this rank's shard in the whole tensor; the last ranks' may be empty."""
    begins, sizes = [0] * len(shape), list(shape)
    for i, (p, count) in enumerate(zip(placements, mesh.shape, strict=False)):  # of the first ones
        if isinstance(p, Shard):
            begin, end = rows_of(sizes[p.dim], count, mesh.get_local_rank(i))
            begins[p.dim], sizes[p.dim] = begins[p.dim] + begin, end - begin
    return tuple([slice(a, a + n) for a, n in zip(begins, sizes, strict=True)])


def own_sizes(shape: Sizes, placements: Placements, mesh: DeviceMesh) -> Sizes:
    """The shape of this rank's shard of a whole tensor."""
    return tuple([s.stop - s.start for s in own_place(shape, placements, mesh)])


def moved(
    x: Any, shape: Sizes, source: Placements, target: Placements, mesh: DeviceMesh
) -> Any:  # fmt: skip
    """Redistribute a local tensor, by recorded collectives.

    Args:
        shape: of the whole tensor.

    Raises:
        ArgumentError: to partial sums from another placement.
    """
    groups, now = mesh.get_all_groups() if source != target else [], list(source)
    again = _to_unwind(source, target)
    for i in sorted(again, reverse=True):
        p = now[i]
        if isinstance(p, Shard):
            size = own_sizes(shape, source[:i], mesh)[p.dim]
            x, now[i] = redistribute(x, p, Replicate(), groups[i], size), Replicate()
    for i in sorted(again):
        p = target[i]
        if now[i] != p:
            size = x.shape[p.dim] if isinstance(p, Shard) else None
            x = redistribute(x, now[i], p, groups[i], size)
    return x


def _to_unwind(source: Placements, target: Placements) -> set[int]:
    """Dimensions of the mesh that change, or that shard after an earlier one that changes."""
    changed = {i for i, (a, b) in enumerate(zip(source, target, strict=True)) if a != b}
    for i in range(len(source)):
        before = {j for j in changed if j < i}
        cut = {p.dim for j in before for p in (source[j], target[j]) if isinstance(p, Shard)}
        own = [p.dim for p in (source[i], target[i]) if isinstance(p, Shard)]
        if not cut.isdisjoint(own):
            changed.add(i)
    return changed


def own_part(whole: np.ndarray[Any, Any], placements: Placements, mesh: DeviceMesh) -> Any:
    """A copy of this rank's shard of an array.

    Raises:
        ArgumentError: partial sums.
    """
    if any([isinstance(p, Partial) for p in placements]):
        raise ArgumentError.here(
            f"distribute_tensor: expected Shard and Replicate, got {placements}; from_local() "
            f"makes a tensor of summands"
        )
    return np.array(whole[own_place(whole.shape, placements, mesh)])
