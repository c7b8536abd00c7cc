"""Results of asynchronous calls as futures, in the form that hooks of programs use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from weft.errors import StateError

__all__ = ["Future"]

T = TypeVar("T")


class Future(Generic[T]):
    """A value that is there once it is waited for.

    Args:
        source: what waits for the value; without one, `set_result` sets it.

    >>> one = Future()
    >>> two = one.then(lambda done: done.value() + 1)
    >>> one.set_result(1)
    >>> two.wait()
    2
    """

    def __init__(self, source: Callable[[], Any] | None = None, *, devices: Any = None) -> None:
        del devices
        self._source = source
        self._results: list[Any] = []

    def done(self) -> bool:
        """Whether the value has been computed."""
        return bool(self._results)

    def wait(self) -> Any:
        """The value; computed now if it is not there.

        Raises:
            StateError: nothing sets it.
        """
        if not self.done() and self._source is not None:
            self.set_result(self._source())
        if not self._results:
            raise StateError.here("Future.wait: expected set_result to be called before")
        return self._results[0]

    value = wait

    def set_result(self, result: Any) -> None:
        """Set the value."""
        self._results.append(result)

    def then(self, callback: Callable[[Future[T]], Any]) -> Future[Any]:
        """The future of a function of this one, which is called when it is waited for."""

        def source() -> Any:
            self.wait()
            return callback(self)

        return Future(source)
