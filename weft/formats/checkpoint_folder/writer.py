"""Writes a checkpoint: files, then the manifest, then renames the folder to its final name.

If several ranks save, each writes its file and a note beside it. Rank 0 waits for all notes and
commits; the others wait for the commit, so a save that has returned is durable. A rank that fails
leaves a note of its error, which all others raise.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import time
import weakref
from collections.abc import Callable, Mapping
from io import FileIO
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from weft.errors import CheckpointError, DataError, FileError
from weft.formats.atomic_file import sync_folder, write_file
from weft.formats.checkpoint_folder.layout import (
    FAILURE,
    LOCK,
    TEMPORARY,
    free_folder,
    part_name,
    remove_folder,
    remove_unfinished,
)
from weft.formats.checkpoint_folder.manifest import Manifest, best_first, write_manifest
from weft.formats.checkpoint_folder.reader import readable
from weft.formats.checkpoint_folder.state import check_part
from weft.formats.nested_arrays import TREE
from weft.formats.safetensors import write_arrays

Array = np.ndarray[Any, Any]
T = TypeVar("T")
SESSION: Final = "session"
POLL_SECONDS: Final = 0.01


class Policy(NamedTuple):
    """How many checkpoints to keep: the newest, and the best by a metric; `None` keeps all."""

    keep: int | None
    best: str | None
    largest: bool
    top: int | None


class Place(NamedTuple):
    """The rank that writes, of how many, and its timeout in seconds for the others."""

    rank: int
    ranks: int
    timeout: float


class FolderWriter:
    """The only writer of a folder, from its first save until it is closed."""

    def __init__(self, folder: Path, policy: Policy, place: Place) -> None:
        self._folder, self._policy, self._place = folder, policy, place
        self._lock: FileIO | None = None
        self._saves = 0

    def open(self) -> None:
        """Locks the folder, if it is not locked yet.

        Raises:
            FileError: another process writes there.
            OSError: the folder may not be written to.
        """
        if self._lock is not None or self._place.rank > 0:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        self._lock = lock_folder(self._folder)
        remove_unfinished(self._folder)
        if self._place.ranks > 1:
            (self._folder / FAILURE).unlink(missing_ok=True)
            write_file(self._folder / SESSION, [secrets.token_hex(8).encode()])

    def close(self) -> None:
        """Unlocks the folder."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def write(
        self, step: int, arrays: Mapping[str, Array], tree: str, metrics: Mapping[str, float]
    ) -> None:
        """Writes a checkpoint: it is complete if this returns, and absent if this raises.

        Raises:
            CheckpointError: another rank failed, or did not do its part in time.
            DataError: what was written cannot be read back.
            OSError: the folder is full, or may not be written to.
        """
        self._saves += 1
        save = self._name_of_save()
        temporary = self._folder / f"step-{step}{TEMPORARY}"
        try:
            temporary.mkdir(exist_ok=True)
            part = part_name(self._place.rank, self._place.ranks)
            digest = write_arrays(temporary / part, arrays, {TREE: tree})
            check_part(temporary / part, digest)
            if self._place.rank > 0:
                note = temporary / _note_name(self._place.rank)
                try:
                    _write_note(note, {"save": save, "digest": digest})
                except FileNotFoundError:  # rank 0 may have read it and renamed the folder already
                    if not self._committed(step, save):
                        raise
                self._until("rank 0 commits", lambda: self._committed(step, save))
            else:
                files = {part: digest, **self._of_others(temporary, save)}
                self._commit(temporary, Manifest(step, 0, files, dict(metrics), save))
        except BaseException as error:
            self._tell(temporary, save, f"{type(error).__name__}: {error}")
            if self._place.rank == 0:
                remove_folder(temporary)
            elif isinstance(error, FileNotFoundError | DataError):  # rank 0 has just done that
                self._check_first(save)
            raise

    def _tell(self, temporary: Path, save: str, error: str) -> None:
        """Leaves a note of an error for the other ranks."""
        first = self._folder / FAILURE
        note = temporary / _note_name(self._place.rank) if self._place.rank else first
        if self._place.ranks > 1:
            with contextlib.suppress(OSError):  # without it, the others wait for the timeout
                _write_note(note, {"save": save, "error": error})

    def _check_first(self, save: str) -> None:
        """Raises rank 0's error, if there is a note of one."""
        failure = _read_note(self._folder / FAILURE, save)
        if failure is not None:
            raise CheckpointError(f"checkpoint: rank 0 failed: {failure['error']}")

    # -- among ranks

    def _name_of_save(self) -> str:
        if self._place.ranks == 1:
            return ""
        path = self._folder / SESSION
        token = path.read_text() if self._place.rank == 0 else self._session(path)
        return f"{token}-{self._saves}"

    def _session(self, path: Path) -> str:
        lock = self._folder / LOCK
        self._until("rank 0 begins to save", lambda: lock.exists() and path.exists())
        return path.read_text()

    def _of_others(self, temporary: Path, save: str) -> dict[str, str]:
        """The files of the other ranks, with their digests."""
        found: dict[str, str] = {}
        for rank in range(1, self._place.ranks):
            path = temporary / _note_name(rank)
            note = self._until(f"rank {rank} saves its part", lambda p=path: _read_note(p, save))
            if "error" in note:
                raise CheckpointError(f"checkpoint: rank {rank} failed: {note['error']}")
            found[part_name(rank, self._place.ranks)] = note["digest"]
            path.unlink()
        return found

    def _committed(self, step: int, save: str) -> bool:
        self._check_first(save)
        manifests, _ = readable(self._folder)
        return any([(m.step, m.save) == (step, save) for _, m in manifests])

    def _until(self, what: str, check: Callable[[], T | None]) -> T:
        """Waits until `check` returns a value, and returns it."""
        deadline = time.monotonic() + self._place.timeout
        while not (found := check()):
            if time.monotonic() > deadline:
                raise CheckpointError(
                    f"checkpoint: rank {self._place.rank} of {self._place.ranks} waited "
                    f"{self._place.timeout:g} s in {self._folder} until {what}, in vain"
                )
            time.sleep(POLL_SECONDS)
        return found

    # -- the commit

    def _commit(self, temporary: Path, manifest: Manifest) -> None:
        before, _ = readable(self._folder)
        serial = 1 + max([m.serial for _, m in before], default=0)
        manifest = manifest._replace(serial=serial)
        write_manifest(temporary, manifest)
        target = free_folder(self._folder, manifest.step)
        os.rename(temporary, target)
        sync_folder(self._folder)
        self._prune([*before, (target, manifest)])

    def _prune(self, found: list[tuple[Path, Manifest]]) -> None:
        """Removes checkpoints that are too old, or were saved again."""
        manifests = [m for _, m in sorted(found, key=lambda pair: pair[1].serial)]
        latest = {m.step: m for m in manifests}
        kept = sorted(latest.values(), key=lambda m: m.serial)
        policy = self._policy
        best = best_first(kept, policy.best, policy.largest) if policy.best else []
        if policy.keep is not None:
            kept = kept[-policy.keep :]
        serials = {m.serial for m in (*kept, *best[: policy.top])}
        for path, manifest in found:
            if manifest.serial not in serials:
                remove_folder(path)


def _note_name(rank: int) -> str:
    return f"rank-{rank:05}.json"


def _write_note(path: Path, note: Mapping[str, str]) -> None:
    write_file(path, [json.dumps(note).encode()])


def _read_note(path: Path, save: str) -> dict[str, str] | None:
    if not path.exists():
        return None
    note: dict[str, str] = json.loads(path.read_bytes())
    return note if note["save"] == save else None


_held: weakref.WeakSet[FileIO] = weakref.WeakSet()


def lock_folder(folder: Path) -> FileIO:
    """Makes this process the only writer of a folder, until the file is closed or it ends.

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
