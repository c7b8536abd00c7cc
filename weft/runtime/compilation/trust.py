"""Whether code in files can only have been written by this user or by root."""

from __future__ import annotations

import os
import stat
from pathlib import Path

_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def distrust(folder: Path) -> str | None:
    """Why another user may have written, or may write, files in a folder; `None` if none can.

    As OpenSSH's `StrictModes`, up to the root; parents with the sticky bit (`/tmp`) may be writable
    by others.

    Args:
        folder: a path without links.

    Raises:
        OSError: the folder is missing or not accessible.
    """
    for path in (folder, *folder.parents):
        status = os.lstat(path)
        if not stat.S_ISDIR(status.st_mode):
            return f"{path} is not a folder"
        if not _is_ours(status):
            return f"{path} belongs to user {status.st_uid}"
        sticky = path != folder and status.st_mode & stat.S_ISVTX
        if status.st_mode & _OTHERS and not sticky:
            return f"others may write to {path}"
    return None


def is_trusted(file: int) -> bool:
    """Whether an open file can only have been written by this user or root."""
    status = os.fstat(file)
    regular = stat.S_ISREG(status.st_mode)
    return regular and _is_ours(status) and not status.st_mode & _OTHERS


def _is_ours(status: os.stat_result) -> bool:
    return status.st_uid in (0, os.geteuid())
