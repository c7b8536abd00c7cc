"""Names in a folder of checkpoints.

step-100/            a checkpoint; step-100.1 if the same step was saved again
    arrays-00000-of-00001.safetensors    data of rank 0 of 1
    manifest.json    written last: the checkpoint's files, with digests
step-200.tmp/        is being written, or was left by a killed writer
lock                 locked by the writer
failure.json         why rank 0 has not committed, for the other ranks
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from pathlib import Path
from typing import Final

from weft.formats.atomic_file import sync_folder

MANIFEST: Final = "manifest.json"
LOCK: Final = "lock"
FAILURE: Final = "failure.json"
TEMPORARY: Final = ".tmp"
_STEP: Final = re.compile(r"step-(\d{1,18})(?:\.(\d{1,9}))?")


def step_folders(folder: Path) -> list[Path]:
    """The folders of checkpoints, by step; including damaged ones."""
    if not folder.is_dir():
        return []
    found = [path for path in folder.iterdir() if _STEP.fullmatch(path.name) and path.is_dir()]
    return sorted(found, key=_place)


def _place(path: Path) -> tuple[int, int]:
    step, again = _STEP.fullmatch(path.name).groups()  # pyright: ignore[reportOptionalMemberAccess]
    return int(step), int(again or 0)


def step_of(path: Path) -> int:
    """The step in the name of a checkpoint's folder."""
    return _place(path)[0]


def free_folder(folder: Path, step: int) -> Path:
    """A free folder name for a step, next to earlier ones of the same step."""
    taken = [_place(path)[1] for path in step_folders(folder) if step_of(path) == step]
    return folder / (f"step-{step}.{max(taken) + 1}" if taken else f"step-{step}")


def part_name(rank: int, ranks: int) -> str:
    """The name of the file with a rank's data."""
    return f"arrays-{rank:05}-of-{ranks:05}.safetensors"


def remove_folder(path: Path) -> None:
    """Removes a checkpoint, never leaving a part of it visible; ignores failures."""
    with contextlib.suppress(OSError):  # the next save tries again
        aside = path if path.name.endswith(TEMPORARY) else path.with_name(f"{path.name}.old.tmp")
        if aside != path:
            os.rename(path, aside)
            sync_folder(path.parent)
        shutil.rmtree(aside)


def remove_unfinished(folder: Path) -> None:
    """Removes what killed writers left; only while the folder is locked."""
    for path in folder.glob(f"step-*{TEMPORARY}"):
        remove_folder(path)
