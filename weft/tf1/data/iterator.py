"""Dataset iterators in a graph: the tensors of `get_next()` have new values in each run."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from weft.errors import DTypeError
from weft.pipeline.pipeline import Pipeline
from weft.tf1.data.spec import Specified, of_types, spec_leaves, tensors_of
from weft.tf1.errors import FailedPreconditionError, InvalidArgumentError, OutOfRangeError
from weft.tf1.framework.graph import get_default_graph
from weft.tf1.framework.host import HostValue, current
from weft.tf1.framework.tensor import HOOKS

_numbers: Final = itertools.count()
_by_handle: Final[weakref.WeakValueDictionary[bytes, Iterator]] = weakref.WeakValueDictionary()


class Iterator(Specified):
    """Iterates over a dataset, one element per run.

    Args:
        spec: of the elements.
        start: creates the dataset of a one-shot iterator; others are initialized in a run.
    """

    def __init__(self, spec: Any, start: Callable[[], Pipeline] | None = None) -> None:
        self.spec = spec
        self._start = start
        self._lock = threading.Lock()
        self._running: dict[int, tuple[Any, Any]] = {}  # by session, for one-shot iterators
        self._shared: Any = None
        self._name = b"iterator-%d" % next(_numbers)
        _by_handle[self._name] = self

    @classmethod
    def from_structure(
        cls, output_types: Any, output_shapes: Any = None, shared_name: str | None = None
    ) -> Iterator:
        """A reinitializable iterator: `make_initializer(dataset)` sets its dataset."""
        return cls(of_types(output_types, output_shapes))

    @classmethod
    def from_string_handle(
        cls, string_handle: Any, output_types: Any, output_shapes: Any = None
    ) -> Iterator:
        """A feedable iterator: each run uses the iterator whose `string_handle()` is fed."""
        return _Feedable(of_types(output_types, output_shapes), string_handle)

    @property
    def initializer(self) -> Any:
        """The operation that starts at the dataset's first element.

        Raises:
            InvalidArgumentError: a one-shot iterator has none.
        """
        text = "a one-shot iterator needs no initializer; make_initializable_iterator has one"
        raise InvalidArgumentError(None, None, f"initializer: {text}")

    def make_initializer(self, dataset: Any, name: str | None = None) -> Any:
        """An operation that starts at the first element of a dataset with the same types.

        Raises:
            DTypeError: the dataset has other types or another structure.
        """
        expected, got = spec_leaves(self.spec), spec_leaves(dataset.spec)
        if [s.dtype.name for s in expected] != [s.dtype.name for s in got]:
            raise DTypeError(
                f"make_initializer: expected elements of {[s.dtype.name for s in expected]}, "
                f"got {[s.dtype.name for s in got]}"
            )

        return _Initializer(self, dataset, name or "MakeIterator")

    def begin(self, running: Any) -> None:
        """Use this pass."""
        with self._lock:
            if self._shared is not None:
                self._shared.close()
            self._shared = running

    def get_next(self, name: str | None = None) -> Any:
        """The next element's tensors; a run that needs them consumes one element.

        After the last element, a run raises `OutOfRangeError`.
        """
        return tensors_of(self.spec, _Next(self), name or "IteratorGetNext")

    def string_handle(self, name: str | None = None) -> HostValue:
        """The value to feed to use this iterator in `from_string_handle`."""
        del name
        return HostValue(lambda: self._name, name="StringHandle")

    def take(self, run: Any, state: Any) -> Any:
        """The next element, in a session with this state."""
        del run
        with self._lock:
            running = self._shared if self._start is None else self._own(state)
            if running is None:
                text = "GetNext: the iterator is not initialized; run its initializer first"
                raise FailedPreconditionError(None, None, text)
            try:
                return next(running)
            except StopIteration:
                raise OutOfRangeError(None, None, "End of sequence") from None

    def _own(self, state: Any) -> Any:
        """The session's pass: each session starts a one-shot iterator anew."""
        assert self._start is not None
        known, running = self._running.get(id(state), (None, None))
        if known is None or known() is not state:
            running = iter(self._start())
            self._running[id(state)] = weakref.ref(state), running
        return running


class _Initializer:
    """Starts a pass of a dataset, with its inputs' values in that run."""

    def __init__(self, iterator: Iterator, dataset: Any, name: str) -> None:
        self.iterator, self.dataset, self.name = iterator, dataset, name
        self.graph = get_default_graph()
        self._host_inputs = [x for x in dataset.inputs if not isinstance(x, HostValue)]

    def _host_fetch(self, session: Any, *arrays: Any) -> None:
        rest = iter(arrays)
        values = [
            x.compute(current(), session.state)
            if isinstance(x, HostValue)
            else np.array(next(rest))
            for x in self.dataset.inputs
        ]
        self.dataset.check(values)
        self.iterator.begin(iter(self.dataset.pipeline(values)))

    def run(self, feed_dict: Any = None, session: Any = None) -> None:
        """Run it in the default session."""
        found: Any = session or HOOKS.default_session()
        found.run(self, feed_dict)


class Initializable(Iterator):
    """An iterator of one dataset, with an initializer."""

    def __init__(self, dataset: Any) -> None:
        super().__init__(dataset.spec)
        self._initializer = self.make_initializer(dataset)

    @property
    def initializer(self) -> Any:
        """The operation that starts at the dataset's first element."""
        return self._initializer


class _Feedable(Iterator):
    """Uses the iterator whose handle is fed."""

    def __init__(self, spec: Any, handle: Any) -> None:
        super().__init__(spec)
        self.handle = handle

    def take(self, run: Any, state: Any) -> Any:
        given = self.handle.compute(run, state) if isinstance(self.handle, HostValue) else None
        name: Any = given if given is not None else self.handle
        name = bytes(name.item()) if isinstance(name, np.ndarray) else name
        name = name.encode() if isinstance(name, str) else name
        found = _by_handle.get(name)
        if found is None:
            text = f"expected the string_handle() of an iterator, got {name!r}"
            raise InvalidArgumentError(None, None, f"from_string_handle: {text}")
        return found.take(run, state)


class _Next(HostValue):
    """One element per run."""

    def __init__(self, iterator: Iterator) -> None:
        super().__init__(lambda: None, name="IteratorGetNext")
        self.iterator = iterator

    def compute(self, run: Any, state: Any) -> Any:
        """The element, taken once per run."""
        if id(self) not in run:
            run[id(self)] = self.iterator.take(run, state)
        return run[id(self)]
