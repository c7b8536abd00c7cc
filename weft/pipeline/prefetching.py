"""`prefetch`: a thread reads ahead while the caller works."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, Final

from weft.errors import ArgumentError
from weft.host.garbage_collection import finalize_here
from weft.host.mix import mix
from weft.pipeline.ledger import Ledger
from weft.pipeline.mapping import AUTOTUNE
from weft.pipeline.stage import Behind, Context, Cursor, Stage, State, View
from weft.pipeline.worker import Task

FIRST: Final = 2  # elements, if the size is AUTOTUNE
MOST: Final = 64


class Prefetch(Stage):
    """The same elements, up to `size` of them computed ahead."""

    ahead = True

    def __init__(self, source: Stage, size: int) -> None:
        if size < 0 and size != AUTOTUNE:
            raise ArgumentError(f"prefetch: expected 0 elements or more, or AUTOTUNE, got {size}")
        self.inputs = (source,)
        self.size = size
        self.ahead = size != 0

    def indexed(self, context: Context) -> View | None:
        """The input's view."""
        return self.inputs[0].view(context)

    def stream(self, context: Context) -> Cursor:
        """Elements in order."""
        source = self.inputs[0].open(context)
        if not self.size:
            return source
        seed = mix(self.seed_of(None, context), context.epoch)
        return _Prefetch(source, self.size, context.draws and partial(context.draws, seed))

    def count(self) -> int:
        """The input's size."""
        return self.inputs[0].count()


class _Channel:
    """The state that thread and cursor share; the thread has no reference to the cursor."""

    def __init__(self, ledger: Ledger, size: int) -> None:
        self.ledger = ledger
        self.limit = FIRST if size == AUTOTUNE else size
        self.tuned = size == AUTOTUNE
        self.was_full = False
        self.changed = threading.Condition()
        self.elements: deque[Any] = deque()  # errors are passed on as failed tasks
        self.ended = False
        self.closed = False

    def fill(self) -> None:
        """The thread's work: read until the input ends or the channel is closed."""
        while True:
            with self.changed:
                while len(self.elements) >= self.limit and not self.closed:
                    self.was_full = True
                    self.changed.wait()
                if self.closed:
                    return
            element, ended = self._read()
            with self.changed:
                self.ended = ended
                if not ended:
                    self.elements.append(element)
                self.changed.notify_all()
                if ended:
                    return

    def _read(self) -> tuple[Any, bool]:
        try:
            return self.ledger.next(), False
        except StopIteration:
            return None, True
        except BaseException as error:  # raised when the element is requested
            self.ledger.failed()
            return Task.failed(error), False

    def take(self) -> Any:
        """The next element; raises StopIteration at the end."""
        with self.changed:
            if not self.elements and self.tuned and self.was_full:
                self.limit, self.was_full = min(2 * self.limit, MOST), False
            while not self.elements and not self.ended and not self.closed:
                self.changed.wait()
            if not self.elements:
                raise StopIteration
            element = self.elements.popleft()
            self.ledger.use()
            self.changed.notify_all()
        return element

    def close(self) -> None:
        """Stop the thread after its current element."""
        with self.changed:
            self.closed = True
            self.elements.clear()
            self.changed.notify_all()


def _filled(channel: _Channel, draws: Callable[[], AbstractContextManager[Any]]) -> None:
    """The thread's work, with a random stream of its own, apart from those of other threads."""
    with draws():
        channel.fill()


class _Prefetch(Behind):
    def __init__(
        self, source: Cursor, size: int, draws: Callable[[], AbstractContextManager[Any]] | None
    ) -> None:
        super().__init__(source)
        self.size = size
        self.draws = draws or nullcontext
        self.ledger = Ledger(source)
        self.channel: _Channel | None = None
        self.thread: threading.Thread | None = None

    def __next__(self) -> Any:
        if self.channel is None:
            self.channel = _Channel(self.ledger, self.size)
            finalize_here(self, self.channel.close)
            self.thread = threading.Thread(
                target=_filled, args=(self.channel, self.draws), name="weft-prefetch", daemon=True
            )
            self.thread.start()
        element = self.channel.take()
        return element.value() if isinstance(element, Task) else element

    def state(self) -> State:
        return self.ledger.state()

    def restore(self, state: State) -> None:
        self.ledger.restore(state)

    def close(self) -> None:
        if self.channel is not None and self.thread is not None:
            self.channel.close()
            self.thread.join()  # it uses the input
        super().close()
