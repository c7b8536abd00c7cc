"""MPI, through mpi4py: bytes between the ranks of a job, on one machine or several.

MPICH is initialized with `MPI_THREAD_MULTIPLE`, so that several threads may call it. Nothing here
blocks: waiting polls, so that failures of other ranks are noticed.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from weft.errors import DistributedError
from weft.host.cores import core_count, is_crowded
from weft.transport.arrival import expected, finalize, initialize
from weft.transport.base import Exchange, Part, Pending, Transport
from weft.transport.native import ExchangeTable
from weft.transport.request import Requests

_NOTE_TAG: Final = 1
_SEGMENTS: Final = {"UCX_TCP_TX_SEG_SIZE": "64k", "UCX_TCP_RX_SEG_SIZE": "256k"}
"""Segment sizes of MPICH over TCP, unless the user sets them: with its defaults of 8 and 64 KiB, a
rank that polls now and then gets 75 to 90 MB/s over a link of 1 Gbit/s, with these 119."""


def _load() -> Any:
    for name, size in _SEGMENTS.items():
        os.environ.setdefault(name, size)
    try:
        options = importlib.import_module("mpi4py").rc
        options.initialize = options.finalize = False
        return importlib.import_module("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:  # RuntimeError: no MPI library
        raise DistributedError(
            f"init_process_group: MPI cannot be loaded ({error}); "
            'install it with: pip install "weft[mpi]"'
        ) from error


class MpiTransport(Transport):
    """The ranks that an MPI launcher has started.

    Raises:
        DistributedError: there is no MPI; says how to install it.
    """

    def __init__(self, timeout: float, native: Callable[[], Any] | None = None) -> None:
        """Wait at most `timeout` seconds for all ranks.

        Args:
            native: loads the driver's function for persistent messages.
        """
        self._native, self._timeout = native, timeout
        self._mpi = mpi = _load()
        with expected("init_process_group", timeout):
            provided = mpi.Query_thread() if mpi.Is_initialized() else initialize(mpi)
            if provided < mpi.THREAD_MULTIPLE:
                raise DistributedError(
                    "init_process_group: expected an MPI with MPI_THREAD_MULTIPLE, got level "
                    f"{provided}; use MPICH, or initialize mpi4py with threads"
                )
            self._world = mpi.COMM_WORLD.Dup()
            self._beside = mpi.COMM_WORLD.Dup()  # for notes
        self._noted: list[Any] = []
        self._noting = threading.Lock()  # shared by this thread and the monitor's
        super().__init__(self._world.Get_rank(), self._world.Get_size())
        self.crowded, self.single_core = is_crowded(), core_count() == 1

    def start(self, sends: Sequence[Part], receives: Sequence[Part], tag: int) -> Pending:
        """See `Transport.start`."""
        world, byte = self._world, self._mpi.BYTE
        requests = [world.Irecv((data, byte), peer, tag) for peer, data in receives]
        requests += [world.Isend((data, byte), peer, tag) for peer, data in sends]
        peers = [part.peer for part in (*receives, *sends)]
        return Requests(self._mpi, requests, peers, (sends, receives), len(receives))

    def source_of(self, tag: int) -> int | None:
        """See `Transport.source_of`."""
        status = self._mpi.Status()
        arrived = self._world.Iprobe(self._mpi.ANY_SOURCE, tag, status)
        return status.Get_source() if arrived else None

    def prepare(self, sends: Sequence[Part], receives: Sequence[Part], tag: int) -> Exchange:
        """See `Transport.prepare`."""
        if self._native is None:
            return super().prepare(sends, receives, tag)
        world, byte = self._world, self._mpi.BYTE
        requests = [world.Recv_init((data, byte), peer, tag) for peer, data in receives]
        requests += [world.Send_init((data, byte), peer, tag) for peer, data in sends]
        peers = [part.peer for part in (*receives, *sends)]
        return Prepared(self._mpi, requests, peers, (sends, receives), self._native(), self.crowded)

    def note(self, peer: int, text: str) -> None:
        """See `Transport.note`."""
        data = text.encode()
        with self._noting:
            self._noted = [(r, d) for r, d in self._noted if not r.Test()]
            request = self._beside.Isend((data, self._mpi.BYTE), peer, _NOTE_TAG)
            self._noted.append((request, data))

    def notes(self) -> list[str]:
        """See `Transport.notes`."""
        texts: list[str] = []
        status = self._mpi.Status()
        while self._beside.Iprobe(self._mpi.ANY_SOURCE, _NOTE_TAG, status):
            data = bytearray(status.Get_count(self._mpi.BYTE))
            self._beside.Recv((data, self._mpi.BYTE), status.Get_source(), _NOTE_TAG)
            texts.append(data.decode())
        return texts

    def close(self) -> None:
        """End MPI for this process; waits for the other ranks to do so, too."""
        if not self._mpi.Is_finalized():
            with expected("destroy_process_group", self._timeout):
                for request, _ in self._noted:  # MPI_Finalize does not send what is left
                    request.Wait()
                finalize(self._mpi)


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
