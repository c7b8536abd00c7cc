"""One writer per folder: a lock that ends with the process, however it ends."""

from __future__ import annotations

import fcntl
import os
import weakref
from io import FileIO
from pathlib import Path

from weft.errors import FileError
from weft.formats.checkpoint_folder.layout import LOCK

_held: weakref.WeakSet[FileIO] = weakref.WeakSet()


def lock_folder(folder: Path) -> FileIO:
    """Makes this process the only writer of a folder, until the file is closed.

    Raises:
        FileError: another process writes there.
        OSError: the folder may not be written to.
    """
    file = FileIO(os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666), "r+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = file.read(20).decode("ascii", "replace").strip() or "unknown"
        file.close()
        raise FileError(
            f"checkpoint: process {owner} writes to {folder} already: expected one writer; "
            "close it, or save to another folder"
        ) from None
    file.truncate(0)
    file.write(b"%d\n" % os.getpid())
    _held.add(file)
    return file


def _let_go() -> None:
    """Drops the lock in a forked child, where it would outlive its parent's."""
    for file in list(_held):
        file.close()


os.register_at_fork(after_in_child=_let_go)
