"""How much memory a program will take, as an earlier process saw: resident while it is planned."""

from __future__ import annotations

from typing import Final

from weft.runtime.compilation import compiler
from weft.runtime.compilation.cache import digest
from weft.runtime.memory.shared import expect

WORTH: Final = 64 << 20  # bytes: less is resident in 30 ms
_BYTES: Final = 8


class Forecast:
    """What was noted for programs of a kind; if it is wrong, memory is given back or added.

    Args:
        kind: what is like a program that this one may be.
    """

    def __init__(self, *kind: str) -> None:
        self._key = digest("memory", *kind)
        self._size = int.from_bytes(compiler.cache().load(self._key) or b"", "little")
        if self._size:
            expect(self._size)

    def note(self, size: int) -> None:
        """The program is there, and takes so many bytes."""
        if size >= WORTH and size != self._size:
            compiler.cache().store({self._key: size.to_bytes(_BYTES, "little")})
