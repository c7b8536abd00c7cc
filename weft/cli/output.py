"""What the ranks of a job write: whole lines with the rank in front, and news of their ends."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import IO, Final

from weft.transport.supervisor import BEGUN, NEWS

_CHATTER: Final = (
    b"=" * 40, b"=   ", b"YOUR APPLICATION TERMINATED WITH", b"This typically refers to a problem",
    b"Please see the FAQ page for debugging",
)  # fmt: skip
"""What MPICH's launcher prints when a rank was killed."""
_ASKED: Final = re.compile(rb"\[mpiexec@[^]]*\] (Sending|Press) Ctrl-C ")
"""The same when it was asked to end."""
_SPLIT: Final = re.compile(rb"\x1e(\d+)\x1f")


class News:
    """What the supervisors of ranks have told.

    Attributes:
        begun: how many ranks have begun.
        codes: exit codes of ranks that ended badly, the first one first.
        failed_at: when the first did.
    """

    def __init__(self) -> None:
        self.begun = 0
        self.codes: list[int] = []
        self.failed_at: float | None = None

    def take(self, told: bytes) -> str:
        """Take a line; returns the text that is to be printed.

        Example:
            >>> news = News()
            >>> news.take(b"137 rank 1 was killed"), news.codes
            ('rank 1 was killed\\n', [137])
        """
        code, _, text = told.decode(errors="replace").partition(" ")
        if int(code) == BEGUN:
            self.begun += 1
            return ""
        self.codes.append(int(code))
        self.fail()
        return f"{text}\n" if text else ""

    def fail(self) -> None:
        """A rank has failed: the others are to end, too."""
        if self.failed_at is None:
            self.failed_at = time.monotonic()


def pass_on(source: IO[bytes], target: IO[str], prefix: bool, news: News) -> None:
    """Prints the ranks' output in whole lines, with the rank in front."""
    lines = Lines(prefix, news.take)
    while data := source.read1(1 << 16):  # pyright: ignore[reportAttributeAccessIssue]
        for line in lines.take(data):
            target.write(line)
        target.flush()
    for line in lines.rest():
        target.write(line)
    target.flush()


class Lines:
    """Assembles lines of several ranks from interleaved pieces.

    Example:
        >>> lines = Lines()
        >>> lines.take(b"\\x1e0\\x1fone \\x1e1\\x1ftwo\\n")
        ['[1] two\\n']
        >>> lines.take(b"\\x1e0\\x1fthree\\n")
        ['[0] one three\\n']
    """

    def __init__(self, prefix: bool = True, news: Callable[[bytes], str] | None = None) -> None:
        self._prefix = prefix
        self._news = News().take if news is None else news
        self._begun: dict[int, bytes] = {}
        self._rank = -1  # rank of the current piece; -1 for the launcher
        self._tail = b""  # may be the beginning of a mark

    def take(self, data: bytes) -> list[str]:
        """The lines that are complete now."""
        data = self._tail + data
        cut = data.rfind(b"\x1e")
        open_mark = cut >= 0 and b"\x1f" not in data[cut:] and len(data) - cut < 16
        self._tail = data[cut:] if open_mark else b""
        pieces = _SPLIT.split(data[:cut] if open_mark else data)
        found = self._add(pieces[0])
        for rank, text in zip(pieces[1::2], pieces[2::2], strict=True):
            self._rank = int(rank)
            found += self._add(text)
        return found

    def _add(self, text: bytes) -> list[str]:
        *found, rest = (self._begun.get(self._rank, b"") + text).split(b"\n")
        self._begun[self._rank] = rest
        whole: list[bytes] = []
        for line in found:
            if not (line.startswith(_CHATTER) or _ASKED.match(line)):
                whole.append(line)
            elif whole and not whole[-1]:
                whole.pop()
        return [told for line in whole if (told := self._told(self._rank, line))]

    def _told(self, rank: int, line: bytes) -> str:
        """A line as it is printed; empty where it only has news."""
        own, mark, news = line.partition(NEWS)
        text = self._line(rank, own) if own or not mark else ""
        return text + (self._news(news) if mark else "")

    def _line(self, rank: int, line: bytes) -> str:
        text = line.decode(errors="replace")
        return f"[{rank}] {text}\n" if self._prefix and rank >= 0 else f"{text}\n"

    def rest(self) -> list[str]:
        """Unfinished lines."""
        return [self._told(rank, text) for rank, text in self._begun.items() if text]
