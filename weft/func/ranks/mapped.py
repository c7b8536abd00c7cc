"""`shard_map` and `pmap`: each rank calls a function with its shards of the arguments.

Outside, all ranks have the same values and gradients. Inside, each has its own. A replicated
argument is used by all ranks, so its gradients are summed. A replicated result is the first rank's,
where its gradient starts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from weft.eager.record.pending.lazy import Lazy
from weft.eager.record.pending.state import trace
from weft.eager.tensor.autograd.anomaly import check_gradients
from weft.eager.tensor.autograd.tracing import subgraph_plan
from weft.eager.tensor.dispatch import lazy_of, wrap
from weft.eager.tensor.rank_call import await_result
from weft.errors import ArgumentError, ShapeError, TracerError
from weft.func.function import DATA, Function, Result, take_apart, trace_function
from weft.func.ranks.axis import bound
from weft.func.ranks.collective import called, gathered, own_part
from weft.func.ranks.partition import PartitionSpec, own_block, whole_of
from weft.func.transformed import transformed
from weft.func.tree import prefix
from weft.transport import session
from weft.transport.group import Group

__all__ = ["pmap", "shard_map"]

Groups = Mapping[str, Group]
NOWHERE = PartitionSpec()


def shard_map(
    f: Function | None = None, /, mesh: Any = None, in_specs: Any = None, out_specs: Any = None,
    *, check_vma: bool = True,
) -> Any:  # fmt: skip
    """Call `f` on each rank of a mesh with its shards of the arguments; JAX's `jax.shard_map`.

    All ranks pass the same arguments and get the whole results. Inside, collectives such as `psum`
    exchange values along the mesh's axes. Gradients flow as if one process had computed all shards,
    also to outside tensors that `f` uses.

    Args:
        f: traced at each call, as by `jit`, so it may not read values. Without it, `shard_map` is a
            decorator.
        mesh: a `DeviceMesh` whose dimensions have names.
        in_specs: a `PartitionSpec` for each argument, nested like it, or one for all.
        out_specs: the same for results. A result that is not sharded along an axis must be equal on
            all ranks along it; all get the first one's.
        check_vma: whether to check that such results are equal; if not, each rank keeps its own
            without communication.

    Raises:
        ArgumentError: there is no mesh, or an axis that it does not have.
        ShapeError: a dimension that is not divisible.
        DistributedError: a replicated result differs between ranks.
        TracerError: the function reads values, or changes tensors in place.

    Example:
        >>> import weft as wf, weft.distributed as dist
        >>> from weft.func import PartitionSpec as P, grad, psum, shard_map
        >>> dist.init_process_group()
        >>> mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("x",))
        >>> total = shard_map(lambda x: psum((x * x).sum(), "x"), mesh, P("x"), P())
        >>> total(wf.tensor([1.0, 2.0])).item(), grad(total)(wf.tensor([1.0, 2.0])).tolist()
        (5.0, [2.0, 4.0])
        >>> dist.destroy_process_group()
    """
    if f is None:
        return lambda g: shard_map(g, mesh, in_specs, out_specs, check_vma=check_vma)
    names = getattr(mesh, "mesh_dim_names", None)
    if not names or in_specs is None or out_specs is None:
        raise ArgumentError.here(
            "shard_map: expected a mesh whose dimensions have names, in_specs and out_specs, got "
            f"{mesh}, {in_specs} and {out_specs}"
        )
    groups: Groups = {name: mesh.get_group(name) for name in names}

    @transformed(f, "shard_map")
    def mapped(*args: Any) -> Any:
        def enter(xs: Sequence[Any], given: Sequence[PartitionSpec | None]) -> list[Any]:
            places = [spec or NOWHERE for spec in given]
            parts = [own_block(x, s, groups, "shard_map") for x, s in zip(xs, places, strict=True)]
            return _shared(parts, places, groups)

        def leave(ys: Sequence[Any], given: Sequence[PartitionSpec | None]) -> list[Any]:
            places = [spec or NOWHERE for spec in given]
            same = _agreed(ys, places, groups) if check_vma else _first(ys, places, groups)
            return [whole_of(y, s, groups, "shard_map") for y, s in zip(same, places, strict=True)]

        return _run(f, args, groups, (in_specs, out_specs), enter, leave)

    return mapped


def pmap(
    fun: Function, axis_name: str = "ranks", *, in_axes: Any = 0, out_axes: Any = 0
) -> Function:
    """Call `fun` on each rank with its shard; arguments and results have an additional rank axis.

    All ranks pass the same arguments and get all results. Inside, collectives such as `psum`
    exchange values over `axis_name`. Gradients flow as if one process had computed all shards.

    Args:
        in_axes: the rank axis of each argument, `None` for one that all share; an integer for all,
            or a tuple with an entry for each argument, nested like it.
        out_axes: the rank axis of results; `None` for results that are equal on all ranks.

    Raises:
        ShapeError: an argument whose rank axis has another size than the number of ranks.
        TracerError: the function reads values, or changes tensors in place.

    Example:
        >>> import weft as wf, weft.distributed as dist
        >>> from weft.func import pmap, psum
        >>> dist.init_process_group()
        >>> pmap(lambda x: x / psum(x.sum(), "ranks"))(wf.tensor([[1.0, 3.0]])).tolist()
        [[0.25, 0.75]]
        >>> dist.destroy_process_group()
    """

    @transformed(fun, "pmap")
    def mapped(*args: Any) -> Any:
        group = session.world()
        groups = {axis_name: group}

        def enter(xs: Sequence[Any], axes: Sequence[int | None]) -> list[Any]:
            parts = [x if a is None else _part(x, group, a) for x, a in zip(xs, axes, strict=True)]
            return _shared(parts, _specs(axes, axis_name), groups)

        def leave(ys: Sequence[Any], axes: Sequence[int | None]) -> list[Any]:
            same = _agreed(ys, _specs(axes, axis_name), groups)
            return [
                y if a is None else gathered(y, group, a, False, "join_parts")
                for y, a in zip(same, axes, strict=True)
            ]

        return _run(fun, args, groups, (in_axes, out_axes), enter, leave)

    return mapped


def _specs(axes: Sequence[int | None], name: str) -> list[PartitionSpec]:
    return [NOWHERE if a is None else PartitionSpec(name) for a in axes]


def _part(x: Any, group: Group, axis: int) -> Any:
    shape = tuple(x.shape)
    if not -len(shape) <= axis < len(shape) or shape[axis] != group.size:
        raise ShapeError.here(
            f"pmap: expected tensors whose dimension {axis} is {group.size}, the number of ranks, "
            f"got {shape}"
        )
    return own_part(x, group, axis, False, "pmap", "own_part")


Enter = Callable[[Sequence[Any], Sequence[Any]], list[Any]]


def _run(
    fun: Function, args: tuple[Any, ...], groups: Groups, places: tuple[Any, Any],
    enter: Enter, leave: Enter,
) -> Any:  # fmt: skip
    """Call a function on shards of its arguments, with named axes of ranks.

    Args:
        places: how arguments and results are sharded, nested like these.
        enter, leave: convert whole values to shards, and back.
    """
    apart = take_apart((args, {}))
    wanted = places[0] if isinstance(places[0], tuple) else (places[0],) * len(args)
    if len(wanted) != len(args):
        raise ArgumentError.here(
            f"{len(args)} arguments: expected as many entries, got {len(wanted)}"
        )
    entries = _flat((wanted, {}), apart.tree, apart.static)
    wholes = [
        wrap(x) if like is None else like for x, like in zip(apart.lazies, apart.likes, strict=True)
    ]
    parts = tuple([lazy_of(x) for x in enter(wholes, entries)])
    with bound(groups):
        traced = trace_function(fun, apart._replace(lazies=parts))
    result: Result = traced.result
    if result.written or traced.changed:
        raise TracerError.here(
            "expected a function over ranks that changes no tensor in place; return the new value "
            "instead"
        )
    captured = _captured(traced.captured, groups)
    found = trace.now.record(subgraph_plan(traced.function), (*parts, *captured))
    if found:
        await_result(found[0])
    check_gradients(found, only=False)
    ys = result.tensors(found)
    return result.with_tensors(leave(ys, _flat(places[1], result.tree, result.static)))


def _flat(places: Any, tree: Any, static: Sequence[Any]) -> list[Any]:
    """The place of each tensor in a structure."""
    found = prefix(places, tree, (int, PartitionSpec))
    return [p for p, s in zip(found, static, strict=True) if s is DATA]


def _captured(values: Sequence[Lazy], groups: Groups) -> list[Lazy]:
    """Outside values of the function: all ranks use them, so gradients are summed."""
    shared = [x for x in values if x.type.dtype.is_inexact]
    found = _shared([wrap(x) for x in shared], [NOWHERE] * len(shared), groups)
    pairs = {id(x): lazy_of(y) for x, y in zip(shared, found, strict=True)}
    return [pairs.get(id(x), x) for x in values]


def _shared(xs: Sequence[Any], places: Sequence[PartitionSpec], groups: Groups) -> list[Any]:
    return _along("shared_by_members", xs, places, groups)


def _agreed(ys: Sequence[Any], places: Sequence[PartitionSpec], groups: Groups) -> list[Any]:
    return _along("from_first", ys, places, groups, check=True)


def _first(ys: Sequence[Any], places: Sequence[PartitionSpec], groups: Groups) -> list[Any]:
    return _along("first_of_members", ys, places, groups)


def _along(
    op: str, xs: Sequence[Any], places: Sequence[PartitionSpec], groups: Groups, **attrs: Any
) -> list[Any]:
    """Call an operation for each axis, on all tensors that are not sharded along it."""
    found = list(xs)
    for name, group in groups.items():
        chosen = [i for i, spec in enumerate(places) if name not in spec.names]
        if chosen and group.size > 1:
            ys = called(op, [found[i] for i in chosen], group, **attrs)
            for i, y in zip(chosen, ys, strict=True):
                found[i] = y
    return found
