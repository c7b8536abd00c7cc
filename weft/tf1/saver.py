"""`tf.train.Saver`: variables to a safetensors file and back; never a half-written file."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from weft.checkpoint.arrays import read_arrays, write_arrays
from weft.checkpoint.file import write_file
from weft.errors import DataError, DTypeError, GraphError
from weft.ir.shape import compatible, show
from weft.tf1.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from weft.tf1.graph import fail
from weft.tf1.variable import Variable
from weft.tf1.variable_list import global_variables

SUFFIX = ".safetensors"


class CheckpointState:
    """What the file `checkpoint` of a folder says: the latest path, and all that are kept."""

    def __init__(self, latest: str, every: Sequence[str]) -> None:
        self.model_checkpoint_path = latest
        self.all_model_checkpoint_paths = list(every)


class Saver:
    """Saves and restores variables.

    Args:
        var_list: variables, or a dict from names in the file to variables; all global ones by
            default.
        max_to_keep: how many checkpoints to keep; 0 or `None` keeps all.
    """

    def __init__(
        self,
        var_list: Mapping[str, Variable] | Sequence[Variable] | None = None,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: int | None = 5,
        **others: Any,
    ) -> None:
        del reshape, sharded, others
        chosen = global_variables() if var_list is None else var_list
        if not chosen:
            raise fail(GraphError, "Saver: expected variables to save, there are none")
        if isinstance(chosen, Mapping):
            self._variables = dict(chosen)
        else:
            self._variables = {v.op.name: v for v in chosen}
        for variable in self._variables.values():
            if not isinstance(variable, Variable):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise fail(DTypeError, f"Saver: expected variables, got {variable!r}")
        self._keep = max_to_keep or 0
        self._paths: list[str] = []

    @property
    def last_checkpoints(self) -> list[str]:
        """Paths of the checkpoints that are kept, the oldest first."""
        return list(self._paths)

    def save(
        self,
        sess: Any,
        save_path: str,
        global_step: Any = None,
        latest_filename: str | None = None,
        **others: Any,
    ) -> str:
        """Write the variables' values in `sess`; returns the path to give to `restore`.

        Raises:
            FailedPreconditionError: a variable has no value.
            NotFoundError: the folder does not exist.
        """
        del others
        path = os.fspath(save_path)
        if global_step is not None:
            step = sess.run(global_step) if hasattr(global_step, "graph") else global_step
            path = f"{path}-{int(step)}"
        folder = Path(path).parent
        if not folder.is_dir():
            raise NotFoundError(None, None, f"Saver: expected a folder at {folder} to save {path}")
        with sess.state.lock:  # all values are of one moment
            arrays = self._values(sess)
        write_arrays(Path(path + SUFFIX), arrays)
        self._remember(path, latest_filename or "checkpoint")
        return path

    def _values(self, sess: Any) -> dict[str, Any]:
        arrays: dict[str, Any] = {}
        for name, variable in self._variables.items():
            if variable.key not in sess.state:
                raise FailedPreconditionError(None, None, f"Saver: variable {name!r} has no value")
            arrays[name] = np.array(sess.state[variable.key])  # a copy: the next step overwrites it
        return arrays

    def _remember(self, path: str, latest: str) -> None:
        self._paths = [p for p in self._paths if p != path] + [path]
        while self._keep and len(self._paths) > self._keep:
            Path(self._paths.pop(0) + SUFFIX).unlink(missing_ok=True)
        lines = [f'model_checkpoint_path: "{path}"']
        lines += [f'all_model_checkpoint_paths: "{p}"' for p in self._paths]
        write_file(Path(path).parent / latest, ["\n".join([*lines, ""]).encode()])

    def restore(self, sess: Any, save_path: str) -> None:
        """Give the variables the values of a checkpoint; all of them or, on an error, none.

        Raises:
            NotFoundError: there is no such checkpoint, or it lacks a variable.
            InvalidArgumentError: a value of another shape or type, or a damaged file.
        """
        found = _read(Path(os.fspath(save_path) + SUFFIX))
        values: dict[str, Any] = {}
        for name, variable in self._variables.items():
            if name not in found:
                raise NotFoundError(None, None, f"restore: {name!r} is not in {save_path}")
            array, shape = found[name], variable.shape.as_dims()
            kind = variable.dtype.ir
            if array.dtype != kind.numpy or not compatible(array.shape, shape):
                raise InvalidArgumentError(
                    None,
                    None,
                    f"restore: expected {kind}{show(shape)} for {name!r}, "
                    f"got {array.dtype}{show(array.shape)} in {save_path}",
                )
            values[variable.key] = array
        for key, array in values.items():
            sess.state[key] = array


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise NotFoundError(None, None, f"restore: there is no checkpoint {path}")
    try:
        return read_arrays(path).arrays
    except DataError as error:
        raise InvalidArgumentError(None, None, f"restore: {error}") from error


def checkpoint_exists(checkpoint_prefix: str) -> bool:
    """Whether there is a checkpoint of this path."""
    return Path(os.fspath(checkpoint_prefix) + SUFFIX).is_file()


def get_checkpoint_state(
    checkpoint_dir: str, latest_filename: str | None = None
) -> CheckpointState | None:
    """What the folder's file `checkpoint` says, or `None`."""
    path = Path(checkpoint_dir) / (latest_filename or "checkpoint")
    if not path.is_file():
        return None
    paths = re.findall(r'^(\w+): "(.*)"$', path.read_text(), re.MULTILINE)
    latest = next((p for kind, p in paths if kind == "model_checkpoint_path"), None)
    every = [p for kind, p in paths if kind == "all_model_checkpoint_paths"]
    return None if latest is None else CheckpointState(latest, every)


def latest_checkpoint(checkpoint_dir: str, latest_filename: str | None = None) -> str | None:
    """The path of the newest checkpoint in a folder, or `None`."""
    found = get_checkpoint_state(checkpoint_dir, latest_filename)
    if found is None or not checkpoint_exists(found.model_checkpoint_path):
        return None
    return found.model_checkpoint_path
