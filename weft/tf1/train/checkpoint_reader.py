"""Reading of checkpoints without a graph: names, shapes, types and values."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from weft.errors import DataError
from weft.formats.tensorflow.message import CODES, STRING
from weft.formats.tensorflow.store import Store, open_store
from weft.ir.dtype import DTYPES
from weft.tf1.errors import DataLossError, NotFoundError
from weft.tf1.framework.dtypes import DType, as_dtype
from weft.tf1.train.checkpoint_state import latest_checkpoint

__all__ = [
    "CheckpointReader", "NewCheckpointReader", "list_variables", "load_checkpoint", "load_variable",
]  # fmt: skip

Array = np.ndarray[Any, Any]


class CheckpointReader:
    """A checkpoint in Weft's format or in either of TensorFlow's.

    Args:
        filepattern: the path of the checkpoint, without the endings of its files.

    Raises:
        NotFoundError: there is no checkpoint at this path.
        DataLossError: it is damaged.

    Example:
        >>> import tempfile, weft.tf1 as tf
        >>> with tf.Graph().as_default(), tempfile.TemporaryDirectory() as folder:
        ...     w = tf.Variable([1.0, 2.0], name="w")
        ...     with tf.Session() as session:
        ...         session.run(w.initializer)
        ...         path = tf.train.Saver().save(session, folder + "/model")
        ...     tf.train.list_variables(path), tf.train.load_variable(path, "w").tolist()
        ([('w', [2])], [1.0, 2.0])
    """

    def __init__(self, filepattern: str) -> None:
        self._path = os.fspath(filepattern)
        try:
            found = open_store(self._path)
        except DataError as error:
            raise DataLossError(None, None, str(error)) from error
        if found is None:
            message = f"CheckpointReader: there is no checkpoint {self._path}"
            raise NotFoundError(None, None, message)
        self._store: Store = found

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """Shapes by name."""
        return {name: list(entry.shape) for name, entry in self._store.entries.items()}

    def get_variable_to_dtype_map(self) -> dict[str, DType]:
        """Element types by name, for numeric tensors."""
        entries = self._store.entries.items()
        return {
            name: as_dtype(CODES[e.dtype]) for name, e in entries if CODES.get(e.dtype) in DTYPES
        }

    def has_tensor(self, tensor_str: str) -> bool:
        """Whether there is a tensor with this name."""
        return tensor_str in self._store.entries

    def get_tensor(self, tensor_str: str) -> Any:
        """The value of a tensor; a string scalar is `bytes`.

        Raises:
            NotFoundError: there is no tensor with this name.
            DataLossError: the file is damaged.
        """
        if not self.has_tensor(tensor_str):
            message = f"get_tensor: {tensor_str!r} is not in {self._path}"
            raise NotFoundError(None, None, message)
        try:
            value = self._store.read(tensor_str)
        except (DataError, FileNotFoundError) as error:
            raise DataLossError(None, None, f"get_tensor: {error}") from error
        text = self._store.entries[tensor_str].dtype == STRING
        return value.item() if text and not value.ndim else value

    def debug_string(self) -> bytes:
        """A line for each tensor, as `bytes`."""
        kinds = self.get_variable_to_dtype_map()
        lines = [
            f"{name} ({kinds[name].name if name in kinds else 'string'}) {shape}"
            for name, shape in sorted(self.get_variable_to_shape_map().items())
        ]
        return "\n".join(lines).encode()


NewCheckpointReader = CheckpointReader


def load_checkpoint(ckpt_dir_or_file: str) -> CheckpointReader:
    """A reader of a checkpoint, or of the latest one in a folder.

    Args:
        ckpt_dir_or_file: the path of a checkpoint, or a folder, of which the latest one is read.

    Raises:
        NotFoundError: there is none.
        DataLossError: it is damaged.
    """
    path = os.fspath(ckpt_dir_or_file)
    return CheckpointReader((latest_checkpoint(path) or path) if Path(path).is_dir() else path)


def list_variables(ckpt_dir_or_file: str) -> list[tuple[str, list[int]]]:
    """Names and shapes in a checkpoint, sorted by name.

    Args:
        ckpt_dir_or_file: the path of a checkpoint, or a folder, of which the latest one is read.
    """
    return sorted(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())


def load_variable(ckpt_dir_or_file: str, name: str) -> Any:
    """The value of one variable; `name` may end in `:0`.

    Args:
        ckpt_dir_or_file: the path of a checkpoint, or a folder, of which the latest one is read.
        name: the variable's name.
    """
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name.removesuffix(":0"))
