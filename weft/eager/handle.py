"""What every tensor is inside: a handle on a value, which an in-place change exchanges."""

from __future__ import annotations

import weakref
from typing import Any, ClassVar

from weft.eager.lazy import Array, Lazy, array_of
from weft.eager.promotion import TORCH, Rules
from weft.eager.view import View


class Handle:
    """A reference to a `Lazy`; what `Tensor` adds is methods.

    Making one takes over the value: a `Lazy` belongs to one handle at a time.
    """

    __slots__ = ("__weakref__", "_lazy", "_version", "_view", "grad")
    kind: ClassVar[type[Any]]  # of results of operations on it
    rules: ClassVar[Rules] = TORCH
    grad: Any  # what `backward` has accumulated

    def adopt(self, lazy: Lazy, view: View | None = None) -> None:
        """Show a value; for new handles."""
        self._lazy = lazy
        self._view = view
        self.grad = None
        self._version = 0
        lazy.owner = weakref.ref(self)

    @property
    def lazy(self) -> Lazy:
        """The value now."""
        view = self._view
        if view is not None and view.is_stale():
            self._show(view.take())
        return self._lazy

    @property
    def version(self) -> int:
        """How often the tensor was changed in place; of a view, how often its base was."""
        view = self._view
        return self._version if view is None else view.base.version

    def look(self, view: View) -> None:
        """Be a view; for new handles that show its value."""
        self._view = view

    @property
    def root(self) -> Handle:
        """The tensor that a view is differentiated through to; itself where it is no view."""
        view = self._view
        return self if view is None or view.lens.detached else view.base.root

    @property
    def array(self) -> Array:
        """The memory of the tensor, computed now if need be; not a copy."""
        return array_of(self.lazy)

    def _show(self, lazy: Lazy) -> None:
        """Refer to another value."""
        self._lazy.owner = None
        lazy.owner = weakref.ref(self)
        self._lazy = lazy

    def replace(self, lazy: Lazy) -> None:
        """Change the tensor in place: it has this newly recorded value from now on.

        The value is computed into the same memory where type and shape are the same. A leaf that
        needs a gradient stays one.
        """
        view = self._view
        if view is not None:
            view.put(lazy)
            self._show(lazy)
            return
        old = self._lazy
        if old.type is lazy.type:
            lazy.home = old if old.array is not None else old.home
        old.home = None
        if old.leaf is not None:
            lazy.tracked, lazy.leaf = True, old.leaf
        self._show(lazy)
        self._version += 1
