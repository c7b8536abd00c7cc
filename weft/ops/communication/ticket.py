"""Calls that were begun on the communication thread, by numbers that programs carry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.errors import DistributedError
from weft.ops.declaration import Array
from weft.transport import session
from weft.transport.group import Group


def begun(members: Group, work: Callable[[], Any]) -> Array:
    """Have something done meanwhile, behind all that was begun before; its number.

    It is done when it is waited for where it would only take the core from the program.
    """
    transport = members.transport
    number = next(transport.numbers)
    transport.tickets[number] = transport.submit(work, deferred=members.shares_core)
    return np.array(number)


def ended(ticket: Array) -> Any:
    """Wait for what was begun; what it gave.

    Raises:
        DistributedError: the process group has ended meanwhile, or what the call itself raised.
    """
    joined = session.current()
    if joined is None:
        raise DistributedError("the process group has ended before a call that it has begun")
    transport, number = joined.transport, int(ticket)
    found = transport.result_of(transport.tickets[number])
    del transport.tickets[number]  # what is left here is given up: see `Transport.abandon`
    return found
