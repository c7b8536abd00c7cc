"""The context that a custom function passes from forward to backward."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from weft.eager.record.pending.lazy import Lazy
from weft.eager.tensor.dispatch import wrap
from weft.eager.tensor.handle import Handle
from weft.errors import GradientError
from weft.ops.warning import warn


class _Saved(NamedTuple):
    """A saved argument, and for a tensor its value when saved."""

    tensor: Any
    lazy: Lazy | None
    version: int


class Context:
    """The context that forward passes to backward; further attributes may be set on it.

    Attributes:
        needs_input_grad: for each argument of `apply`, whether it requires grad.
    """

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        self.materialize = True
        self.constants: tuple[Any, ...] = ()
        self.dirty: tuple[Any, ...] = ()
        self.saved: list[_Saved] | None = []
        self.saved_for_forward: list[_Saved] | None = None
        self.forwards = False  # whether jvp runs
        self.public: Mapping[Lazy, Lazy] = {}  # results inside -> outside, while backward runs

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors (or `None`) for the backward function."""
        self.saved = _kept(tensors)

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep tensors (or `None`) for `jvp`; without it, `jvp` gets those saved for backward."""
        self.saved_for_forward = _kept(tensors)

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors given to `save_for_backward` or, in `jvp`, to `save_for_forward`.

        Raises:
            GradientError: a backward pass freed them, or one was changed in place.
        """
        saved = self.saved_for_forward if self.forwards else None
        saved = self.saved if saved is None else saved
        if saved is None:
            raise GradientError.here(
                "saved_tensors: they were freed by an earlier backward pass; call that one with "
                "retain_graph=True"
            )
        return tuple([self._seen(*each) for each in saved])

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """The old name of `saved_tensors`."""
        text = "saved_variables is deprecated; use saved_tensors"
        warn(text, DeprecationWarning)
        return self.saved_tensors

    def _seen(self, x: Any, lazy: Lazy | None, version: int) -> Any:
        if lazy is None:
            return x
        outside = self.public.get(lazy)
        if outside is not None:
            return tensor_of(outside)
        if x.version != version:
            raise GradientError.here(
                "saved_tensors: one was changed in place after it was saved; save a clone() of it"
            )
        # It was detached in place, or is a view of memory that others see: read anew each time.
        return x if x.lazy is lazy else wrap(lazy)

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Mark results that no gradient flows through."""
        self.constants = tensors

    def mark_dirty(self, *tensors: Any) -> None:
        """Mark arguments that were changed in place."""
        self.dirty = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether missing gradients are passed as zeros; otherwise as `None`."""
        self.materialize = value


def _kept(tensors: Sequence[Any]) -> list[_Saved]:
    return [
        _Saved(x, x.lazy, x.version)
        if isinstance(x, Handle) and x.multiplied is None  # a sparse one stays sparse
        else _Saved(x, None, 0)
        for x in tensors
    ]


def tensor_of(lazy: Lazy) -> Any:
    """The tensor that holds a value, or a new one."""
    owner = None if lazy.owner is None else lazy.owner()
    return wrap(lazy) if owner is None else owner
