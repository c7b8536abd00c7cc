"""The base class of tensors: a handle to a value, replaced by another in an in-place change."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence
from functools import partial
from sys import getrefcount
from typing import Any, ClassVar, Final

import numpy as np

from weft.eager.record.memory import snapshot
from weft.eager.record.memory.memory_pool import copied, lease, lend
from weft.eager.record.pending.access import array_of
from weft.eager.record.pending.change import Replaced
from weft.eager.record.pending.fill import has_only_fills
from weft.eager.record.pending.global_mark import changes, inferring
from weft.eager.record.pending.lazy import Array, Lazy, known
from weft.eager.record.pending.state import computing, trace
from weft.eager.record.pending.untracked_change import with_history
from weft.eager.tensor.dtype.promotion import TORCH, Rules
from weft.eager.tensor.retain import move_retain
from weft.eager.tensor.view.view import Lens, View
from weft.errors import WeftError
from weft.host.interrupt import Uninterrupted
from weft.ir.dtype import float64
from weft.ir.node import TensorType
from weft.runtime.flight import land_for

_new: Final = object.__new__


def handle_of(kind: type[Any], lazy: Lazy) -> Any:
    """A new tensor of this class that holds a value."""
    handle = _new(kind)
    handle.shown = lazy
    handle.window = handle._grad = None
    handle._version = handle.views = 0
    lazy.owner = weakref.ref(handle)
    if inferring.open and trace.now.inference:
        handle.inferred = True
    return handle


class Handle:
    """A reference to a `Lazy`; `Tensor` only adds methods.

    A new handle takes over the value: a `Lazy` belongs to one handle at a time.
    """

    __slots__ = (
        "__weakref__", "_grad", "_version", "detached", "flows", "inferred", "lasting", "lent",
        "place", "shown", "source", "views", "window",
    )  # fmt: skip
    kind: ClassVar[type[Any]]  # of results of operations on it
    default: ClassVar[type[Any]]  # of results where no operand is a tensor
    rules: ClassVar[Rules] = TORCH
    multiplied: ClassVar[Any] = None  # the matmul of a class that has one of its own
    detached: weakref.WeakSet[View]  # only set if there have been detached views
    _grad: Any  # what `backward` has accumulated
    inferred: bool  # only set if it was made in inference mode
    lasting: bool  # only set on members of modules, which change rarely
    lent: bool  # only set if others may write to the memory without notice
    views: int  # how many views have been made of it
    # Only set while the others are not: see `weft.eager.functions.indexing.element`.
    flows: bool
    place: Any
    source: Any

    def __dir__(self) -> list[str]:
        """Its attributes, without those set only on some tensors."""
        unset = {n for n in Handle.__slots__ if not n.startswith("__") and not hasattr(self, n)}
        return [name for name in super().__dir__() if name not in unset]

    def adopt(self, lazy: Lazy, view: View | None = None) -> None:
        """Set the value of a new handle."""
        self.shown = lazy
        self.window = view
        self._grad = None
        self._version = self.views = 0
        lazy.owner = weakref.ref(self)
        if inferring.open and trace.now.inference:
            self.inferred = True

    @property
    def lazy(self) -> Lazy:
        """The current value."""
        view = self.window
        if (
            view is not None and view.mark is not changes.mark
            and not view.is_current(self.shown)
        ):  # fmt: skip
            lazy, old = view.take(), self.shown
            if old.tracked and old.leaf is None and view.lens.detached:
                lazy = with_history(lazy, old)  # that of the written value, not of the base
            self._show_of_leaf(lazy)
        return self.shown

    @property
    def version(self) -> int:
        """The version counter; a view has that of its base."""
        view = self.window
        return self._version if view is None else view.base.version

    def look(self, view: View) -> None:
        """Make a new handle a view; it holds the view's value already."""
        self.window = view
        if inferring.used:
            self.inferred = getattr(view.base, "inferred", False)

    @property
    def view_of(self) -> View | None:
        """The base of a view; `None` for a tensor with memory of its own."""
        return self.window

    @property
    def root(self) -> Handle:
        """The root tensor whose gradient a view contributes to; itself if it is no view."""
        view = self.window
        return self if view is None or view.lens.detached else view.base.root

    @property
    def array(self) -> Array:
        """The memory of the tensor, computed now if pending; no copy."""
        lazy = self.shown if self.window is None else self.lazy
        try:
            return array_of(lazy)
        except WeftError:
            if lazy.record is not None or self.lazy is lazy:
                raise
            return self.array  # another thread has changed the tensor

    @property
    def memory(self) -> Array:
        """The same for others to write to; for a detached view, the memory of its base."""
        view = self.window
        if view is not None and view.lens.detached:
            return view.base.memory
        array = self.array
        if self.shown.loan is None:
            snapshot.compute_readers(array)
            if not trace.now.is_alone:
                self._leave_copy(array)
        found = lease(array)
        self._note_lent()
        return found

    def _leave_copy(self, array: Array) -> None:
        """Leave a copy to what others have recorded, before the memory is shared."""
        with computing:
            old = self.shown
            if old.array is array and old.record is None and self._references() > _LONE[0] + 1:
                self._show_of_leaf(known(array, old.type))
                old.array = copied(array, array.dtype)

    def lend(self) -> None:
        """Mark the memory as shared: others may write to it without notice."""
        if self.shown.array is not None:
            lend(self.shown.array)
        self._note_lent()

    def _note_lent(self) -> None:
        self.lent = True
        if self.views or getattr(self, "lasting", False):
            changes.mark = object()
        if self.shown.array is not None:
            self.shown.loan = snapshot.loan_of(self.shown.array)

    @property
    def is_available(self) -> bool:
        """Whether the value is computed and irrelevant to gradients, tracing and anomaly mode."""
        lazy = self.lazy
        if trace.now.depth or trace.now.inspect is not None:
            return False
        return lazy.array is not None and not (lazy.tracked and trace.now.grad_mode)

    def tells_changes(self) -> bool:
        """Whether every change gives it another value or version."""
        return self.window is None and not getattr(self, "lent", False)

    def is_still(self, lazy: Lazy, version: int) -> bool:
        """Whether it still holds this value in this version, and reports changes."""
        return self.shown is lazy and self._version == version and self.tells_changes()

    def own_memory(self) -> Array | None:
        """The tensor's memory, if it may be written to.

        That is so if no record reads it and nothing is pending that may still fail.
        """
        now = trace.now
        if self.window is not None or now.depth or now.inspect is not None:
            return None
        if now.pending and not has_only_fills(now):
            return None
        if now.duals and not getattr(self, "lent", False):
            return None
        lazy = self.shown
        array = lazy.array
        if array is None or (lazy.tracked and now.grad_mode) or getrefcount(lazy) > _LONE[0]:
            return None
        land_for(id(array))
        return array if array.flags.writeable else None

    def touch(self) -> None:
        """Note that the value is another: views read theirs again."""
        self._version += 1
        changes.mark = object()

    def _references(self) -> int:
        lazy = self.shown
        return getrefcount(lazy)

    def _show(self, lazy: Lazy) -> None:
        """Hold another value."""
        owner, mark = weakref.ref(self), object()  # calls first: Ctrl-C comes after them
        if self.shown.hooks is not None:
            move_retain(lazy, self.shown)
        self.shown.owner = None
        lazy.owner = owner
        self.shown = lazy
        changes.mark = mark

    def _show_of_leaf(self, lazy: Lazy) -> None:
        """Hold another value, which is a leaf if the old one is."""
        old = self.shown
        if old.leaf is not None:
            lazy.tracked, lazy.leaf, lazy.hooks = True, old.leaf, old.hooks
        self._show(lazy)

    def move(self, array: Array) -> None:
        """Hold the same value in other memory, which others may write to without notice."""
        with computing:
            snapshot.compute_readers(self.array)
            self._show_of_leaf(known(array, self.shown.type))
            self.touch()  # views read it again
        self.lend()

    def replace(self, lazy: Lazy) -> None:
        """Change the tensor in place to this newly recorded value.

        The value is computed into the same memory if the type is the same. A leaf that requires
        grad stays one.
        """
        with computing:
            self._replace(lazy)
        trace.now.keep_up()

    def replace_soon(self, lazy: Lazy) -> None:
        """`replace`, but memory that others see is written only when `State.keep_up` is called."""
        with computing:
            self._replace(lazy)

    def _replace(self, lazy: Lazy) -> None:
        view = self.window
        if view is not None:
            if self.shown.tracked and not lazy.tracked and self.shown.leaf is None:
                lazy = with_history(lazy, self.shown)
            view.put(lazy)
            if lazy.tracked and not view.lens.detached:
                lazy = view.take()  # uses of the base give the view no gradient
            self._note(lazy)
            self._show_of_leaf(lazy)
            return
        old = self.shown
        if lazy.array is not None and old.type is lazy.type and snapshot.is_open(old):
            lazy = snapshot.recorded_copy(lazy)
        if old.tracked and not lazy.tracked and old.leaf is None:
            lazy = with_history(lazy, old)
        self._note(lazy)
        self._succeed(old, lazy)

    def depart(self, lazy: Lazy) -> None:
        """Hold this value in new memory; detached views keep the old memory."""
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
        """Give the value to a new handle and become a view of it.

        Views of this tensor stay valid and share the version counter.
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
        """Hold a value instead of `old`, in its memory unless a gradient may still read that."""
        self._show_of_leaf(lazy)
        # Only now: an unused value must not be computed into the memory of a used one.
        is_read = lazy.tracked and lazy.leaf is None
        # A tangent that is asked for later may read it, too.
        is_read = is_read or bool(trace.now.duals and not getattr(self, "lent", False))
        if old.type is lazy.type and lazy.array is None and (not is_read or snapshot.is_open(old)):
            lazy.home = old if old.array is not None else old.home
        old.home = None
        home = lazy.home  # read once: another thread may reset it
        if home is not None and snapshot.is_open(home):  # nothing recorded reads that memory
            trace.now.due = True
            if is_read:
                snapshot.note_late()
        self.touch()

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
        back: list[Replaced] = []
        with computing:
            now.note_replaced(lazies[0], back)
            for tensor, lazy in zip(tensors, lazies, strict=True):
                old = tensor.shown
                if now.depth or tensor.window is not None or (old.tracked and old.leaf is None):
                    tensor._replace(lazy)
                else:
                    back.append((weakref.ref(tensor), old, lazy, None))
                    tensor._succeed(old, lazy)

    def _note(self, lazy: Lazy) -> None:
        """Remember the current value, which is restored if `lazy` fails."""
        now, before = trace.now, self.shown
        if now.depth:
            now.changed.setdefault(self, before)
        now.note_replaced(lazy, ((weakref.ref(self), before, lazy, self.window),))

    def take_back(self, before: Lazy, after: Lazy, window: View | None) -> None:
        """Undo the replacement of one value by another, unless a third one is held by now."""
        with computing:
            # A view may have read its value again; any other tensor with another value is up to
            # date.
            if self.shown is after or self.window is not None:
                self.exchange(before)
                self.window = window
                self.touch()

    def become(self, view: Handle) -> Handle:
        """Take the shape and value of a view of this tensor, for in-place reshapes."""
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
        self.touch()
        return self

    def restore_base(self, rest: Handle) -> None:
        """Undo `become`: be the base of all views again, instead of the stand-in."""
        _give_views(rest, self)
        self._version, self.window = rest._version, None
        if hasattr(rest, "detached"):
            self.detached = rest.detached

    def shown_by(self) -> list[View]:
        """All views of this tensor."""
        return _views_of(self) if self.views else []

    def _is_shown_by_others(self, view: Handle) -> bool:
        if not self.views or self.shown.leaf is not None:
            return False
        others = [v for v in _views_of(self) if v is not view.window]
        self.views = len(others)
        return bool(others)

    def _stand_in(self) -> Handle:
        """A tensor of the old shape, which becomes the base of all views."""
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
        """Another view like this one."""
        base: Handle = handle_of(type(self), shown.lens.take(shown.base.lazy))
        base.look(View(shown.base, shown.lens))
        return base

    def detach_in_place(self, constant: Handle) -> Handle:
        """Detach in place; existing views keep their gradient."""
        old = self.shown
        if old.leaf is not None:
            old.tracked, old.leaf = False, None
        elif old.tracked:
            lazy = constant.lazy
            self._note(lazy)
            self._show(lazy)
        return self

    def _carried(self, lazy: Lazy, view: Handle) -> Lazy:
        """The value of a view to become, connected to the old value's gradient."""
        old = self.shown
        if not old.tracked or lazy.tracked or old.leaf is not None or view.window is None:
            return lazy
        before, trace.now.grad_mode = trace.now.grad_mode, True
        try:
            return view.window.lens.take(old)
        finally:
            trace.now.grad_mode = before

    def exchange(self, lazy: Lazy) -> Lazy:
        """Undo a replacement: hold an earlier value again; returns the current one."""
        now = self.shown
        if now.home is not lazy and lazy.array is None:
            lazy.home = now.home
        now.home = None
        if now.leaf is not None:
            now.tracked, now.leaf = False, None
        self._show(lazy)
        return now


def _views_of(tensor: Handle) -> list[View]:
    """All views of a tensor, which are not listed anywhere."""
    found: list[View] = []
    for each in gc.get_referrers(tensor):
        view = each
        if isinstance(each, Handle) and getattr(each, "source", None) is tensor:
            view = each.window  # which fills it
        if isinstance(view, View) and view.base is tensor:
            found.append(view)
    return found


def _give_views(old: Handle, new: Handle) -> None:
    """Make another tensor the base of all views of one."""
    for view in _views_of(old):
        view.base = new


def _give_views_back(to: weakref.ref[Handle], from_: weakref.ref[Handle]) -> None:
    tensor, rest = to(), from_()
    if tensor is not None and rest is not None:
        tensor.restore_base(rest)


def _references_of_lone() -> int:
    """The reference count of a value that only its tensor refers to."""
    handle = Handle()
    handle.adopt(known(np.zeros(()), TensorType(float64, ())))
    return handle._references()  # pyright: ignore[reportPrivateUsage]


_LONE: list[int] = [_references_of_lone()]
