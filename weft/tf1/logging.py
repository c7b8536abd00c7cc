"""`tf.logging`: messages of a program, by Python's logger `tensorflow`."""

from __future__ import annotations

import logging as _logging
from typing import Any

DEBUG = _logging.DEBUG
INFO = _logging.INFO
WARN = _logging.WARNING
ERROR = _logging.ERROR
FATAL = _logging.FATAL

_logger = _logging.getLogger("tensorflow")
_counts: dict[str, int] = {}


def log(level: int, msg: Any, *args: Any) -> None:
    """Write `msg % args`, if messages of this level are written.

    They go to the standard error stream, unless the program gave Python's root logger a handler.
    """
    if not _logger.handlers and not _logging.getLogger().handlers:
        handler = _logging.StreamHandler()
        handler.setFormatter(_logging.Formatter(_logging.BASIC_FORMAT))
        _logger.addHandler(handler)
    _logger.log(level, msg, *args)


def debug(msg: Any, *args: Any) -> None:
    """A message for who looks for a fault."""
    log(DEBUG, msg, *args)


def info(msg: Any, *args: Any) -> None:
    """A message on what goes on."""
    log(INFO, msg, *args)


def warn(msg: Any, *args: Any) -> None:
    """A message on what may be wrong."""
    log(WARN, msg, *args)


warning = warn


def error(msg: Any, *args: Any) -> None:
    """A message on what is wrong."""
    log(ERROR, msg, *args)


def fatal(msg: Any, *args: Any) -> None:
    """A message on what ends the program; it does not end it by itself."""
    log(FATAL, msg, *args)


def log_first_n(level: int, msg: str, n: int, *args: Any) -> None:
    """Write a message the first `n` times that it comes."""
    _counts[msg] = _counts.get(msg, 0) + 1
    if _counts[msg] <= n:
        log(level, msg, *args)


def log_every_n(level: int, msg: str, n: int, *args: Any) -> None:
    """Write a message the first time that it comes, and every `n` times from then on."""
    _counts[msg] = _counts.get(msg, 0) + 1
    if (_counts[msg] - 1) % n == 0:
        log(level, msg, *args)


def log_if(level: int, msg: Any, condition: bool, *args: Any) -> None:
    """Write a message if the condition holds."""
    if condition:
        log(level, msg, *args)


def get_verbosity() -> int:
    """The lowest level of the messages that are written."""
    return _logger.getEffectiveLevel()


def set_verbosity(v: int) -> None:
    """Write messages of this level and above; those of `WARN` by default."""
    _logger.setLevel(v)


def flush() -> None:
    """Return once all messages are written."""
    for handler in _logger.handlers:
        handler.flush()
