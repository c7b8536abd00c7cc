"""Processes with fewer rights than root, so that file permissions apply to them."""

from __future__ import annotations

import ctypes
import os
import struct

NOBODY = 65534
_READ_ALL = 2  # CAP_DAC_READ_SEARCH
_VERSION = 0x20080522  # of `capset`'s structures: two words of 32 capabilities
_KEEP, _DROP, _AMBIENT, _RAISE = 8, 24, 47, 2  # of `prctl`
_LAST = 40  # CAP_CHECKPOINT_RESTORE


def may_change() -> bool:
    """Whether this process may change its user."""
    return os.geteuid() == 0


def powerless() -> None:
    """The same user without root's override of permissions; permanent, and inherited.

    Raises:
        OSError: the system refuses.
    """
    if may_change():
        for capability in range(_LAST + 1):
            _checked(_libc().prctl(_DROP, capability, 0, 0, 0), unknown=True)
        _capabilities(0)


def nobody() -> None:
    """A user whose only right is to read, inherited by programs: Python may be root's.

    Raises:
        OSError: the system refuses.
    """
    if may_change():
        _checked(_libc().prctl(_KEEP, 1, 0, 0, 0))
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        _capabilities(1 << _READ_ALL)
        _checked(_libc().prctl(_AMBIENT, _RAISE, _READ_ALL, 0, 0))


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _capabilities(kept: int) -> None:
    header = struct.pack("Ii", _VERSION, 0)
    _checked(_libc().capset(header, struct.pack("6I", kept, kept, kept, 0, 0, 0)))


def _checked(status: int, unknown: bool = False) -> None:
    """Raises an error for a failed call; the system need not know all capabilities."""
    number = ctypes.get_errno()
    if status and not (unknown and number == 22):
        raise OSError(number, os.strerror(number))
