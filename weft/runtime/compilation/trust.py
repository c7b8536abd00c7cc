"""Whether code that lies in files can only have been put there by this user, or by root."""

from __future__ import annotations

import os
import stat
from pathlib import Path

_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def distrust(folder: Path) -> str | None:
    """Why somebody else may have put files into a folder, or may yet; `None` where nobody could.

    As OpenSSH's `StrictModes`, up to the root; where only owners remove what is theirs (`/tmp`),
    others may write to what the folder lies in.

    Args:
        folder: without links on the way.

    Raises:
        OSError: the folder is not there, or out of reach.
    """
    for path in (folder, *folder.parents):
        status = os.lstat(path)
        if not stat.S_ISDIR(status.st_mode):
            return f"{path} is no folder"
        if not _is_ours(status):
            return f"{path} belongs to user {status.st_uid}"
        sticky = path != folder and status.st_mode & stat.S_ISVTX
        if status.st_mode & _OTHERS and not sticky:
            return f"others may write to {path}"
    return None


def is_trusted(file: int) -> bool:
    """Whether an open file is one that only this user, or root, can have written."""
    status = os.fstat(file)
    regular = stat.S_ISREG(status.st_mode)
    return regular and _is_ours(status) and not status.st_mode & _OTHERS


def _is_ours(status: os.stat_result) -> bool:
    return status.st_uid in (0, os.geteuid())
