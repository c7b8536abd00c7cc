"""Collectives along an axis under JAX's names, on all tensors of a structure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from weft.eager.functions.shape.reshape import flatten as flatten_axes
from weft.eager.tensor.dispatch import lazy_of, record, recorded, wrap
from weft.eager.tensor.rank_call import await_result
from weft.errors import ArgumentError, ShapeError
from weft.func.ranks.axis import Axis, AxisName, Examples, group_of, groups_of
from weft.func.tree import flatten, map_structure
from weft.ops.communication.example import BETWEEN_EXAMPLES
from weft.ops.declaration import REGISTRY

__all__ = ["all_gather", "all_to_all", "pmax", "pmean", "pmin", "ppermute", "psum", "psum_scatter"]


_EXAMPLES: Final = {op: recorded(formula) for op, formula in BETWEEN_EXAMPLES.items()}


def called(op: str, xs: Sequence[Any], group: Axis, **attrs: Any) -> list[Any]:
    """Record a collective operation on tensors, which every rank must run."""
    if isinstance(group, Examples):
        return [_EXAMPLES[op].on(x, x, group.index, size=group.size, **attrs) for x in xs]
    given = [lazy_of(x) for x in xs]
    found = record(REGISTRY[op], given, {"group": group.number, **attrs})
    await_result(found[0])
    return list(map(wrap, found))


def _one(op: str, x: Any, group: Axis, **attrs: Any) -> Any:
    return called(op, [x], group, **attrs)[0]


def psum(x: Any, axis_name: AxisName = None) -> Any:
    """The sum over ranks, on all of them; all tensors of a structure are sent together.

    Example:
        >>> import weft as wf, weft.distributed as dist
        >>> from weft.func import psum
        >>> dist.init_process_group()
        >>> psum({"loss": wf.tensor(2.0)})["loss"].item()
        2.0
        >>> dist.destroy_process_group()
    """
    return _reduced(x, axis_name, "sum", "psum")


def pmean(x: Any, axis_name: AxisName = None) -> Any:
    """The mean over ranks, on all of them."""
    return _reduced(x, axis_name, "mean", "pmean")


def pmax(x: Any, axis_name: AxisName = None) -> Any:
    """The largest over ranks, on all of them."""
    return _reduced(x, axis_name, "max", "pmax")


def pmin(x: Any, axis_name: AxisName = None) -> Any:
    """The smallest over ranks, on all of them."""
    return _reduced(x, axis_name, "min", "pmin")


def _reduced(x: Any, axis_name: AxisName, reduction: str, name: str) -> Any:
    leaves, tree = flatten(x)
    for group in groups_of(axis_name, name):
        leaves = called("all_reduce", leaves, group, reduction=reduction) if leaves else leaves
    return tree.build(leaves)


def all_gather(x: Any, axis_name: AxisName = None, *, axis: int = 0, tiled: bool = False) -> Any:
    """All-gather: all ranks' tensors, on all of them.

    Args:
        axis: the axis of ranks in the result.
        tiled: join the tensors along `axis` instead.
    """
    groups = groups_of(axis_name, "all_gather")

    def gather(y: Any) -> Any:
        at = axis % (y.ndim + (not tiled))
        for group in reversed(groups):
            y = gathered(y, group, at, tiled)
        return y if tiled or len(groups) == 1 else flatten_axes(y, at, at + len(groups) - 1)

    return map_structure(gather, x)


def gathered(y: Any, group: Axis, axis: int, tiled: bool, op: str = "all_gather") -> Any:
    """The shards of all members, along a new axis or joined along an existing one."""
    found = _one(op, y, group)
    axis %= found.ndim - tiled
    found = found.movedim(0, axis) if axis else found
    return flatten_axes(found, axis, axis + 1) if tiled else found


def psum_scatter(
    x: Any, axis_name: AxisName = None, *, scatter_dimension: int = 0, tiled: bool = False
) -> Any:
    """Reduce-scatter: this rank's shard of the sum over ranks.

    Args:
        scatter_dimension: the dimension with an entry for each rank; it is removed.
        tiled: it has one or more entries for each rank, and the result keeps this rank's.

    Raises:
        ShapeError: the dimension cannot be divided evenly.
    """
    groups = groups_of(axis_name, "psum_scatter")

    def scatter(y: Any) -> Any:
        if len(groups) > 1 and not tiled:
            y = y.unflatten(scatter_dimension, [g.size for g in groups])
        for group in groups:
            y = own_part(y, group, scatter_dimension, tiled, "psum_scatter", "reduce_scatter")
        return y

    return map_structure(scatter, x)


def own_part(y: Any, group: Axis, axis: int, tiled: bool, what: str, op: str) -> Any:
    """This member's shard of a dimension."""
    axis = _axis(y, axis, what)
    count, rows = group.size, int(y.shape[axis])
    if rows % count or not (tiled or rows == count):
        raise ShapeError.here(
            f"{what}: expected a dimension of {'a multiple of ' * tiled}{count}, the number of "
            f"ranks, got {rows} in {tuple(y.shape)}"
        )
    if tiled:
        y = y.unflatten(axis, (count, rows // count))
    return _one(op, y.movedim(axis, 0) if axis else y, group)


def _axis(y: Any, axis: int, what: str) -> int:
    if not -y.ndim <= axis < y.ndim:
        raise ShapeError.here(f"{what}: expected a dimension of {tuple(y.shape)}, got {axis}")
    return axis % y.ndim


def ppermute(x: Any, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> Any:
    """Send values by pairs (from, to); a rank that receives nothing gets zeros.

    Raises:
        ArgumentError: a rank sends or receives twice, or does not exist.
    """
    group = group_of(axis_name, "ppermute")
    pairs = tuple([(int(a), int(b)) for a, b in perm])
    for side in zip(*pairs, strict=True):
        if len(set(side)) != len(side) or not all(0 <= r < group.size for r in side):
            raise ArgumentError.here(
                f"ppermute: expected pairs of different ranks from 0 to {group.size - 1}, got "
                f"{list(pairs)}"
            )
    return map_structure(lambda y: _one("permute_parts", y, group, pairs=pairs), x)


def all_to_all(
    x: Any, axis_name: AxisName, split_axis: int, concat_axis: int, *, tiled: bool = False
) -> Any:
    """All-to-all: each rank gets its shard of all ranks' tensors.

    Args:
        split_axis: the dimension with an entry for each rank; it is removed.
        concat_axis: the dimension of the sending ranks in the result.
        tiled: `split_axis` has one or more entries for each rank, of which the result keeps this
            rank's; shards are concatenated along the existing `concat_axis`.

    Raises:
        ShapeError: the dimension cannot be divided evenly.
    """
    group = group_of(axis_name, "all_to_all")
    return map_structure(_exchanger(group, split_axis, concat_axis, tiled), x)


def _exchanger(group: Axis, split_axis: int, concat_axis: int, tiled: bool) -> Callable[[Any], Any]:
    def exchange(y: Any) -> Any:
        axis, at = _axis(y, split_axis, "all_to_all"), _axis(y, concat_axis, "all_to_all")
        rows = int(y.shape[axis])
        if rows % group.size or not (tiled or rows == group.size):
            raise ShapeError.here(
                f"all_to_all: expected a dimension of {'a multiple of ' * tiled}{group.size}, the "
                f"number of ranks, got {rows} in {tuple(y.shape)}"
            )
        if tiled:
            y = y.unflatten(axis, (group.size, rows // group.size))
        found = _one("all_to_all", y.movedim(axis, 0), group).movedim(0, at)
        return flatten_axes(found, at, at + 1) if tiled else found

    return exchange
