"""Barriers: elements whose components come at different times, taken when they are complete."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from weft.errors import ArgumentError, CancelledError, EndOfDataError
from weft.ops.resource.spec import ResourceSpec
from weft.resource.base import Array, Cancellation, Resource, register
from weft.resource.component import Components, Element
from weft.resource.ordered_queue import PriorityQueue

_FIRST: Final = -(2**63)


class _Ready(PriorityQueue):
    """Complete elements; those that are taken together have the same shapes, or cannot be."""

    needs_shapes = False


class _Entry:
    """An element that is not complete: when its key was first seen, and what has come."""

    def __init__(self, index: int, components: int) -> None:
        self.index = index
        self.parts: list[Array | None] = [None] * components


@register("Barrier")
class Barrier(Resource):
    """Elements by key. Those that are complete leave in the order in which their keys came."""

    family = what = "barrier"

    def __init__(self, spec: ResourceSpec) -> None:
        super().__init__(spec)
        self.components: Final = Components.of(spec)
        known = self.components.shapes
        options = (
            ("dtypes", ("int64", "string", *self.components.names)),
            ("shapes", None if known is None else ((), (), *known)),
        )
        queue = ResourceSpec("PriorityQueueV2", f"{self.name}_queue", spec.container, options)
        self._ready: Final = _Ready(queue)
        self._lock = threading.Lock()
        self._incomplete: dict[bytes, _Entry] = {}
        self._next = _FIRST
        self._closed = self._cancelled = False

    def call(
        self, method: str, inputs: Sequence[Array], options: Mapping[str, Any],
        cancel: Cancellation,
    ) -> list[Array]:  # fmt: skip
        """Insert components, take complete elements, close, or tell the counts."""
        if method == "insert_many":
            self._insert(options["component_index"], *inputs)
        elif method == "take_many":
            return self._take(int(inputs[0]), options.get("allow_small_batch", False), cancel)
        elif method == "close":
            self._close(options.get("cancel_pending_enqueues", False))
        elif method in ("ready_size", "incomplete_size"):
            size = self._ready.size if method == "ready_size" else len(self._incomplete)
            return [np.array(size, np.int32)]
        else:
            known = "insert_many, take_many, close, ready_size, incomplete_size"
            raise ArgumentError(f"barrier: expected one of {known}, got {method!r}")
        return []

    def _insert(self, component: int, keys: Array, values: Array) -> None:
        self._check(component, keys, values)
        names: list[bytes] = keys.ravel().tolist()
        with self._lock:
            if self._closed and (self._cancelled or (names and not self._incomplete)):
                raise CancelledError(f"Barrier '{self.name}' is closed. {self._told(len(names))}")
            ready: list[Element] = []
            fresh = False
            try:
                for name, row in zip(names, values if values.ndim else [values], strict=True):
                    fresh |= name not in self._incomplete
                    self._insert_one(component, name, np.array(row), ready)
            finally:
                self._next += fresh
                self._deliver(ready)

    def _insert_one(self, component: int, name: bytes, row: Array, ready: list[Element]) -> None:
        entry = self._incomplete.get(name)
        if entry is None:
            if self._closed:
                text = f"is closed, but attempted to insert a brand new key: {name.decode()}."
                raise CancelledError(f"Barrier '{self.name}' {text} {self._told(1)}")
            entry = self._incomplete[name] = _Entry(self._next, len(self.components.dtypes))
        if entry.parts[component] is not None:
            raise ArgumentError(
                f"Key {name.decode()} already has a value for component {component} in barrier "
                f"{self.name}"
            )
        entry.parts[component] = row
        parts = [part for part in entry.parts if part is not None]
        if len(parts) == len(entry.parts):
            del self._incomplete[name]
            key = np.empty((), object)
            key[()] = name
            ready.append((np.array(entry.index, np.int64), key, *parts))

    def _check(self, component: int, keys: Array, values: Array) -> None:
        count = len(self.components.dtypes)
        if not 0 <= component < count:
            raise ArgumentError(
                f"The component ID is out of range {component} > num_components (= {count})"
            )
        if keys.size and not values.size:
            raise ArgumentError(
                f"Tensors with no elements are not supported {self.name}: received shape "
                f"{list(values.shape)}"
            )
        if keys.size:
            known = self.components.shapes
            shapes = None if known is None else [known[component]]
            Components([self.components.names[component]], shapes).check_rows([values])
        if values.ndim and len(values) != keys.size:
            raise ArgumentError(
                f"barrier: expected a value for each of {keys.size} keys, got {len(values)}"
            )

    def _told(self, new: int) -> str:
        return (
            f"Pending enqueues cancelled: {self._cancelled}. Number of new insertions: {new}. "
            f"Number of incomplete keys: {len(self._incomplete)}."
        )

    def _deliver(self, ready: Sequence[Element]) -> None:
        with self._ready.lock:
            for element in ready:
                self._ready.put(element)
            self._ready.closed |= self._closed and not self._incomplete
            self._ready.flush()

    def _take(self, count: int, smaller: bool, cancel: Cancellation) -> list[Array]:
        with self._lock:
            if self._closed:
                available = self._ready.size + (0 if smaller else len(self._incomplete))
                wanted = min(count, available) if smaller else count
                if available < max(wanted, 1):
                    numbers = f"(requested {wanted}, total size {available})"
                    text = f"is closed and has insufficient elements {numbers}"
                    raise EndOfDataError(f"Barrier '{self.name}' {text}")
                count = wanted
        method = "dequeue_up_to" if smaller else "dequeue_many"
        return self._ready.call(method, [np.array(count)], {}, cancel)

    def _close(self, cancel: bool) -> None:
        with self._lock:
            if self._closed and (self._cancelled or not cancel):
                raise CancelledError(f"Barrier '{self.name}' is already closed.")
            self._closed, self._cancelled = True, cancel
            if cancel:
                self._incomplete.clear()
            self._deliver([])

    def close(self) -> None:
        """End the waits of all callers."""
        self._ready.close()
