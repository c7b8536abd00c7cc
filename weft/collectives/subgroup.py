"""Groups by size or by lists, objects for one rank, and what programs ask about jobs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

import numpy as np

from weft.collectives.collective import all_reduce
from weft.collectives.objects import decoded, encoded
from weft.collectives.point_to_point import irecv, recv, send
from weft.collectives.process_group import get_rank, member, new_group, root_of
from weft.collectives.reduce_op import ReduceOp
from weft.collectives.work import Work
from weft.eager.tensor.dispatch import leaf, wrap
from weft.eager.tensor.tensor import Tensor
from weft.errors import ArgumentError, DistributedError
from weft.host.cores import local_rank
from weft.transport import session
from weft.transport.group import TIMEOUT_SECONDS, Group

__all__ = [
    "Backend", "DistBackendError", "DistError", "DistNetworkError", "DistStoreError", "GroupMember",
    "all_reduce_coalesced", "default_pg_timeout", "get_node_local_rank", "get_pg_count", "group",
    "is_backend_available", "is_gloo_available", "is_nccl_available", "is_torchelastic_launched",
    "is_ucc_available", "is_xccl_available", "new_subgroups", "new_subgroups_by_enumeration",
    "recv_object_list", "reduce_op", "send_object_list", "supports_complex",
]  # fmt: skip

DistError = DistBackendError = DistNetworkError = DistStoreError = DistributedError
default_pg_timeout: Final = timedelta(seconds=TIMEOUT_SECONDS)
reduce_op = ReduceOp


class Backend(str):
    """The name of a backend, in lower case.

    Args:
        name: in any case.
    """

    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL = "undefined", "gloo", "nccl", "ucc", "mpi", "xccl"
    backend_list: Final = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI]

    def __new__(cls, name: str) -> Backend:
        """The backend of a name in any case."""
        return super().__new__(cls, name.lower())


class _World(type):
    """The class of `group`, whose `WORLD` is that of the current job."""

    @property
    def WORLD(cls) -> Group | None:
        """All ranks; `None` without a job."""
        return None if session.current() is None else session.world()


class group(metaclass=_World):
    """The group of all ranks: `group.WORLD`."""


class GroupMember(metaclass=_World):
    """The group of all ranks, and what a rank gets instead of a group that it is not in."""

    NON_GROUP_MEMBER: Final = -100


def is_gloo_available() -> bool:
    """Whether the backend `"gloo"` is taken: yes; its messages go through MPI."""
    return True


def is_nccl_available() -> bool:
    """Whether there are collectives of CUDA devices: never."""
    return False


is_ucc_available = is_xccl_available = is_torchelastic_launched = is_nccl_available


def is_backend_available(backend: str) -> bool:
    """Whether a backend's name is taken.

    Args:
        backend: the name, in any case.
    """
    return backend.lower() in (Backend.GLOO, Backend.MPI)


def supports_complex(reduceOp: ReduceOp) -> bool:
    """Whether complex numbers have this reduction.

    Args:
        reduceOp: the reduction.
    """
    return reduceOp in (ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PRODUCT)


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """This process's rank among those on its machine, by the launcher.

    Args:
        fallback_rank: has no effect; a process without a launcher has rank 0.
    """
    del fallback_rank
    return local_rank()


def get_pg_count() -> int:
    """The number of process groups."""
    joined = session.current()
    return 0 if joined is None else max(1, len(joined.groups))


def new_subgroups(
    group_size: int | None = None, group: Group | None = None,
    timeout: float | timedelta | None = None, backend: str | None = None, pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Group | None, list[Group]]:  # fmt: skip
    """Divide ranks into groups of consecutive ones; returns this rank's and all groups.

    Args:
        group_size: the number of ranks of a group; must divide the number of ranks.
        group: the ranks; by default all.
        timeout, backend, pg_options, group_desc: as for `new_group`.

    Raises:
        ArgumentError: the size does not divide the number of ranks.
    """
    ranks = member(group, "new_subgroups").ranks
    size = len(ranks) if group_size is None else group_size
    if size < 1 or len(ranks) % size:
        raise ArgumentError.here(
            f"new_subgroups: expected a group_size that divides {len(ranks)} ranks, got {size}"
        )
    lists = [ranks[first : first + size] for first in range(0, len(ranks), size)]
    return new_subgroups_by_enumeration(lists, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]], timeout: float | timedelta | None = None,
    backend: str | None = None, pg_options: Any = None, group_desc: str | None = None,
) -> tuple[Group | None, list[Group]]:  # fmt: skip
    """Make groups of these ranks; returns this rank's, or `None`, and all groups.

    Args:
        ranks_per_subgroup_list: the ranks of each; no rank is in two.
        timeout, backend, pg_options, group_desc: as for `new_group`.

    Raises:
        ArgumentError: a rank is in two groups.
    """
    every = [rank for ranks in ranks_per_subgroup_list for rank in ranks]
    if len(set(every)) != len(every):
        raise ArgumentError.here(
            f"new_subgroups_by_enumeration: expected each rank in one group, got {every}"
        )
    del pg_options, group_desc
    made = [new_group(ranks, timeout, backend) for ranks in ranks_per_subgroup_list]
    own = [one for one in made if get_rank() in one.ranks]
    return (own[0] if own else None), made


def send_object_list(
    object_list: Sequence[Any], dst: int | None = None, group: Group | None = None,
    device: Any = None, group_dst: int | None = None, use_batch: bool = False,
) -> None:  # fmt: skip
    """Send objects to rank `dst`, which calls `recv_object_list`.

    Args:
        object_list: objects as for `all_gather_object`.
        dst, group_dst: the receiver's global rank, or its rank in the group.
        group: the group of both ranks; by default all.
        device, use_batch: have no effect.
    """
    del device, use_batch
    data = np.frombuffer(encoded(list(object_list), "send_object_list"), np.uint8).copy()
    send(wrap(leaf(np.array([data.size]))), dst, group, group_dst=group_dst)
    send(wrap(leaf(data)), dst, group, group_dst=group_dst)


def recv_object_list(
    object_list: list[Any], src: int | None = None, group: Group | None = None, device: Any = None,
    group_src: int | None = None, use_batch: bool = False,
) -> int:  # fmt: skip
    """Overwrite the list with that of a rank that calls `send_object_list`; returns the rank.

    Args:
        object_list: as long as the sender's.
        src, group_src: the sender's global rank, or its rank in the group; by default the first
            that sends.
        group: the group of both ranks; by default all.
        device, use_batch: have no effect.

    Raises:
        ArgumentError: the lists differ in length.
    """
    del device, use_batch
    size = wrap(leaf(np.zeros(1, np.int64)))
    sender = recv(size, src, group, group_src=group_src)
    data = wrap(leaf(np.zeros(int(size.item()), np.uint8)))
    chosen = member(group, "recv_object_list")
    irecv(data, group=group, group_src=root_of(chosen, sender, None, "recv_object_list")).wait()
    objects = decoded(data.numpy().tobytes())
    if len(objects) != len(object_list):
        raise ArgumentError.here(
            f"recv_object_list: expected a list of {len(objects)}, got {len(object_list)}"
        )
    object_list[:] = objects
    return sender


def all_reduce_coalesced(
    tensors: Sequence[Tensor], op: ReduceOp = ReduceOp.SUM, group: Group | None = None,
    async_op: bool = False,
) -> Work | None:  # fmt: skip
    """`all_reduce` of several tensors.

    Args:
        tensors: this rank's tensors, which are overwritten.
        op: `ReduceOp.SUM` or another reduction.
        group: the ranks that take part; by default all.
        async_op: whether to return a `Work` at once instead of blocking.
    """
    works = [all_reduce(x, op, group, async_op) for x in tensors]
    return None if not async_op or None in works else Work.of([w for w in works if w is not None])
