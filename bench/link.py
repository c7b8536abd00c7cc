"""Two network namespaces joined by a link of a given speed: as two hosts, on one machine.

Made and removed here; nothing outside the namespaces is touched. It takes root, `ip` and `tc`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ADDRESSES = ("10.77.0.1", "10.77.0.2")


@dataclass(frozen=True)
class Link:
    """What starts a job over the link.

    Attributes:
        sides: what comes before the command of a process on each side, whose addresses are
            `ADDRESSES`.
        prefix: what comes before the launcher's command.
        options: of `weft launch`.
        env: for it.
    """

    sides: tuple[tuple[str, ...], ...]
    prefix: tuple[str, ...]
    options: tuple[str, ...]
    env: dict[str, str]


def absence() -> str:
    """Why there can be no link here; empty if there can be one."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return "not root"
    missing = [name for name in ("ip", "tc") if shutil.which(name) is None]
    if missing:
        return f"no {' and no '.join(missing)}"
    name = f"weft{os.getpid()}"
    if subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode:
        return "the system gives no network namespaces"
    _run("ip", "netns", "del", name)
    return ""


@contextlib.contextmanager
def limited_link(mbits: int) -> Iterator[Link]:
    """A link of so many Mbit/s each way, while inside."""
    spaces = [f"weft{os.getpid()}{side}" for side in "ab"]
    ends = [f"wv{os.getpid() % 100000}{side}" for side in "ab"]
    made: list[str] = []
    with tempfile.TemporaryDirectory(prefix="weft-link-") as folder:
        try:
            for space in spaces:
                _run("ip", "netns", "add", space)
                made.append(space)
            _run("ip", "link", "add", ends[0], "type", "veth", "peer", "name", ends[1])
            for space, end, address in zip(spaces, ends, ADDRESSES, strict=True):
                _join(space, end, address, mbits)
            shell = Path(folder) / "shell"
            shell.write_text(_SHELL.format(first=ADDRESSES[0], spaces=spaces))
            shell.chmod(0o755)
            sides = tuple([("ip", "netns", "exec", space) for space in spaces])
            yield Link(
                sides,
                sides[0],
                ("--hosts", ",".join([f"{address}:1" for address in ADDRESSES]), "--no-pin"),
                {"HYDRA_LAUNCHER": "ssh", "HYDRA_LAUNCHER_EXEC": str(shell),
                 "HYDRA_IFACE": ends[0], "UCX_TLS": "tcp,self"},  # no shared memory between them
            )  # fmt: skip
        finally:
            for space in made:
                _run("ip", "netns", "del", space)  # its end of the link goes with it


_SHELL = """#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift; done
host=$1
shift
case $host in {first}) space={spaces[0]};; *) space={spaces[1]};; esac
exec ip netns exec $space sh -c "$*"
"""


def _join(space: str, end: str, address: str, mbits: int) -> None:
    _run("ip", "link", "set", end, "netns", space)
    _run("ip", "-n", space, "addr", "add", f"{address}/24", "dev", end)
    _run("ip", "-n", space, "link", "set", "lo", "up")
    _run("ip", "-n", space, "link", "set", end, "up")
    limit = ("rate", f"{mbits}mbit", "burst", "256kb", "latency", "50ms")
    _run("ip", "netns", "exec", space, "tc", "qdisc", "add", "dev", end, "root", "tbf", *limit)


def _run(*command: Any) -> None:
    subprocess.run(command, check=True, capture_output=True)
