"""How much memory there is, in total and free now, and whether it may hold code."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import mmap
import os
import resource
import sys
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


def may_hold_code() -> bool:
    """Whether memory that was written may be executed; hardened systems refuse that.

    Takes 10 us. LLVM's linker would abort the process.
    """
    if not sys.platform.startswith("linux"):
        return True
    page = mmap.mmap(-1, mmap.PAGESIZE)  # given back with `held`: Ctrl-C may come in between
    held = ctypes.c_char.from_buffer(page)
    place = ctypes.c_void_p(ctypes.addressof(held))
    code = mmap.PROT_READ | mmap.PROT_EXEC
    return not ctypes.CDLL(None).mprotect(place, ctypes.c_size_t(mmap.PAGESIZE), code)
