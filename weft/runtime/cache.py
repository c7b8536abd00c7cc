"""Compiled kernels, and programs made of them, on disk, shared by all processes of a user.

Every one is a file: a header, a checksum, the object code or the recipe. Files appear by renaming,
so nobody sees half of one; whatever is damaged or not ours is ignored and replaced. A folder that
cannot be used costs speed, never a result.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
import threading
import time
import warnings
from pathlib import Path
from typing import Final

from weft.interrupt import Uninterrupted

FORMAT: Final = b"WEFT\x01\x00\x00\x00"
LIMIT_BYTES: Final = 512 << 20
_DIGEST: Final = 32
_HEADER: Final = len(FORMAT) + 2 * _DIGEST
_DAY: Final = 86400.0


def digest(*parts: str) -> str:
    """A name for what the parts determine together."""
    text = hashlib.sha256(FORMAT)
    for part in parts:
        data = part.encode()
        text.update(len(data).to_bytes(8, "little"))
        text.update(data)
    return text.hexdigest()


class Cache:
    """The entries in one folder. No method raises because of the file system."""

    def __init__(self, folder: str, limit: int = LIMIT_BYTES) -> None:
        self.folder: Final = Path(folder)
        self.limit: Final = limit
        self._usable: bool | None = None
        self._trimmed = False
        self._lock = threading.Lock()

    def load(self, key: str) -> bytes | None:
        """What is stored under `key`, if it is there and whole."""
        if not self._ready():
            return None
        path = self._path(key)
        try:
            with open(path, "rb", buffering=0) as file:
                modified = os.fstat(file.fileno()).st_mtime
                entry = file.read()
        except OSError:
            return None
        code = entry[_HEADER:]
        if entry[:_HEADER] != self._header(key, code):
            return None
        if time.time() - modified > _DAY:
            with contextlib.suppress(OSError):
                os.utime(path)  # eviction takes what was not used for longest
        return code

    def holds(self, key: str) -> bool:
        """Whether there is an entry under `key`; `load` tells whether it is whole."""
        return self._ready() and self._path(key).exists()

    def store(self, entries: dict[str, bytes]) -> None:
        """Store each under its key."""
        if not entries or not self._ready():
            return
        try:
            for key, code in entries.items():
                with Uninterrupted():  # no file is left behind
                    self._write(key, self._header(key, code) + code)
        except OSError as error:
            self._give_up(str(error))
            return
        with self._lock:
            if self._trimmed:
                return
            self._trimmed = True  # once a process: listing a full folder takes milliseconds
        self.trim()

    def trim(self) -> None:
        """Remove the entries that were not used for longest, down to nine tenths of the limit."""
        found: list[tuple[float, int, str]] = []
        with contextlib.suppress(OSError), os.scandir(self.folder) as files:
            for file in files:
                with contextlib.suppress(OSError):
                    status = file.stat(follow_symlinks=False)
                    found.append((status.st_mtime, status.st_size, file.path))
        excess = sum(size for _, size, _ in found) - self.limit
        if excess <= 0:
            return
        excess += self.limit // 10
        for _, size, path in sorted(found):
            if excess <= 0:
                return
            with contextlib.suppress(OSError):
                os.unlink(path)
            excess -= size

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.o"

    @staticmethod
    def _header(key: str, code: bytes) -> bytes:
        return FORMAT + bytes.fromhex(key) + hashlib.sha256(code).digest()

    def _write(self, key: str, entry: bytes) -> None:
        handle, temporary = tempfile.mkstemp(".tmp", key[:16], self.folder)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(entry)
            os.replace(temporary, self._path(key))
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise

    def _ready(self) -> bool:
        """Whether the folder is there and safe; entries are code that this process will run."""
        if self._usable is None:
            try:
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._usable = True
                if self.folder.stat().st_mode & stat.S_IWOTH:
                    self._give_up("anyone may write to it")
            except OSError as error:
                self._give_up(str(error))
        return bool(self._usable)

    def _give_up(self, reason: str) -> None:
        with self._lock:
            first, self._usable = self._usable is not False, False
        if first:
            warnings.warn(
                f"kernels are not kept between runs: folder {self.folder}: {reason}; "
                "set WEFT_CACHE to a folder of your own",
                RuntimeWarning,
                stacklevel=2,
            )
