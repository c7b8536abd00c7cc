"""Memory that a process has."""

from __future__ import annotations

import resource
from pathlib import Path


def resident() -> int:
    """Bytes of memory that the process has."""
    fields = Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * resource.getpagesize()
