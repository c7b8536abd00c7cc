"""Calls that wait until they are cancelled: those of other tasks, and those for them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

from weft.cluster.rpc import Channel, Message
from weft.cluster.rpc.channel import settle
from weft.errors import UnavailableError
from weft.host.crew import Crew
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


def awaited(
    crew: Crew, call: Callable[[Cancellation], Message], parent: Cancellation | None = None
) -> Future[Message]:
    """The answer of a call that may wait; `cancel` of the future ends the wait.

    A future that an executor gives does not: it runs already, and cannot be cancelled.

    Args:
        crew: gives it a thread.
        call: gets what ends its wait.
        parent: ends it too.
    """
    cancel, future = Cancellation(parent), Future[Message]()

    def run() -> None:
        try:
            with cancel:
                answer = call(cancel)
        except BaseException as error:  # it travels to the caller
            settle(future, error)
        else:
            settle(future, answer)

    def given_up(done: Future[Message]) -> None:
        if done.cancelled():
            cancel.cancel()

    future.add_done_callback(given_up)
    if not crew.do(run):
        settle(future, UnavailableError("the server is stopped"))
    return future
