"""Samples in tar files, as in WebDataset: files with one name and several extensions."""

from __future__ import annotations

import tarfile
from typing import Any

from weft.errors import DataError
from weft.pipeline.file.reader import Reader
from weft.pipeline.stage import State


class Archive(Reader):
    """`{"__key__": name, extension: bytes, ...}` for each sample; its state is a count.

    `a/0001.jpg` and `a/0001.cls` are the sample `a/0001`: the extension starts at the first dot
    after the last slash.

    Raises:
        DataError: the file is not a tar file, or it is damaged.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.given = 0
        self.ahead: tarfile.TarInfo | None = None
        try:
            self.tar = tarfile.open(path)  # noqa: SIM115
        except tarfile.TarError as error:
            raise DataError(f"{path}: expected a tar file: {error}") from None

    def _member(self) -> tarfile.TarInfo | None:
        """The next file, without consuming it."""
        while self.ahead is None or not self.ahead.isfile():
            offset = self.tar.offset
            try:
                self.ahead = self.tar.next()
            except (tarfile.TarError, EOFError, OSError) as error:
                raise DataError(f"{self.path}, byte {offset}: damaged: {error}") from None
            if self.ahead is None:
                return None
        return self.ahead

    def _sample(self, read: bool) -> dict[str, Any]:
        first = self._member()
        if first is None:
            raise StopIteration
        key = _split(first.name)[0]
        sample: dict[str, Any] = {"__key__": key}
        while (member := self._member()) is not None and _split(member.name)[0] == key:
            self.ahead = None
            if read:
                sample[_split(member.name)[1]] = self._content(member)
        vars(self.tar)["members"].clear()  # else the headers of all files stay in memory
        return sample

    def _content(self, member: tarfile.TarInfo) -> bytes:
        stream = self.tar.extractfile(member)
        assert stream is not None
        try:
            data = stream.read()
        except (tarfile.TarError, EOFError, OSError) as error:
            raise DataError(f"{self.path}, {member.name}: damaged: {error}") from None
        if len(data) != member.size:
            text = f"expected {member.size} bytes, got {len(data)}"
            raise DataError(f"{self.path}, {member.name}: {text}")
        return data

    def __next__(self) -> dict[str, Any]:
        sample = self._sample(read=True)
        self.given += 1
        return sample

    def state(self) -> State:
        """The number of samples that were read."""
        return {"given": self.given}

    def restore(self, state: State) -> None:
        """Skip samples; their contents are not read."""
        while self.given < state["given"]:
            self._sample(read=False)
            self.given += 1

    def close(self) -> None:
        """Close the file."""
        tar: tarfile.TarFile | None = getattr(self, "tar", None)
        if tar is not None:
            tar.close()


def _split(name: str) -> tuple[str, str]:
    folder, slash, base = name.rpartition("/")
    stem, _, ending = base.partition(".")
    return f"{folder}{slash}{stem}", ending
