"""The start of a job. MPI waits for all ranks without a time limit; this names missing ranks."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from weft.host.cores import MARK
from weft.transport.supervisor import FAILED, TOLD


@contextlib.contextmanager
def expected(what: str, timeout: float) -> Iterator[None]:
    """Context of a wait for all ranks in MPI: after `timeout` s the process exits with an error.

    Nothing else interrupts MPI's functions. They must be called without the GIL.
    """
    late = threading.Timer(timeout, _give_up, (what, timeout))
    late.daemon = True
    late.start()
    try:
        yield
    finally:
        late.cancel()


def initialize(mpi: Any) -> int:
    """Initialize MPI for several threads; returns the level of threads that it provides.

    Args:
        mpi: the module of mpi4py, whose own function would hold the GIL.
    """
    arrive()
    provided = ctypes.c_int()
    ctypes.CDLL(mpi.__file__).MPI_Init_thread(
        None, None, ctypes.c_int(mpi.THREAD_MULTIPLE), ctypes.byref(provided)
    )
    for communicator in (mpi.COMM_SELF, mpi.COMM_WORLD):
        communicator.Set_errhandler(mpi.ERRORS_RETURN)  # mpi4py raises them as exceptions
    return provided.value


def finalize(mpi: Any) -> None:
    """End MPI for this process."""
    ctypes.CDLL(mpi.__file__).MPI_Finalize()


def arrive() -> None:
    """Write a file that tells the other ranks on this host that this one has arrived."""
    folder, rank = _folder(), os.environ.get("PMI_RANK")
    if folder is not None and rank is not None:
        (folder / f"arrived-{rank}").touch()


def missing() -> list[int]:
    """Ranks without such a file; empty if there are no such files, as with several hosts."""
    folder, size = _folder(), os.environ.get("PMI_SIZE")
    if folder is None or size is None:
        return []
    return [rank for rank in range(int(size)) if not (folder / f"arrived-{rank}").exists()]


def _folder() -> Path | None:
    """The job's folder for these files, if all its ranks are on this host."""
    path = os.environ.get(MARK)
    whole = os.environ.get("PMI_SIZE") == os.environ.get("MPI_LOCALNRANKS")
    return Path(path) if path and whole and os.path.isdir(path) else None


def tell(mark: bytes) -> None:
    """Report this rank's state to its supervisor process; see `supervisor`."""
    words = os.environ.get(TOLD, "").split(":")
    if len(words) != 3 or int(words[2]) != os.getpid():  # a process that this rank has started
        return
    pipe = int(words[0])
    with contextlib.suppress(OSError):  # closed: the supervisor has ended
        if os.fstat(pipe).st_ino == int(words[1]):
            os.set_inheritable(pipe, False)  # a program that replaces this one would not report
            os.write(pipe, mark)


def note_failure(rank: int) -> None:
    """Write a file that tells `weft launch` that this rank has failed."""
    tell(FAILED)
    path = os.environ.get(MARK)
    if path is not None and os.path.isdir(path):  # else the launcher is on another machine
        (Path(path) / f"failed-{rank}").touch()


def _give_up(what: str, timeout: float) -> None:
    late = missing()
    who = f"ranks {', '.join(map(str, late))}, which are not there yet," if late else "other ranks"
    print(
        f"weft.errors.DistributedTimeoutError: {what}: no answer from {who} for {timeout:g} s",
        file=sys.stderr, flush=True,
    )  # fmt: skip
    note_failure(int(os.environ.get("PMI_RANK", 0)))
    os._exit(1)
