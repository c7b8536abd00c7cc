"""Process groups: joining a job, leaving it, and groups of its ranks."""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Final, ParamSpec, TypeVar

import numpy as np

from weft import config
from weft.documentation import with_arguments
from weft.eager.tensor.device import check_device
from weft.errors import ArgumentError, DistributedError
from weft.host.cores import launched, pin, tasks_without_mpi
from weft.runtime.all_reduce import all_reduce_function
from weft.runtime.execution import driver
from weft.runtime.execution.team import TEAM
from weft.transport import session
from weft.transport.group import TIMEOUT_SECONDS, Group
from weft.transport.native import Native

__all__ = [
    "ProcessGroup", "destroy_process_group", "get_backend", "get_default_backend_for_device",
    "get_global_rank", "get_group_rank", "get_process_group_ranks", "get_rank", "get_world_size",
    "init_process_group", "is_available", "is_initialized", "is_mpi_available", "new_group",
]  # fmt: skip

ProcessGroup = Group
_BACKENDS: Final = ("mpi", "gloo", "cpu:gloo", "cpu:mpi", "cpu:gloo,cuda:nccl")
_told: Final[list[str]] = []


def init_process_group(
    backend: str | None = None, init_method: str | None = None,
    timeout: float | timedelta | None = None, world_size: int = -1, rank: int = -1,
    store: None = None, group_name: str = "", pg_options: Any = None, device_id: Any = None,
) -> None:  # fmt: skip
    """Join the job that `weft launch` (or any MPI launcher) has started.

    Without a launcher the world size is 1.

    Args:
        backend: `"mpi"`; `"gloo"` and `"cpu:gloo,cuda:nccl"`, as in programs written for PyTorch,
            use MPI, too.
        init_method: `"env://"`, which is the only one.
        timeout: seconds, or a `timedelta`, after which waiting for a rank is an error.
        world_size: the number of ranks; checked if given.
        rank: of this process; checked if given.
        store: must be `None`, because ranks find each other through the launcher.
        group_name, pg_options: have no effect.
        device_id: if given, must be the CPU.

    Raises:
        DistributedError: there is a process group already, MPI is not installed, or the launcher
            has started another number of ranks.
        ArgumentError: another backend, or a store.
        ConfigError: another device.

    Example:
        >>> import weft.distributed as dist
        >>> dist.init_process_group()
        >>> dist.get_rank(), dist.get_world_size()
        (0, 1)
        >>> dist.destroy_process_group()
    """
    del group_name, pg_options
    _check_arguments(backend, init_method, store)
    check_device(device_id)
    if not launched() and world_size > 1:
        raise DistributedError.here(
            f"init_process_group: expected {world_size} ranks, got this process alone; start them "
            f"with: weft launch -n {world_size} SCRIPT"
        )
    tasks = tasks_without_mpi()
    if tasks > 1:
        raise DistributedError.here(
            f"init_process_group: srun has started {tasks} tasks without what MPI finds others by; "
            f"start them with: srun --mpi=pmi2"
        )
    if not launched() and not _told:
        _told.append("alone")
        print("weft.distributed: no launcher of MPI: a world of one", file=sys.stderr)
    if pin(int(config.get("threads"))):
        TEAM.stop()  # its threads start again on these cores
    native = Native(_meet, all_reduce_function, _stream)
    joined = session.begin(seconds_of(timeout), _exchange, native).transport
    wrong = (world_size not in (-1, joined.size), rank not in (-1, joined.rank))
    if any(wrong):
        name, expected, actual = [
            ("world_size", world_size, joined.size), ("rank", rank, joined.rank),
        ][wrong.index(True)]  # fmt: skip
        session.end()
        raise DistributedError.here(
            f"init_process_group: the launcher says {name} {actual}, got {expected}"
        )


def _check_arguments(backend: str | None, init_method: str | None, store: object) -> None:
    if backend is not None and backend.lower() not in _BACKENDS:
        why = ", which needs CUDA devices: write 'gloo'" if "nccl" in backend.lower() else ""
        raise ArgumentError.here(
            f"init_process_group: expected the backend 'mpi' or 'gloo', got {backend!r}{why}"
        )
    if store is not None:
        raise ArgumentError.here(
            f"init_process_group: expected store=None, got {type(store).__name__}; start ranks "
            f"with weft launch"
        )
    if init_method not in (None, "env://"):
        raise ArgumentError.here(
            f"init_process_group: expected init_method 'env://', got {init_method!r}; start ranks "
            f"with weft launch"
        )


def _exchange() -> Any:
    """The driver's function for persistent messages."""
    return driver.entries().exchange


def _meet() -> Any:
    """The driver's function for flags in shared memory."""
    return driver.entries().meet


def _stream() -> Any:
    """The driver's function that copies with non-temporal stores."""
    return driver.entries().stream


def seconds_of(timeout: float | timedelta | None) -> float:
    """A timeout in seconds; the default one if none is given."""
    if timeout is None:
        return TIMEOUT_SECONDS
    return timeout.total_seconds() if isinstance(timeout, timedelta) else float(timeout)


def destroy_process_group(group: Group | None = None) -> None:
    """Leave the job, together with all other ranks; or forget a group.

    A process also leaves the job when it ends.

    Args:
        group: the group to forget; by default this process leaves the job.

    Raises:
        DistributedError: there is no process group, or other ranks do not end in time.
    """
    world = session.world()
    if group is None or group is world:
        session.end()
        return
    joined = session.current()
    if joined is not None:
        removed = joined.groups.pop(group.number, None)
        if removed is None:
            return
        removed.confirm()
        if removed.channel is not None:
            removed.channel.close()


def is_initialized() -> bool:
    """Whether this process has joined a job."""
    return session.current() is not None


def is_available() -> bool:
    """Whether `weft.distributed` is available: always."""
    return True


def is_mpi_available() -> bool:
    """Whether an MPI launcher has started this process."""
    return launched()


def get_backend(group: Group | None = None) -> str:
    """The backend: `"mpi"`.

    Args:
        group: any group.
    """
    member(group, "get_backend")
    return "mpi"


def get_default_backend_for_device(device: Any) -> str:
    """The backend for tensors on any device: `"mpi"`.

    Args:
        device: any device.
    """
    del device
    return "mpi"


def get_rank(group: Group | None = None) -> int:
    """This process's rank in a group, from 0; -1 if it is not a member.

    Args:
        group: the group; by default all ranks.

    Raises:
        DistributedError: there is no process group.
    """
    return _chosen(group, "get_rank").index


def get_world_size(group: Group | None = None) -> int:
    """The number of ranks in a group; -1 if this process is not a member.

    Args:
        group: the group; by default all ranks.

    Raises:
        DistributedError: there is no process group.
    """
    chosen = _chosen(group, "get_world_size")
    return chosen.size if chosen.index >= 0 else -1


def get_process_group_ranks(group: Group | None = None) -> list[int]:
    """The ranks of a group, in its order.

    Args:
        group: the group; by default all ranks.
    """
    return list(_chosen(group, "get_process_group_ranks").ranks)


def get_group_rank(group: Group, global_rank: int) -> int:
    """The rank in a group of a global rank.

    Args:
        group: the group.
        global_rank: the global rank.

    Raises:
        DistributedError: the rank is not a member.
    """
    if global_rank not in _chosen(group, "get_group_rank").ranks:
        raise DistributedError.here(
            f"get_group_rank: rank {global_rank} is no member of the group of ranks "
            f"{list(group.ranks)}"
        )
    return group.ranks.index(global_rank)


def get_global_rank(group: Group, group_rank: int) -> int:
    """The global rank of a rank in a group.

    Args:
        group: the group.
        group_rank: the rank in the group.

    Raises:
        DistributedError: the rank is out of range.
    """
    if not 0 <= group_rank < _chosen(group, "get_global_rank").size:
        raise DistributedError.here(
            f"get_global_rank: expected a number from 0 to {group.size - 1}, got {group_rank}"
        )
    return group.ranks[group_rank]


def new_group(
    ranks: Sequence[int] | None = None, timeout: float | timedelta | None = None,
    backend: str | None = None, pg_options: Any = None, use_local_synchronization: bool = False,
    group_desc: str | None = None, device_id: Any = None,
) -> Group:  # fmt: skip
    """Make a group of some ranks; all ranks of the job must call it, members or not.

    Args:
        ranks: global ranks; by default all.
        timeout: as for `init_process_group`, whose value is the default.
        backend: as for `init_process_group`.
        use_local_synchronization: whether only its members call it. They then use messages instead
            of shared memory, even on one host.
        pg_options, group_desc: have no effect.
        device_id: if given, must be the CPU.

    Raises:
        DistributedError: a rank is out of range, or occurs twice.
    """
    del backend, pg_options, group_desc
    check_device(device_id)
    world = session.world()
    joined = session.current()
    assert joined is not None
    chosen = world.ranks if ranks is None else list(ranks)
    if not all(isinstance(rank, int | np.integer) for rank in chosen):  # pyright: ignore
        raise DistributedError.here(f"new_group: expected ranks, got {ranks!r}")
    chosen = sorted(chosen)
    seconds = None if timeout is None else seconds_of(timeout)
    return joined.new_group(chosen, seconds, use_local_synchronization)


def _chosen(group: Group | None, name: str) -> Group:
    if group is None:
        return session.world()
    if not isinstance(group, Group):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DistributedError.here(f"{name}: expected a process group, got {group!r}")
    return group


def member(group: Group | None, name: str) -> Group:
    """The given group, by default the world, of which this process must be a member.

    Raises:
        DistributedError: this process is not a member.
    """
    chosen = _chosen(group, name)
    if chosen.index < 0:
        raise DistributedError.here(
            f"{name}: rank {chosen.transport.rank} is no member of the group of ranks "
            f"{list(chosen.ranks)}"
        )
    return chosen


P = ParamSpec("P")
T = TypeVar("T")


class _Common:
    """Arguments of collectives that need no description of their own.

    Args:
        op: `ReduceOp.SUM` or another reduction.
        group: the ranks that take part; by default all.
        async_op: whether to return a `Work` at once instead of blocking.
        tag: must be equal on both ranks.
        group_src, group_dst: its rank in the group.
    """


def for_members(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a collective to only warn if this process is not in its `group`, as in PyTorch.

    Arguments that its docstring leaves out are described as in `_Common`.
    """
    names = list(inspect.signature(function).parameters)
    place = names.index("group")
    function.__doc__ = with_arguments(function.__doc__, names, _Common)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> Any:
        group = args[place] if len(args) > place else kwargs.get("group")
        if isinstance(group, Group) and group.index < 0:
            return warn_outside(group, function.__name__)
        return function(*args, **kwargs)

    return call


def warn_outside(group: Group, name: str) -> None:
    """Warn that this process is not a member."""
    warnings.warn(
        f"{name}: rank {group.transport.rank} is no member of the group of ranks "
        f"{list(group.ranks)}: nothing is done",
        stacklevel=3,
    )


def root_of(
    group: Group, rank: int | None, group_rank: int | None, name: str, default: int | None = None
) -> int:
    """The index in a group of a root, given by its global rank or by its rank in the group.

    Raises:
        DistributedError: both are given, or none, or it is not a member.
    """
    if (rank is None) == (group_rank is None):
        if rank is not None or default is None:
            got = "neither" if rank is None else f"both, {rank} and {group_rank}"
            raise DistributedError.here(
                f"{name}: expected a global rank or one of the group, got {got}"
            )
        rank = default
    if group_rank is None:
        return index_of(group, rank, name)
    if not 0 <= group_rank < group.size:
        raise DistributedError.here(
            f"{name}: expected a rank of the group from 0 to {group.size - 1}, got {group_rank}"
        )
    return group_rank


def index_of(group: Group, rank: int | None, name: str) -> int:
    """The index in a group of a global rank.

    Raises:
        DistributedError: the rank is not a member.
    """
    if rank not in group.ranks:
        raise DistributedError.here(
            f"{name}: expected one of the group's ranks {list(group.ranks)}, got {rank}"
        )
    return group.ranks.index(rank)
