"""What lives in a task from step to step: variables by device, queues and tables by container."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict
from typing import Any, Final

import numpy as np

from weft.cluster.copies import lent
from weft.cluster.rpc import Message
from weft.cluster.wait import Wait
from weft.cluster.waiting import Calls
from weft.errors import AbortedError, ArgumentError
from weft.host.crew import Crew
from weft.ops.resource.spec import ResourceSpec, container_of
from weft.resource.base import Cancellation, Containers
from weft.runtime.device.base import Device

Array = np.ndarray[Any, Any]
MOST_RELEASED: Final = 1024
"""How many sessions are remembered as closed, for calls that come too late."""


class Store:
    """The variables and resources of a task.

    Args:
        devices: of the task.
        crew: threads for calls that wait.

    Attributes:
        states: the variables of each device.
        containers: queues, tables, accumulators.
        calls: of resources, for other tasks.
    """

    def __init__(self, devices: Sequence[Device], crew: Crew) -> None:
        self.states: dict[str, Any] = {str(d.name): d.variables() for d in devices}
        self.containers = Containers()
        self.calls = Calls(crew)
        self._lock = threading.Lock()
        self._cancellations: dict[str, Cancellation] = {}
        self._released: OrderedDict[str, None] = OrderedDict()
        self._calls: dict[object, tuple[str, float]] = {}  # that are under way

    # -- variables

    def ask(self, message: Message, shared: bool = False) -> Message:
        """Answer a message about variables: `contains`, `get`, `set`, `delete` or `keys`.

        Its head names a device and keys. All values of a `get` are from one moment.

        Args:
            message: as above.
            shared: whether whoever asks shares memory with this task.

        Raises:
            ArgumentError: there is no such device.
        """
        head = message.head
        state = self._state(head["device"])
        keys: list[str] = head.get("keys", [])
        match head["do"]:
            case "keys":
                return Message("state", {"keys": list(state)})
            case "contains":
                return Message("state", {"found": [key in state for key in keys]})
            case "get":
                return _values(state, keys, shared)
            case "set":
                for key, array in zip(keys, message.arrays, strict=True):
                    state[key] = array
            case "delete":
                _forget(state, keys)
            case unknown:
                raise ArgumentError(f"state: unknown request {unknown!r}")
        return Message("state")

    def _state(self, device: str) -> Any:
        if device not in self.states:
            known = ", ".join(self.states)
            raise ArgumentError(f"state: there is no device {device}; expected one of {known}")
        return self.states[device]

    def forget_counters(self, prefix: str) -> None:
        """Forget the random streams of a session."""
        for state in self.states.values():
            _forget(state, [key for key in state if key.startswith(prefix)])

    def reset(self, containers: Collection[str]) -> None:
        """Forget the variables and resources of these containers; of all if none is named."""
        self.containers.reset(containers)
        for state in self.states.values():
            gone = [key for key in state if not containers or container_of(key) in containers]
            _forget(state, gone)

    # -- resources

    def call(self, message: Message) -> Future[Message]:
        """Call a method of a resource; waits on a thread, until the session is released."""
        spec, method, options = heard(message.head)
        return self.calls.start(
            message,
            self._session(message.head["session"]),
            lambda cancel: self.call_here(spec, method, options, message.arrays, cancel),
        )

    def call_here(
        self, spec: ResourceSpec, method: str, options: Mapping[str, Any],
        inputs: Sequence[Array], cancel: Cancellation,
    ) -> list[Array]:  # fmt: skip
        """Call a method of a resource; it may wait."""
        call = object()
        self._calls[call] = f"{method} of {spec.name}", time.monotonic()
        try:
            return self.containers.call(spec, method, inputs, options, cancel)
        finally:
            del self._calls[call]

    def waits(self) -> list[Wait]:
        """The calls of resources that are under way."""
        now = time.monotonic()
        return [Wait(what, [], now - begin) for what, begin in list(self._calls.values())]

    def _session(self, session: str) -> Cancellation:
        """What ends the waits of a session; a call may come after the session was closed."""
        with self._lock:
            if session in self._released:
                raise AbortedError("the session was closed")
            return self._cancellations.setdefault(session, Cancellation())

    def release(self, session: str) -> None:
        """End the waits of a session that is closed."""
        with self._lock:
            self._released[session] = None
            if len(self._released) > MOST_RELEASED:
                self._released.popitem(last=False)
            found = self._cancellations.pop(session, None)
        if found is not None:
            found.cancel()

    def has_released(self, session: str) -> bool:
        """Whether a session was closed, so that its messages are late."""
        return session in self._released

    def close(self) -> None:
        """End all waits."""
        for session in list(self._cancellations):
            self.release(session)
        self.containers.reset()


def _forget(state: Any, keys: Sequence[str]) -> None:
    """Remove those of these variables that are there, without a copy."""
    for key in keys:
        with contextlib.suppress(KeyError):
            del state[key]


def _values(state: Any, keys: Sequence[str], shared: bool) -> Message:
    """The values of those of these variables that have one, of one moment."""
    with state.lock:
        found = [key for key in keys if key in state]
        arrays = [lent(state.memory(key), shared) for key in found]
    return Message("state", {"found": found}, arrays)


def told(spec: ResourceSpec, method: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """A call of a resource as values that JSON can represent."""
    return {"resource": asdict(spec), "method": method, "options": dict(options)}


def heard(head: Mapping[str, Any]) -> tuple[ResourceSpec, str, dict[str, Any]]:
    """The resource, method and options that `told` was given."""
    spec = {name: _tuples(value) for name, value in head["resource"].items()}
    options = {name: _tuples(value) for name, value in head["options"].items()}
    return ResourceSpec(**spec), head["method"], options


def _tuples(value: Any) -> Any:
    """Lists of a JSON text as the tuples that they were."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
