"""Asynchronous calls: `Work`."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from weft.errors import DistributedError
from weft.transport.group import Group


class Work:
    """An asynchronous call; its outputs change in `wait`.

    Args:
        future: the call on the communication thread; `None` if it has completed.
        put: writes the outputs, given the future's result.

    Example:
        >>> import weft as wf, weft.distributed as dist
        >>> dist.init_process_group()
        >>> x = wf.ones(2)
        >>> work = dist.all_reduce(x, async_op=True)
        >>> work.wait()
        True
        >>> dist.destroy_process_group()
    """

    def __init__(self, future: Future[Any], put: Callable[[], None]) -> None:
        self._future = future
        self._put = put
        self._ended = False

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


def done(
    group: Group, later: bool, work: Callable[[], Any], put: Callable[[], None]
) -> Work | None:
    """Make a call, now or asynchronously; `put` then writes the outputs on this thread."""
    if later:
        return Work(group.transport.submit(work), put)
    if group.transport.worker.busy:
        group.transport.worker.drain()
    with group.transport.lock:
        work()
    put()
    return None
