"""The arguments of `weft launch`."""

from __future__ import annotations

import argparse

from weft.cli import torchrun
from weft.cli.argument import count, hosts, positive
from weft.cli.launch import Job, command_of, launch
from weft.cli.torchrun import both, placed, processes


def declare(one: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    number = one.add_mutually_exclusive_group(required=True)
    number.add_argument("-n", "-np", dest="ranks", type=positive, help="processes")
    number.add_argument(
        *both("nproc-per-node"), dest="per_host", type=processes, metavar="N",
        help="processes on each machine of --hosts, or on this one",
    )  # fmt: skip
    one.add_argument(
        "--hosts", type=hosts,
        help="machines and their ranks, as a:2,b:2; reached by ssh, or what HYDRA_LAUNCHER_EXEC "
        "names",
    )  # fmt: skip
    one.add_argument(
        "--threads", type=positive, help="threads of each (default: its share of its host's cores)"
    )
    one.add_argument(
        "--no-pin", action="store_true", help="do not pin ranks to their share of the cores"
    )
    one.add_argument(
        *both("max-restarts"), type=count, default=0, metavar="N",
        help="restart all after a failure, at most N times; the program continues from its "
        "newest checkpoint",
    )  # fmt: skip
    one.add_argument("--plain", action="store_true", help="print lines without the rank")
    one.add_argument("-m", dest="module", action="store_true", help="SCRIPT is a module's name")
    torchrun.declare(one)
    one.add_argument("script", metavar="SCRIPT")
    one.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...")
    one.set_defaults(run=_run)


def _run(given: argparse.Namespace) -> int:
    ranks, machines = placed(given, given.ranks, given.per_host)
    return launch(
        Job(
            command_of(given.script, given.arguments, given.module), ranks, machines,
            given.threads, not given.plain, given.max_restarts, not given.no_pin,
        )
    )  # fmt: skip
