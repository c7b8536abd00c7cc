"""Dataset iterators in a graph: the tensors of `get_next()` have new values in each run."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from weft.errors import DTypeError, EndOfDataError, GraphError
from weft.pipeline.pipeline import Pipeline
from weft.pipeline.structure import map_leaves
from weft.tf1.data.spec import Specified, of_types, spec_leaves, tensors_of
from weft.tf1.errors import FailedPreconditionError, InvalidArgumentError
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.dtypes import string
from weft.tf1.framework.graph import computes_at_once, fail, get_default_graph
from weft.tf1.framework.host import host_op, host_tensor
from weft.tf1.framework.tensor import Operation, Tensor

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

    def make_initializer(self, dataset: Any, name: str | None = None) -> Operation:
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

        def begin(*arrays: Any) -> None:
            values = [np.array(x) if x.ndim else x[()] for x in arrays]  # a feed may change later
            dataset.check(values)
            self.begin(iter(dataset.pipeline(values)))

        return host_op("MakeIterator", dataset.inputs, begin, (), (), name)

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
        return tensors_of(self.spec, self.take, name or "IteratorGetNext")

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> Any:
        """The next element's tensors, in eager execution.

        Raises:
            GraphError: a session computes them.
        """
        graph = get_default_graph()
        if not computes_at_once(graph):
            raise fail(GraphError, "expected eager execution to iterate; a run takes get_next()")
        running = self._own(graph) if self._start is not None else self._shared
        return map_leaves(convert_to_tensor, next(running))

    def string_handle(self, name: str | None = None) -> Tensor:
        """The value to feed to use this iterator in `from_string_handle`."""
        kind = "IteratorToStringHandle"
        return host_tensor(kind, (), lambda: self._name, string, (), name)

    def take(self, state: Any) -> Any:
        """The next element, in a session with this state."""
        with self._lock:
            running = self._shared if self._start is None else self._own(state)
            if running is None:
                text = "GetNext: the iterator is not initialized; run its initializer first"
                raise FailedPreconditionError(None, None, text)
            try:
                return next(running)
            except StopIteration:
                raise EndOfDataError("End of sequence") from None

    def _own(self, state: Any) -> Any:
        """The session's pass: each session starts a one-shot iterator anew."""
        assert self._start is not None
        known, running = self._running.get(id(state), (None, None))
        if known is None or known() is not state:
            running = iter(self._start())
            self._running[id(state)] = weakref.ref(state), running
        return running


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
        self.handle = convert_to_tensor(handle, string)

    def get_next(self, name: str | None = None) -> Any:
        """The next element's tensors, of the iterator whose handle the run has."""
        return tensors_of(self.spec, _taken_from, name or "IteratorGetNext", [self.handle])


def _taken_from(state: Any, handle: Any) -> Any:
    """The next element of the iterator with this handle."""
    found = _by_handle.get(handle[()])
    if found is None:
        text = f"expected the string_handle() of an iterator, got {handle[()]!r}"
        raise InvalidArgumentError(None, None, f"from_string_handle: {text}")
    return found.take(state)
