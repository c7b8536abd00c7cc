"""`fully_shard`: parameters, their gradients and optimizer state divided among ranks."""

from __future__ import annotations

import contextlib
import functools
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from weft.distributed.device_mesh import DeviceMesh
from weft.distributed.fsdp.neighbor import neighbors
from weft.distributed.fsdp.policy import MixedPrecisionPolicy, OffloadPolicy
from weft.distributed.fsdp.unit import Unit
from weft.distributed.process_group import member
from weft.errors import ArgumentError, DistributedError
from weft.nn.module.module import Module
from weft.nn.parallel.alike import make_alike
from weft.nn.parallel.state import register_state_hooks
from weft.nn.parameter import Parameter, is_lazy
from weft.ops.base import at_user_line
from weft.transport.group import Group

M = TypeVar("M", bound=Module | Sequence[Module])
_UNIT = "_sharded_unit"


class FSDPModule(Module):
    """A module that `fully_shard` has made a unit: what it can do besides.

    Its class is a subclass of this one and of what it was before.
    """

    _sharded_unit: Unit
    _sharded_place: str  # before the paths of its parameters in the unit

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """A module of its class before: what a slice of a `Sequential` makes."""
        if not args and not kwargs:  # a copy
            return super().__new__(cls)
        before = cls.__mro__[2]
        return before(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module with whole parameters."""
        return self.call_whole(super().__call__, args, kwargs)

    def call_whole(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """The result of a function that computes with this module's parameters."""
        unit = self._sharded_unit
        args, kwargs = unit.cast_inputs(args, kwargs)
        with unit.called() as values, self._swapped(values):
            return unit.cast_output(function(*args, **kwargs))

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Have whole parameters in their places until `reshard`, or until gradients are there.

        All ranks of the group call it. What is there is not to be changed. Units below stay as they
        are. With `async_op` it is only on its way: the module's next call takes it, or `wait()` of
        the handle that is returned puts it in its place.
        """
        unit = self._sharded_unit
        if async_op:
            unit.begin()
            return UnshardHandle(self)
        unit.close()
        values, unit.opened = unit.values(again=False), contextlib.ExitStack()
        for module in unit.modules:
            unit.opened.enter_context(module._swapped(values))
        return None

    def reshard(self) -> None:
        """Keep whole parameters no longer."""
        unit = self._sharded_unit
        unit.release()
        unit.close()

    def _swapped(self, values: Mapping[str, Any]) -> contextlib.AbstractContextManager[Any]:
        """Inside, the unit's values stand for this module's parameters."""
        place = self._sharded_place
        own = {k[len(place) :]: x for k, x in values.items() if k.startswith(place)}
        return self.swapped(own, tie_weights=False)

    def set_requires_gradient_sync(
        self, requires_gradient_sync: bool, *, recurse: bool = True
    ) -> None:
        """Whether backward passes reduce gradients; if not, whole ones add up on each rank.

        The next backward pass that reduces gradients reduces those, too.
        """
        for unit in self._units(recurse):
            unit.syncs = requires_gradient_sync

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Whether the backward pass gathers parameters once more, from all ranks.

        Raises:
            ArgumentError: a number, which `fully_shard` alone takes.
        """
        if not isinstance(reshard_after_forward, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError(
                f"set_reshard_after_forward: expected a bool, got {reshard_after_forward!r}"
                f"{at_user_line()}"
            )
        for unit in self._units(recurse):
            unit.again, unit.within = reshard_after_forward, None

    def set_reshard_after_backward(
        self, reshard_after_backward: bool, *, recurse: bool = True
    ) -> None:
        """Whether whole parameters go after a backward pass; if not, the next call needs no gather.

        They stay until they change: through the backward passes whose gradients add up.
        """
        for unit in self._units(recurse):
            unit.kept = not reshard_after_backward

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Taken for programs that call it: nothing is left over after any backward pass."""

    def set_modules_to_forward_prefetch(self, modules: Sequence[FSDPModule]) -> None:
        """Say which units' gathers begin when this one's has ended, in a call.

        By default it is the one that followed in the last call; more take more memory.

        Raises:
            ArgumentError: a module that is not sharded.
        """
        self._sharded_unit.ahead = self._units_of(modules, "set_modules_to_forward_prefetch")

    def set_modules_to_backward_prefetch(self, modules: Sequence[FSDPModule]) -> None:
        """Say how many units' gathers begin when this one's has ended, in a backward pass.

        By default it is one. They are those that follow there, in the reverse order of the call.

        Raises:
            ArgumentError: a module that is not sharded.
        """
        found = self._units_of(modules, "set_modules_to_backward_prefetch")
        self._sharded_unit.ahead_backward = len(found)

    @staticmethod
    def _units_of(modules: Sequence[Module], name: str) -> list[Unit]:
        found: list[Unit] = []
        for module in modules:
            if not isinstance(module, FSDPModule):
                raise ArgumentError(
                    f"{name}: expected modules that are sharded, got a {type(module).__name__}"
                    f"{at_user_line()}"
                )
            found.append(module._sharded_unit)
        return list(dict.fromkeys(found))

    def _units(self, recurse: bool) -> list[Unit]:
        below = self.modules() if recurse else [self]
        units = [m._sharded_unit for m in below if isinstance(m, FSDPModule)]
        return list(dict.fromkeys(units))


@dataclass(frozen=True)
class UnshardHandle:
    """What `unshard(async_op=True)` returns."""

    module: FSDPModule

    def wait(self) -> None:
        """Have whole parameters in their places."""
        self.module.unshard()


def register_fsdp_forward_method(module: Module, method_name: str) -> None:
    """Have whole parameters in a method besides `forward`, as in `model.generate(x)`.

    A module that is not sharded stays as it is.

    Raises:
        ArgumentError: there is no such method.
    """
    if not isinstance(module, FSDPModule):
        return
    method = getattr(module, method_name, None)
    if not callable(method):
        raise ArgumentError(
            f"register_fsdp_forward_method: {type(module).__name__} has no method "
            f"{method_name!r}{at_user_line()}"
        )
    function = getattr(method, "__func__", method)

    @functools.wraps(function)
    def whole(self: FSDPModule, *args: Any, **kwargs: Any) -> Any:
        return self.call_whole(functools.partial(function, self), args, kwargs)

    object.__setattr__(module, method_name, types.MethodType(whole, module))


def fully_shard(
    module: M, *, mesh: DeviceMesh | None = None, reshard_after_forward: bool | int | None = None,
    mp_policy: MixedPrecisionPolicy | None = None, offload_policy: OffloadPolicy | None = None,
    ignored_params: Iterable[Any] | None = None,
) -> M:  # fmt: skip
    """Divide a module's parameters among ranks; a call gathers them, and its gradients are divided.

    Each rank keeps its rows of every parameter, of its gradient and of the optimizer's state (ZeRO,
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
        mp_policy: element types of computation and traffic.
        offload_policy: taken for programs that give one: shards are in the host's memory.
        ignored_params: parameters that stay whole, and whose gradients stay this rank's.

    Raises:
        DistributedError: a module that is sharded already, a parameter that another unit has, or
            ranks with models of other shapes.
        ArgumentError: a mesh of more dimensions, scalar parameters, or such without a shape; a
            number of ranks that does not divide theirs.

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
    ignored = {id(p) for p in ignored_params or ()}
    paths: dict[str, Parameter] = {}
    buffers: dict[str, Any] = {}
    for i, each in enumerate(modules):
        place = f"{i}." if len(modules) > 1 else ""
        below = tuple([f"{p}." for p, m in each.named_modules() if isinstance(m, FSDPModule)])
        own = _paths(each, below, ignored)
        paths.update({place + path: p for path, p in own.items()})
        named = each.named_buffers()
        buffers.update({place + path: x for path, x in named if not path.startswith(below)})
    for ranks in filter(None, (group, replicas)):
        make_alike("fully_shard", {**paths, **buffers}, ranks)
    policy = mp_policy or MixedPrecisionPolicy()
    again, within = reshard_after_forward, None
    if again is not None and not isinstance(again, bool):
        again, within = True, neighbors(group, again)
    unit = Unit(paths, group, replicas, again, within, policy)
    for i, each in enumerate(modules):
        _join(each, unit, f"{i}." if len(modules) > 1 else "")
    return module


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


@functools.cache
def _sharded_class(kind: type[Module]) -> type[Module]:
    fields = {"__module__": kind.__module__, "__doc__": kind.__doc__}
    return type(f"FSDP{kind.__name__}", (FSDPModule, kind), fields)
