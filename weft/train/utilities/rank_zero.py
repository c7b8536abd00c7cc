"""Functions of the process with rank 0."""

from __future__ import annotations

import functools
import logging
import os
import warnings
from collections.abc import Callable
from typing import Any

__all__ = [
    "WarningCache", "rank_prefixed_message", "rank_zero_debug", "rank_zero_deprecation",
    "rank_zero_info", "rank_zero_only", "rank_zero_warn",
]  # fmt: skip

_LOG = logging.getLogger("weft.train")


class RankZeroDeprecationWarning(DeprecationWarning):
    """A warning of `rank_zero_deprecation`."""


class _RankZeroOnly:
    """A decorator: the function runs on rank 0, and gives `default` elsewhere.

    Attributes:
        rank: of this process, as launchers tell by the environment.
    """

    def __init__(self) -> None:
        names = ("RANK", "SLURM_PROCID", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "LOCAL_RANK")
        told = [os.environ[name] for name in names if os.environ.get(name, "").isdigit()]
        self.rank = int(told[0]) if told else 0

    def __call__(self, fn: Callable[..., Any], default: Any = None) -> Callable[..., Any]:
        """The function for all ranks."""

        @functools.wraps(fn)
        def run(*args: Any, **kwargs: Any) -> Any:
            return fn(*args, **kwargs) if self.rank == 0 else default

        return run


rank_zero_only = _RankZeroOnly()


@rank_zero_only
def rank_zero_info(message: Any, *args: Any, stacklevel: int = 4, **kwargs: Any) -> None:
    """Log a message."""
    _LOG.info(message, *args, stacklevel=stacklevel, **kwargs)


@rank_zero_only
def rank_zero_debug(message: Any, *args: Any, stacklevel: int = 4, **kwargs: Any) -> None:
    """Log a message for developers."""
    _LOG.debug(message, *args, stacklevel=stacklevel, **kwargs)


@rank_zero_only
def rank_zero_warn(
    message: Any, stacklevel: int = 4, category: type[Warning] = UserWarning, **kwargs: Any
) -> None:
    """Warn."""
    warnings.warn(message, category, stacklevel, **kwargs)


@rank_zero_only
def rank_zero_deprecation(message: Any, stacklevel: int = 5, **kwargs: Any) -> None:
    """Warn of what will be removed."""
    warnings.warn(message, RankZeroDeprecationWarning, stacklevel, **kwargs)


class WarningCache(set[str]):
    """Texts of warnings; each is given once."""

    def warn(self, message: str, stacklevel: int = 5, **kwargs: Any) -> None:
        """Warn on rank 0, if it was not done before."""
        if message not in self:
            self.add(message)
            rank_zero_warn(message, stacklevel=stacklevel, **kwargs)

    def deprecation(self, message: str, stacklevel: int = 6, **kwargs: Any) -> None:
        """Warn on rank 0 of what will be removed, if it was not done before."""
        if message not in self:
            self.add(message)
            rank_zero_deprecation(message, stacklevel=stacklevel, **kwargs)

    def info(self, message: str, stacklevel: int = 5, **kwargs: Any) -> None:
        """Log on rank 0, if it was not done before."""
        if message not in self:
            self.add(message)
            rank_zero_info(message, stacklevel=stacklevel, **kwargs)


def rank_prefixed_message(message: str, rank: int | None) -> str:
    """A message that begins with the rank."""
    return message if rank is None else f"[rank: {rank}] {message}"
