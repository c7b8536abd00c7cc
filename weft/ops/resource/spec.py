"""What names a resource: each call on it carries the whole, so that the first one makes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True)
class ResourceSpec:
    """A queue, barrier, accumulator, table or reader.

    Attributes:
        kind: TensorFlow's name of it, such as `FIFOQueueV2`.
        name: all calls with this name in a container mean the same resource.
        container: the group in which it lives; `""` is the default one.
        options: pairs of a name and a plain value (number, text, tuple of them, `None`).
    """

    kind: str
    name: str
    container: str = ""
    options: tuple[tuple[str, Any], ...] = ()

    def option(self, name: str, default: Any = None) -> Any:
        """The value of an option."""
        return dict(self.options).get(name, default)


IN_CONTAINER: Final = "//"
"""Keys of variables in a container other than the default one begin with its name and this."""


def key_in(container: str, name: str) -> str:
    """The key of a variable.

    >>> key_in("experiment", "weights"), key_in("", "weights")
    ('experiment//weights', 'weights')
    """
    return f"{container}{IN_CONTAINER}{name}" if container else name


def container_of(key: str) -> str:
    """The container of the variable with a key.

    >>> container_of("experiment//weights"), container_of("weights")
    ('experiment', '')
    """
    name, mark, _ = key.partition(IN_CONTAINER)
    return name if mark else ""
