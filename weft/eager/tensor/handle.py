"""The base of tensors: a handle that refers to a value, and after an in-place change to another."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, Final

import numpy as np

from weft.eager.record.access import array_of
from weft.eager.record.global_mark import changes, inferring
from weft.eager.record.lazy import Array, Lazy, known
from weft.eager.record.memory_pool import lease, lend
from weft.eager.record.snapshot import is_open, loan_of, note_late, recorded_copy, settle_readers
from weft.eager.record.state import trace
from weft.eager.record.untracked_change import with_history
from weft.eager.tensor.dtype.promotion import TORCH, Rules
from weft.eager.tensor.view.view import Lens, Lost, View
from weft.errors import WeftError
from weft.interrupt import Uninterrupted
from weft.ir.dtype import float64
from weft.ir.node import TensorType

_new: Final = object.__new__


def handle_of(kind: type[Any], lazy: Lazy) -> Any:
    """A new tensor of a kind that shows a value."""
    handle = _new(kind)
    handle.shown = lazy
    handle.window = handle._grad = None
    handle._version = handle.views = 0
    lazy.owner = weakref.ref(handle)
    if inferring.open and trace.now.inference:
        handle.inferred = True
    return handle


class Handle:
    """A reference to a `Lazy`; what `Tensor` adds is methods.

    Making one takes over the value: a `Lazy` belongs to one handle at a time.
    """

    __slots__ = (
        "__weakref__", "_grad", "_version", "detached", "inferred", "lasting", "lent", "shown",
        "views", "window",
    )  # fmt: skip
    kind: ClassVar[type[Any]]  # of results of operations on it
    default: ClassVar[type[Any]]  # of results where no operand is a tensor
    rules: ClassVar[Rules] = TORCH
    detached: weakref.WeakSet[View]  # only set where there have been views without gradient
    _grad: Any  # what `backward` has accumulated
    inferred: bool  # only set where it was made in inference mode
    lasting: bool  # only set where it is part of a module, so that it may stay as it is for long
    lent: bool  # only set where others may write to the memory without saying so
    views: int  # how many have been made of it

    def __dir__(self) -> list[str]:
        """Its attributes, without those that are set on some tensors only."""
        unset = {n for n in Handle.__slots__ if not n.startswith("__") and not hasattr(self, n)}
        return [name for name in super().__dir__() if name not in unset]

    def adopt(self, lazy: Lazy, view: View | None = None) -> None:
        """Show a value; for new handles."""
        self.shown = lazy
        self.window = view
        self._grad = None
        self._version = self.views = 0
        lazy.owner = weakref.ref(self)
        if inferring.open and trace.now.inference:
            self.inferred = True

    @property
    def lazy(self) -> Lazy:
        """The value now."""
        view = self.window
        if view is not None and (view.is_stale() or view.is_open(self.shown)):
            lazy, old = view.take(), self.shown
            if old.tracked and old.leaf is None and view.lens.detached:
                lazy = with_history(lazy, old)  # of what was written to it: not that of its base
            self._show_of_leaf(lazy)
        return self.shown

    @property
    def version(self) -> int:
        """How often the tensor was changed in place; of a view, how often its base was."""
        view = self.window
        return self._version if view is None else view.base.version

    def look(self, view: View) -> None:
        """Be a view; for new handles that show its value."""
        self.window = view
        if inferring.used:
            self.inferred = getattr(view.base, "inferred", False)

    @property
    def view_of(self) -> View | None:
        """What a view shows; `None` for a tensor with memory of its own."""
        return self.window

    @property
    def root(self) -> Handle:
        """The tensor that a view is differentiated through to; itself where it is no view."""
        view = self.window
        return self if view is None or view.lens.detached else view.base.root

    @property
    def array(self) -> Array:
        """The memory of the tensor, computed now if need be; not a copy."""
        lazy = self.lazy
        try:
            return array_of(lazy)
        except WeftError:
            if lazy.record is not None or self.lazy is lazy:
                raise
            return self.array  # another thread has changed the tensor meanwhile

    @property
    def memory(self) -> Array:
        """The same for others to write to: of a detached tensor, the memory of what it shows."""
        view = self.window
        if view is not None and view.lens.detached:
            return view.base.memory
        array = self.array
        if self.shown.loan is None:
            settle_readers(array)
        found = lease(array)
        self._note_lent()
        return found

    def lend(self) -> None:
        """Say that the memory came from others, who may write to it without saying so."""
        if self.shown.array is not None:
            lend(self.shown.array)
        self._note_lent()

    def _note_lent(self) -> None:
        if getattr(self, "lasting", False):
            changes.mark = object()
        self.lent = True
        if self.shown.array is not None:
            self.shown.loan = loan_of(self.shown.array)

    @property
    def at_hand(self) -> bool:
        """Whether the value is there, of no interest to gradients, tracing or inspection."""
        lazy = self.lazy
        if trace.now.depth or trace.now.inspect is not None:
            return False
        return lazy.array is not None and not (lazy.tracked and trace.now.grad_mode)

    def tells_changes(self) -> bool:
        """Whether every change of the value gives it another value or version."""
        return self.window is None and not getattr(self, "lent", False)

    def is_still(self, lazy: Lazy, version: int) -> bool:
        """Whether it shows this value in this version, and tells changes."""
        return self.shown is lazy and self._version == version and self.tells_changes()

    def own_memory(self) -> Array | None:
        """The tensor's memory, if it may be written to.

        Nothing recorded would see it change then, nor is anything pending that may yet fail.
        """
        if self.window is not None or trace.now.pending or not self.at_hand:
            return None
        if trace.now.duals and not getattr(self, "lent", False):
            return None
        if self._references() > _LONE[0]:
            return None
        array = array_of(self.shown)
        return array if array.flags.writeable else None

    def touch(self) -> None:
        """Say that the memory was written to: views take their values again."""
        self._version += 1
        changes.mark = object()

    def _references(self) -> int:
        lazy = self.shown
        return sys.getrefcount(lazy)

    def _show(self, lazy: Lazy) -> None:
        """Refer to another value."""
        owner, mark = weakref.ref(self), object()  # calls first: Ctrl-C comes after them
        if self.shown.hooks is not None:
            _retain_of(lazy, self.shown)
        self.shown.owner = None
        lazy.owner = owner
        self.shown = lazy
        changes.mark = mark

    def _show_of_leaf(self, lazy: Lazy) -> None:
        """Refer to another value, which is a leaf's if the one until now is."""
        old = self.shown
        if old.leaf is not None:
            lazy.tracked, lazy.leaf, lazy.hooks = True, old.leaf, old.hooks
        self._show(lazy)

    def replace(self, lazy: Lazy) -> None:
        """Change the tensor in place: it has this newly recorded value from now on.

        The value is computed into the same memory where type and shape are the same. A leaf that
        needs a gradient stays one.
        """
        self.replace_soon(lazy)
        trace.now.keep_up()

    def replace_soon(self, lazy: Lazy) -> None:
        """`replace`; memory that others see is written to when `State.keep_up` is called."""
        view = self.window
        if view is not None:
            if self.shown.tracked and not lazy.tracked and self.shown.leaf is None:
                lazy = with_history(lazy, self.shown)
            view.put(lazy)
            if lazy.tracked and not view.lens.detached:
                lazy = view.take()  # what the base is used for is no gradient of the view
            self._note(lazy)
            self._show_of_leaf(lazy)
            return
        old = self.shown
        if lazy.array is not None and old.type is lazy.type and is_open(old):
            lazy = recorded_copy(lazy)
        if old.tracked and not lazy.tracked and old.leaf is None:
            lazy = with_history(lazy, old)
        self._note(lazy)
        self._succeed(old, lazy)

    def depart(self, lazy: Lazy) -> None:
        """Have this value in memory of its own; detached views stay with what there is now."""
        if self.window is not None:
            self._show(self.lazy)
            self.window = None
        old, version = self.shown, self._version
        self.replace(lazy)
        views = getattr(self, "detached", None)
        if views:
            self.shown.home = None
            rest: Handle = handle_of(self.kind, old)
            rest._version = version
            for view in list(views):
                view.base = rest
            self.detached = weakref.WeakSet()

    def hand_over(self, new: Handle, lens: Lens) -> View:
        """Have a new handle show the value, in the memory that this one is a view of from now on.

        Views of this one still are; they count the same changes.
        """
        new.adopt(self.shown)
        new._version = self._version
        if hasattr(self, "lent"):
            new.lent = self.lent
        self.window = view = View(new, lens)
        self.shown = view.take()
        self.shown.owner = weakref.ref(self)
        changes.mark = object()
        return view

    def _succeed(self, old: Lazy, lazy: Lazy) -> None:
        """Show a value instead of `old`, in its memory unless a gradient may read that yet."""
        self._show_of_leaf(lazy)
        # Only now: what nobody shows must not be computed into the memory of what somebody does.
        is_read = lazy.tracked and lazy.leaf is None
        # So may a tangent that nobody has asked for yet.
        is_read = is_read or bool(trace.now.duals and not getattr(self, "lent", False))
        if old.type is lazy.type and lazy.array is None and (not is_read or is_open(old)):
            lazy.home = old if old.array is not None else old.home
        old.home = None
        home = lazy.home  # another thread may take it away
        if home is not None and is_open(home):  # nothing recorded reads that memory
            trace.now.due = True
            if is_read:
                note_late()
        self._version += 1

    @staticmethod
    def replace_all(tensors: Sequence[Handle], lazies: Sequence[Lazy]) -> None:
        """`replace` of many tensors by the results of one recorded call: of all or, with Ctrl-C, of
        none.
        """
        with Uninterrupted():
            Handle.replace_all_soon(tensors, lazies)
        trace.now.keep_up()

    @staticmethod
    def replace_all_soon(tensors: Sequence[Handle], lazies: Sequence[Lazy]) -> None:
        """`replace_soon` of many tensors by the results of one recorded call."""
        now = trace.now
        back: list[tuple[weakref.ref[Handle], Lazy, Lazy]] = []
        now.on_failure(lazies[0], partial(_take_all_back, back))
        for tensor, lazy in zip(tensors, lazies, strict=True):
            old = tensor.shown
            if now.depth or tensor.window is not None or (old.tracked and old.leaf is None):
                tensor.replace_soon(lazy)
            else:
                back.append((weakref.ref(tensor), old, lazy))
                tensor._succeed(old, lazy)

    def _note(self, lazy: Lazy) -> None:
        """Note what is shown until now, as it may have to be shown again instead of `lazy`."""
        now, before = trace.now, self.shown
        if now.depth:
            now.changed.setdefault(self, before)
        now.on_failure(lazy, partial(_take_back, weakref.ref(self), before, lazy, self.window))

    def become(self, view: Handle) -> Handle:
        """Be what a view of this tensor is: the same elements in another shape, for good."""
        shown = self.window
        self.views -= view.window is not None and view.window.base is self
        if view.window is not None and (shown is not None or self._is_shown_by_others(view)):
            base = self._stand_in() if shown is None else self._alias(shown)
            if shown is not None and self.views:
                _give_views(self, base)
                self.views = 0
            lazy = self._carried(view.window.lens.take(base.lazy), view)
            self._note(lazy)
            if shown is None:
                give_back = partial(_give_views_back, weakref.ref(self), weakref.ref(base))
                trace.now.on_failure(lazy, give_back)
            self._show_of_leaf(lazy)
            base.shown.owner = weakref.ref(base)
            self.window = View(base, view.window.lens)
            return self
        lazy = self._carried(view.lazy, view)
        self._note(lazy)
        self._show_of_leaf(lazy)
        self._version += 1
        return self

    def stand_again(self, rest: Handle) -> None:
        """Be again what all views show, in the shape until now, in place of a stand-in."""
        _give_views(rest, self)
        self._version, self.window = rest._version, None
        if hasattr(rest, "detached"):
            self.detached = rest.detached

    def lose_views(self) -> None:
        """Say that the elements which views of this tensor show are there no more."""
        for view in _views_of(self) if self.views else ():
            view.lens = Lost()

    def _is_shown_by_others(self, view: Handle) -> bool:
        if not self.views or self.shown.leaf is not None:
            return False
        others = [v for v in _views_of(self) if v is not view.window]
        self.views = len(others)
        return bool(others)

    def _stand_in(self) -> Handle:
        """A tensor in the shape until now, which all views show from now on."""
        rest: Handle = handle_of(self.kind, self.shown)
        rest._version = self._version
        _give_views(self, rest)
        for name in ("detached", "lasting", "lent"):
            if hasattr(self, name):
                setattr(rest, name, getattr(self, name))
        if hasattr(self, "detached"):
            del self.detached
        self.views = 0
        return rest

    def _alias(self, shown: View) -> Handle:
        """A view as this one is."""
        base: Handle = handle_of(type(self), shown.lens.take(shown.base.lazy))
        base.look(View(shown.base, shown.lens))
        return base

    def let_go(self, constant: Handle) -> Handle:
        """Show the same value without its gradient; views that were taken keep theirs."""
        old = self.shown
        if old.leaf is not None:
            old.tracked, old.leaf = False, None
        elif old.tracked:
            lazy = constant.lazy
            self._note(lazy)
            self._show(lazy)
        return self

    def _carried(self, lazy: Lazy, view: Handle) -> Lazy:
        """The value of a view to become, through which gradients flow as they did until now."""
        old = self.shown
        if not old.tracked or lazy.tracked or old.leaf is not None or view.window is None:
            return lazy
        before, trace.now.grad_mode = trace.now.grad_mode, True
        try:
            return view.window.lens.take(old)
        finally:
            trace.now.grad_mode = before

    def exchange(self, lazy: Lazy) -> Lazy:
        """Go back to an earlier value, as if it had not been replaced; the value until now."""
        now = self.shown
        if now.home is not lazy and lazy.array is None:
            lazy.home = now.home
        now.home = None
        if now.leaf is not None:
            now.tracked, now.leaf = False, None
        self._show(lazy)
        return now


class Retain:
    """A hook that keeps the gradient of a tensor that is no leaf in its `.grad`.

    It is one of the value that the tensor shows, and goes on to the next with an in-place change.
    """

    def __init__(self, tensor: Handle) -> None:
        self.tensor = weakref.ref(tensor)


def _retain_of(lazy: Lazy, before: Lazy) -> None:
    """Have a value instead of the one before keep its gradient."""
    hooks = before.hooks
    if hooks is None or hooks is lazy.hooks or not lazy.tracked:
        return
    kept = {n: hook for n, hook in hooks.items() if isinstance(hook, Retain)}
    if kept:
        lazy.hooks = {**(lazy.hooks or {}), **kept}
        for n in kept:
            del hooks[n]


def _take_back(
    reference: weakref.ref[Handle], before: Lazy, after: Lazy, window: View | None
) -> None:
    tensor = reference()
    # A view may have taken its value again, anything else has been given a known one since.
    if tensor is not None and (tensor.shown is after or tensor.window is not None):
        tensor.exchange(before)
        tensor.window = window
        tensor.touch()


def _views_of(tensor: Handle) -> list[View]:
    """All views of a tensor, which nobody else knows."""
    return [v for v in gc.get_referrers(tensor) if isinstance(v, View) and v.base is tensor]


def _give_views(old: Handle, new: Handle) -> None:
    """Have all views of a tensor show another one."""
    for view in _views_of(old):
        view.base = new


def _give_views_back(to: weakref.ref[Handle], from_: weakref.ref[Handle]) -> None:
    tensor, rest = to(), from_()
    if tensor is not None and rest is not None:
        tensor.stand_again(rest)


def _take_all_back(changes: Sequence[tuple[weakref.ref[Handle], Lazy, Lazy]]) -> None:
    for reference, before, after in reversed(changes):
        _take_back(reference, before, after, None)


def _references_of_lone() -> int:
    """How often a value counts as referred to that only its tensor refers to."""
    handle = Handle()
    handle.adopt(known(np.zeros(()), TensorType(float64, ())))
    return handle._references()  # pyright: ignore[reportPrivateUsage]


_LONE: list[int] = [_references_of_lone()]
