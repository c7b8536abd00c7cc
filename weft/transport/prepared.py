"""Persistent MPI messages: one native call starts them and tests for completion.

The native function calls MPI through the addresses of its functions, so that Python adds little to
the time of a small message.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from weft.transport.base import Exchange
from weft.transport.native import ExchangeTable
from weft.transport.request import Requests

YIELD_MASK: Final = 15
"""Every 16th test yields the core, if ranks share cores."""
MOST_TESTS: Final = 256
"""How often the native function tests, 100 to 300 ns each; it holds the GIL."""


class Prepared(Requests, Exchange):
    """Persistent requests of MPI.

    Args:
        crowded: whether ranks share cores.
        mpi: the module of mpi4py.
        requests: one for each message.
        peers: the rank at its other end.
        held: memory that they refer to.
        native: takes the address of an `ExchangeTable`; returns 1 if all has arrived, 0 if not, or
            MPI's error, negated.
    """

    def __init__(
        self, mpi: Any, requests: list[Any], peers: list[int], held: Any,
        native: Callable[[Any], int], crowded: bool,
    ) -> None:  # fmt: skip
        super().__init__(mpi, requests, peers, held, 0)  # they write to their own memory
        self._native = native
        count, size = len(requests), mpi._sizeof(mpi.Request)
        handles = [ctypes.string_at(mpi._addressof(request), size) for request in requests]
        self._handles = np.frombuffer(bytearray(b"".join(handles)), np.uint8)
        self._statuses = np.zeros(count * mpi._sizeof(mpi.Status), np.uint8)
        library = ctypes.CDLL(mpi.__file__)
        start, test = [
            ctypes.cast(getattr(library, name), ctypes.c_void_p).value
            for name in ("MPI_Startall", "MPI_Testall")
        ]
        self._table = ExchangeTable(
            count,
            self._handles.ctypes.data,
            self._statuses.ctypes.data,
            start,
            test,
            MOST_TESTS,
            YIELD_MASK if crowded else -1,
        )
        self._place = ctypes.c_void_p(ctypes.addressof(self._table))

    def run(self) -> bool:
        """See `Exchange.run`."""
        state = self._native(self._place)
        if state < 0:
            self.break_off(self._mpi.Exception(-state))
        return state == 1

    def close(self) -> None:
        """See `Exchange.close`."""
        for request in self._requests:
            request.Free()
