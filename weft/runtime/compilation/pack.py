"""Packs: all library kernels for a target, in one file that was made before they are needed.

A pack is installed with Weft, or was made on this machine and is kept in the code cache. It is
loaded without LLVM and without other processes: its file is mapped, and its table filled. So
processes share its memory, and none reads more than it needs.

    magic, checksum of what follows (a sum of words, for damage alone: the folder is trusted)
    length of the header (uint32), the header (JSON; with spaces, so that the code is on a page)
    digests of the entries' forms in order (16 bytes each), then where their texts end (uint32 each)
    the texts, the code, room for its table

A pack for another target, of another version of the compiler's sources, or a damaged one is not
loaded.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import struct
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from weft.codegen import llvm
from weft.codegen.target import PORTABLE, Target
from weft.errors import CompileError, OutOfMemoryError
from weft.host.blake2 import digest_of
from weft.runtime.compilation import compiler, fingerprint
from weft.runtime.compilation.cache import digest
from weft.runtime.compilation.image import PAGE, Image
from weft.runtime.compilation.loading import filled
from weft.runtime.flight import LEAF, new_lock
from weft.runtime.memory.anonymous import mapped

MAGIC: Final = b"WEFTPK\x04\x00"
FOLDER: Final = fingerprint.ROOT / "library" / "packs"
"""Where packs are installed."""
FORMS: Final = FOLDER.with_name("forms.txt")
"""The list of what is in packs."""
START: Final = len(MAGIC) + 8
"""Where the header's length is, behind the checksum; words are aligned from here."""
_KEY: Final = 16
_LENGTH: Final = struct.Struct("<I")


class _Header(NamedTuple):
    """What is in the file.

    Attributes:
        made_by: the compiler's sources.
        counts: of entries, bytes of texts, bytes of code, bytes of the table behind it.
        driver: where the driver's table is.
    """

    target: str
    made_by: str
    counts: tuple[int, int, int, int]
    bases: Sequence[tuple[int, int]]
    imports: Sequence[tuple[int, str]]
    driver: int


class Pack:
    """A loaded pack.

    Attributes:
        driver: the address of the driver's table.
        origin: what it was made by, and its checksum.
    """

    def __init__(self, header: _Header, content: memoryview, origin: str) -> None:
        """A pack in memory of this process alone, which is written to.

        Raises:
            CompileError: the system refuses to execute it.
        """
        count, texts, _, _ = header.counts
        self._keys = content[: _KEY * count]
        self._ends = np.frombuffer(content[_KEY * count :], "<u4", count)
        start = (_KEY + 4) * count
        self._texts = content[start : start + texts]
        image, code = np.frombuffer(content[start + texts :], np.uint8), header.counts[2]
        self._address = filled(image, code, header.bases, header.imports)
        self._count = count
        self.origin: Final = origin
        self.driver: Final = self._address + header.driver

    def __len__(self) -> int:
        return self._count

    def find(self, form: str) -> str | None:
        """The text that is kept under the text of a form; `None` if there is nothing."""
        key = _key(form)
        place = bisect_left(range(self._count), key, key=self._key_at)
        if place == self._count or self._key_at(place) != key:
            return None
        start = int(self._ends[place - 1]) if place else 0
        return str(self._texts[start : int(self._ends[place])], "ascii")

    def _key_at(self, place: int) -> bytes:
        return bytes(self._keys[_KEY * place : _KEY * (place + 1)])

    def at(self, offset: int) -> int:
        """The address of a kernel."""
        return self._address + offset


def packed(target: Target, image: Image, driver: int, entries: Mapping[str, str]) -> bytes:
    """A pack as bytes, but for what `sealed` adds.

    Args:
        driver: the offset of the driver's table.
        entries: texts by the text of a form.
    """
    texts = {_key(form): text for form, text in entries.items()}
    keys = sorted(texts)
    ends = np.cumsum([len(texts[key]) for key in keys], dtype="<u4")
    body = "".join([texts[key] for key in keys]).encode("ascii")
    counts = len(keys), len(body), len(image.code), image.table
    header = _Header(repr(target), "", counts, image.bases, image.imports, driver)
    head = json.dumps(header._asdict()).encode()
    return b"".join(
        [_LENGTH.pack(len(head)), head, *keys, ends.tobytes(), body, image.code, bytes(image.table)]
    )


def sealed(pack: bytes, made_by: str) -> bytes:
    """A pack as a file: what it was made by, and its checksum."""
    (size,) = _LENGTH.unpack_from(pack)
    start = _LENGTH.size
    header = _Header(**json.loads(pack[start : start + size]))._replace(made_by=made_by)
    head = json.dumps(header._asdict()).encode()
    before = START + start + len(head) + len(pack) - start - size - sum(header.counts[2:])
    head += b" " * (-before % PAGE)
    rest = _LENGTH.pack(len(head)) + head + pack[start + size :]
    return MAGIC + _checksum(rest) + rest


def opened(data: bytes, target: Target, made_by: str) -> Pack | None:
    """The pack in a file's bytes; `None` if it is damaged, or is for something else."""
    block = mmap.mmap(-1, max(len(data), 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    block[: len(data)] = data
    return _opened(memoryview(block), target, made_by)


def _opened(content: memoryview, target: Target, made_by: str) -> Pack | None:
    """The pack in memory that begins at a page and belongs to this process alone."""
    rest = content[START:]
    if bytes(content[:START]) != MAGIC + _checksum(rest):
        return None
    (size,) = _LENGTH.unpack_from(rest)
    header = _Header(**json.loads(bytes(rest[_LENGTH.size : _LENGTH.size + size])))
    if header.target != repr(target) or header.made_by != made_by:
        return None
    try:
        return Pack(header, rest[_LENGTH.size + size :], made_by + bytes(content[:START]).hex())
    except CompileError:  # no memory may be executed, or none of this file
        return None


def _checksum(content: bytes | memoryview) -> bytes:
    """The sum of all 8-byte words and of the length: 0.2 ms for a pack, CRC-32 takes 1.5."""
    words = np.frombuffer(content, "<u8", len(content) // 8)
    rest = int.from_bytes(content[8 * len(words) :], "little")
    return ((int(words.sum()) + rest + len(content)) % (1 << 64)).to_bytes(8, "little")


def _key(form: str) -> bytes:
    return digest_of(form.encode())[:_KEY]


def name_of(target: Target) -> str | None:
    """The file of the installed pack for a target, if it is one that packs are made for."""
    return next((f"{name}.pack" for name, found in PORTABLE.items() if found == target), None)


def key_of(target: Target) -> str:
    """The key of the pack in the code cache; another list of forms has another size."""
    return digest("pack", made_here(), repr(target), str(FORMS.stat().st_size))


def made_here() -> str:
    """What makes packs on this machine: the compiler's sources and LLVM."""
    return f"{fingerprint.sources()} {llvm.version()}"


_packs: Final[dict[Target, Pack | None]] = {}
_loading: Final = new_lock(LEAF)


def pack_of(target: Target) -> Pack | None:
    """The pack for a target: the installed one, or that of the code cache.

    Each is loaded once, whichever threads ask for it, and stays: its code may be running.
    """
    if target not in _packs:
        with _loading:
            if target not in _packs:
                _packs[target] = _installed(target) or _kept(target)
    return _packs[target]


def origin(target: Target) -> str:
    """What tells this Weft from others: what its pack came from; without one, its sources, which
    may have to be read."""
    pack = pack_of(target)
    return fingerprint.sources() if pack is None else pack.origin


def is_installed(target: Target) -> bool:
    """Whether the pack for a target has come with Weft."""
    return _installed(target) is not None


def _installed(target: Target) -> Pack | None:
    name = name_of(target)
    if name is None:
        return None
    with contextlib.suppress(OSError, OutOfMemoryError):
        file = os.open(FOLDER / name, os.O_RDONLY | os.O_CLOEXEC)
        try:
            content, made_by = mapped(file, os.fstat(file).st_size, own=True), fingerprint.outline()
        finally:
            os.close(file)
        return _opened(content, target, made_by) or opened(bytes(content), target, made_by)
    return None


def _kept(target: Target) -> Pack | None:
    data = compiler.cache().load(key_of(target))
    return None if data is None else opened(data, target, made_here())
