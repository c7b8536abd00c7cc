"""`map`: a function of each element, called inline or by threads that work ahead, in order."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from weft.errors import ArgumentError
from weft.host.mix import mix
from weft.pipeline.call import called_with_key, keyed, title
from weft.pipeline.ledger import Ledger
from weft.pipeline.stage import (
    Array,
    Behind,
    Context,
    Counting,
    Cursor,
    Draws,
    Stage,
    State,
    View,
)
from weft.pipeline.structure import split, stack
from weft.pipeline.tuning import ThreadTuner
from weft.pipeline.worker import Task, Workers

AUTOTUNE: Final = -1
AHEAD: Final = 2  # elements read ahead per thread
Function = Callable[[Any, int], Any]  # of an element and its position
Batched = Callable[[Any, int], Any]


class Map(Stage):
    """`function(element)` for each element; the parts of a tuple are separate arguments.

    Args:
        threads: number of threads; None calls in the caller's thread, AUTOTUNE chooses by
            measurement.
        what: its name in messages.
    """

    def __init__(
        self, source: Stage, function: Callable[..., Any], threads: int | None = None,
        what: str = "map",
    ) -> None:  # fmt: skip
        if threads is not None and threads < 1 and threads != AUTOTUNE:
            raise ArgumentError(f"{what}: expected 1 thread or more, or AUTOTUNE, got {threads}")
        self.inputs = (source,)
        self.function = function
        self.threads = threads
        self.what = what
        ahead = ", ahead" if threads is not None else ""  # its state has another form
        self.name = f"{what}({title(function)}{ahead})"
        self.ahead = threads is not None

    def indexed(self, context: Context) -> View | None:
        """Results by index."""
        view = self.inputs[0].view(context)
        if view is None:
            return None
        return _Mapped(view, self._function(context), self._batched(context))

    def stream(self, context: Context) -> Cursor:
        """Results in order."""
        function = self._function(context)
        source = self.inputs[0].open(context)
        if getattr(self.function, "takes_packed", False):
            source = _Packing(source)
        if self.threads is None:
            return _Map(source, function, self._batched(context))
        return Ahead(source, function, self.threads)

    def _function(self, context: Context) -> Callable[[Any, int], Any]:
        """The function, called with an element and its position."""
        call = functools.partial(_call, self.function, self.what, self._seed(context))
        return self._apart(call, context)

    def _batched(self, context: Context) -> Batched:
        """The function's batched version, if it has one: the results for a batch, or None.

        It is called with a batch and the position of its first element.
        """
        function: Any = getattr(self.function, "batched", None)
        if function is None:
            return _none
        call = functools.partial(_call_batched, function, self._seed(context))
        return self._apart(call, context)

    def _apart(self, call: Function, context: Context) -> Function:
        if context.draws is None:
            return call
        return functools.partial(_apart, call, self._seed(context), context.draws)

    def _seed(self, context: Context) -> int:
        return mix(self.seed_of(None, context), context.epoch)

    def count(self) -> int:
        """The input's size."""
        return self.inputs[0].count()


def _none(batch: Any, position: int) -> None:
    """For functions of one element at a time."""


def _call(function: Any, what: str, seed: int, element: Any, position: int) -> Any:
    return called_with_key(function, element, what, position, seed)


def _call_batched(function: Any, seed: int, batch: Any, position: int) -> Any:
    with keyed(seed, position):
        return function(batch)


def _apart(call: Function, seed: int, draws: Draws, element: Any, position: int) -> Any:
    """A call with a random stream of its own."""
    with draws(seed, position):
        return call(element, position)


class _Mapped(View):
    def __init__(self, view: View, function: Function, batched: Batched) -> None:
        self.view = view
        self.function = function
        self.batched = batched
        self.size = view.size

    def item(self, index: int) -> Any:
        return self.function(self.view.item(index), index)

    def gather(self, indices: Array) -> Any:
        if self.batched is not _none:
            batch = self.batched(self.view.gather(indices), int(indices[0]))
            if batch is not None:
                return batch
        return super().gather(indices)


class _Packing(Behind):
    """The same elements; records in a batch stay encoded."""

    def __next__(self) -> Any:
        return self.source.next_packed()

    def gather(self, count: int) -> tuple[Any, int]:
        return self.source.packed(count)


class _Map(Counting):
    def __init__(self, source: Cursor, function: Function, batched: Batched) -> None:
        super().__init__(source)
        self.function = function
        self.batched = batched

    def __next__(self) -> Any:
        element = next(self.source)
        self.position += 1
        return self.function(element, self.position - 1)

    def gather(self, count: int) -> tuple[Any, int]:
        # the first call shows which arguments the function takes
        if self.batched is _none or self.position == 0:
            return super().gather(count)
        rows, number = self.source.gather(count)
        if not number:
            return None, 0
        first, self.position = self.position, self.position + number
        batch = self.batched(rows, first)
        if batch is None:
            batch = stack([self.function(x, first + i) for i, x in enumerate(split(rows))])
        return batch, number


class Ahead(Behind):
    """The cursor reads elements, threads call the function, results come in order."""

    def __init__(self, source: Cursor, function: Function, threads: int) -> None:
        super().__init__(source)
        self.function = function
        self.threads = threads
        self.first = 0  # the position where the ledger starts
        self.tasks: deque[Task] = deque()
        self.ended = False
        self.ledger: Ledger | None = None
        self.workers: Workers | None = None
        self.tuner: ThreadTuner | None = None

    def _start(self) -> tuple[Ledger, Workers]:
        if self.ledger is None:
            self.ledger = Ledger(self.source)
        if self.workers is None:
            tuned = self.threads == AUTOTUNE
            self.workers = Workers(0 if tuned else self.threads, "map")
            self.tuner = ThreadTuner(self.workers) if tuned else None
        return self.ledger, self.workers

    def __next__(self) -> Any:
        ledger, workers = self._start()
        self._fill(ledger, workers)
        if not self.tasks:
            raise StopIteration
        self.tasks[0].wait()  # Ctrl-C here loses nothing
        task = self.tasks.popleft()
        ledger.use()
        if self.tuner is not None:
            self.tuner.note()
        return task.value()

    def _fill(self, ledger: Ledger, workers: Workers) -> None:
        wanted = max(workers.count * AHEAD, 1)
        while len(self.tasks) < wanted and not self.ended:
            position = self.first + ledger.read
            try:
                element = ledger.next()
            except StopIteration:
                self.ended = True
            except Exception as error:
                ledger.failed()
                self.tasks.append(Task.failed(error))
            else:
                task = Task(functools.partial(self.function, element, position))
                self.tasks.append(task)
                workers.submit(task)

    def state(self) -> State:
        """The input's state before what was read ahead."""
        if self.ledger is None:
            return {"input": self.source.state(), "used": 0, "position": self.first}
        return {**self.ledger.state(), "position": self.first + self.ledger.used}

    def restore(self, state: State) -> None:
        """Read again from the last mark; the function skips elements that were consumed."""
        self.ledger = Ledger(self.source)
        self.ledger.restore(state)
        self.first = state["position"] - self.ledger.used

    def close(self) -> None:
        """Stop the threads."""
        if self.workers is not None:
            self.workers.close()
            self.workers = None
        self.tasks.clear()
        self.ended = True
        super().close()
