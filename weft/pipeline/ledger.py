"""The state of an input that is read ahead: a resumed pass reads unused elements again."""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from weft.pipeline.stage import Cursor, State

EVERY: Final = 16  # elements between marks: the most that are read again after a resume


class Ledger:
    """Reads an input and saves its state, a mark, every few elements.

    One thread may read while another consumes; marks are appended at one end and dropped at the
    other.
    """

    def __init__(self, source: Cursor) -> None:
        self.source = source
        self.read = 0
        self.used = 0
        self.marks: deque[tuple[int, State]] = deque([(0, source.state())])

    def next(self) -> Any:
        """The input's next element."""
        if self.read and self.read % EVERY == 0:
            self.marks.append((self.read, self.source.state()))
        # an element that raises another error counts as read; the error is raised when used
        element = next(self.source)
        self.read += 1
        return element

    def failed(self) -> None:
        """Count an element that raised."""
        self.read += 1

    def use(self) -> None:
        """Count an element as consumed."""
        self.used += 1
        while len(self.marks) > 1 and self.marks[1][0] <= self.used:
            self.marks.popleft()

    def state(self) -> State:
        """The last mark, and the number of elements consumed since."""
        place, state = self.marks[0]
        return {"input": state, "used": self.used - place}

    def restore(self, state: State) -> None:
        """Restore the mark and read again what was consumed since."""
        self.source.restore(state["input"])
        self.marks = deque([(0, state["input"])])
        self.read = self.used = 0
        for _ in range(state["used"]):
            try:
                self.next()
            except StopIteration:
                break
            except Exception:  # it was raised before the state was taken
                self.failed()
        self.used = self.read
