"""`weft cluster status HOST:PORT`."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from weft.cli.argument import sentence
from weft.cluster.rpc import RpcOptions
from weft.cluster.status import statuses, table_of


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
