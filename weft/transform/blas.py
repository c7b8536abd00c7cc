"""Runs NumPy's matmuls on one thread, if NumPy's BLAS is OpenBLAS.

OpenBLAS gives even small matmuls to a pool of spinning threads. On a busy machine that costs up to
forty times the matmul itself (42 ms for a tiny one, seen at a load of 13), and the last bits of a
sum depend on the number of threads.

Older libraries limit the calling thread alone. The wheels of NumPy 2.5 only have the limit of the
whole process, which is then kept until the last of the threads that asked for it has left.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

Set = Callable[[int], object]
Get = Callable[[], int]
_LOCAL: Final = "openblas_set_num_threads_local"  # returns the previous number of threads
_SHARED: Final = ("scipy_openblas_{}_num_threads64_", "openblas_{}_num_threads")


class Library(NamedTuple):
    """How the number of threads of the loaded OpenBLAS is set; what it lacks is `None`."""

    set_local: Callable[[int], int] | None = None
    set_shared: Set | None = None
    get_shared: Get | None = None


def _find() -> Library:
    """The functions of the loaded OpenBLAS, on Linux."""
    try:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8")
    except OSError:
        return Library()
    paths = {line.split()[-1] for line in maps.splitlines() if "openblas" in line}
    for path in sorted(paths):
        with contextlib.suppress(OSError):  # unloaded since
            found = _functions(ctypes.CDLL(path))
            if found != Library():
                return found
    return Library()


def _functions(library: Any) -> Library:
    with contextlib.suppress(AttributeError):
        local = getattr(library, _LOCAL)
        local.argtypes, local.restype = [ctypes.c_int], ctypes.c_int
        return Library(local)
    for name in _SHARED:
        with contextlib.suppress(AttributeError):
            found, read = (getattr(library, name.format(what)) for what in ("set", "get"))
            found.argtypes, found.restype = [ctypes.c_int], None
            read.argtypes, read.restype = [], ctypes.c_int
            return Library(None, found, read)
    return Library()


LIBRARY: Final = _find()


class _Shared:
    """The limit of the whole process, while there are threads inside."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._lock = threading.Lock()
        self._inside, self._before = 0, 1

    @contextlib.contextmanager
    def limited(self, set_number: Set, number: Get) -> Iterator[None]:
        with self._lock:
            if not self._inside:
                self._before = number()
                set_number(1)
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if not self._inside:
                    set_number(self._before)


_shared: Final = _Shared()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_shared.reset)


@contextlib.contextmanager
def single_thread(library: Library = LIBRARY) -> Iterator[None]:
    """Limits matmuls inside to one thread."""
    if library.set_local is not None:
        before = library.set_local(1)
        try:
            yield
        finally:
            library.set_local(before)
    elif library.set_shared is not None and library.get_shared is not None:
        with _shared.limited(library.set_shared, library.get_shared):
            yield
    else:
        yield
