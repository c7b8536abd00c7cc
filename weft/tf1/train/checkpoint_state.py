"""The file `checkpoint` of a folder: which checkpoints are there, and which is the latest."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from weft.checkpoint.file import write_file
from weft.checkpoint.tensorflow.store import store_exists

STATE = "checkpoint"


class CheckpointState:
    """What the file `checkpoint` of a folder says: the latest path, and all that are kept."""

    def __init__(self, latest: str, every: Sequence[str]) -> None:
        self.model_checkpoint_path = latest
        self.all_model_checkpoint_paths = list(every)


def checkpoint_exists(checkpoint_prefix: str) -> bool:
    """Whether there is a checkpoint of this path, Weft's or TensorFlow's."""
    return store_exists(os.fspath(checkpoint_prefix))


def get_checkpoint_state(
    checkpoint_dir: str, latest_filename: str | None = None
) -> CheckpointState | None:
    """What the folder's file `checkpoint` says, of what is there; or `None`."""
    found = read_state(Path(checkpoint_dir) / (latest_filename or STATE), checkpoint_dir)
    if not found.model_checkpoint_path:
        return None
    found.all_model_checkpoint_paths = list(
        filter(checkpoint_exists, found.all_model_checkpoint_paths)
    )
    return found


def latest_checkpoint(checkpoint_dir: str, latest_filename: str | None = None) -> str | None:
    """The path of the newest checkpoint in a folder, or `None`."""
    found = get_checkpoint_state(checkpoint_dir, latest_filename)
    if found is None or not checkpoint_exists(found.model_checkpoint_path):
        return None
    return found.model_checkpoint_path


def read_state(path: Path, folder: str | None = None) -> CheckpointState:
    """What a file `checkpoint` says, which is nothing where there is none."""
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
    """Write a file `checkpoint`; what is relative in it is so to its folder."""
    lines = [f'model_checkpoint_path: "{_within(path, latest)}"'] if latest else []
    lines += [f'all_model_checkpoint_paths: "{_within(path, p)}"' for p in every]
    write_file(path, [os.fsencode("\n".join([*lines, ""]))])


def _within(state: Path, path: str) -> str:
    """A path as the file `checkpoint` has it: from its folder, unless it is absolute."""
    return path if os.path.isabs(path) else os.path.relpath(path, state.parent)
