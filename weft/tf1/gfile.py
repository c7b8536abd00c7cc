"""`tf.gfile`: files and folders, by TensorFlow's names.

>>> import os, tempfile
>>> import weft.tf1 as tf
>>> folder = os.path.join(tempfile.mkdtemp(), "a", "b")
>>> tf.gfile.MakeDirs(folder)
>>> with tf.gfile.GFile(os.path.join(folder, "words.txt"), "w") as file:
...     file.write("one\\n")
>>> tf.gfile.ListDirectory(folder)
['words.txt']
"""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

from weft.documentation import Reads
from weft.tf1.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    UnknownError,
)

_KINDS = (
    (FileNotFoundError, NotFoundError),
    (FileExistsError, AlreadyExistsError),
    (PermissionError, PermissionDeniedError),
    (NotADirectoryError, FailedPreconditionError),
    (IsADirectoryError, FailedPreconditionError),
)


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """Errors of the file system as TensorFlow's."""
    try:
        yield
    except OSError as error:
        kind = next((ours for plain, ours in _KINDS if isinstance(error, plain)), UnknownError)
        raise kind(None, None, str(error)) from error


class GFile:
    """A file, opened when it is first read or written.

    Args:
        name: its path.
        mode: `r`, `w`, `a`, with `b` for bytes and `+` for both directions.
    """

    def __init__(self, name: Any, mode: str = "r") -> None:
        self._file: IO[Any] | None = None
        if mode.replace("b", "") not in ("r", "w", "a", "r+", "w+", "a+"):
            raise InvalidArgumentError(
                None, None, f"gfile: expected a mode such as r, got {mode!r}"
            )
        self._name, self._mode = os.fspath(name), mode

    name = Reads[str]("_name", "The path.")
    mode = Reads[str]("_mode", "The mode as given.")

    def _opened(self) -> IO[Any]:
        if self._file is None:
            coding = None if "b" in self._mode else "utf-8"
            with _told():
                self._file = open(self._name, self._mode, encoding=coding)  # noqa: SIM115
        return self._file

    def read(self, n: int = -1) -> Any:
        """`n` characters or bytes, or all that is left."""
        with _told():
            return self._opened().read(n)

    def readline(self) -> Any:
        """The next line, with its end; empty at the end of the file."""
        return self._opened().readline()

    def readlines(self) -> list[Any]:
        """All lines that are left."""
        return self._opened().readlines()

    def write(self, file_content: Any) -> None:
        """Write at the position."""
        with _told():
            self._opened().write(file_content)

    def seek(self, offset: int, whence: int = 0) -> None:
        """Move the position."""
        self._opened().seek(offset, whence)

    def tell(self) -> int:
        """The position."""
        return self._opened().tell()

    def size(self) -> int:
        """Bytes in the file."""
        return Stat(self._name).length

    def seekable(self) -> bool:
        """Files always are."""
        return True

    def flush(self) -> None:
        """Hand what was written to the system."""
        if self._file is not None:
            with _told():
                self._file.flush()

    def close(self) -> None:
        """Write what is left, and close."""
        if self._file is not None:
            with _told():
                self._file.close()
            self._file = None

    def __del__(self) -> None:
        self.close()

    def __enter__(self) -> GFile:
        self._opened()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        yield from self._opened()

    def __next__(self) -> Any:
        return next(self._opened())


Open = FastGFile = GFile


class FileStatistics(NamedTuple):
    """What `Stat` tells of a file."""

    length: int
    mtime_nsec: int
    is_directory: bool


def Exists(filename: Any) -> bool:
    """Whether there is a file or a folder of this path."""
    return os.path.exists(filename)


def IsDirectory(dirname: Any) -> bool:
    """Whether there is a folder of this path."""
    return os.path.isdir(dirname)


def ListDirectory(dirname: Any) -> list[str]:
    """The names in a folder."""
    with _told():
        return sorted(os.listdir(dirname))


def MkDir(dirname: Any) -> None:
    """Make a folder in one that exists."""
    with _told():
        os.mkdir(dirname)


def MakeDirs(dirname: Any) -> None:
    """Make a folder and those above it, unless they are there."""
    with _told():
        os.makedirs(dirname, exist_ok=True)


def Glob(filename: Any) -> list[str]:
    """The paths that match a pattern, or a list of them."""
    patterns = filename if isinstance(filename, list | tuple) else [filename]
    return [path for p in patterns for path in sorted(glob.glob(os.fspath(p)))]


def Remove(filename: Any) -> None:
    """Delete a file."""
    with _told():
        os.remove(filename)


def DeleteRecursively(dirname: Any) -> None:
    """Delete a folder and all that is in it."""
    with _told():
        shutil.rmtree(dirname)


def Copy(oldpath: Any, newpath: Any, overwrite: bool = False) -> None:
    """Copy a file."""
    _require_new(newpath, overwrite)
    with _told():
        shutil.copyfile(oldpath, newpath)


def Rename(oldname: Any, newname: Any, overwrite: bool = False) -> None:
    """Move a file or a folder."""
    _require_new(newname, overwrite)
    with _told():
        os.replace(oldname, newname)


def _require_new(path: Any, overwrite: bool) -> None:
    if not overwrite and os.path.exists(path):
        text = f"{path} exists; pass overwrite=True to replace it"
        raise AlreadyExistsError(None, None, text)


def Stat(filename: Any) -> FileStatistics:
    """Length, time of the last change and kind of a file."""
    with _told():
        found = os.stat(filename)
    return FileStatistics(found.st_size, found.st_mtime_ns, os.path.isdir(filename))


def Walk(top: Any, in_order: bool = True) -> Iterator[tuple[str, list[str], list[str]]]:
    """`(folder, folders in it, files in it)` for a folder and all below it."""
    return os.walk(top, topdown=in_order)
