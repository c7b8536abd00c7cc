"""Calls of other tasks that wait until they are cancelled."""

from __future__ import annotations

from weft.cluster.rpc import Channel, Message
from weft.resource.base import Cancellation


def answered(channel: Channel, message: Message, cancel: Cancellation) -> Message:
    """The answer to a message, whenever it comes.

    Args:
        channel: to the task.
        message: for it.
        cancel: ends the wait, here and in the task.

    Raises:
        CancelledError: it was cancelled.
        UnavailableError: the task has failed.
    """
    future = channel.start(message)

    def give_up(error: BaseException) -> None:
        del error
        future.cancel()

    withdraw = cancel.add(give_up)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        cancel.check()
        raise
    finally:
        withdraw()
