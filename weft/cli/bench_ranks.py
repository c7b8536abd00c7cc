"""What `weft bench --ranks` adds: a job of several ranks, and the cost of communication."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import weft.distributed as dist
from weft import nn
from weft.errors import ConfigError
from weft.transport import collective, session
from weft.transport.tally import Span


def joined(model: nn.Module) -> nn.Module:
    """The model; with several ranks its gradients are averaged over them."""
    return nn.parallel.DistributedDataParallel(model) if rank_count() > 1 else model


def rank_count() -> int:
    """The number of ranks."""
    return dist.get_world_size() if dist.is_initialized() else 1


def rank_number() -> int:
    """This rank's number."""
    return dist.get_rank() if dist.is_initialized() else 0


def is_first() -> bool:
    """Whether this rank prints."""
    return rank_number() == 0


def share(batch: int) -> int:
    """This rank's part of a batch.

    Raises:
        ConfigError: the batch cannot be divided.
    """
    if batch % rank_count():
        raise ConfigError(f"expected a batch that {rank_count()} ranks divide, got {batch}")
    return batch // rank_count()


def agreed(more: bool) -> bool:
    """Rank 0's answer, on all ranks, so that they take the same number of steps."""
    return bool(chosen(int(more)))


def chosen(number: int) -> int:
    """Rank 0's number, on all ranks."""
    if rank_count() == 1:
        return number
    found = np.array([number])
    collective.broadcast(session.world(), found, 0, "bench: rank 0's choice")
    return int(found[0])


@contextlib.contextmanager
def spans() -> Iterator[list[Span]]:
    """Records collectives inside into the list."""
    found: list[Span] = []
    joined_job = session.current()
    if joined_job is None:
        yield found
        return
    tally = joined_job.transport.tally
    tally.spans = found
    try:
        yield found
    finally:
        tally.spans = None


def merged(trace: dict[str, Any]) -> dict[str, Any]:
    """The traces of all ranks merged, on rank 0's clock."""
    if rank_count() == 1:
        return trace
    dist.barrier()
    own = {"host": socket.gethostname(), "now": time.monotonic_ns(), "trace": trace}
    every: list[Any] = [None] * rank_count()
    dist.all_gather_object(every, own)
    events: list[Any] = []
    for each in every:
        # Hosts have different clocks; all ranks have left the barrier at about the same time.
        late = 0 if each["host"] == every[0]["host"] else each["now"] - every[0]["now"]
        for event in each["trace"]["traceEvents"]:
            if "ts" in event:
                event["ts"] -= late / 1e3
            events.append(event)
    return {**trace, "traceEvents": events}
