"""Slurm's lists of hosts and of tasks per node, as text."""

from __future__ import annotations

import itertools
import re
from typing import Final

from weft.errors import ArgumentError

_PIECE: Final = re.compile(r"([^,\[\]]+)|\[([^\[\]]+)\]")
_RANGE: Final = re.compile(r"(\d+)(?:-(\d+))?")
_REPEATED: Final = re.compile(r"(\d+)(?:\(x(\d+)\))?")
MOST_HOSTS: Final = 1 << 20


def expand_hostlist(hostlist: str) -> list[str]:
    """The hosts of a list, in order, as `scontrol show hostnames` gives them.

    >>> expand_hostlist("n[1-2],m5,o[03-04,6],rack[0-1]x[8-9]-ib")
    ['n1', 'n2', 'm5', 'o03', 'o04', 'o6', 'rack0x8-ib', 'rack0x9-ib', 'rack1x8-ib', 'rack1x9-ib']

    Raises:
        ArgumentError: it is no such list.
    """
    return [host for part in _parts(hostlist) for host in _expanded(part, hostlist)]


def _parts(hostlist: str) -> list[str]:
    """Split at the commas outside brackets."""
    found, start, depth = list[str](), 0, 0
    for i, c in enumerate(hostlist + ","):
        depth += (c == "[") - (c == "]")
        if c == "," and depth == 0:
            found.append(hostlist[start:i])
            start = i + 1
    if depth or not all(found):
        raise _refused(hostlist)
    return found


def _expanded(part: str, hostlist: str) -> list[str]:
    position, choices = 0, list[list[str]]()
    while position < len(part):
        match = _PIECE.match(part, position)
        if match is None:
            raise _refused(hostlist)
        plain, ranges = match.groups()
        choices.append([plain] if plain else _numbers(ranges, hostlist))
        position = match.end()
    return ["".join(words) for words in itertools.product(*choices)]


def _numbers(ranges: str, hostlist: str) -> list[str]:
    found: list[str] = []
    for one in ranges.split(","):
        match = _RANGE.fullmatch(one)
        if match is None:
            raise _refused(hostlist)
        first, last = match[1], match[2] or match[1]
        if not 0 <= int(last) - int(first) < MOST_HOSTS:
            raise _refused(hostlist)
        found += [str(i).zfill(len(first)) for i in range(int(first), int(last) + 1)]
    return found


def _refused(hostlist: str) -> ArgumentError:
    return ArgumentError(
        f"hosts: expected a list as Slurm writes it, such as n[1-2],m5, got {hostlist!r}"
    )


def expand_tasks_per_node(tasks_per_node: str) -> list[int]:
    """How many tasks each host of a list has.

    >>> expand_tasks_per_node("3(x2),2,1")
    [3, 3, 2, 1]

    Raises:
        ArgumentError: it is no such text.
    """
    found: list[int] = []
    for part in tasks_per_node.split(","):
        match = _REPEATED.fullmatch(part)
        if match is None:
            raise ArgumentError(
                f"tasks per node: expected counts as Slurm writes them, such as 3(x2),1, "
                f"got {tasks_per_node!r}"
            )
        found += [int(match[1])] * int(match[2] or 1)
    return found
