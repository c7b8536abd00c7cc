"""NumPy's matrix products on one thread, where NumPy's library lets itself be told.

OpenBLAS gives even small products to a team of threads that wait by spinning. Beside any other work
that costs up to forty times the product itself (42 ms for a tiny one, seen at a load of 13), and
the last bits of a sum depend on how many threads there were.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

_SETTER: Final = "openblas_set_num_threads_local"  # returns how many there were


def _find() -> Callable[[int], int] | None:
    """The setter of the library that is loaded already, if it is OpenBLAS, on Linux."""
    try:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8")
    except OSError:
        return None
    paths = {line.split()[-1] for line in maps.splitlines() if "openblas" in line}
    for path in sorted(paths):
        with contextlib.suppress(OSError, AttributeError):  # gone since, or an older one
            setter = getattr(ctypes.CDLL(path), _SETTER)
            setter.argtypes, setter.restype = [ctypes.c_int], ctypes.c_int
            return setter
    return None


_set: Final = _find()


@contextlib.contextmanager
def single_thread() -> Iterator[None]:
    """Inside, products use the calling thread alone."""
    if _set is None:
        yield
        return
    before = _set(1)
    try:
        yield
    finally:
        _set(before)
