"""When the stages of a step ran: records, and what they look like as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from weft.host.watchers import Watchers
from weft.ir.node import TensorType
from weft.ir.shape import is_stack, size
from weft.passes.partition import Partition


class StageTime(NamedTuple):
    """When a stage did what in one run, in nanoseconds of `time.perf_counter_ns`.

    Attributes:
        stage: its position in the partition.
        begin: its turn came, and it waited for what it receives.
        ready: it had that, and computed.
        done: its results were there, and it sent them.
        end: they were sent.
    """

    stage: int
    device: str
    begin: int
    ready: int
    done: int
    end: int


watchers: Final = Watchers[StageTime]()
"""Of every stage that runs."""


def duration(times: Sequence[StageTime]) -> int:
    """From the first stage's begin to the last one's end."""
    return max([t.end for t in times], default=0) - min([t.begin for t in times], default=0)


def show_times(partition: Partition, times: Sequence[StageTime]) -> str:
    """A line per stage: its device, when it began, and how long it waited and computed."""
    first = min([t.begin for t in times], default=0)
    lines = [f"{len(times)} stages, {duration(times) / 1e3:.0f} us"]
    for t in times:
        stage = partition.stages[t.stage]
        given = sum([_bytes(partition.types[v]) for v in stage.outputs])
        lines.append(
            f"{t.stage:4} {t.device} at {(t.begin - first) / 1e3:.0f} us: waited "
            f"{(t.ready - t.begin) / 1e3:.0f}, computed {(t.done - t.ready) / 1e3:.0f}, "
            f"gave {given:,} B in {(t.end - t.done) / 1e3:.0f}"
        )
    return "\n".join(lines)


def _bytes(kind: TensorType) -> int:
    return 0 if is_stack(kind.shape) else size(kind.shape) * kind.dtype.size
