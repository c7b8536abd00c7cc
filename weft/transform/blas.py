"""Runs NumPy's matmuls on one thread, if NumPy's BLAS is OpenBLAS.

OpenBLAS gives even small matmuls to a pool of spinning threads. On a busy machine that costs up to
forty times the matmul itself (42 ms for a tiny one, seen at a load of 13), and the last bits of a
sum depend on the number of threads.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

_SETTER: Final = "openblas_set_num_threads_local"  # returns the previous number of threads


def _find() -> Callable[[int], int] | None:
    """The setter of the loaded OpenBLAS library, on Linux."""
    try:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8")
    except OSError:
        return None
    paths = {line.split()[-1] for line in maps.splitlines() if "openblas" in line}
    for path in sorted(paths):
        with contextlib.suppress(OSError, AttributeError):  # unloaded since, or an older version
            setter = getattr(ctypes.CDLL(path), _SETTER)
            setter.argtypes, setter.restype = [ctypes.c_int], ctypes.c_int
            return setter
    return None


_set: Final = _find()


@contextlib.contextmanager
def single_thread() -> Iterator[None]:
    """Limits matmuls inside to the calling thread."""
    if _set is None:
        yield
        return
    before = _set(1)
    try:
        yield
    finally:
        _set(before)
