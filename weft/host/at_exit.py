"""What is done when the process ends, after the threads of others have had their last results."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable
from typing import Any, Final

_functions: Final[list[Callable[[], object]]] = []
_AFTER_QUEUES: Final = -1000
"""A priority of finalizers: `multiprocessing` joins the threads of its queues at -5."""


def at_exit(function: Callable[[], object]) -> Callable[[], object]:
    """Calls a function when the process ends; those that were given later are called first.

    A thread that sends what is in a queue of `multiprocessing` computes the values of pending
    tensors, and the process waits for it. From Python 3.13 on, it does so in an `atexit` function
    in child processes, too, which may come after those of Weft.
    """
    _functions.append(function)
    return function


def _run() -> None:
    while _functions:
        _functions.pop()()


def _begin() -> None:
    util: Any = sys.modules.get("multiprocessing.util")
    if util is None or util.is_exiting():
        _run()
    else:
        util.Finalize(None, _run, exitpriority=_AFTER_QUEUES)


atexit.register(_begin)
