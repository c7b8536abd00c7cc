"""Memory shared by the ranks of one host.

Each rank has an anonymous file (memfd) and maps those of the others. On systems without such files,
or where ranks may not open each other's, ranks use messages instead.
"""

from __future__ import annotations

import contextlib
import mmap
import os
from typing import TYPE_CHECKING, Final

import numpy as np

from weft.host.deferred import Deferred
from weft.host.identity import host_identity
from weft.transport.base import Array, Transport
from weft.transport.channel import REGION_BYTES, Channel
from weft.transport.collective import all_gather_bytes
from weft.transport.group import Group
from weft.transport.native import Native

if TYPE_CHECKING:
    import json
else:
    json = Deferred("json")

MOST_GROUPS: Final = 64
"""The most groups with shared memory; later ones send messages. Unused memory is not resident."""

START: Final = (1 << 32) - 1
"""The number of the group that ranks use at the start. It differs from the job's groups, because a
late rank may still receive notes about its calls when the job makes its first call."""


class SharedMemory:
    """The mapped memory of other ranks, and which ranks can map which."""

    def __init__(self, maps: dict[int, Array], reached: list[set[int]], native: Native) -> None:
        self._maps, self._reached, self._native = maps, reached, native

    def channel(self, group: Group) -> Channel | None:
        """A channel for a group; `None` unless every member maps the memory of all."""
        members = set(group.ranks)
        if group.index < 0 or len(members) < 2 or group.number >= MOST_GROUPS:
            return None
        if not all(members <= self._reached[rank] for rank in members):
            return None
        begin = group.number * REGION_BYTES
        memory = [self._maps[rank][begin : begin + REGION_BYTES] for rank in group.ranks]
        transport, place = group.transport, group.index
        return Channel(memory, group.ranks, place, self._native, transport.crowded, transport.words)


def share(transport: Transport, timeout: float, native: Native) -> SharedMemory:
    """Make memory for the ranks of this host, and map theirs; all ranks call it."""
    world = Group(transport, range(transport.size), START, timeout)
    own = _file()
    told = json.dumps([host_identity(), os.getpid(), own]).encode()
    hosts = [json.loads(text) for text in all_gather_bytes(world, told, "hosts of ranks")]
    maps: dict[int, Array] = {}
    for rank, (host, process, file) in enumerate(hosts):
        memory = _mapped(process, file) if host == host_identity() and own >= 0 <= file else None
        if memory is not None:
            maps[rank] = memory
    text = json.dumps(list(maps)).encode()
    reached = [set(json.loads(t)) for t in all_gather_bytes(world, text, "ranks of each host")]
    if own >= 0:
        os.close(own)
    return SharedMemory(maps, reached, native)


def _file() -> int:
    """An anonymous file; -1 if the system has none."""
    if not hasattr(os, "memfd_create"):
        return -1
    with contextlib.suppress(OSError):
        file = os.memfd_create("weft")
        os.ftruncate(file, MOST_GROUPS * REGION_BYTES)
        return file
    return -1


def _mapped(process: int, file: int) -> Array | None:
    """Another process's memory, if this one may open it."""
    with contextlib.suppress(OSError, ValueError):
        opened = os.open(f"/proc/{process}/fd/{file}", os.O_RDWR)
        try:
            return np.frombuffer(mmap.mmap(opened, MOST_GROUPS * REGION_BYTES), np.uint8)
        finally:
            os.close(opened)
    return None
