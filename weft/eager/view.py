"""Views: tensors that show a part of another one, or all of it in another shape.

A view is taken again when its base has changed, and a change of the view is written back to the
base; so the two behave as if they shared memory, although every value is immutable inside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from weft.eager.lazy import Lazy

if TYPE_CHECKING:
    from weft.eager.handle import Handle


class View:
    """How a view follows from its base, and how the base follows from a changed view.

    Args:
        base: the tensor that is shown.
        take: the view's value, from the base's.
        put: the base's new value, from its old one and the view's new one.
    """

    __slots__ = ("_put", "_take", "_version", "base")

    def __init__(
        self,
        base: Handle,
        take: Callable[[Lazy], Lazy],
        put: Callable[[Lazy, Lazy], Lazy],
    ) -> None:
        self.base = base
        self._take = take
        self._put = put
        self._version = base.version

    def is_stale(self) -> bool:
        """Whether the base has changed since the view was taken."""
        return self.base.version != self._version

    def take(self) -> Lazy:
        """The view's value now."""
        lazy = self._take(self.base.lazy)
        self._version = self.base.version
        return lazy

    def put(self, lazy: Lazy) -> None:
        """Change the base so that the view has this value."""
        self.base.replace(self._put(self.base.lazy, lazy))
        self._version = self.base.version
