"""What lives beside variables and may make its callers wait: queues, tables, accumulators.

A `Resource` is made by the first call that names it and lives in `Containers` until it is reset.
A call waits inside `Resource.call`; whoever closes a session or gives up a step cancels its
`Cancellation`, and the calls that wait raise.
"""

from __future__ import annotations

import abc
import importlib
import itertools
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeVar

import numpy as np

from weft.errors import ArgumentError, CancelledError, SharingError
from weft.ops.resource.spec import ResourceSpec

Array = np.ndarray[Any, np.dtype[Any]]
Callback = Callable[[BaseException], None]


class Cancellation:
    """Ends waits: of the session that is closed, of the step that is given up.

    >>> session = Cancellation()
    >>> step = Cancellation(session)
    >>> session.cancel()
    >>> step.cancelled
    True

    Args:
        parent: this one is cancelled with it, until `close` or `cancel` parts them.
    """

    def __init__(self, parent: Cancellation | None = None) -> None:
        self._lock = threading.Lock()
        self._error: BaseException | None = None
        self._callbacks: dict[int, Callback] = {}
        self._numbers = itertools.count()
        self._part: Callable[[], None] = lambda: None
        if parent is not None:
            self._part = parent.add(self.cancel)

    @property
    def cancelled(self) -> bool:
        """Whether it was cancelled."""
        return self._error is not None

    @property
    def error(self) -> BaseException | None:
        """What the calls raise, once it was cancelled."""
        return self._error

    def check(self) -> None:
        """Raise the error if it was cancelled."""
        if self._error is not None:
            raise self._error

    def add(self, callback: Callback) -> Callable[[], None]:
        """Call `callback` with the error when it is cancelled, at once if it was.

        Returns:
            A function that withdraws the callback.
        """
        with self._lock:
            number = next(self._numbers)
            if self._error is None:
                self._callbacks[number] = callback
                return lambda: self._withdraw(number)
        callback(self._error)
        return lambda: None

    def _withdraw(self, number: int) -> None:
        with self._lock:
            self._callbacks.pop(number, None)

    def cancel(self, error: BaseException | None = None) -> None:
        """End all waits with this error; by default, because the session was closed."""
        with self._lock:
            if self._error is not None:
                return
            self._error = error or CancelledError("the session was closed while the call waited")
            callbacks, self._callbacks = list(self._callbacks.values()), {}
        self.close()
        for callback in callbacks:
            callback(self._error)

    def close(self) -> None:
        """Part from the parent: nothing that it ends waits any more."""
        self._part()

    def __enter__(self) -> Cancellation:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class Resource(abc.ABC):
    """Something with a state that calls change, one after the other.

    Attributes:
        family: resources of one family share their names: a table may be called as a queue is.
        what: the word for it in messages.
        words: those for its options in messages, where they differ from the names.
        home: the containers in which it lives, for resources that call others.
    """

    home: Containers

    family: ClassVar[str]
    what: ClassVar[str] = "resource"
    words: ClassVar[Mapping[str, str]] = {
        "dtypes": "component types",
        "shapes": "component shapes",
        "random_seeds": "random seeds",
    }

    def __init__(self, spec: ResourceSpec) -> None:
        self.spec: Final = spec
        self.name: Final = spec.name

    @abc.abstractmethod
    def call(
        self, method: str, inputs: Sequence[Array], options: Mapping[str, Any],
        cancel: Cancellation,
    ) -> list[Array]:  # fmt: skip
        """Do what the method says; may wait.

        Raises:
            CancelledError: `cancel` was cancelled, or what the call waits for was.
            EndOfDataError: there is nothing to wait for.
            ArgumentError: the inputs do not fit, or there is no such method.
        """

    def check_same(self, spec: ResourceSpec) -> None:
        """Refuse a call that names this resource and means another.

        Raises:
            SharingError: kind or options differ; the first that does is named.
        """
        if self.spec == spec:
            return
        pairs = [("type", self.spec.kind, spec.kind)]
        mine, theirs = dict(self.spec.options), dict(spec.options)
        pairs += [(self.words.get(n, n), v, theirs.get(n)) for n, v in mine.items()]
        for name, has, requested in pairs:
            if has != requested:
                text = f"has {name} {has} but requested {name} was {requested}"
                raise SharingError(f"Shared {self.what} '{self.name}' {text}")

    @abc.abstractmethod
    def close(self) -> None:
        """End the waits of all callers, because the resource goes away."""


R = TypeVar("R", bound=Resource)
SELECTED: Final = "SelectedResource"


def selected(resources: Sequence[ResourceSpec], name: str) -> ResourceSpec:
    """What means one of several resources: calls have an index before their inputs."""
    fields = tuple([(r.kind, r.name, r.container, r.options) for r in resources])
    return ResourceSpec(SELECTED, name, "", (("resources", fields),))


def _selection(spec: ResourceSpec, index: int) -> ResourceSpec:
    fields = spec.option("resources")
    if not 0 <= index < len(fields):
        raise ArgumentError(f"{spec.name}: index {index} is not in [0, {len(fields)})")
    return ResourceSpec(*fields[index])


Maker = Callable[[ResourceSpec], Resource]
_MAKERS: Final[dict[str, Maker]] = {}
_FAMILIES: Final[dict[str, str]] = {}


def register(*kinds: str) -> Callable[[type[R]], type[R]]:
    """Declare that a class makes the resources of these kinds."""

    def declare(made: type[R]) -> type[R]:
        _MAKERS.update(dict.fromkeys(kinds, made))
        _FAMILIES.update(dict.fromkeys(kinds, made.family))
        return made

    return declare


READERS: Final = frozenset(
    f"{name}ReaderV2"
    for name in ("TextLine", "WholeFile", "Identity", "TFRecord", "FixedLengthRecord")
)
"""Kinds of a package above this one, which is loaded when a graph calls one of them."""


class Containers:
    """The resources of a process, or of a session that shares none.

    >>> from weft.ops.resource.spec import ResourceSpec
    >>> Containers().names()
    []
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all: dict[tuple[str, str, str], Resource] = {}

    def get(self, spec: ResourceSpec) -> Resource:
        """The resource that a call means, made on first use.

        Raises:
            SharingError: it exists with other properties.
            ArgumentError: nothing makes this kind.
        """
        if spec.kind in READERS and spec.kind not in _FAMILIES:
            importlib.import_module("weft.pipeline.reader")
        family = _FAMILIES.get(spec.kind)
        if family is None:
            kinds = ", ".join(sorted(_MAKERS))
            raise ArgumentError(f"resource: expected one of {kinds}, got kind {spec.kind!r}")
        with self._lock:
            found = self._all.get((spec.container, family, spec.name))
            if found is None:
                found = _MAKERS[spec.kind](spec)
                found.home = self
                self._all[spec.container, family, spec.name] = found
                return found
        found.check_same(spec)
        return found

    def call(
        self, spec: ResourceSpec, method: str, inputs: Sequence[Array],
        options: Mapping[str, Any], cancel: Cancellation,
    ) -> list[Array]:  # fmt: skip
        """Call a method of the resource that `spec` means; `handle` only makes it."""
        cancel.check()
        if spec.kind == SELECTED:
            spec, inputs = _selection(spec, int(inputs[0])), inputs[1:]
        found = self.get(spec)
        if method == "handle":
            return [np.array(spec.name.encode(), object)]
        return found.call(method, inputs, options, cancel)

    def names(self) -> list[tuple[str, str, str]]:
        """Container, family and name of each resource."""
        with self._lock:
            return sorted(self._all)

    def remove(self, spec: ResourceSpec) -> None:
        """Forget one resource, and end the waits on it."""
        with self._lock:
            found = self._all.pop((spec.container, _FAMILIES[spec.kind], spec.name), None)
        if found is not None:
            found.close()

    def reset(self, containers: Collection[str] = ()) -> None:
        """Forget the resources of these containers, of all if none is named; end their waits."""
        with self._lock:
            gone = [key for key in self._all if not containers or key[0] in containers]
            resources = [self._all.pop(key) for key in gone]
        for resource in resources:
            resource.close()
