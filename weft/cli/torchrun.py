"""`torchrun`'s options, for `weft launch` and `weft run -m torch.distributed.run`."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import Final

from weft.cli.argument import MOST_OF_A_HOST, count, hosts, positive
from weft.cli.launch import MASTER, Job, launch
from weft.errors import ConfigError

MODULES: Final = "torch.distributed.run", "torch.distributed.launch", "torch.distributed.launcher"
"""Modules of PyTorch that start ranks."""
_UNUSED: Final = (
    "rdzv-backend", "rdzv-endpoint", "rdzv-id", "rdzv-conf", "monitor-interval", "start-method",
    "role", "local-addr", "node-rank", "log-dir", "local-ranks-filter",
)  # fmt: skip
"""Options by which PyTorch's launchers find each other, or watch ranks; here MPI does."""


def both(name: str) -> tuple[str, ...]:
    """An option's name, with hyphens and with underscores.

    >>> both("max-restarts")
    ('--max-restarts', '--max_restarts')
    """
    names = f"--{name}", f"--{name.replace('-', '_')}"
    return names if "-" in name else names[:1]


def processes(text: str) -> int:
    """A number of processes: from 1, or `auto` and `cpu` for as many as there are cores.

    Raises:
        ArgumentTypeError: it is something else; `gpu`, because there are none.
    """
    if text in ("auto", "cpu"):
        return min(len(os.sched_getaffinity(0)), MOST_OF_A_HOST)
    if text == "gpu":
        raise argparse.ArgumentTypeError("expected a number: there is no CUDA device")
    return positive(text)


def machines(text: str) -> int:
    """A number of machines, or the most of a range `LEAST:MOST`."""
    return positive(text.rpartition(":")[2])


def declare(one: argparse.ArgumentParser) -> None:
    """Adds the options that `weft launch` shares."""
    one.add_argument(
        *both("nnodes"), type=machines, default=None, metavar="N",
        help="machines; with more than one, --hosts names them",
    )  # fmt: skip
    one.add_argument(*both("standalone"), action="store_true", help="on this machine alone")
    for name, variable in zip(("master-addr", "master-port"), MASTER, strict=True):
        one.add_argument(
            *both(name), default=None, metavar="TEXT",
            help=f"what programs find in {variable}; Weft does not use it",
        )  # fmt: skip
    for name in _UNUSED:
        one.add_argument(*both(name), default=None, help=argparse.SUPPRESS)


def placed(given: argparse.Namespace, ranks: int | None, per_host: int | None) -> tuple[int, str]:
    """The number of ranks, and the machines with their numbers of ranks.

    Raises:
        ConfigError: the machines are not those that the options say, or have two numbers.
    """
    for name, variable in zip(("master_addr", "master_port"), MASTER, strict=True):
        if getattr(given, name) is not None:
            os.environ[variable] = getattr(given, name)
    names = given.hosts.split(",") if given.hosts else []
    if given.standalone and len(names) > 1:
        raise ConfigError(f"launch: expected one machine with --standalone, got {given.hosts!r}")
    if given.nnodes not in (None, max(1, len(names))):
        raise ConfigError(
            f"launch: expected --hosts with {given.nnodes} machines for --nnodes {given.nnodes}, "
            f"got {given.hosts or 'none'}: one command starts the ranks of all, over ssh"
        )
    if per_host is None:
        assert ranks is not None
        return ranks, given.hosts or ""
    if ":" in (given.hosts or ""):
        raise ConfigError(
            f"launch: expected --hosts without numbers beside --nproc-per-node, got {given.hosts!r}"
        )
    return per_host * max(1, len(names)), ",".join([f"{name}:{per_host}" for name in names])


def run(arguments: Sequence[str]) -> int:
    """`weft run -m torch.distributed.run`: starts ranks of a program for PyTorch."""
    parser = argparse.ArgumentParser(prog="torch.distributed.run", allow_abbrev=False)
    parser.add_argument(*both("nproc-per-node"), type=processes, default=1, metavar="N")
    parser.add_argument("--hosts", type=hosts)
    parser.add_argument(*both("max-restarts"), type=count, default=0, metavar="N")
    parser.add_argument("-m", *both("module"), dest="module", action="store_true")
    parser.add_argument(*both("use-env"), action="store_true", help=argparse.SUPPRESS)
    for name, short in (("redirects", "-r"), ("tee", "-t")):
        parser.add_argument(short, *both(name), default=None, help=argparse.SUPPRESS)
    declare(parser)
    parser.add_argument("script", metavar="SCRIPT")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...")
    given = parser.parse_args(arguments)
    ranks, names = placed(given, None, given.nproc_per_node)
    module = ["-m"] if given.module else []
    command = ("-m", "weft", "run", *module, given.script, *given.arguments)
    return launch(Job(command, ranks, names, restarts=given.max_restarts))
