"""`fully_shard`: parameters, their gradients and optimizer state divided among ranks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from weft.collectives.agreement import check_same
from weft.collectives.process_group import member
from weft.distributed.device_mesh import DeviceMesh
from weft.distributed.fsdp.module import FSDPModule
from weft.distributed.fsdp.neighbor import neighbors
from weft.distributed.fsdp.policy import MixedPrecisionPolicy, OffloadPolicy
from weft.distributed.fsdp.unit import Unit
from weft.distributed.tensor.placement import Shard
from weft.errors import ArgumentError, DistributedError
from weft.ir.node import at_user_line
from weft.nn.module.module import Module
from weft.nn.parallel.alike import make_alike
from weft.nn.parallel.state import register_state_hooks
from weft.nn.parameter import Parameter, is_lazy
from weft.transport.group import Group

M = TypeVar("M", bound=Module | Sequence[Module])


def fully_shard(
    module: M, *, mesh: DeviceMesh | None = None, reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Callable[[Any], Shard | None] | None = None,
    mp_policy: MixedPrecisionPolicy | None = None, offload_policy: OffloadPolicy | None = None,
    ignored_params: Iterable[Any] | None = None,
) -> M:  # fmt: skip
    """Divide a module's parameters among ranks; a call gathers them, and its gradients are divided.

    Each rank keeps its part of every parameter, of its gradient and of the optimizer's state (ZeRO,
    stage 3). Call it for the parts of a model that compute one after another, such as blocks, then
    for the model itself, which takes what is left. Parameters stay the same objects, of fewer rows:
    ordinary tensors for optimizers. All ranks begin with the first one's values, and gradients are
    means over ranks, as those of `DistributedDataParallel`, bit by bit.

    Args:
        module: becomes an instance of `FSDPModule`, too. Several in a list or a tuple are one unit,
            whose parameters are gathered together: layers that compute one after another, or share
            a parameter.
        mesh: of one dimension; of two, parameters are divided along the second, and gradients
            averaged along the first, too. All ranks if left out.
        reshard_after_forward: whether the backward pass gathers parameters once more, instead of
            keeping them (ZeRO, stage 2). If left out, all but the outermost unit do. A number:
            so many neighboring ranks keep parts of what they have gathered, and gather from each
            other once more, as those of one host.
        shard_placement_fn: gives for a parameter along which dimension it is divided, as
            `Shard(1)`, or `None` for rows; the same on all ranks.
        mp_policy: element types of computation and traffic.
        offload_policy: taken for programs that give one: shards are in the host's memory.
        ignored_params: parameters that stay whole, and whose gradients stay this rank's.

    Raises:
        DistributedError: a module that is sharded already, a parameter that another unit has, or
            ranks with models of other shapes or placements.
        ArgumentError: a mesh of more dimensions, scalar parameters, or such without a shape; a
            number of ranks that does not divide theirs; a placement that a parameter cannot have.

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
    """Refuse what is no module, or is sharded already."""
    if not isinstance(module, Module):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError(
            f"fully_shard: expected a module, got {type(module).__name__}{at_user_line()}"
        )
    if isinstance(module, FSDPModule):
        raise DistributedError(
            f"fully_shard: this {type(module).__name__} is sharded already{at_user_line()}"
        )


def _join(module: Module, unit: Unit, place: str) -> None:
    """Make a module one of a unit, in which its parameters' paths begin with `place`."""
    unit.modules.append(module)
    module._sharded_unit, module._sharded_place = unit, place  # type: ignore[attr-defined]
    module.__class__ = _sharded_class(type(module))
    own = [path[len(place) :] for path in unit.paths if path.startswith(place)]
    for holder in {path.rpartition(".")[0] for path in own}:
        register_state_hooks(module.get_submodule(holder))


def _groups(mesh: DeviceMesh | None) -> tuple[Group, Group | None]:
    """The ranks that parameters are divided among, and those that have the same part."""
    if mesh is None:
        return member(None, "fully_shard"), None
    if mesh.ndim > 2:
        raise ArgumentError(
            f"fully_shard: expected a mesh of one or two dimensions, got {mesh.ndim}; take a part "
            f'of it, as mesh["dp"]{at_user_line()}'
        )
    *replicas, group = mesh.get_all_groups()
    return group, replicas[0] if replicas else None


def _paths(module: Module, below: tuple[str, ...], ignored: set[int]) -> Mapping[str, Parameter]:
    """The parameters that no unit has, of those at the paths `below`, by path."""
    taken: dict[int, str] = {}
    found: dict[str, Parameter] = {}
    for path, p in module.named_parameters(remove_duplicate=False):
        if id(p) in ignored:
            continue
        if is_lazy(p):
            raise ArgumentError(
                f"fully_shard: {path!r} has no shape yet; call the module with an input first"
                f"{at_user_line()}"
            )
        if not p.ndim:
            raise ArgumentError(
                f"fully_shard: {path!r} is a scalar, which has no rows; make it a vector of one "
                f"element{at_user_line()}"
            )
        if path.startswith(below):
            taken[id(p)] = path
        else:
            found[path] = p
    for path, p in found.items():
        if id(p) in taken:
            raise DistributedError(
                f"fully_shard: {path!r} is the parameter {taken[id(p)]!r}, which another unit has; "
                f"both have to be in one{at_user_line()}"
            )
    return found


def _dims(
    paths: Mapping[str, Parameter], placement_of: Callable[[Any], Shard | None], group: Group
) -> dict[int, int]:
    """Along which dimension parameters are divided, by their identity."""
    found: dict[int, int] = {}
    for path, p in paths.items():
        if id(p) not in found:
            found[id(p)] = _dim(path, p, placement_of(p))
    lines = [f"{path} Shard({found[id(p)]})" for path, p in paths.items()]
    check_same("fully_shard", group, "placements", lines)
    return found


def _dim(path: str, p: Parameter, placement: object) -> int:
    if placement is None:
        return 0
    if not isinstance(placement, Shard) or not -p.ndim <= placement.dim < p.ndim:
        raise ArgumentError(
            f"fully_shard: expected shard_placement_fn to give None or Shard() of one of the "
            f"{p.ndim} dimensions of {path!r}, got {placement!r}{at_user_line()}"
        )
    return placement.dim % p.ndim


@functools.cache
def _sharded_class(kind: type[Module]) -> type[Module]:
    fields = {"__module__": kind.__module__, "__doc__": kind.__doc__}
    return type(f"FSDP{kind.__name__}", (FSDPModule, kind), fields)
