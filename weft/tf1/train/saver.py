"""`tf.train.Saver`: saves and restores variables; never leaves a partial file."""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from weft.errors import ArgumentError, DataError, GraphError
from weft.formats.atomic_file import write_file
from weft.formats.safetensors import write_arrays
from weft.formats.tensorflow.bundle import INDEX, Pieces, write_bundle
from weft.formats.tensorflow.store import SUFFIX, open_store, remove_store
from weft.ir.shape import compatible, is_static, known, show, size
from weft.runtime.memory.distant import set_values, values_of
from weft.tf1.data_flow.table_state import SAVEABLE_OBJECTS, TableState
from weft.tf1.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError, translated
from weft.tf1.framework.default_graph import get_collection
from weft.tf1.framework.graph import fail, get_default_graph
from weft.tf1.framework.option import only
from weft.tf1.train.checkpoint_state import (
    STATE,
    checkpoint_exists,
    read_state,
    write_state,
)  # fmt: skip
from weft.tf1.train.meta_graph_def import MetaGraphDef, exported
from weft.tf1.train.saved import Array, items_of, shards_of
from weft.tf1.variable.variable import Variable
from weft.tf1.variable.variable_list import global_variables

__all__ = ["Saver", "SaverDef"]


class SaverDef:
    """Values of `write_version`."""

    V1 = 1
    V2 = 2


class Saver:
    """Saves and restores variables.

    The file `checkpoint` of a folder lists the kept checkpoints. A saver that starts in a folder
    with such a file also manages the listed ones of the same name (without the step); savers with
    other purposes (one for the best, say) need names of their own.

    Args:
        var_list: variables and mutable tables, or a dict from names in the file to variables; by
            default all global ones, and tables with `checkpoint`. Parts of a partitioned variable
            are saved under its name, and restored from checkpoints in which it is whole or has
            other parts.
        reshape: restored values take their variables' shapes, if they have as many elements.
        sharded: write TensorFlow's format with a data file for each device that variables are
            assigned to.
        restore_sequentially, defer_build, save_relative_paths: no effect.
        max_to_keep: the number of checkpoints to keep; 0 or `None` keeps all.
        keep_checkpoint_every_n_hours: besides, one of so many hours of training is never removed.
        name, filename: no effect.
        saver_def, builder: `None`; other values are refused.
        allow_empty: there may be no variables.
        write_version: `SaverDef.V2` writes TensorFlow's format, byte by byte; the default is a
            safetensors file. Both can be restored, as can TensorFlow's files of version 1.
        pad_step_number: steps in names have 8 digits.
    """

    def __init__(
        self, var_list: Mapping[str, Variable] | Sequence[Variable] | None = None,
        reshape: bool = False, sharded: bool = False, max_to_keep: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000.0, name: str | None = None,
        restore_sequentially: bool = False, saver_def: Any = None, builder: Any = None,
        defer_build: bool = False, allow_empty: bool = False, write_version: int | None = None,
        pad_step_number: bool = False, save_relative_paths: bool = False,
        filename: str | None = None,
    ) -> None:  # fmt: skip
        del name, restore_sequentially, defer_build, save_relative_paths, filename
        only("Saver", {"saver_def": saver_def, "builder": builder}, saver_def=None, builder=None)
        self._reshape = reshape
        self._pad = pad_step_number
        self._interval = keep_checkpoint_every_n_hours * 3600
        self._keep_after = time.time() + self._interval
        self._saved: dict[str, float] = {}  # when, by path
        if write_version not in (None, SaverDef.V2):
            raise fail(
                ArgumentError, f"Saver: expected write_version SaverDef.V2, got {write_version!r}"
            )
        self._bundles = sharded or write_version is not None
        self._sharded = sharded
        chosen, self._tables = _divided(var_list)
        if not chosen and not self._tables and not allow_empty:
            raise fail(GraphError, "Saver: expected variables to save, there are none")
        self._items = items_of(chosen)
        self._keep = max_to_keep or 0
        self._lock = threading.Lock()
        self._paths: list[str] = []
        self._taken_over: set[tuple[Path, str]] = set()
        self._meta_graph: tuple[Any, bytes] = (None, b"")  # of a state of the graph

    @property
    def last_checkpoints(self) -> list[str]:
        """Paths of the kept checkpoints, the oldest first."""
        return list(self._paths)

    def set_last_checkpoints(self, last_checkpoints: Sequence[str]) -> None:
        """Manage only these checkpoints, the oldest first."""
        self._paths = list(last_checkpoints)

    def recover_last_checkpoints(self, checkpoint_paths: Sequence[str]) -> None:
        """Manage those of these checkpoints that exist, the oldest first."""
        self.set_last_checkpoints([p for p in checkpoint_paths if checkpoint_exists(p)])

    @translated()
    def save(
        self, sess: Any, save_path: str, global_step: Any = None,
        latest_filename: str | None = None, meta_graph_suffix: str = "meta",
        write_meta_graph: bool = True, write_state: bool = True, strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> str:  # fmt: skip
        """Write the variables' values in `sess`; returns the path to give to `restore`.

        Args:
            write_state: whether the folder's list of checkpoints changes; if not, the checkpoint
                is not removed either.
            write_meta_graph: write the graph beside it, for `tf.train.import_meta_graph`.
            meta_graph_suffix: the ending of its file.

        Raises:
            FailedPreconditionError: a variable has no value.
            NotFoundError: neither the folder nor the one that it is in exists.
        """
        del strip_default_attrs, save_debug_info
        with self._lock:  # of several threads, the one that started last has the latest
            latest = latest_filename or STATE
            path = self._save(sess, os.fspath(save_path), global_step, latest, write_state)
            if write_meta_graph:
                self._write_meta_graph(sess.graph, f"{path}.{meta_graph_suffix}")
            return path

    def _write_meta_graph(self, graph: Any, path: str) -> None:
        state = (id(graph), graph.version, graph.epoch)
        if self._meta_graph[0] != state:
            made = MetaGraphDef.of(graph, self)
            self._meta_graph = (state, made.SerializeToString())
        write_file(Path(path), [self._meta_graph[1]])

    # -- as a record
    def export_meta_graph(
        self, filename: Any = None, collection_list: Sequence[str] | None = None, **kwargs: Any
    ) -> MetaGraphDef:
        """`tf.train.export_meta_graph` of the default graph, with this saver."""
        return exported(get_default_graph(), self, collection_list, filename, kwargs)

    def described(self) -> dict[str, Any]:
        """The saver as JSON; without tables."""
        items = {name: [v.op.name for v in item.parts] for name, item in self._items.items()}
        hours = self._interval / 3600
        options = {
            "reshape": self._reshape, "sharded": self._sharded, "max_to_keep": self._keep,
            "keep_checkpoint_every_n_hours": hours, "pad_step_number": self._pad,
            "write_version": SaverDef.V2 if self._bundles else None,
        }  # fmt: skip
        return {"items": items, "options": options}

    @classmethod
    def of(cls, told: Mapping[str, Any], variables: Mapping[str, Variable]) -> Self:
        """The saver of a record.

        Args:
            told: the record.
            variables: by the names of the record.
        """
        parts = {n: [variables[op] for op in ops] for n, ops in told["items"].items()}
        whole: dict[str, Any] = {
            n: found if found[0].slice_info is not None else found[0] for n, found in parts.items()
        }
        return cls(whole, allow_empty=True, **told["options"])

    def _save(
        self, sess: Any, name: str, global_step: Any, latest_filename: str, listed: bool
    ) -> str:
        path = name
        if global_step is not None:
            step = sess.run(global_step) if hasattr(global_step, "graph") else global_step
            path = f"{path}-{int(step):08d}" if self._pad else f"{path}-{int(step)}"
        folder = Path(path).parent
        with contextlib.suppress(OSError):  # as in TensorFlow, one folder is made, not several
            folder.mkdir()
        if not folder.is_dir():
            raise NotFoundError(None, None, f"Saver: expected a folder at {folder} to save {path}")
        tables = {name: x for t in self._tables for name, x in t.saved(sess).items()}
        with sess.state.lock:  # all values are from one moment
            arrays = self._values(sess) | tables
        if not listed:
            self._write(path, arrays)
            return path
        state = folder / latest_filename
        self._take_over(name, state)
        latest = read_state(state).model_checkpoint_path
        if path not in self._paths:  # listed before it exists, so that every existing one is listed
            write_state(state, latest, [*self._paths, path])
        self._write(path, arrays)
        self._paths = [p for p in self._paths if p != path] + [path]
        self._saved[path] = time.time()
        write_state(state, path, self._paths)
        self._remove_old()
        return path

    def _write(self, path: str, arrays: dict[str, Array | Pieces]) -> None:
        if self._bundles:
            shard_of, shards = shards_of(self._items) if self._sharded else (None, 1)
            write_bundle(path, arrays, shard_of or (lambda name, piece: 0), shards)
        else:
            whole = {n: a.joined() if isinstance(a, Pieces) else a for n, a in arrays.items()}
            write_arrays(Path(path + SUFFIX), whole)
        remove_store(path, but=INDEX if self._bundles else SUFFIX)  # an earlier one with this name

    def _values(self, sess: Any) -> dict[str, Array | Pieces]:
        arrays: dict[str, Array | Pieces] = {}
        keys = [part.key for item in self._items.values() for part in item.parts]
        held = values_of(sess.state, keys)  # copies: the next step overwrites the values
        for name, item in self._items.items():
            for part in item.parts:
                if part.key not in held:
                    what = name if part.slice_info is None else part.op.name
                    text = f"Saver: variable {what!r} has no value"
                    raise FailedPreconditionError(None, None, text)
            arrays[name] = item.joined([held[part.key] for part in item.parts])
        return arrays

    def _take_over(self, name: str, state: Path) -> None:
        """Also manage the checkpoints that an earlier saver listed under this name."""
        if (state, name) in self._taken_over:
            return
        self._taken_over.add((state, name))
        ours = re.compile(re.escape(os.path.basename(name)) + r"(-\d+)?")
        listed = map(os.path.basename, read_state(state).all_model_checkpoint_paths)
        found = [os.path.join(os.path.dirname(name), p) for p in listed if ours.fullmatch(p)]
        new = [p for p in found if p not in self._paths and checkpoint_exists(p)]
        self._paths = [*new, *self._paths]
        if self._keep and len(self._paths) > self._keep:  # it was killed before it removed one
            write_state(state, self._paths[-1], self._paths)
            self._remove_old()

    def _remove_old(self) -> None:
        """Remove surplus checkpoints; failed removals are retried after the next save."""
        old = self._paths[: -self._keep] if self._keep else []
        for path in old:
            if self._saved.get(path, 0.0) > self._keep_after:
                self._keep_after += self._interval
                self._paths.remove(path)
                continue
            with contextlib.suppress(OSError):
                Path(f"{path}.meta").unlink(missing_ok=True)  # first: a kill leaves none behind
                remove_store(path)
        self._paths = [p for p in self._paths if p not in old or checkpoint_exists(p)]

    @translated()
    def restore(self, sess: Any, save_path: str) -> None:
        """Restore the variables from a checkpoint; all of them or, on an error, none.

        Raises:
            NotFoundError: there is no such checkpoint, or it lacks a variable.
            InvalidArgumentError: a value has another shape or type, or the file is damaged.
        """
        tables = [name for table in self._tables for name in table.names]
        found = _read(os.fspath(save_path), [*self._items, *tables])
        for name in tables:
            if name not in found:
                raise NotFoundError(None, None, f"restore: {name!r} is not in {save_path}")
        values: dict[str, Any] = {}
        for name, item in self._items.items():
            if name not in found:
                raise NotFoundError(None, None, f"restore: {name!r} is not in {save_path}")
            array, shape = found[name], item.shape
            kind = item.parts[0].dtype.ir
            if self._reshape and is_static(shape) and array.size == size(shape):
                array = array.reshape(known(shape))
            if array.dtype != kind.numpy or not compatible(array.shape, shape):
                raise InvalidArgumentError(
                    None,
                    None,
                    f"restore: expected {kind}{show(shape)} for {name!r}, "
                    f"got {array.dtype}{show(array.shape)} in {save_path}",
                )
            values.update(item.divided(array))
        set_values(sess.state, values)
        for table in self._tables:
            table.restore(sess, found)


def _divided(var_list: Any) -> tuple[Any, list[TableState]]:
    """The variables of what a saver is given, and the tables."""
    if var_list is None:
        return global_variables(), list(get_collection(SAVEABLE_OBJECTS))
    if isinstance(var_list, Mapping):
        return var_list, []
    states = {id(x): getattr(x, "state", None) for x in var_list}
    tables = {key: state for key, state in states.items() if isinstance(state, TableState)}
    return [x for x in var_list if id(x) not in tables], list(tables.values())


def _read(path: str, names: Iterable[str]) -> dict[str, Any]:
    """The values of those of these names that exist."""
    try:
        store = open_store(path)
        if store is None:
            raise NotFoundError(None, None, f"restore: there is no checkpoint {path}")
        return {name: store.read(name) for name in names if name in store.entries}
    except (DataError, FileNotFoundError) as error:
        if isinstance(error, NotFoundError):
            raise
        raise InvalidArgumentError(None, None, f"restore: {error}") from error
