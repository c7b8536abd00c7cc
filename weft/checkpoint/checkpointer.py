"""`Checkpointer`: a run's state in a folder, saved in the background, found after a crash."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from weft.checkpoint.restoring import Restored, has_state, put_back
from weft.checkpoint.slices import unfolding
from weft.eager.tensor.interchange.serialization import array_of, is_tensor, tensor_of
from weft.errors import ArgumentError, DataError
from weft.formats.checkpoint_folder.background import Background
from weft.formats.checkpoint_folder.manifest import Manifest, best_first
from weft.formats.checkpoint_folder.reader import Damaged, readable
from weft.formats.checkpoint_folder.snapshot import Snapshot
from weft.formats.checkpoint_folder.state import read_state
from weft.formats.checkpoint_folder.writer import FolderWriter, Place, Policy
from weft.formats.nested_arrays import parts
from weft.ops.refusal import guard_making, guard_methods

Array = np.ndarray[Any, Any]


class Checkpointer:
    """Saves the state of a training run to a folder, and restores it.

    `save` copies the arrays and returns; a thread writes them while training goes on. A checkpoint
    is complete or absent, whenever the process or the machine stops. Damage is detected by
    checksums, and the previous checkpoint is used instead.

    Args:
        folder: created by the first save.
        keep: how many of the newest checkpoints are kept; `None` keeps all.
        best: a metric; the best checkpoint by it is kept as well.
        mode: `"min"` or `"max"`: whether the smallest or the largest value of that metric is best.
        background: if `False`, `save` returns when the checkpoint is on disk.
        rank: number of this process among `world_size`, which save and restore together.
        timeout: seconds to wait for other ranks.
        top: how many of the best by the metric are kept; `None` keeps all.

    Raises:
        ArgumentError: invalid arguments.

    Example:
        >>> import tempfile, weft as wf
        >>> model = wf.nn.Linear(2, 1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with wf.checkpoint.Checkpointer(folder, best="loss") as checkpoints:
        ...         checkpoints.save(100, {"model": model, "epoch": 1}, {"loss": 0.5})
        ...     found = wf.checkpoint.Checkpointer(folder).restore({"model": model})
        >>> found.step, found.state["epoch"], found.metrics
        (100, 1, {'loss': 0.5})
    """

    def __init__(
        self, folder: str | os.PathLike[str], keep: int | None = 3, best: str | None = None,
        mode: str = "min", background: bool = True, rank: int = 0, world_size: int = 1,
        timeout: float = 600.0, top: int | None = 1,
    ) -> None:  # fmt: skip
        if keep is not None and keep < 1:
            raise ArgumentError(f"Checkpointer: expected keep from 1, or None, got {keep}")
        if top is not None and top < 0:
            raise ArgumentError(f"Checkpointer: expected top from 0, or None, got {top}")
        if mode not in ("min", "max"):
            raise ArgumentError(f"Checkpointer: expected mode 'min' or 'max', got {mode!r}")
        if not 0 <= rank < world_size:
            raise ArgumentError(f"Checkpointer: expected a rank below {world_size}, got {rank}")
        self._folder = Path(folder)
        self._policy = Policy(keep, best, mode == "max", top)
        self._place = Place(rank, world_size, timeout)
        self._writer = FolderWriter(self._folder, self._policy, self._place)
        self._background = Background() if background else None
        self._snapshot = Snapshot()

    def save(
        self, step: int, state: Mapping[str, Any], metrics: Mapping[str, Any] | None = None
    ) -> None:
        """Saves the state of a step.

        Args:
            state: objects with `state_dict` and `load_state_dict`, tensors, arrays, numbers,
                strings and `None`, and dicts and lists of these. Rank 0 saves tensors for all
                ranks, except those in a `Slice` or a `PerRank`.
            metrics: numbers that measure the state.

        Raises:
            DTypeError: the state has other objects.
            FileError: another process writes to the folder.
            CheckpointError: another rank did not do its part in time.
            OSError: the disk is full, or the folder not writable. Errors of the background thread
                are raised by the next call of any method; older checkpoints are not affected.
        """
        if step < 0:
            raise ArgumentError(f"save: expected a step from 0, got {step}")
        self.wait()
        self._writer.open()
        arrays: dict[str, Array] = {}
        unfold = unfolding(self._place.rank, has_state)
        tree = list(parts(dict(state), is_tensor, array_of, arrays, unfold))
        text = json.dumps(tree, separators=(",", ":"))
        numbers = {name: float(value) for name, value in (metrics or {}).items()}
        if self._background is None:
            self._writer.write(int(step), arrays, text, numbers)
        else:
            copies = self._snapshot.take(arrays)
            work = partial(self._writer.write, int(step), copies, text, numbers)
            self._background.start(work)

    def restore(self, into: Mapping[str, Any] | None = None, step: int | None = None) -> Any:
        """Restores a checkpoint, the latest by default.

        If no step is given, damaged checkpoints are skipped with a warning that gives the reason.

        Args:
            into: objects, tensors and arrays by the names they were saved under; they are restored
                in place. Other names are only in the result.

        Returns:
            `Restored`: step, state, metrics and path; `None` if nothing has been saved yet.

        Raises:
            CheckpointError: the checkpoint does not match the objects; the message lists missing
                keys, unexpected keys and differing shapes.
            DataError: the checkpoint of this step is damaged or missing, or all are damaged.
            NewerFormatError: a later version of Weft wrote it.
        """
        self.wait()
        found = self._read_latest() if step is None else self._read_step(step)
        if found is not None and into is not None:
            put_back(into, found)
        return found

    def _read_step(self, step: int) -> Restored:
        found, damaged = readable(self._folder)
        chosen = [(path, manifest) for path, manifest in found if manifest.step == step]
        if not chosen:
            reasons = [str(d.error) for d in damaged]
            steps = [m.step for _, m in found]
            raise DataError(
                "; ".join([f"restore: expected step {step} to be one of {steps}", *reasons])
            )
        return self._read(*chosen[-1])

    def _read_latest(self) -> Restored | None:
        found, damaged = readable(self._folder)
        while found:
            path, manifest = found.pop()
            try:
                restored = self._read(path, manifest)
            except DataError as error:
                damaged.append(Damaged(path, error))
            else:
                _tell(damaged, restored.step)
                return restored
        if damaged:
            reasons = "; ".join([str(d.error) for d in damaged])
            raise DataError(f"restore: no checkpoint in {self._folder} can be read: {reasons}")
        return None

    def _read(self, path: Path, manifest: Manifest) -> Restored:
        place = self._place
        state = read_state(path, manifest, tensor_of, place.rank, place.ranks)
        return Restored(manifest.step, state, manifest.metrics, path)

    def steps(self) -> list[int]:
        """The steps that can be restored, in the order in which they were saved."""
        self.wait()
        return list(dict.fromkeys([m.step for m in self._manifests()]))

    def latest(self) -> int | None:
        """The step that was saved last, or `None`."""
        self.wait()
        manifests = self._manifests()
        return manifests[-1].step if manifests else None

    def best(self) -> int | None:
        """The step with the best value of the metric `best`, or `None`.

        Raises:
            ArgumentError: no such metric was chosen.
        """
        if self._policy.best is None:
            raise ArgumentError("best: expected a Checkpointer with best='name of a metric'")
        self.wait()
        found = best_first(self._manifests(), self._policy.best, self._policy.largest)
        return found[0].step if found else None

    def path(self, step: int) -> Path | None:
        """The folder of a checkpoint, or `None` where that step was not saved."""
        self.wait()
        found = [path for path, manifest in readable(self._folder)[0] if manifest.step == step]
        return found[-1] if found else None

    def _manifests(self) -> list[Manifest]:
        return [manifest for _, manifest in readable(self._folder)[0]]

    def wait(self) -> None:
        """Waits until everything saved is on disk.

        Raises:
            Exception: an error of the background thread.
        """
        if self._background is not None:
            self._background.wait()

    def close(self) -> None:
        """Waits for pending saves, and unlocks the folder.

        Raises:
            Exception: an error of the background thread.
        """
        try:
            self.wait()
        finally:
            self._writer.close()

    def __enter__(self) -> Checkpointer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:  # fmt: skip
        self.close()


def _tell(damaged: list[Damaged], used: int) -> None:
    for one in damaged:
        warnings.warn(
            f"restore: {one.path} is skipped, step {used} is used: {one.error}", stacklevel=4
        )


guard_making(Checkpointer)
guard_methods(Checkpointer, object)
