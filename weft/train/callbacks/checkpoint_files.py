"""Checkpoint files of a callback: their names, and writing them in the background."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.formats.checkpoint_folder.background import Background
from weft.formats.checkpoint_folder.snapshot import Snapshot
from weft.formats.safetensors import write_arrays
from weft.serialization import taken_apart


class CheckpointFiles:
    """Writes states to files; a thread does it while training goes on.

    Args:
        background: if false, `save` returns when the file is on disk.
    """

    def __init__(self, background: bool = True) -> None:
        self._background = Background() if background else None
        self._snapshot = Snapshot()

    def save(
        self, state: Mapping[str, Any], path: Path, also: Path | None = None,
        symbolic: bool = False, instead_of: Sequence[str] = (),
    ) -> None:  # fmt: skip
        """Write a file, whole or not at all; its arrays are copied first.

        Args:
            also: a second name of the file.
            symbolic: whether that is a symbolic link.
            instead_of: files that are removed afterwards.

        Raises:
            OSError: the disk is full, or the folder not writable. Errors of the thread are raised
                by the next call.
        """
        self.wait()
        arrays, text = taken_apart(dict(state))
        copies = arrays if self._background is None else self._snapshot.take(arrays)

        def work() -> None:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_arrays(path, copies, text)
            if also is not None and also != path:
                _link(path, also, symbolic)
            for old in instead_of:
                if Path(old) not in (path, also):
                    Path(old).unlink(missing_ok=True)

        if self._background is None:
            work()
        else:
            self._background.start(work)

    def wait(self) -> None:
        """Wait until everything is on disk; raises an error of the thread."""
        if self._background is not None:
            self._background.wait()


def _link(path: Path, also: Path, symbolic: bool) -> None:
    """Give a file a second name, in place of any file of that name."""
    waiting = also.with_name(f".{also.name}.tmp")
    waiting.unlink(missing_ok=True)
    if symbolic:
        waiting.symlink_to(os.path.relpath(path, also.parent))
    else:
        try:
            os.link(path, waiting)
        except OSError:  # the file system has no links
            shutil.copy2(path, waiting)
    waiting.replace(also)


def name_of(template: str, figures: Mapping[str, Any], inserts_names: bool) -> str:
    """A file's name from its template.

    Args:
        template: such as `"{epoch:02d}-{val_loss:.2f}"`; metrics that are not known are 0.
        inserts_names: whether `{epoch}` becomes `epoch=0`.

    >>> name_of("{epoch:02d}-{val/loss:.2f}", {"epoch": 3, "val/loss": 0.126}, True)
    'epoch=03-val/loss=0.13'
    """

    def filled(found: re.Match[str]) -> str:
        name, spec = found[1], found[2] or ""
        value = figures.get(name, 0)
        text = format(int(value) if spec.endswith("d") else value, spec[1:])
        return f"{name}={text}" if inserts_names else text

    return re.sub(r"\{([^{}:]+)(:[^{}]*)?\}", filled, template)


def free(path_of: Callable[[int | None], Path], own: str) -> Path:
    """The first path that is not a file of another run: without a version, or with 1, 2, ...

    Args:
        path_of: the path with a version.
        own: a path that is replaced.
    """
    version, path = None, path_of(None)
    while path.exists() and str(path) != own:
        version = 1 if version is None else version + 1
        path = path_of(version)
    return path


def newest(folder: Path) -> Path | None:
    """The file `*.ckpt` in a folder that was written last, or `None`."""
    found: list[tuple[int, bool, Path]] = []
    for path in folder.rglob("*.ckpt") if folder.is_dir() else ():
        with contextlib.suppress(OSError):
            found.append((path.stat().st_mtime_ns, path.name.startswith("last"), path))
    return max(found)[2] if found else None
