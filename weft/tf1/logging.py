"""`tf.logging`: log messages, through Python's logger `tensorflow`."""

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


def get_logger() -> _logging.Logger:
    """Python's logger of TensorFlow's messages."""
    return _logger


def log(level: int, msg: Any, *args: Any) -> None:
    """Log `msg % args`, if this level is enabled.

    Messages go to standard error, unless the program configured Python's root logger.
    """
    if not _logger.handlers and not _logging.getLogger().handlers:
        handler = _logging.StreamHandler()
        handler.setFormatter(_logging.Formatter(_logging.BASIC_FORMAT))
        _logger.addHandler(handler)
    _logger.log(level, msg, *args)


def debug(msg: Any, *args: Any) -> None:
    """Log at level DEBUG."""
    log(DEBUG, msg, *args)


def info(msg: Any, *args: Any) -> None:
    """Log at level INFO."""
    log(INFO, msg, *args)


def warn(msg: Any, *args: Any) -> None:
    """Log at level WARN."""
    log(WARN, msg, *args)


warning = warn


def error(msg: Any, *args: Any) -> None:
    """Log at level ERROR."""
    log(ERROR, msg, *args)


def fatal(msg: Any, *args: Any) -> None:
    """Log at level FATAL; the program continues."""
    log(FATAL, msg, *args)


def log_first_n(level: int, msg: str, n: int, *args: Any) -> None:
    """Log a message only the first `n` times."""
    _counts[msg] = _counts.get(msg, 0) + 1
    if _counts[msg] <= n:
        log(level, msg, *args)


def log_every_n(level: int, msg: str, n: int, *args: Any) -> None:
    """Log a message every `n`-th time, starting with the first."""
    _counts[msg] = _counts.get(msg, 0) + 1
    if (_counts[msg] - 1) % n == 0:
        log(level, msg, *args)


def log_if(level: int, msg: Any, condition: bool, *args: Any) -> None:
    """Log a message if the condition holds."""
    if condition:
        log(level, msg, *args)


def get_verbosity() -> int:
    """The lowest enabled level."""
    return _logger.getEffectiveLevel()


def set_verbosity(v: int) -> None:
    """Enable this level and higher ones; the default is `WARN`."""
    _logger.setLevel(v)


def flush() -> None:
    """Flush all messages."""
    for handler in _logger.handlers:
        handler.flush()
