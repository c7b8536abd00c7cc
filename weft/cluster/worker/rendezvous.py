"""Where values that other tasks send meet the steps that wait for them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from weft.errors import AbortedError

MOST_ENDED: Final = 4096
"""How many steps are remembered as over, so that values that come too late are dropped."""


class Box(Protocol):
    """What takes the values of one step: `weft.runtime.staged.Box`."""

    def put(self, value: int, array: Any) -> None:
        """Gives a value to those that wait for it."""
        ...

    def abort(self, error: BaseException) -> None:
        """Makes all that wait raise an error."""
        ...


class Rendezvous:
    """The steps that a task takes part in, by name.

    Values may come before the task has been told to run its part: they are kept until then.

    Args:
        expects: whether a step with this name may begin here later; otherwise its values are late,
            as those of a session that was closed, or of one that this task has forgotten.
    """

    def __init__(self, expects: Callable[[str], bool]) -> None:
        self._expects = expects
        self._lock = threading.Lock()
        self._boxes: dict[str, Box] = {}
        self._early: dict[str, list[tuple[int, Any]]] = {}
        self._ended: OrderedDict[str, None] = OrderedDict()

    def begin(self, step: str, box: Box) -> None:
        """Give a box what has come for its step, and what will come.

        Raises:
            AbortedError: the step was given up already.
        """
        with self._lock:
            if step in self._ended:
                raise AbortedError(f"step {step} was given up before it began here")
            self._boxes[step] = box
            early = self._early.pop(step, ())
        for value, array in early:
            box.put(value, array)

    def put(self, step: str, values: Sequence[int], arrays: Sequence[Any]) -> None:
        """Values that another task has sent; dropped if the step is over."""
        pairs = list(zip(values, arrays, strict=True))
        with self._lock:
            box = self._boxes.get(step)
            if box is None:
                if step not in self._ended and self._expects(step):
                    self._early.setdefault(step, []).extend(pairs)
                return
        for value, array in pairs:
            box.put(value, array)

    def abort(self, step: str, error: BaseException) -> None:
        """Give a step up: whoever waits for its values gets the error."""
        with self._lock:
            box = self._ended_box(step)
        if box is not None:
            box.abort(error)

    def end(self, step: str) -> None:
        """Forget a step that is done."""
        with self._lock:
            self._ended_box(step)

    def abort_all(self, prefix: str, error: BaseException) -> None:
        """Give up the steps whose names begin so."""
        with self._lock:
            steps = [s for s in (*self._boxes, *self._early) if s.startswith(prefix)]
        for step in steps:
            self.abort(step, error)

    def _ended_box(self, step: str) -> Box | None:
        self._ended[step] = None
        if len(self._ended) > MOST_ENDED:
            self._ended.popitem(last=False)
        self._early.pop(step, None)
        return self._boxes.pop(step, None)
