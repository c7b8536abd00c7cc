"""Hooks of a grad_fn: they see all gradients of a call's results, or of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.eager.record.pending.conjugate import conjugated
from weft.eager.record.pending.lazy import Lazy, Record
from weft.eager.tensor.autograd.hook import RemovableHandle, add
from weft.eager.tensor.dispatch import cast, lazy_of, unowned, wrap
from weft.errors import GradientError, ShapeError
from weft.ir.shape import show

Gradients = tuple[Any, ...]


class Around:
    """The hooks and metadata of a grad_fn; shared by all results of a call.

    It is stored among the hooks of each of these values, or of the leaf.

    Attributes:
        before: called with the gradients of the results, before those of the inputs are computed.
        after: called with the gradients of the inputs and those of the results.
        metadata: the user's.
    """

    def __init__(self) -> None:
        self.before: dict[int, Callable[[Gradients], Any]] = {}
        self.after: dict[int, Callable[[Gradients, Gradients], Any]] = {}
        self.metadata: dict[Any, Any] = {}

    def begin(self, gs: Sequence[Lazy | None]) -> list[Lazy | None]:
        """The gradients of the results after the hooks."""
        now = list(gs)
        for hook in list(self.before.values()):
            now = _replaced("a hook before a node", hook(_shown(now)), now)
        return now

    def end(self, xs: Sequence[Lazy | None], gs: Sequence[Lazy | None]) -> list[Lazy | None]:
        """The gradients `xs` of the inputs after the hooks."""
        now = list(xs)
        for hook in list(self.after.values()):
            now = _replaced("a hook of a node", hook(_shown(now), _shown(gs)), now)
        return now


def around(lazy: Lazy) -> Around | None:
    """The hooks of a value's grad_fn, if there are any."""
    for hook in (lazy.hooks or {}).values():
        if isinstance(hook, Around):
            return hook
    return None


def around_of(lazy: Lazy) -> Around:
    """The hooks of a value's grad_fn, created if there are none."""
    found = around(lazy)
    if found is None:
        found = Around()
        for y in siblings(lazy):
            add(y, found)
    return found


def call_of(lazy: Lazy) -> Record | Lazy:
    """The identity of a value's grad_fn: its call, or the value if it has a grad_fn of its own.

    Leaves have their own, and so has each result of a traced function, since each comes from other
    operations.
    """
    record = lazy.record
    return lazy if lazy.leaf is not None or record is None or record.plan.pattern.traced else record


def siblings(lazy: Lazy) -> Sequence[Lazy]:
    """The results that share a value's grad_fn."""
    call = call_of(lazy)
    return (call,) if isinstance(call, Lazy) else call.outputs


def entered(hooks: dict[int, Any], hook: Any) -> RemovableHandle:
    """Add a hook."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def _shown(gs: Sequence[Lazy | None]) -> Gradients:
    return tuple([None if g is None else wrap(unowned(conjugated(g))) for g in gs])


def _replaced(what: str, given: Any, before: list[Lazy | None]) -> list[Lazy | None]:
    """The gradients that a hook returned; those it saw if it returned none."""
    if given is None:
        return before
    found = given if isinstance(given, tuple | list) else (given,)
    if len(found) != len(before):
        raise GradientError.here(
            f"backward: expected {what} to return {len(before)} gradients, or None, got "
            f"{len(found)}"
        )
    return [_fitting(what, g, x) for g, x in zip(found, before, strict=True)]


def _fitting(what: str, given: Any, before: Lazy | None) -> Lazy | None:
    if given is None:
        return None
    return conjugated(lazy_of(given)) if before is None else fitting(what, given, before)


def fitting(what: str, given: Any, before: Lazy) -> Lazy:
    """The gradient that a hook returned; the one it saw if it returned none.

    Raises:
        ShapeError: its shape differs.
    """
    g = cast(lazy_of(given, before.type.dtype), before.type.dtype)
    if g.type.shape != before.type.shape:
        raise ShapeError.here(
            f"backward: expected {what} to return a gradient of shape {show(before.type.shape)}, "
            f"or None, got {show(g.type.shape)}"
        )
    return conjugated(g)
