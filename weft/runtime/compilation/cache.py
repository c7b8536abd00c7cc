"""A disk cache of compiled kernels and programs, shared by all processes of a user.

Each entry is a file: a header, a checksum, the object code or the recipe. Files are written under a
temporary name and renamed, so nobody sees a partial one; a damaged or foreign file is ignored and
replaced. Code that others could have written is not run, files that are not the cache's are not
touched, and a folder that cannot be used costs speed, never a result.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from typing import Final

from weft.host.blake2 import SIZE, digest_of
from weft.host.interrupt import Uninterrupted
from weft.runtime.compilation.notice import tell
from weft.runtime.compilation.trust import distrust, is_trusted

FORMAT: Final = b"WEFT\x01\x00\x00\x00"
LIMIT_BYTES: Final = 512 << 20
_HEADER: Final = len(FORMAT) + 2 * SIZE
_DAY: Final = 86400.0
_HOUR: Final = 3600.0
MARK: Final = "CACHEDIR.TAG"
"""The file that marks this cache's folder, and tells backups to skip it."""
_MARK_TEXT: Final = b"""Signature: 8a477f597d28d172789f06886806bc55
# Weft's compiled kernels and programs. See https://bford.info/cachedir/.
"""
_ENTRY: Final = re.compile(r"[0-9a-f]{64}\.o")
_TEMPORARY: Final = re.compile(r"[0-9a-f]{16}\w{8}\.tmp")


def digest(*parts: str) -> str:
    """A hash that identifies the parts together."""
    content = [part.encode() for part in parts]
    sized = [len(data).to_bytes(8, "little") + data for data in content]
    return digest_of(b"".join([FORMAT, *sized])).hex()


class Cache:
    """The entries in one folder. File system errors are never raised.

    Args:
        folder: created if missing; an empty string for none.
        limit: bytes; one process an hour looks whether there are more.
    """

    def __init__(self, folder: str, limit: int = LIMIT_BYTES) -> None:
        self.folder: Final = Path(os.path.realpath(folder))  # no link may change what was checked
        self.limit: Final = limit
        self._named = bool(folder)
        self._usable: bool | None = None
        self._full = False
        self._lock = threading.Lock()

    def load(self, key: str) -> bytes | None:
        """The data stored under `key`, if present and undamaged."""
        if not self._ready():
            return None
        path = self._path(key)
        try:
            with _opened(path) as file:
                if not is_trusted(file.fileno()):
                    return None
                status = os.fstat(file.fileno())
                if status.st_size > LIMIT_BYTES:  # no entry is: it need not fit in memory
                    return None
                modified = status.st_mtime
                entry = file.readall()
        except OSError:
            return None
        code = entry[_HEADER:]
        if entry[:_HEADER] != self._header(key, code):
            return None
        if time.time() - modified > _DAY:
            with contextlib.suppress(OSError):
                os.utime(path)  # eviction removes what was least recently used
        return code

    def holds(self, key: str) -> bool:
        """Whether there is an entry under `key`; only `load` checks it for damage."""
        return self._ready() and os.path.exists(self._path(key))

    def store(self, entries: dict[str, bytes]) -> None:
        """Stores each under its key."""
        if not entries or self._full or not self._ready():
            return
        try:
            for key, code in entries.items():
                self._write(self._path(key), self._header(key, code) + code)
        except OSError as error:
            self._full = True
            self._tell(str(error))
            return
        if self._is_due():
            self.trim()

    def _is_due(self) -> bool:
        """Whether no process has trimmed the folder for an hour; if so, this one is to do it.

        Listing a full folder of 80,000 entries takes a second.
        """
        mark = self.folder / MARK
        try:
            if time.time() - mark.stat().st_mtime < _HOUR:
                return False
            os.utime(mark)
        except OSError:
            return False
        return True

    def trim(self) -> None:
        """Removes the least recently used entries, down to nine tenths of the limit.

        Also removes temporary files of writers that were killed.
        """
        found: list[tuple[float, int, str]] = []
        for file, status in self._own():
            if _ENTRY.fullmatch(file.name):
                found.append((status.st_mtime, status.st_size, file.path))
            elif time.time() - status.st_mtime > _HOUR:
                _remove(file.path)
        excess = sum(size for _, size, _ in found) - self.limit
        if excess <= 0:
            return
        excess += self.limit // 10
        for _, size, path in sorted(found):
            if excess <= 0:
                return
            _remove(path)
            excess -= size

    def _own(self) -> Iterator[tuple[os.DirEntry[str], os.stat_result]]:
        """The files in the folder whose names are the cache's; it touches no others."""
        with contextlib.suppress(OSError), os.scandir(self.folder) as files:
            for file in files:
                if _is_own(file.name) and file.is_file(follow_symlinks=False):
                    with contextlib.suppress(OSError):
                        yield file, file.stat(follow_symlinks=False)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.o"

    @staticmethod
    def _header(key: str, code: bytes) -> bytes:
        return FORMAT + bytes.fromhex(key) + digest_of(code)

    def _write(self, path: Path, content: bytes) -> None:
        with Uninterrupted():  # no file is left behind
            temporary = f"{self.folder}/{digest(path.name)[:16]}{os.urandom(4).hex()}.tmp"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            handle = os.open(temporary, flags, 0o600)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(content)
                os.replace(temporary, path)
            except BaseException:
                _remove(temporary)
                raise

    def _ready(self) -> bool:
        """Whether the folder exists and is safe: this process will run its code."""
        if self._usable is None:
            try:
                reason = self._refusal()
            except OSError as error:
                reason = str(error)
            with self._lock:
                first, self._usable = self._usable is None, reason is None
            if first and reason is not None:
                self._tell(reason)
        return self._usable

    def _refusal(self) -> str | None:
        """Why the folder is not used, or `None`."""
        if not self._named:
            return "there is no home folder"
        _make(self.folder)
        return distrust(self.folder) or self._foreign()

    def _foreign(self) -> str | None:
        """What shows that the folder is not the cache's; marks one that may become it."""
        mark = self.folder / MARK
        try:
            with _opened(mark) as file:
                ours = file.readall() == _MARK_TEXT
            return None if ours else f"its {MARK} is another program's"
        except FileNotFoundError:
            others = [name for name in os.listdir(self.folder) if not _is_own(name)]
        if others and MARK not in others:  # another process may have just marked it
            return f"it holds {min(others)!r}, which is not the cache's"
        with contextlib.suppress(OSError):  # a read-only folder still serves entries
            self._write(mark, _MARK_TEXT)
        return None

    def _tell(self, reason: str) -> None:
        where = f"folder {self.folder}: " if self._named else ""
        tell(
            f"kernels are not cached between runs: {where}{reason}; "
            "set WEFT_CACHE to a folder of your own"
        )


def _is_own(name: str) -> bool:
    return bool(_ENTRY.fullmatch(name) or _TEMPORARY.fullmatch(name))


def _opened(path: Path) -> FileIO:
    """Opens a regular file for reading; no link, and nothing that blocks."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    return FileIO(os.open(path, flags))


def _make(folder: Path) -> None:
    """Makes a folder for this user alone, and its parents."""
    if not folder.is_dir():
        _make(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)
