"""`tf.train.Checkpoint` and its manager: variables by the attributes that lead to them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import weft.tf1 as tf
from weft.errors import StateError
from weft.tf1.framework.graph import fail
from weft.tf1.keras.engine import sessions
from weft.tf1.keras.engine.tracking import Tracked
from weft.tf1.keras.storage.checkpoint import VALUE, names_of
from weft.tf1.train.optimizer import Optimizer

__all__ = ["Checkpoint", "CheckpointManager"]


class Checkpoint:
    """Saves and restores what it is given.

    Args:
        root: accepted by position, as an object whose variables are at the top.
        objects: by name: variables, models, optimizers, other checkpoints, and lists and
            dictionaries of these. They are attributes.

    >>> import tempfile
    >>> import weft.tf1 as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     v = tf.Variable(1.0)
    ...     session.run(v.initializer)
    ...     path = tf.train.Checkpoint(v=v).save(tempfile.mkdtemp() + "/ckpt")
    ...     session.run(v.assign(2.0))
    ...     _ = tf.train.Checkpoint(v=v).restore(path)
    ...     float(session.run(v))
    np.float32(2.0)
    1.0
    """

    def __init__(self, root: Any = None, **objects: Any) -> None:
        self._objects = {**({} if root is None else {"root": root}), **objects}
        self._count = 0

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_objects"][name]
        except KeyError:
            raise AttributeError(f"Checkpoint: there is no {name!r}") from None

    @property
    def variables(self) -> dict[str, Any]:
        """The variables by their names in the file; those that exist now."""
        return self.found("")

    def found(self, path: str) -> dict[str, Any]:
        """The variables by name, below a path."""
        return _found(path, self._objects)

    def write(self, file_prefix: Any, options: Any = None) -> str:
        """Write the values; returns the path to give to `restore`.

        Args:
            file_prefix: the path; its folder is created if needed.
            options: accepted.
        """
        del options
        return self._write(os.fspath(file_prefix), None, None)

    def save(self, file_prefix: Any, session: Any = None, options: Any = None) -> str:
        """Write the values to `file_prefix-1`, and so on."""
        del session, options
        return self.numbered(os.fspath(file_prefix), None, None)

    def numbered(self, path: str, number: int | None, most: int | None) -> str:
        """Write the values to `path-number`, the next number by default.

        Args:
            most: how many checkpoints are kept; all for `None`.
        """
        self._count = self._count + 1 if number is None else int(number)
        return self._write(path, self._count, most)

    def _write(self, path: str, step: int | None, most: int | None) -> str:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        saver = tf.train.Saver(self.variables, write_version=tf.train.SaverDef.V2, max_to_keep=most)
        listed = step is not None
        session = sessions.get_session()
        return saver.save(session, path, step, write_state=listed, write_meta_graph=False)

    def restore(self, save_path: str | None, options: Any = None) -> Restored:
        """Read the values; those of variables that do not exist yet are read once they do.

        Args:
            save_path: what `save` returned; nothing is read for `None`.
            options: accepted.
        """
        del options
        found = Restored(self, save_path)
        if save_path is not None:
            number = save_path.rpartition("-")[2]
            self._count = int(number) if number.isdigit() else 0
            eager = tf.get_default_graph().at_once
            if not found.read() and eager is not None:
                eager.waiting.append(found.read)
        return found

    read = restore


class Restored:
    """What became of a restoration.

    Args:
        checkpoint: what is restored.
        path: the file; `None` reads nothing.
    """

    def __init__(self, checkpoint: Checkpoint, path: str | None) -> None:
        self._checkpoint = checkpoint
        self._reader = None if path is None else tf.train.load_checkpoint(path)
        names: Mapping[str, Any] = (
            {} if self._reader is None else (self._reader.get_variable_to_shape_map())
        )
        self._left = {n for n in names if n.endswith(VALUE)}

    def read(self) -> bool:
        """Read the values of the variables that exist now; whether that is all."""
        own = self._checkpoint.variables
        ready = sorted(self._left.intersection(own))
        reader: Any = self._reader
        sessions.assign_values([(own[n], reader.get_tensor(n)) for n in ready])
        self._left.difference_update(ready)
        return not self._left

    def assert_consumed(self) -> Restored:
        """Itself.

        Raises:
            StateError: the file has values that nothing took.
        """
        if self._left:
            names = sorted(n.removesuffix(VALUE) for n in self._left)
            raise fail(StateError, f"restore: expected variables for all values, none took {names}")
        return self

    def assert_existing_objects_matched(self) -> Restored:
        """Itself."""
        return self

    def expect_partial(self) -> Restored:
        """Itself."""
        return self


class CheckpointManager:
    """Keeps the last checkpoints of a folder.

    Args:
        checkpoint: what is saved.
        directory: the folder.
        max_to_keep: how many; all for `None`.
        checkpoint_name: the first part of their names.
    """

    def __init__(
        self, checkpoint: Checkpoint, directory: Any, max_to_keep: int | None,
        checkpoint_name: str = "ckpt", **options: Any,
    ) -> None:  # fmt: skip
        del options
        self._checkpoint, self._folder = checkpoint, os.fspath(directory)
        self._most, self._name = max_to_keep, checkpoint_name

    @property
    def checkpoints(self) -> list[str]:
        """The paths, oldest first."""
        state = tf.train.get_checkpoint_state(self._folder)
        return [] if state is None else list(state.all_model_checkpoint_paths)

    @property
    def latest_checkpoint(self) -> str | None:
        """The path of the newest one."""
        return tf.train.latest_checkpoint(self._folder)

    def save(self, checkpoint_number: int | None = None) -> str:
        """Write one, and remove what is too old.

        Args:
            checkpoint_number: instead of the next one.
        """
        path = os.path.join(self._folder, self._name)
        return self._checkpoint.numbered(path, checkpoint_number, self._most)


def _found(path: str, thing: Any) -> dict[str, Any]:
    """The variables in a thing, by name."""
    if isinstance(thing, tf.Variable):
        return {f"{path}{VALUE}": thing}
    if isinstance(thing, Checkpoint):
        return thing.found(path)
    if isinstance(thing, Tracked):
        weights = names_of(thing) if getattr(thing, "built", True) else {}
        return {f"{path}/{name}": v for name, v in weights.items()}
    if isinstance(thing, Optimizer):
        return {f"{path}/{name}{VALUE}": v for name, v in thing.named_variables().items()}
    if isinstance(thing, Mapping):
        parts = thing.items()
    elif isinstance(thing, list | tuple):
        parts = enumerate(thing)
    else:
        parts = vars(thing).items() if hasattr(thing, "__dict__") else ()
    found: dict[str, Any] = {}
    for name, part in parts:
        if isinstance(
            part, tf.Variable | Checkpoint | Tracked | Optimizer | Mapping | list | tuple
        ):
            found |= _found(f"{path}/{name}" if path else str(name), part)
    return found
