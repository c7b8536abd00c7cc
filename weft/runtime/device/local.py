"""The devices of this process: as many as were asked for so far, each made once."""

from __future__ import annotations

import functools
from typing import Final

from weft.ir.device import DeviceName
from weft.runtime.device.cpu import CpuDevice
from weft.runtime.execution.processor import FIRST, Processor
from weft.runtime.execution.team import Team
from weft.runtime.memory.shared import ArenaPool

LOCAL: Final = DeviceName(job="localhost", replica=0, task=0)


@functools.cache
def processor(index: int) -> Processor:
    """Threads and memory of the CPU with this number; the first is where everything runs that
    asks for no other."""
    return FIRST if index == 0 else Processor(Team(), ArenaPool())


def cpu_devices(
    count: int, threads: int | None = None, task: DeviceName = LOCAL
) -> list[CpuDevice]:
    """The first `count` CPUs of this process, under the names of a task.

    Args:
        count: how many.
        threads: how many threads each runs a program on; `WEFT_THREADS` by default.
        task: the process as the cluster calls it.
    """
    return [
        CpuDevice(task.merged(DeviceName(kind="CPU", index=i)), threads, None, processor(i))
        for i in range(count)
    ]
