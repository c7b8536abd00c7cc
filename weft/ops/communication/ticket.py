"""Calls started on the communication thread, by tickets: numbers that programs carry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.errors import DistributedError
from weft.ops.declaration import Array
from weft.transport import session
from weft.transport.group import Group


def begun(members: Group, work: Callable[[], Any]) -> Array:
    """Start work on the communication thread, after all earlier work; returns its ticket.

    If it would only take the core from the program, it runs when it is waited for.
    """
    transport = members.transport
    number = next(transport.numbers)
    transport.tickets[number] = transport.submit(work, deferred=members.shares_core)
    return np.array(number)


def ended(ticket: Array) -> Any:
    """Wait for started work; returns its result.

    Raises:
        DistributedError: the process group has ended, or the work itself raised it.
    """
    joined = session.current()
    if joined is None:
        raise DistributedError("the process group has ended before a call that it has begun")
    transport, number = joined.transport, int(ticket)
    found = transport.result_of(transport.tickets[number])
    del transport.tickets[number]  # remaining tickets are abandoned: see `Transport.abandon`
    return found
