"""Views: tensors on part of another tensor's elements, or on all of them in another shape.

A view is read again when its base has changed, and a change of the view is written back to the
base. So the two behave as if they shared memory, although values are immutable inside.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn, Protocol

import numpy as np

from weft.eager.record.memory.snapshot import is_alone
from weft.eager.record.pending.global_mark import changes
from weft.eager.record.pending.lazy import Lazy
from weft.eager.record.pending.state import computing, trace
from weft.errors import ShapeError
from weft.ir.node import at_user_line
from weft.ir.shape import known

Array = np.ndarray[Any, Any]


class Base(Protocol):
    """The interface of a base that views need; see `weft.eager.tensor.handle`."""

    views: int
    lent: bool  # only set if others may write to the memory without notice
    window: View | None
    shown: Lazy
    detached: Any  # detached views, if there have been any

    @property
    def view_of(self) -> View | None:
        """Its own view, if it is one."""
        ...

    @property
    def root(self) -> Any:
        """The root tensor that it contributes gradients to."""
        ...

    @property
    def memory(self) -> Array:
        """Its memory, for others to write to."""
        ...

    @property
    def lazy(self) -> Lazy:
        """The current value."""
        ...

    @property
    def version(self) -> int:
        """Its version counter."""
        ...

    def replace_soon(self, lazy: Lazy) -> None:
        """Change it in place."""
        ...


class Lens(Protocol):
    """How a view is read from its base, and how a changed view is written back."""

    detached: ClassVar[bool]  # whether no gradients flow from the view to its base

    def lay(self, base: Array) -> Array:
        """The part of the base's memory that the view covers."""
        ...

    def take(self, base: Lazy) -> Lazy:
        """The view's value, newly recorded."""
        ...

    def put(self, base: Lazy, part: Lazy) -> Lazy:
        """The base's value, newly recorded, once the view has the value `part`."""
        ...


class RepeatedError(ShapeError):
    """Several elements of a view are one element of its base, so the view cannot be written back.

    Attributes:
        put: gives the base's value after elements at some row-major indices are replaced.
    """

    def __init__(self, what: str, put: Callable[[Lazy, Array, Lazy], Lazy]) -> None:
        super().__init__(
            f"in-place change of {what}: several of its elements are one element of the tensor "
            f"that it shows; clone() it first{at_user_line()}"
        )
        self.put = put


class InvalidLens:
    """The lens of a view whose elements are gone."""

    __slots__ = ()
    detached: ClassVar[bool] = False

    def lay(self, base: Array) -> Array:
        """See `Lens`."""
        self._refuse()

    def take(self, base: Lazy) -> Lazy:
        """See `Lens`."""
        self._refuse()

    def put(self, base: Lazy, part: Lazy) -> Lazy:
        """See `Lens`."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise ShapeError.here("a view of a tensor whose size resize_() has changed; take it again")


class View:
    """The view that a tensor is: `lens` applied to `base`, as of the last read.

    Reading it again uses the grad mode in which it was made.
    """

    __slots__ = ("__weakref__", "_version", "base", "flows", "layout", "lens", "mark")
    flows: bool  # whether gradients may flow back through it
    layout: Any  # where its elements lie, once that is asked for
    mark: object  # it is current if this is still the mark of all changes

    def __init__(self, base: Base, lens: Lens, version: int | None = None) -> None:
        """A view that was read in this version of its base, by default the current one."""
        self.base = base
        self.lens = lens
        self.flows = trace.now.grad_mode
        self.layout = self.mark = None
        self._version = base.version if version is None else version
        base.views += 1

    def is_stale(self) -> bool:
        """Whether the base has changed since the view was read."""
        return self.base.version != self._version

    def is_current(self, shown: Lazy) -> bool:
        """Whether its value need not be read again."""
        mark = changes.mark  # first: another thread may change the base meanwhile
        if self.base.version != self._version:
            return False
        root = self.base
        while root.window is not None:
            root = root.window.base
        if not getattr(root, "lent", False):
            self.mark = mark
            return True
        return not self.is_open(shown)

    def is_open(self, shown: Lazy) -> bool:
        """Whether others may have written to its memory without notice, so that it is stale."""
        if shown.tracked or shown.loan is not None:
            return False
        root = self.base
        while root.window is not None:
            root = root.window.base
        if not getattr(root, "lent", False) or trace.now.depth:
            return False
        if root.shown.array is None:
            return False
        if is_alone(root.shown):
            root.lent = False
            return False
        return True

    def take(self) -> Lazy:
        """The current value of the view."""
        version = self.base.version  # first: another thread may change the base meanwhile
        before, trace.now.grad_mode = trace.now.grad_mode, self.flows
        try:
            lazy = self.lens.take(self.base.lazy)
        finally:
            trace.now.grad_mode = before
        self._version, self.layout = version, None
        return lazy

    def put(self, lazy: Lazy) -> None:
        """Change the base so that the view has this value.

        Raises:
            RepeatedError: several of its elements are one element of its base.
        """
        with computing:  # other threads may write to other parts of the base
            try:
                self.base.replace_soon(self.lens.put(self.base.lazy, lazy))
            except RepeatedError as error:  # of the base, but perhaps not of this view
                self._put_apart(lazy, error)
            self._version = self.base.version

    def _put_apart(self, lazy: Lazy, error: RepeatedError) -> None:
        """Change the root base at the view's places."""
        lenses = [self.lens]
        root = self.base
        while root.window is not None:
            lenses.append(root.window.lens)
            root = root.window.base
        shape = known(root.lazy.type.shape)
        places = np.arange(math.prod(shape)).reshape(shape)
        for lens in reversed(lenses):
            places = lens.lay(places)
        if any([lens.detached for lens in lenses]) or np.unique(places).size != places.size:
            raise error
        root.replace_soon(error.put(root.lazy, np.ascontiguousarray(places), lazy))
