"""What names a resource: each call on it carries the whole, so that the first one makes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


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
