"""Makes this machine's library, and keeps it in the code cache.

That takes about a minute on two cores. `weft warm` does it at once; the first process that lacks a
kernel has it done by another process, in time that nobody else wants.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
from typing import Final, NamedTuple

from weft import config
from weft.codegen.target import PORTABLE, Target
from weft.library.making import listed, made
from weft.runtime.compilation import compiler
from weft.runtime.compilation.cache import MARK
from weft.runtime.compilation.pack import is_installed, key_of, made_here, opened, sealed

CORES: Final = 2
"""As many take part."""


class Kept(NamedTuple):
    """What is there now.

    Attributes:
        where: the folder; `None` if the library came with Weft.
        forms: how many it has kernels for.
        bytes: of the library.
        is_new: whether it was made now.
    """

    where: str | None
    forms: int
    bytes: int
    is_new: bool


def keep(target: Target) -> Kept:
    """Makes the library for a target, unless it is there.

    Raises:
        NoCompilerError: it cannot be made here.
        CompileError: a kernel cannot be compiled, or there is no folder to keep it in.
    """
    if is_installed(target):
        return Kept(None, 0, 0, False)
    folder, data = str(compiler.cache().folder), compiler.cache().load(key_of(target))
    forms = list(listed())
    if data is not None and opened(data, target, made_here()) is not None:
        return Kept(folder, len(forms), len(data), False)
    data = sealed(made(target, forms), made_here())
    compiler.cache().store({key_of(target): data})
    return Kept(folder, len(forms), len(data), True)


def main(name: str) -> None:
    """The process in the background: makes the library for the portable target of that name."""
    _step_back()
    mark = os.path.join(str(config.get("cache")), MARK)
    with contextlib.suppress(OSError), open(mark, encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # one at a time
        keep(PORTABLE[name])


def _step_back() -> None:
    """Takes only time that nobody else wants, on few cores."""
    os.nice(19)
    with contextlib.suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-CORES:])


if __name__ == "__main__":
    main(sys.argv[1])
