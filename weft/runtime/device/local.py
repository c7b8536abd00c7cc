"""The CPUs of this process: each number is made once, however many sessions use it."""

from __future__ import annotations

from typing import Final, NamedTuple

from weft.ir.device import DeviceName
from weft.runtime.device.base import new_incarnation
from weft.runtime.device.cpu import CpuDevice
from weft.runtime.execution.processor import FIRST, Processor
from weft.runtime.execution.team import Team
from weft.runtime.flight import LEAF, new_lock
from weft.runtime.memory.shared import ArenaPool

LOCAL: Final = DeviceName(job="localhost", replica=0, task=0)


class _Local(NamedTuple):
    """A CPU of this process, under whatever name."""

    processor: Processor
    incarnation: int


_made: Final[list[_Local]] = []
_lock: Final = new_lock(LEAF)


def cpu_devices(
    count: int, threads: int | None = None, task: DeviceName = LOCAL
) -> list[CpuDevice]:  # fmt: skip
    """The first `count` CPUs of this process, under the names of a task.

    Everything that asks for no device runs on the first.

    Args:
        count: how many.
        threads: how many threads each runs a program on; `WEFT_THREADS` by default.
        task: the process as the cluster calls it.
    """
    return [
        CpuDevice(
            task.merged(DeviceName(kind="CPU", index=i)), threads, None, local.processor,
            local.incarnation,
        )
        for i, local in enumerate(_first(count))
    ]  # fmt: skip


def processor(index: int) -> Processor:
    """Threads and memory of the CPU with this number."""
    return _first(index + 1)[index].processor


def _first(count: int) -> list[_Local]:
    with _lock:
        while len(_made) < count:
            new = Processor(Team(), ArenaPool()) if _made else FIRST
            _made.append(_Local(new, new_incarnation()))
        return _made[:count]
