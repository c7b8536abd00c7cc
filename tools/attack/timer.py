"""A signal sent by the system's timer, not by another thread."""

from __future__ import annotations

import ctypes
import signal
import struct
import threading
import time

_SIGEVENT = 64  # bytes of `struct sigevent`: value, signal, notification, padding
_TO_THREAD = 4


def send_after(seconds: float, number: signal.Signals) -> None:
    """Makes the system send a signal to this thread, once, as the terminal does to the main one.

    A timer's signal to the process goes to the thread that runs when it expires, since Linux 6.4.
    If that is one of a library, CPython 3.11 notes the signal, but its main thread does not look.

    Raises:
        OSError: the system refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    event = struct.pack("Qiii", 0, number, _TO_THREAD, threading.get_native_id())
    event = event.ljust(_SIGEVENT, b"\0")
    timer = ctypes.c_void_p()
    whole, part = divmod(max(int(seconds * 1e9), 1), 10**9)
    when = struct.pack("4q", 0, 0, whole, part)
    if (
        libc.timer_create(time.CLOCK_MONOTONIC, event, ctypes.byref(timer))
        or libc.timer_settime(timer, 0, when, None)
    ):  # fmt: skip
        raise OSError(ctypes.get_errno(), "no timer")
