"""Operations that give this process's place in the job, when they run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.documentation import named
from weft.horovod import basics
from weft.horovod.process_set import by_number
from weft.tf1.control.py_func import host_function
from weft.tf1.framework.tensor import Tensor

__all__ = ["local_rank_op", "local_size_op", "process_set_included_op", "rank_op", "size_op"]


def _told(kind: str, tell: Callable[[], int], name: str | None) -> Tensor:
    work: Any = lambda: (np.array(tell(), np.int32),)  # noqa: E731
    return host_function(kind, work, [], ["int32"], [[]], name).outputs[0]


def _of_this_process(title: str, kind: str, tell: Callable[[], int], what: str):
    @named(title, f"A tensor with {what}.\n\nArgs:\n    name: of the operation.")
    def place(name: str | None = None) -> Tensor:
        return _told(kind, tell, name)

    return place


rank_op = _of_this_process("rank_op", "HorovodRank", basics.rank, "this process's rank")
local_rank_op = _of_this_process(
    "local_rank_op", "HorovodLocalRank", basics.local_rank, "this process's rank on its machine"
)
local_size_op = _of_this_process(
    "local_size_op", "HorovodLocalSize", basics.local_size,
    "the number of processes on this machine",
)  # fmt: skip


def size_op(process_set_id: int = 0, name: str | None = None) -> Tensor:
    """A tensor with the number of processes.

    Args:
        process_set_id: of a process set; 0 for all ranks.
        name: of the operation.
    """
    return _told("HorovodSize", lambda: by_number(process_set_id).size(), name)


def process_set_included_op(process_set_id: int = 0, name: str | None = None) -> Tensor:
    """A tensor with 1 if this process is in a process set, else 0.

    Args:
        process_set_id: of the process set.
        name: of the operation.
    """
    return _told("HorovodIncluded", lambda: int(by_number(process_set_id).included()), name)
