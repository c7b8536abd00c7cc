"""Process sets: subsets of the ranks that run collectives of their own."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, Final

from weft.errors import ArgumentError, DistributedError
from weft.transport import session
from weft.transport.group import Group


class ProcessSet:
    """A subset of the ranks; registered by `add_process_set` or `init`.

    Args:
        ranks_or_comm: ranks of the job, or a communicator of mpi4py; `None` for all.

    Attributes:
        ranks: in ascending order; `None` for all.
        process_set_id: 0 for all ranks; `None` until it is registered.

    Example:
        >>> import weft.horovod.torch as hvd
        >>> hvd.init()
        >>> alone = hvd.add_process_set([0])
        >>> alone.rank(), alone.size(), alone.included()
        (0, 1, True)
        >>> hvd.shutdown()
    """

    def __init__(self, ranks_or_comm: Any = None) -> None:
        self.ranks = None if ranks_or_comm is None else sorted(ranks_of(ranks_or_comm))
        self.process_set_id: int | None = None
        self._group: Group | None = None

    @property
    def group(self) -> Group:
        """The group of ranks.

        Raises:
            DistributedError: it is not registered, or `hvd.init` was not called.
        """
        if self.ranks is None:
            return session.world()
        joined = session.current()
        if self._group is None or joined is None or self._group.transport is not joined.transport:
            raise DistributedError.here(
                f"process set of ranks {self.ranks}: call hvd.add_process_set on all ranks first"
            )
        return self._group

    def register(self) -> None:
        """Make the group; all ranks call it."""
        joined = session.current()
        if joined is None:
            raise DistributedError.here("add_process_set: call hvd.init() first")
        ranks = self.ranks or []
        registered = [each for each in _registered if each.is_current]
        equal = [each for each in registered if each.ranks == ranks and each is not self]
        size = joined.transport.size
        if equal or (size > 1 and ranks == list(range(size))):
            raise ArgumentError.here(
                f"add_process_set: expected ranks of no other process set, got {ranks}, those of "
                f"{equal[0] if equal else 'all ranks: hvd.global_process_set'}"
            )
        self._group = joined.new_group(ranks)
        self.process_set_id = self._group.number
        _registered[:] = [*[each for each in registered if each is not self], self]

    @property
    def is_current(self) -> bool:
        """Whether it is registered in the current job."""
        joined = session.current()
        own = None if self._group is None else self._group.transport
        return joined is not None and own is joined.transport

    def forget(self) -> None:
        """Forget the group."""
        joined = session.current()
        if joined is not None and self._group is not None:
            joined.groups.pop(self._group.number, None)
        self._group = self.process_set_id = None

    def included(self) -> bool:
        """Whether this process is a member."""
        return self.group.index >= 0

    def rank(self) -> int:
        """This process's rank in the set; -1 if it is not a member."""
        return self.group.index

    def size(self) -> int:
        """The number of ranks in the set."""
        return self.group.size

    def __repr__(self) -> str:
        return f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks})"


def ranks_of(ranks_or_comm: Any) -> list[int]:
    """Ranks of the job, given as they are or by a communicator of mpi4py."""
    if not hasattr(ranks_or_comm, "Get_group"):
        return [int(rank) for rank in ranks_or_comm]
    mpi: Any = importlib.import_module("mpi4py.MPI")
    return mpi.Group.Translate_ranks(ranks_or_comm.Get_group(), None, mpi.COMM_WORLD.Get_group())


_registered: Final[list[ProcessSet]] = []


def _whole() -> ProcessSet:
    whole = ProcessSet()
    whole.process_set_id = 0
    return whole


global_process_set: Final = _whole()
"""All ranks."""


def by_number(process_set_id: int) -> ProcessSet:
    """The process set with a number.

    Raises:
        ArgumentError: none has it.
    """
    for each in (global_process_set, *_registered):
        if each.process_set_id == process_set_id and (each.ranks is None or each.is_current):
            return each
    raise ArgumentError.here(f"process set: expected the number of one, got {process_set_id}")


def add_process_set(process_set: ProcessSet | Sequence[int]) -> ProcessSet:
    """Register a process set; all ranks of the job call it, members or not.

    Args:
        process_set: a `ProcessSet`, or the ranks of one.

    Raises:
        DistributedError: a rank is out of range, or `hvd.init` was not called.
        ArgumentError: another process set has the same ranks.
    """
    added = process_set if isinstance(process_set, ProcessSet) else ProcessSet(process_set)
    added.register()
    return added


def remove_process_set(process_set: ProcessSet) -> bool:
    """Forget a process set; returns whether it was registered. `global_process_set` stays.

    Args:
        process_set: a registered process set.
    """
    if process_set is global_process_set or process_set.process_set_id is None:
        return False
    process_set.forget()
    return True


__all__ = ["ProcessSet", "add_process_set", "global_process_set", "remove_process_set"]
