"""State of an input that is read ahead: what was read and not used comes again."""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from weft.pipeline.stage import Cursor, State

EVERY: Final = 16  # elements between marks: at most so many are read again after a resume


class Ledger:
    """Reads an input and marks its state every few elements.

    One thread may read while another uses; marks are appended at one end and dropped at the other.
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
        element = next(self.source)  # one that raises anything else is read, and its turn comes
        self.read += 1
        return element

    def failed(self) -> None:
        """Count an element that raised."""
        self.read += 1

    def use(self) -> None:
        """Count an element as given away."""
        self.used += 1
        while len(self.marks) > 1 and self.marks[1][0] <= self.used:
            self.marks.popleft()

    def state(self) -> State:
        """The last mark, and how many elements have been used since."""
        place, state = self.marks[0]
        return {"input": state, "used": self.used - place}

    def restore(self, state: State) -> None:
        """Go to the mark and read again what had been used since."""
        self.source.restore(state["input"])
        self.marks = deque([(0, state["input"])])
        self.read = self.used = 0
        for _ in range(state["used"]):
            try:
                self.next()
            except StopIteration:
                break
            except Exception:  # raised to the user before the state was taken
                self.failed()
        self.used = self.read
