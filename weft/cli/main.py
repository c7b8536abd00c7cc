"""The command line: `weft bench MODEL`."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path

from weft import config
from weft.cli.bench import Options, bench
from weft.cli.workload import DTYPES, WORKLOADS
from weft.errors import WeftError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; what the process is to exit with."""
    given = _parser().parse_args(arguments)
    options = Options(
        given.model, given.batch, given.seconds, given.dtype, given.inference, given.json,
        given.profile, given.trace,
    )  # fmt: skip
    threads = {} if given.threads is None else {"threads": given.threads}
    try:
        with config.override(**threads) if threads else contextlib.nullcontext():
            bench(options)
    except WeftError as error:
        print(f"weft bench: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="weft", description="Weft's commands.")
    commands = parser.add_subparsers(dest="command", required=True)
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
    return parser


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected an integer from 1, got {text}")
    return value
