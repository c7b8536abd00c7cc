"""Lightning's utilities: what only rank 0 does, and names of annotations."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeAlias

from weft.collectives.process_group import get_rank, is_initialized
from weft.train.trainer import seed_everything as seed_everything

__all__ = [
    "rank_zero_debug", "rank_zero_deprecation", "rank_zero_info",
    "rank_zero_only", "rank_zero_warn", "seed_everything",
]  # fmt: skip

STEP_OUTPUT: TypeAlias = Any
EVAL_DATALOADERS: TypeAlias = Any
TRAIN_DATALOADERS: TypeAlias = Any
OptimizerLRScheduler: TypeAlias = Any
LRSchedulerTypeUnion: TypeAlias = Any
_log = logging.getLogger("lightning")


def _rank() -> int:
    return get_rank() if is_initialized() else int(os.environ.get("RANK", "0"))


def rank_zero_only(fn: Callable[..., Any], default: Any = None) -> Callable[..., Any]:
    """A function that runs on rank 0 alone; elsewhere it returns `default`."""

    @wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs) if _rank() == 0 else default

    return wrapped


@rank_zero_only
def rank_zero_info(*args: Any, stacklevel: int = 4, **kwargs: Any) -> None:
    """Log a message on rank 0."""
    _log.info(*args, stacklevel=stacklevel, **kwargs)


@rank_zero_only
def rank_zero_debug(*args: Any, stacklevel: int = 4, **kwargs: Any) -> None:
    """Log a detail on rank 0."""
    _log.debug(*args, stacklevel=stacklevel, **kwargs)


@rank_zero_only
def rank_zero_warn(message: Any, stacklevel: int = 4, **kwargs: Any) -> None:
    """Warn on rank 0."""
    warnings.warn(message, stacklevel=stacklevel, **kwargs)


@rank_zero_only
def rank_zero_deprecation(message: Any, stacklevel: int = 5, **kwargs: Any) -> None:
    """Warn on rank 0 that something is going to be removed."""
    warnings.warn(message, DeprecationWarning, stacklevel=stacklevel, **kwargs)
