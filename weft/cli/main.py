"""The command line: `weft bench MODEL`, `weft launch -n 2 SCRIPT`, `weft checkpoint`."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weft import config
from weft.cli.bench import Options, bench
from weft.cli.checkpoint import add_checkpoint
from weft.cli.launch import Job, command_of, launch
from weft.cli.workload import DTYPES, WORKLOADS
from weft.errors import WeftError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; what the process is to exit with."""
    given = _parser().parse_args(arguments)
    try:
        return given.run(given)
    except (WeftError, OSError) as error:
        print(f"weft {given.command}: {error}", file=sys.stderr)
        return 2


def _bench(given: argparse.Namespace) -> int:
    options = Options(
        given.model, given.batch, given.seconds, given.dtype, given.inference, given.json,
        given.profile, given.trace,
    )  # fmt: skip
    threads = {} if given.threads is None else {"threads": given.threads}
    with config.override(**threads) if threads else contextlib.nullcontext():
        bench(options)
    return 0


def _launch(given: argparse.Namespace) -> int:
    command = command_of(given.script, given.arguments, given.module)
    return launch(
        Job(command, given.ranks, given.hosts, given.threads, not given.plain, given.max_restarts)
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="weft", description="Weft's commands.")
    commands = parser.add_subparsers(dest="command", required=True)
    _add_bench(commands)
    _add_launch(commands)
    add_checkpoint(commands)
    return parser


def _add_bench(commands: Any) -> None:
    about = "train a well-known network on random data, and tell how fast"
    one = commands.add_parser("bench", help=about, description=about.capitalize() + ".")
    one.add_argument("model", metavar="MODEL", help=", ".join(WORKLOADS))
    one.add_argument("--batch", type=_positive, help="examples in a step")
    one.add_argument("--seconds", type=float, default=15.0, help="how long to measure")
    one.add_argument("--threads", type=int, help="threads (default: WEFT_THREADS)")
    one.add_argument("--dtype", choices=DTYPES, default="float32", help="products are in this type")
    one.add_argument(
        "--inference", action="store_true", help="no gradients; one example unless --batch is given"
    )
    one.add_argument("--json", action="store_true", help="print one line of JSON")
    one.add_argument(
        "--profile", action="store_true", help="tell where a step's time goes, kernel by kernel"
    )
    one.add_argument(
        "--trace", type=Path, metavar="FILE", help="write a step's trace for chrome://tracing"
    )
    one.set_defaults(run=_bench)


def _add_launch(commands: Any) -> None:
    about = "start several processes of one program, which train together"
    one = commands.add_parser("launch", help=about, description=about.capitalize() + ".")
    one.add_argument("-n", dest="ranks", type=_positive, required=True, help="processes")
    one.add_argument("--hosts", default="", help="machines and their ranks, as a:2,b:2")
    one.add_argument(
        "--threads", type=_positive, help="threads of each (default: its share of the cores)"
    )
    one.add_argument(
        "--max-restarts", type=int, default=0, metavar="N",
        help="start all again after a failure, so often at most; the program goes on from its "
        "newest checkpoint",
    )  # fmt: skip
    one.add_argument("--plain", action="store_true", help="print lines without the rank")
    one.add_argument("-m", dest="module", action="store_true", help="SCRIPT is a module's name")
    one.add_argument("script", metavar="SCRIPT")
    one.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...")
    one.set_defaults(run=_launch)


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected an integer from 1, got {text}")
    return value
