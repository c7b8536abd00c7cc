"""`tf.RunOptions` and `tf.RunMetadata`: profiles of runs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from weft.cluster.timeline import Timeline
from weft.formats.event.graph import NodeTime, run_metadata
from weft.ir.device import DeviceName
from weft.runtime.measurement.kernel_run import KernelRun, kernel_runs
from weft.runtime.measurement.profile import Run
from weft.runtime.phase_time import PhaseTime

__all__ = ["RunMetadata", "RunOptions"]

CLIENT: Final = "/job:client/replica:0/task:0/device:CPU:0"
"""Where a timeline shows what the client's process computes between programs."""
HOST_TRACK: Final = 2000  # after those of threads and of communication


class RunOptions:
    """Options of a run.

    Args:
        trace_level: with `FULL_TRACE` its kernels are timed.
        timeout_in_ms: how long the run may wait: for a queue, or for other tasks; 0 is forever.
        others: TensorFlow's other options are accepted, and have no effect.
    """

    NO_TRACE: Final = 0
    SOFTWARE_TRACE: Final = 1
    HARDWARE_TRACE: Final = 2
    FULL_TRACE: Final = 3

    def __init__(self, trace_level: int = NO_TRACE, timeout_in_ms: int = 0, **others: Any) -> None:
        self.trace_level = trace_level
        self.timeout_in_ms = timeout_in_ms
        self.others = others


class RunMetadata:
    """The times of a traced run's operations; for `FileWriter.add_run_metadata`.

    A kernel computes several operations: its time is divided equally among them, and the memory
        that it writes is attributed to the last one. Operations without a kernel are missing.

    Attributes:
        times: of operations.
        timeline: what each device of a cluster did, if the session runs on one; and what ran on
            the host.
    """

    def __init__(self) -> None:
        self.timeline = Timeline()
        self.times: list[NodeTime] = []

    def take(
        self, runs: Sequence[Run], hosts: Sequence[PhaseTime], operations: Collection[str]
    ) -> None:
        """Replace the contents by these runs of programs and of host nodes.

        Args:
            operations: the names of the graph's operations.
        """
        kernels = kernel_runs(runs)
        first = min([*[k.start for k in kernels], *[h.begin for h in hosts]], default=0)
        self.times = [time for k in kernels for time in _times(k, first, operations)]
        for host in hosts:
            kind = "wait" if host.waits else "compute"
            device = host.device if DeviceName.parse(host.device).is_full else CLIENT
            self.timeline.add(device, kind, host.node, host.begin, host.end)
            if name := _operation(host.node, operations):
                begin, end = (host.begin - first) / 1000, (host.end - first) / 1000
                lasted = max(round(end - begin), 1)
                self.times.append(NodeTime(name, round(begin), lasted, 0, HOST_TRACK))

    def SerializeToString(self) -> bytes:
        """The encoded message, as TensorFlow's protocol buffer."""
        return run_metadata(self.times)


def _times(kernel: KernelRun, first: int, operations: Collection[str]) -> list[NodeTime]:
    names = list(dict.fromkeys([n for node in kernel.nodes if (n := _operation(node, operations))]))
    if not names:
        return []
    share = (kernel.end - kernel.start) / len(names) / 1000
    begin = (kernel.start - first) / 1000
    thread = kernel.spans[0][0]
    return [
        NodeTime(
            name, round(begin + number * share), max(round(share), 1),
            kernel.written if number == len(names) - 1 else 0, thread,
        )
        for number, name in enumerate(names)
    ]  # fmt: skip


def _operation(node: str, operations: Collection[str]) -> str:
    """The operation that a node belongs to, by the longest prefix of the node's name."""
    while node and node not in operations:
        node = node.rpartition("/")[0]
    return node
