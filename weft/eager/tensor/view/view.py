"""Views: tensors that show a part of another one, or all of it in another shape.

A view is taken again when its base has changed, and a change of the view is written back to the
base; so the two behave as if they shared memory, although every value is immutable inside.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn, Protocol

import numpy as np

from weft.eager.record.lazy import Lazy
from weft.eager.record.state import trace
from weft.errors import ShapeError
from weft.ir.shape import known
from weft.ops.base import at_user_line

Array = np.ndarray[Any, Any]


class Base(Protocol):
    """What a view asks of the tensor that it shows: `weft.eager.tensor.handle`."""

    views: int
    window: View | None
    shown: Lazy
    detached: Any  # views without gradient, where there have been any

    @property
    def view_of(self) -> View | None:
        """What it shows itself, if it is a view."""
        ...

    @property
    def root(self) -> Any:
        """The tensor that it is differentiated through to."""
        ...

    @property
    def memory(self) -> Array:
        """Its memory, for others to write to."""
        ...

    @property
    def lazy(self) -> Lazy:
        """The value now."""
        ...

    @property
    def version(self) -> int:
        """How often it was changed in place."""
        ...

    def replace_soon(self, lazy: Lazy) -> None:
        """Change it in place."""
        ...


class Lens(Protocol):
    """How a view follows from its base, and how the base follows from a changed view."""

    detached: ClassVar[bool]  # whether no gradients flow from the view to its base

    def lay(self, base: Array) -> Array:
        """The part of the base's memory that the view shows."""
        ...

    def take(self, base: Lazy) -> Lazy:
        """The view's value, newly recorded."""
        ...

    def put(self, base: Lazy, part: Lazy) -> Lazy:
        """The base's value, newly recorded, once the view has the value `part`."""
        ...


class RepeatedError(ShapeError):
    """Several elements of a view are one element of its base, which cannot take the view's value.

    Attributes:
        put: gives the base's value where elements at some places, counted in row-major order, have
            become others.
    """

    def __init__(self, what: str, put: Callable[[Lazy, Array, Lazy], Lazy]) -> None:
        super().__init__(
            f"in-place change of {what}: several of its elements are one element of the tensor "
            f"that it shows; clone() it first{at_user_line()}"
        )
        self.put = put


class Lost:
    """The lens of a view of what is no more."""

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
        raise ShapeError(
            f"a view of a tensor whose size resize_() has changed; take it again{at_user_line()}"
        )


class View:
    """What a tensor shows: `lens` applied to `base`, as it was when the view was last taken.

    Gradients flow through it as they did where it was made, wherever somebody looks at it.
    """

    __slots__ = ("__weakref__", "_version", "base", "flows", "lens")
    flows: bool  # whether gradients may flow back through it

    def __init__(self, base: Base, lens: Lens) -> None:
        self.base = base
        self.lens = lens
        self.flows = trace.now.grad_mode
        self._version = base.version
        base.views += 1

    def is_stale(self) -> bool:
        """Whether the base has changed since the view was taken."""
        return self.base.version != self._version

    def is_open(self, shown: Lazy) -> bool:
        """Whether others may have written to what is shown without saying so, so that it is old."""
        if shown.tracked or shown.loan is not None:
            return False
        root = self.base
        while root.window is not None:
            root = root.window.base
        if not getattr(root, "lent", False) or trace.now.depth:
            return False
        return root.shown.array is not None

    def take(self) -> Lazy:
        """The view's value now."""
        before, trace.now.grad_mode = trace.now.grad_mode, self.flows
        try:
            lazy = self.lens.take(self.base.lazy)
        finally:
            trace.now.grad_mode = before
        self._version = self.base.version
        return lazy

    def put(self, lazy: Lazy) -> None:
        """Change the base so that the view has this value.

        Raises:
            RepeatedError: several of its elements are one element of the tensor that it shows.
        """
        try:
            self.base.replace_soon(self.lens.put(self.base.lazy, lazy))
        except RepeatedError as error:  # of the base, but perhaps not of the part of it
            self._put_apart(lazy, error)
        self._version = self.base.version

    def _put_apart(self, lazy: Lazy, error: RepeatedError) -> None:
        """Change the tensor in whose memory the view lies at the places where it lies."""
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
