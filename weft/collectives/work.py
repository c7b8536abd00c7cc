"""Asynchronous calls: `Work`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent import futures
from typing import Any

from weft.collectives.future import Future
from weft.errors import DistributedError
from weft.transport.group import Group


class Work:
    """An asynchronous call; its outputs change in `wait`.

    Args:
        future: the call on the communication thread; `None` if it has completed.
        put: writes the outputs.
        outputs: tensors that the call writes, for `get_future`.

    Example:
        >>> import weft as wf, weft.distributed as dist
        >>> dist.init_process_group()
        >>> x = wf.ones(2)
        >>> work = dist.all_reduce(x, async_op=True)
        >>> work.wait()
        True
        >>> dist.destroy_process_group()
    """

    def __init__(
        self, future: futures.Future[Any], put: Callable[[], None], outputs: Sequence[Any] = ()
    ) -> None:  # fmt: skip
        self._future = future
        self._put = put
        self._outputs = list(outputs)
        self._ended = False

    @classmethod
    def of(cls, works: Sequence[Work]) -> Work:
        """Several calls as one."""

        def put() -> None:
            for work in works:
                work.wait()

        outputs = [x for work in works for x in work._outputs]
        return cls(works[-1]._future, put, outputs)

    def is_completed(self) -> bool:
        """Whether the call has completed, so that `wait` returns at once."""
        return self._future.done()

    def wait(self) -> bool:
        """Wait until the call has completed, and write its outputs.

        Raises:
            DistributedError: it has been waited for already, or the call failed.
        """
        if self._ended:
            raise DistributedError.here("wait: the request has ended already")
        self._future.result()
        self._ended = True
        self._put()
        return True

    def get_future(self) -> Future[Any]:
        """The tensors that the call writes, as a future; waiting for it waits for the call."""

        def source() -> list[Any]:
            if not self._ended:
                self.wait()
            return self._outputs

        return Future(source)

    def result(self) -> list[Any]:
        """The tensors that the call has written."""
        return self.get_future().wait()


def done(
    group: Group, later: bool, work: Callable[[], Any], put: Callable[[], None],
    outputs: Sequence[Any] = (),
) -> Work | None:  # fmt: skip
    """Make a call, now or asynchronously; `put` then writes the outputs on this thread."""
    if later:
        return Work(group.transport.submit(work), put, outputs)
    if group.transport.worker.busy:
        group.transport.worker.drain()
    with group.transport.lock:
        work()
    put()
    return None
