"""How much memory there is: for this process in total, and free now."""

from __future__ import annotations

import contextlib
import functools
import os
import resource
from pathlib import Path
from typing import Final

LINE: Final = 64  # bytes of a cache line, and of the widest vector

# Files in which the system states the limit of a process group (a container)
_GROUPS: Final = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def capacity() -> int:
    """Maximum bytes that this process can have, however little others take."""
    limit = _address_limit()
    return _installed() if limit is None else min(limit, _installed())


def addresses_left() -> int | None:
    """Bytes of addresses that this process may still map, if there is a limit (`ulimit -v`)."""
    limit = _address_limit()
    if limit is None:
        return None
    with contextlib.suppress(OSError):
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[0]
        return max(0, limit - int(pages) * resource.getpagesize())
    return limit


def _address_limit() -> int | None:
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else limit


@functools.cache
def _installed() -> int:
    """Bytes of the machine, or of the process's part of it."""
    found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for path in _GROUPS:
        try:
            text = Path(path).read_text(encoding="ascii").strip()
        except OSError:
            continue
        found = min(found, int(text) if text.isdigit() else found)
    return found


def available() -> int | None:
    """Bytes that the system can provide without swapping, if known."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        return None
    return None
