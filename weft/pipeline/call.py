"""Calling a user's function on an element: errors know where, random numbers know for what."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from weft.errors import UserOpError
from weft.pipeline.permutation import mix

_local: Final = threading.local()


def called(function: Callable[..., Any], element: Any, what: str, position: int) -> Any:
    """`function(element)`, of a tuple with its parts as arguments.

    What it raises gets a note that says where.

    Raises:
        UserOpError: the function raised StopIteration, which would end the pass silently.
    """
    try:
        return function(*element) if isinstance(element, tuple) else function(element)
    except StopIteration as error:
        raise UserOpError(f"{what}: the function raised StopIteration at {position}") from error
    except Exception as error:
        error.add_note(f"raised by {what}({title(function)}) at element {position}")
        raise


def title(function: Any) -> str:
    """A function's name."""
    return getattr(function, "__name__", type(function).__name__)


def called_with_key(
    function: Callable[..., Any], element: Any, what: str, position: int, seed: int
) -> Any:
    """`called`, with `element_random()` keyed by the seed and the position meanwhile."""
    before = getattr(_local, "key", None)
    _local.key = seed, position
    _local.generator = None
    try:
        return called(function, element, what, position)
    finally:
        _local.key = before
        _local.generator = None


@contextlib.contextmanager
def keyed(seed: int, position: int) -> Iterator[None]:
    """`element_random()` keyed by the seed and the position."""
    before = getattr(_local, "key", None)
    _local.key = seed, position
    _local.generator = None
    try:
        yield
    finally:
        _local.key = before
        _local.generator = None


def element_random() -> np.random.Generator | None:
    """The random numbers of the element that is being made, None outside of a pipeline.

    They depend on the seed, the epoch and the element's place, not on threads or on what ran
    before.
    """
    key: Any = getattr(_local, "key", None)
    if key is None:
        return None
    if _local.generator is None:
        _local.generator = np.random.Generator(np.random.Philox(key=mix(*key)))
    return _local.generator


def element_random_used() -> bool:
    """Whether `element_random` was called for the element that is being made."""
    return getattr(_local, "generator", None) is not None
