"""The state of a cluster's tasks, as a table."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.table import Table

from weft.cluster.links import PATIENT
from weft.cluster.rpc import Message, RpcOptions, connect
from weft.cluster.wait import Wait
from weft.cluster.worker.worker import Worker

MOST_WAITS: Final = 4
"""How many of a task's waits a table shows."""
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
    found: list[tuple[str, int]] = []
    for key in state:
        with contextlib.suppress(KeyError):  # it was forgotten meanwhile
            found.append((key, state.memory(key).nbytes))
    return found


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


def table_of(rows: Sequence[Row]) -> Table:
    """The table, for `rich`."""
    table = Table()
    for name in ("task", "devices"):
        table.add_column(name, overflow="fold")
    for name in ("variables", "memory", "queues", "sessions", "last step"):
        table.add_column(name, justify="right")
    table.add_column("waits for", overflow="fold")
    for row in rows:
        if "error" in row:
            table.add_row(row["task"], f"[red]{row['error']}[/red]")
        else:
            table.add_row(*_cells(row))
    return table


def _cells(row: Row) -> list[str]:
    devices = ", ".join([str(device[0]).rpartition("/device:")[2] for device in row["devices"]])
    numbers = [f"{row[name]:,}" for name in ("variables", "bytes", "resources", "sessions")]
    waits = [_wait(Wait(*wait)) for wait in row["waits"][:MOST_WAITS]]
    more = len(row["waits"]) - MOST_WAITS
    if more > 0:
        waits.append(f"and {more} more")
    return [row["task"], devices, *numbers, _last(row["last"]), "\n".join(waits)]


def _last(last: Sequence[float] | None) -> str:
    return "none" if last is None else f"{last[1] * 1e3:.1f} ms, {last[0]:.1f} s ago"


def _wait(wait: Wait) -> str:
    """A line about a wait.

    >>> _wait(Wait("step a/1.2", ["/job:ps/replica:0/task:0"], 1.25))
    'step a/1.2: /job:ps/replica:0/task:0, for 1.2 s'
    """
    tasks = ", ".join(wait.tasks) or "itself"
    return f"{wait.what}: {tasks}, for {wait.seconds:.1f} s"
