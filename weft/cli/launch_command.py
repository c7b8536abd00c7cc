"""The arguments of `weft launch`."""

from __future__ import annotations

import argparse

from weft.cli.argument import count, hosts, positive
from weft.cli.launch import Job, command_of, launch
from weft.errors import ConfigError


def declare(one: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    number = one.add_mutually_exclusive_group(required=True)
    number.add_argument("-n", "-np", dest="ranks", type=positive, help="processes")
    number.add_argument(
        "--nproc-per-node", "--nproc_per_node", dest="per_host", type=positive, metavar="N",
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
        "--max-restarts", type=count, default=0, metavar="N",
        help="restart all after a failure, at most N times; the program continues from its "
        "newest checkpoint",
    )  # fmt: skip
    one.add_argument("--plain", action="store_true", help="print lines without the rank")
    one.add_argument("-m", dest="module", action="store_true", help="SCRIPT is a module's name")
    one.add_argument("script", metavar="SCRIPT")
    one.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...")
    one.set_defaults(run=_run)


def _run(given: argparse.Namespace) -> int:
    ranks, machines = _placed(given.ranks, given.per_host, given.hosts or "")
    return launch(
        Job(
            command_of(given.script, given.arguments, given.module), ranks, machines,
            given.threads, not given.plain, given.max_restarts, not given.no_pin,
        )
    )  # fmt: skip


def _placed(ranks: int | None, per_host: int | None, machines: str) -> tuple[int, str]:
    """The number of ranks, and the machines with their numbers of ranks.

    Example:
        >>> _placed(None, 2, "a,b")
        (4, 'a:2,b:2')

    Raises:
        ConfigError: there are two numbers for a machine.
    """
    if per_host is None:
        assert ranks is not None
        return ranks, machines
    if ":" in machines:
        raise ConfigError(
            f"launch: expected --hosts without numbers beside --nproc-per-node, got {machines!r}"
        )
    names = machines.split(",") if machines else []
    return per_host * max(1, len(names)), ",".join([f"{name}:{per_host}" for name in names])
