"""Tensor hooks: functions that see the gradient of a tensor and may change it."""

from __future__ import annotations

import contextlib
import itertools
import threading
import weakref
from collections.abc import Callable, Generator, Hashable, Sequence
from typing import Any, Final, Protocol, Self

from weft.eager.record.pending.lazy import Lazy
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.retain import Retain
from weft.errors import DTypeError, GradientError, ShapeError
from weft.host.garbage_collection import FirstRead
from weft.ir.shape import show
from weft.ops.warning import warn

_numbers: Final = itertools.count(1)


class RemovableHandle:
    """The handle of a registered hook: `remove()` removes it; also a context manager."""

    def __init__(self, hooks: dict[int, Callable[..., Any]]) -> None:
        self._hooks = hooks
        self.id = next(_numbers)

    def hooks_dict_ref(self) -> dict[int, Callable[..., Any]]:
        """The dictionary that holds the hook, by handle ids."""
        return self._hooks

    def remove(self) -> None:
        """Remove the hook, if it is still registered."""
        self._hooks.pop(self.id, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


class RemovableHandles(RemovableHandle):
    """The handle of a hook of several values: `remove()` removes it from all."""

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        super().__init__({})
        self._handles = tuple(handles)

    def remove(self) -> None:
        """Remove the hook wherever it is still registered."""
        for handle in self._handles:
            handle.remove()


class BackwardPass:
    """What hooks of several gradients have collected in one backward pass.

    Attributes:
        gradients: by the hook's key.
        ends: callbacks for the end of the pass, unless it fails.
        recorded: the results of the gradients that it has recorded.
    """

    def __init__(self) -> None:
        self.gradients: dict[Hashable, list[Any]] = {}
        self.ends: list[Callable[[], Any]] = []
        self.recorded: list[tuple[weakref.ref[Lazy], ...]] = []


class _Passes(threading.local):
    open = FirstRead[list[BackwardPass]](list)


_passes: Final = _Passes()


@contextlib.contextmanager
def backward_pass() -> Generator[None, None, None]:
    """Marks one backward pass; hooks inside it may start others."""
    now = BackwardPass()
    _passes.open.append(now)
    try:
        yield
    finally:
        _passes.open.remove(now)
    for end in now.ends:
        end()


def this_pass() -> BackwardPass:
    """The current backward pass."""
    return _passes.open[-1]


def note_gradients(found: Sequence[Lazy]) -> None:
    """Note the results of a gradient that the current backward pass, if any, has recorded."""
    record = found[0].record
    if _passes.open and record is not None:
        _passes.open[-1].recorded.append(record.results)


after_backward: Final[list[Callable[[Sequence[Lazy]], None]]] = []
"""Called at the end of each `backward()`, with the leaves whose `.grad` it may have changed."""


class BackwardListener(Protocol):
    """Listens to backward passes."""

    def after_backward(self, leaves: Sequence[Lazy]) -> None:
        """Called after a `backward()`, which may have changed `.grad` of these leaves."""
        ...


def watch_backward(listener: BackwardListener) -> None:
    """Notify `listener` of the end of each backward pass as long as it lives."""
    known = weakref.ref(listener)

    def tell(leaves: Sequence[Lazy]) -> None:
        found = known()
        if found is None:
            after_backward.remove(tell)
        else:
            found.after_backward(leaves)

    after_backward.append(tell)


class Afterwards:
    """A hook that is called with the tensor once its gradient has been accumulated."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function


def add(lazy: Lazy, hook: Any) -> RemovableHandle:
    """Register a hook for the gradient of a value."""
    if lazy.hooks is None:
        lazy.hooks = {}
    handle = RemovableHandle(lazy.hooks)
    lazy.hooks[handle.id] = hook
    return handle


class Hooked(Handle):
    """Methods that register hooks."""

    __slots__ = ()

    @property
    def grad(self) -> Any:
        """The gradient that `backward` has accumulated; `None` if there is none, or after `del
        x.grad`.

        Reading it on a non-leaf warns, unless `retain_grad` was called.

        Raises:
            TypeError, DTypeError, ShapeError: the assigned value is no gradient for this tensor.
        """
        lazy = self.shown
        if self._grad is None and lazy.tracked and lazy.leaf is None and not self.retains_grad:
            text = "the result of an operation keeps no gradient in .grad; call retain_grad() on it"
            warn(text)
        return self._grad

    @grad.setter
    def grad(self, value: Any) -> None:
        if value is not None:
            self._check_gradient(value)
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    def _check_gradient(self, value: Any) -> None:
        if not isinstance(value, Handle):
            raise TypeError(f"grad: expected a tensor or None, got {type(value).__name__}")
        kind, found = self.shown.type, value.shown.type
        if value is self:
            raise GradientError.here("grad: a tensor is not its own gradient")
        if found.shape != kind.shape:
            raise ShapeError.here(
                f"grad: expected shape {show(kind.shape)}, that of the tensor, got "
                f"{show(found.shape)}"
            )
        if found.dtype is not kind.dtype:
            raise DTypeError.here(
                f"grad: expected {kind.dtype}, the type of the tensor, got {found.dtype}"
            )

    def register_hook(self, hook: Callable[[Any], Any]) -> RemovableHandle:
        """Call `hook(gradient)` in each backward pass; what it returns replaces the gradient.

        Raises:
            GradientError: the tensor requires no grad.

        Example:
            >>> import weft as wf
            >>> x = wf.ones(2, requires_grad=True)
            >>> handle = x.register_hook(lambda g: g * 10)
            >>> (x * 3).backward(wf.ones(2))
            >>> x.grad.tolist()
            [30.0, 30.0]
        """
        return add(self._needing("register_hook"), hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Any], Any]) -> RemovableHandle:
        """Call `hook(tensor)` whenever a backward pass has added to `tensor.grad`.

        Raises:
            GradientError: the tensor is no leaf, or requires no grad.
        """
        lazy = self._needing("register_post_accumulate_grad_hook")
        if lazy.leaf is None:
            raise GradientError.here(
                "register_post_accumulate_grad_hook: expected a leaf, got the result of an "
                "operation; use register_hook"
            )
        return add(lazy, Afterwards(hook))

    def retain_grad(self) -> None:
        """Keep the gradient of a non-leaf in `.grad`.

        Raises:
            GradientError: the tensor requires no grad.

        Example:
            >>> import weft as wf
            >>> y = wf.ones(1, requires_grad=True) * 2
            >>> y.retain_grad()
            >>> (y * 5).backward()
            >>> y.grad.tolist()
            [5.0]
        """
        lazy = self._needing("retain_grad")
        if lazy.leaf is None and not self.retains_grad:
            add(lazy, Retain(self))

    @property
    def retains_grad(self) -> bool:
        """Whether the tensor is a non-leaf that keeps its gradient."""
        hooks = self.lazy.hooks
        return hooks is not None and any([isinstance(h, Retain) for h in hooks.values()])

    def _needing(self, name: str) -> Lazy:
        lazy = self.lazy
        if not lazy.tracked:
            raise GradientError.here(
                f"{name}: expected a tensor that requires grad; call requires_grad_() on it, "
                f"or on what it is computed from"
            )
        return lazy
