"""How much memory a program will need, as an earlier process saw; it is mapped during planning."""

from __future__ import annotations

from typing import Final

from weft.runtime.compilation import compiler
from weft.runtime.compilation.cache import digest
from weft.runtime.memory.shared import expect

WORTH: Final = 64 << 20  # bytes: less is made resident in 30 ms
_BYTES: Final = 8


class Forecast:
    """The recorded memory of a kind of program; if it is wrong, memory is released or added.

    Args:
        kind: identifies programs like this one.
    """

    def __init__(self, *kind: str) -> None:
        self._key = digest("memory", *kind)
        self._size = int.from_bytes(compiler.cache().load(self._key) or b"", "little")
        if self._size:
            expect(self._size)

    def note(self, size: int) -> None:
        """Records that the program is ready, and needs so many bytes."""
        if size >= WORTH and size != self._size:
            compiler.cache().store({self._key: size.to_bytes(_BYTES, "little")})
