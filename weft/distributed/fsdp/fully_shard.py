"""`fully_shard`: parameters, their gradients and optimizer state sharded over ranks."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from weft.collectives.agreement import check_same
from weft.collectives.process_group import member
from weft.distributed.device_mesh import DeviceMesh
from weft.distributed.fsdp.module import FSDPModule
from weft.distributed.fsdp.policy import MixedPrecisionPolicy, OffloadPolicy
from weft.distributed.fsdp.unit import Unit
from weft.distributed.tensor.placement import Replicate, Shard
from weft.errors import ArgumentError, DistributedError
from weft.nn.module.module import Module
from weft.nn.parallel.alike import make_alike
from weft.nn.parallel.state import register_state_hooks
from weft.nn.parameter import Parameter, is_lazy
from weft.transport import session
from weft.transport.group import Group

M = TypeVar("M", bound=Module | Sequence[Module])


def fully_shard(
    module: M, *, mesh: DeviceMesh | None = None, reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Callable[[Any], Shard | None] | None = None,
    mp_policy: MixedPrecisionPolicy | None = None, offload_policy: OffloadPolicy | None = None,
    ignored_params: Iterable[Any] | None = None,
) -> M:  # fmt: skip
    """Shard a module's parameters over ranks; calls gather them and reduce-scatter gradients.

    Each rank keeps its shard of every parameter, of its gradient and of the optimizer's state
    (ZeRO, stage 3). Call it for modules that compute one after another, such as blocks, then for
    the model itself, which shards the remaining parameters. Parameters stay the same objects, with
    fewer rows: ordinary tensors for optimizers. All ranks start with the first rank's values.
    Gradients are means over ranks, bitwise those of `DistributedDataParallel`.

    Args:
        module: also becomes an instance of `FSDPModule`. Several modules in a list or tuple are one
            unit, whose parameters are gathered together: layers that compute one after another, or
            that share a parameter.
        mesh: with one dimension; with two, parameters are sharded along the second and replicated
            along the first. By default all ranks.
        reshard_after_forward: whether whole parameters are freed after the forward pass and
            gathered again in the backward pass; if not, they are kept (ZeRO, stage 2). By default
            all units but the outermost do. With an integer n, they are resharded over groups of n
            consecutive ranks, for example those of a host, and gathered within the group.
        shard_placement_fn: returns the dimension along which a parameter is sharded, as `Shard(1)`,
            or `None` for rows; the same on all ranks.
        mp_policy: the element types of computation and communication.
        offload_policy: accepted without effect: shards are in the host's memory.
        ignored_params: parameters that stay whole and whose gradients are not reduced.

    Raises:
        DistributedError: a module that is already sharded, a parameter of another unit, or ranks
            with models of different shapes or placements.
        ArgumentError: a mesh with more dimensions, parameters without dimensions or without a
            shape, an n that does not divide the number of ranks, or an impossible placement.

    Source: Rajbhandari et al., "ZeRO" (2020).

    Example:
        >>> import weft as wf, weft.distributed as dist
        >>> from weft.distributed.fsdp import fully_shard
        >>> dist.init_process_group()
        >>> net = wf.nn.Sequential(wf.nn.Linear(3, 4), wf.nn.Linear(4, 1))
        >>> for layer in net:
        ...     _ = fully_shard(layer)
        >>> optimizer = wf.optim.Adam(fully_shard(net).parameters())
        >>> net(wf.ones(2, 3)).sum().backward()
        >>> optimizer.step()
        >>> dist.destroy_process_group()
    """
    modules: Any = module if isinstance(module, list | tuple) else [module]
    for each in modules:
        _check(each)
    group, replicas = _groups(mesh)
    paths, buffers = _tensors(modules, {id(p) for p in ignored_params or ()})
    for ranks in filter(None, (group, replicas)):
        make_alike("fully_shard", {**paths, **buffers}, ranks)
    dims = {} if shard_placement_fn is None else _dims(paths, shard_placement_fn, group)
    policy = mp_policy or MixedPrecisionPolicy()
    again, within = reshard_after_forward, None
    if again is not None and not isinstance(again, bool):
        again, within = True, neighbors(group, again)
    unit = Unit(paths, dims, group, replicas, again, within, policy)
    for p in paths.values():  # as a DTensor has
        p.placements = (*[Replicate()] * (replicas is not None), Shard(dims.get(id(p), 0)))  # type: ignore[attr-defined]
    for i, each in enumerate(modules):
        _join(each, unit, f"{i}." if len(modules) > 1 else "")
    return module


def _tensors(
    modules: Sequence[Module], ignored: set[int]
) -> tuple[dict[str, Parameter], dict[str, Any]]:
    """The parameters and buffers of a unit of these modules, by path."""
    paths: dict[str, Parameter] = {}
    buffers: dict[str, Any] = {}
    for i, each in enumerate(modules):
        place = f"{i}." if len(modules) > 1 else ""
        below = tuple([f"{p}." for p, m in each.named_modules() if isinstance(m, FSDPModule)])
        own = _paths(each, below, ignored)
        paths.update({place + path: p for path, p in own.items()})
        named = each.named_buffers()
        buffers.update({place + path: x for path, x in named if not path.startswith(below)})
    return paths, buffers


def _check(module: Module) -> None:
    """Raise for what is not a module or is already sharded."""
    if not isinstance(module, Module):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError.here(f"fully_shard: expected a module, got {type(module).__name__}")
    if isinstance(module, FSDPModule):
        raise DistributedError.here(f"fully_shard: this {type(module).__name__} is sharded already")


def _join(module: Module, unit: Unit, place: str) -> None:
    """Add a module to a unit, in which its parameters' paths start with `place`."""
    unit.modules.append(module)
    module._sharded_unit, module._sharded_place = unit, place  # type: ignore[attr-defined]
    module.__class__ = _sharded_class(type(module))
    own = [path[len(place) :] for path in unit.paths if path.startswith(place)]
    for holder in {path.rpartition(".")[0] for path in own}:
        register_state_hooks(module.get_submodule(holder))


def _groups(mesh: DeviceMesh | None) -> tuple[Group, Group | None]:
    """The ranks over which parameters are sharded, and the ranks with the same shards."""
    if mesh is None:
        return member(None, "fully_shard"), None
    if mesh.ndim > 2:
        raise ArgumentError.here(
            f"fully_shard: expected a mesh of one or two dimensions, got {mesh.ndim}; take a part "
            f'of it, as mesh["dp"]'
        )
    *replicas, group = mesh.get_all_groups()
    return group, replicas[0] if replicas else None


def _paths(module: Module, below: tuple[str, ...], ignored: set[int]) -> Mapping[str, Parameter]:
    """The parameters at the paths `below` that are in no unit yet, by path."""
    taken: dict[int, str] = {}
    paths: dict[str, Parameter] = {}
    for path, p in module.named_parameters(remove_duplicate=False):
        if id(p) in ignored:
            continue
        if is_lazy(p):
            raise ArgumentError.here(
                f"fully_shard: {path!r} has no shape yet; call the module with an input first"
            )
        if not p.ndim:
            raise ArgumentError.here(
                f"fully_shard: {path!r} is a scalar, which has no rows; make it a vector of one "
                f"element"
            )
        if path.startswith(below):
            taken[id(p)] = path
        else:
            paths[path] = p
    for path, p in paths.items():
        if id(p) in taken:
            raise DistributedError.here(
                f"fully_shard: {path!r} is the parameter {taken[id(p)]!r}, which another unit has; "
                f"both have to be in one"
            )
    return paths


def _dims(
    paths: Mapping[str, Parameter], placement_of: Callable[[Any], Shard | None], group: Group
) -> dict[int, int]:
    """The dimension along which each parameter is sharded, by identity."""
    dims: dict[int, int] = {}
    for path, p in paths.items():
        if id(p) not in dims:
            dims[id(p)] = _dim(path, p, placement_of(p))
    lines = [f"{path} Shard({dims[id(p)]})" for path, p in paths.items()]
    check_same("fully_shard", group, "placements", lines)
    return dims


def _dim(path: str, p: Parameter, placement: object) -> int:
    if placement is None:
        return 0
    if not isinstance(placement, Shard) or not -p.ndim <= placement.dim < p.ndim:
        raise ArgumentError.here(
            f"fully_shard: expected shard_placement_fn to give None or Shard() of one of the "
            f"{p.ndim} dimensions of {path!r}, got {placement!r}"
        )
    return placement.dim % p.ndim


@functools.cache
def _sharded_class(original: type[Module]) -> type[Module]:
    fields = {"__module__": original.__module__, "__doc__": original.__doc__}
    return type(f"FSDP{original.__name__}", (FSDPModule, original), fields)


_made: Final[weakref.WeakKeyDictionary[Group, dict[int, Group]]] = weakref.WeakKeyDictionary()


def neighbors(group: Group, count: int) -> Group:
    """This rank's group of `count` consecutive ranks; all ranks call it.

    Raises:
        ArgumentError: `count` does not divide the size of the group.
    """
    if count < 1 or group.size % count:
        raise ArgumentError.here(
            f"fully_shard: expected reshard_after_forward to be a bool or a number that divides "
            f"{group.size}, the number of ranks, got {count}"
        )
    made = _made.setdefault(group, {})
    if count not in made:
        joined = session.current()
        assert joined is not None
        starts = range(0, group.size, count)
        groups = [joined.new_group(group.ranks[at : at + count]) for at in starts]
        made[count] = groups[group.index // count]
    return made[count]
