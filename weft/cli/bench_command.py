"""The arguments of `weft bench`."""

from __future__ import annotations

import argparse
import contextlib
from pathlib import Path

from weft import config
from weft.cli.argument import hosts, positive, seconds
from weft.cli.bench import Options, bench
from weft.cli.workload import DTYPES, WORKLOADS


def declare(one: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    one.add_argument("model", metavar="MODEL", help=", ".join(WORKLOADS))
    one.add_argument("--batch", type=positive, help="examples in a step, of all ranks together")
    one.add_argument("--seconds", type=seconds, default=15.0, help="how long to measure")
    one.add_argument("--threads", type=positive, help="threads (default: WEFT_THREADS)")
    one.add_argument("--ranks", type=positive, default=1, help="processes that train together")
    one.add_argument(
        "--hosts", type=hosts, default=None, help="machines and their ranks, as a:2,b:2"
    )
    one.add_argument("--dtype", choices=DTYPES, default="float32", help="matmuls use this type")
    one.add_argument(
        "--inference", action="store_true", help="no gradients; one example unless --batch is given"
    )
    one.add_argument("--json", action="store_true", help="print one line of JSON")
    one.add_argument(
        "--profile", action="store_true", help="show where a step's time goes, kernel by kernel"
    )
    one.add_argument(
        "--trace", type=Path, metavar="FILE", help="write a step's trace for chrome://tracing"
    )
    one.set_defaults(run=_run)


def _run(given: argparse.Namespace) -> int:
    options = Options(
        given.model, given.batch, given.seconds, given.dtype, given.inference, given.json,
        given.profile, given.trace, given.ranks, given.hosts or "", given.threads,
    )  # fmt: skip
    threads = {} if given.threads is None else {"threads": given.threads}
    with config.override(**threads) if threads else contextlib.nullcontext():
        return bench(options)
