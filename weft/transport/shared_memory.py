"""Memory that the ranks of one host share: what one writes there the others read, without messages.

Each rank has a file that lies in no folder, and maps those of the others; a system that has none of
these, or does not let one rank open another's, has no shared memory, and nothing else changes.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from weft.transport.base import Array, Transport
from weft.transport.channel import REGION_BYTES, Channel
from weft.transport.collective import all_gather_bytes
from weft.transport.group import Group

MOST_GROUPS: Final = 64
"""Later ones send messages. Memory that no group has written to is not there."""


class SharedMemory:
    """The memory of all ranks that this one can map, and who can map whose."""

    def __init__(
        self, maps: dict[int, Array], reached: list[set[int]], native: Callable[[], Any]
    ) -> None:
        self._maps, self._reached, self._native = maps, reached, native

    def channel(self, group: Group) -> Channel | None:
        """For the members of a group; `None` unless each has the memory of all."""
        members = set(group.ranks)
        if group.index < 0 or len(members) < 2 or group.number >= MOST_GROUPS:
            return None
        if not all(members <= self._reached[rank] for rank in members):
            return None
        begin = group.number * REGION_BYTES
        memory = [self._maps[rank][begin : begin + REGION_BYTES] for rank in group.ranks]
        crowded = group.transport.crowded
        return Channel(memory, group.ranks, group.index, self._native, crowded)


def share(transport: Transport, timeout: float, native: Callable[[], Any]) -> SharedMemory:
    """Make memory for the ranks of this host, and map theirs; all ranks call it."""
    world = Group(transport, range(transport.size), 0, timeout)  # counts no calls of the job's own
    own = _file()
    told = json.dumps([_host(), os.getpid(), own]).encode()
    found = [json.loads(text) for text in all_gather_bytes(world, told, "hosts of ranks")]
    maps: dict[int, Array] = {}
    for rank, (host, process, file) in enumerate(found):
        memory = _mapped(process, file) if host == _host() and own >= 0 <= file else None
        if memory is not None:
            maps[rank] = memory
    text = json.dumps(list(maps)).encode()
    reached = [set(json.loads(t)) for t in all_gather_bytes(world, text, "ranks of each host")]
    if own >= 0:
        os.close(own)
    return SharedMemory(maps, reached, native)


def _file() -> int:
    """A file in memory alone; -1 where the system has none."""
    if not hasattr(os, "memfd_create"):
        return -1
    with contextlib.suppress(OSError):
        file = os.memfd_create("weft")
        os.ftruncate(file, MOST_GROUPS * REGION_BYTES)
        return file
    return -1


def _mapped(process: int, file: int) -> Array | None:
    """The memory of a process of this host, if this one may have it."""
    with contextlib.suppress(OSError, ValueError):
        opened = os.open(f"/proc/{process}/fd/{file}", os.O_RDWR)
        try:
            return np.frombuffer(mmap.mmap(opened, MOST_GROUPS * REGION_BYTES), np.uint8)
        finally:
            os.close(opened)
    return None


def _host() -> list[str]:
    """What processes have in common that share memory: a boot, and namespaces as of a container."""
    found: list[str] = []
    with contextlib.suppress(OSError):
        found.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii"))
        found += [os.readlink(f"/proc/self/ns/{name}") for name in ("pid", "net")]
    return found
