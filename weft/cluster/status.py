"""The state of a cluster's tasks."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from weft.cluster.links import PATIENT
from weft.cluster.rpc import Message, RpcOptions, connect
from weft.cluster.wait import Wait
from weft.cluster.worker.worker import Worker

Row = Mapping[str, Any]


def status_of(worker: Worker, sessions: int, waits: Sequence[Wait]) -> dict[str, Any]:
    """What a task tells about itself.

    Args:
        worker: of the task.
        sessions: how many its master has open.
        waits: what is under way.
    """
    variables = {key: x for state in worker.store.states.values() for key, x in sizes(state)}
    last = None if worker.last is None else (time.monotonic() - worker.last[0], worker.last[1])
    return {
        "task": worker.task,
        "devices": [device.attributes for device in worker.devices.values()],
        "variables": len(variables),
        "bytes": sum(variables.values()),
        "resources": len(worker.store.containers.names()),
        "sessions": sessions,
        "last": last,
        "waits": sorted(waits, key=lambda wait: -wait.seconds),
    }


def sizes(state: Any) -> list[tuple[str, int]]:
    """The keys of variables, and their bytes."""
    return [(key, state.memory(key).nbytes) for key in list(state)]


def statuses(address: str, options: RpcOptions | None = None) -> list[Row]:
    """What all tasks tell, through one of them.

    Args:
        address: `host:port` of any task.
        options: of the connection.

    Raises:
        UnavailableError: the task does not answer.
    """
    with connect(address, options or PATIENT, address) as channel:
        return channel.call(Message("status of all")).head["tasks"]
