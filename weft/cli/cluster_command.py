"""`weft cluster status HOST:PORT`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from weft.cli.argument import sentence
from weft.cluster.rpc import RpcOptions
from weft.cluster.status import Row, statuses
from weft.cluster.wait import Wait

MOST_WAITS: Final = 4
"""How many of a task's waits a table shows."""


def declare(one: argparse.ArgumentParser) -> None:
    """Adds the subcommands."""
    deeds = one.add_subparsers(dest="deed", required=True)
    told = "the tasks, their devices, variables and last steps, and who waits for whom"
    status = deeds.add_parser("status", help=told, description=sentence(told))
    status.add_argument("address", metavar="HOST:PORT", help="of any task")
    status.add_argument(
        "--token-file", type=Path, help="a file with the token that the servers demand"
    )
    status.add_argument("--authority", default="", help="a file (PEM) of the servers' authority")
    status.add_argument(
        "--timeout", type=float, default=5.0, help="seconds to wait for the server (default: 5)"
    )
    status.set_defaults(run=_status)


def _status(given: argparse.Namespace) -> int:
    token = "" if given.token_file is None else given.token_file.read_text().strip()
    options = RpcOptions(token=token, authority=given.authority, connect_timeout=given.timeout)
    rows = statuses(given.address.removeprefix("grpc://"), options)
    Console().print(table_of(rows))
    return 1 if any(["error" in row for row in rows]) else 0


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
