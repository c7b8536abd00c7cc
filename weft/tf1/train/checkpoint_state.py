"""The `checkpoint` file of a folder: the kept checkpoints, and the latest one."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from weft.formats.atomic_file import write_file
from weft.formats.tensorflow.store import store_exists

__all__ = ["CheckpointState", "checkpoint_exists", "get_checkpoint_state", "latest_checkpoint"]

STATE = "checkpoint"


class CheckpointState:
    """The contents of a `checkpoint` file: the latest path, and all kept ones.

    Args:
        latest: the newest path.
        every: all paths, from the oldest on.
    """

    def __init__(self, latest: str, every: Sequence[str]) -> None:
        self.model_checkpoint_path = latest
        self.all_model_checkpoint_paths = list(every)


def checkpoint_exists(checkpoint_prefix: str) -> bool:
    """Whether there is a checkpoint at this path, in Weft's or TensorFlow's format.

    Args:
        checkpoint_prefix: the path, without the endings of its files.
    """
    return store_exists(os.fspath(checkpoint_prefix))


def get_checkpoint_state(
    checkpoint_dir: str, latest_filename: str | None = None
) -> CheckpointState | None:
    """The contents of the folder's `checkpoint` file, without deleted checkpoints; or `None`.

    Args:
        checkpoint_dir: the folder.
        latest_filename: the file in it; `checkpoint` by default.
    """
    found = read_state(Path(checkpoint_dir) / (latest_filename or STATE), checkpoint_dir)
    if not found.model_checkpoint_path:
        return None
    found.all_model_checkpoint_paths = list(
        filter(checkpoint_exists, found.all_model_checkpoint_paths)
    )
    return found


def latest_checkpoint(checkpoint_dir: str, latest_filename: str | None = None) -> str | None:
    """The path of the newest checkpoint in a folder, or `None`.

    Args:
        checkpoint_dir: the folder.
        latest_filename: the file in it that lists checkpoints; `checkpoint` by default.
    """
    found = get_checkpoint_state(checkpoint_dir, latest_filename)
    if found is None or not checkpoint_exists(found.model_checkpoint_path):
        return None
    return found.model_checkpoint_path


def read_state(path: Path, folder: str | None = None) -> CheckpointState:
    """The contents of a `checkpoint` file; empty if there is none."""
    text = os.fsdecode(path.read_bytes()) if path.is_file() else ""
    folder = os.fspath(path.parent if folder is None else folder)
    paths = [
        (kind, os.path.join(folder, name))
        for kind, name in re.findall(r'^(\w+): "(.+)"$', text, re.MULTILINE)
    ]
    latest = next((p for kind, p in paths if kind == "model_checkpoint_path"), "")
    every = [p for kind, p in paths if kind == "all_model_checkpoint_paths"]
    return CheckpointState(latest, every)


def write_state(path: Path, latest: str, every: Sequence[str]) -> None:
    """Write a `checkpoint` file; its relative paths start at its folder."""
    lines = [f'model_checkpoint_path: "{_within(path, latest)}"'] if latest else []
    lines += [f'all_model_checkpoint_paths: "{_within(path, p)}"' for p in every]
    write_file(path, [os.fsencode("\n".join([*lines, ""]))])


def _within(state: Path, path: str) -> str:
    """A path for the `checkpoint` file: relative to its folder, unless it is absolute."""
    return path if os.path.isabs(path) else os.path.relpath(path, state.parent)
