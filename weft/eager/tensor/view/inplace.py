"""In-place changes: the common path of all methods with a trailing underscore."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from weft.eager.record.call.placed_type import device_of
from weft.eager.record.pending.global_mark import inferring
from weft.eager.record.pending.lazy import Lazy
from weft.eager.record.pending.state import computing, trace
from weft.eager.tensor.device import moved
from weft.eager.tensor.dispatch import cast, recorded
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.view.view_transform import Shaped
from weft.eager.tensor.view.view_transform import show as view_of
from weft.errors import DTypeError, GradientError, ShapeError
from weft.ir.node import Value
from weft.ir.shape import known, show
from weft.ops.declaration import catalogue
from weft.ops.declaration.rule import concrete

T = TypeVar("T", bound=Handle)
F = TypeVar("F", bound=Callable[..., Any])
_KINDS = "biufc"  # a tensor cannot take a value of a later kind


def undisturbed(method: F) -> F:
    """A method that reads and changes a tensor while no other thread can change it.

    So threads may change different elements of one tensor.
    """

    @functools.wraps(method)
    def changed(*args: Any, **options: Any) -> Any:
        with computing:
            return method(*args, **options)

    return changed  # type: ignore[return-value]


def check_writable(x: Handle, name: str) -> None:
    """Refuse in-place changes that autograd does not allow.

    Raises:
        GradientError: outside `no_grad()`, `x` is a leaf that requires grad, a view of one, or a
            view made under `no_grad()` of a tensor that requires grad; or `x` was made in inference
            mode, which has ended.
    """
    if inferring.used and getattr(x, "inferred", False) and not trace.now.inference:
        raise GradientError.here(
            f"{name}: a tensor of inference_mode() cannot be changed in place outside it; work on "
            f"x.clone()"
        )
    if not trace.now.grad_mode:
        return
    root = x.shown if x.window is None else x.root.lazy
    if root.leaf is not None:
        what = "a leaf" if x.root is x else "a view of a leaf"
        raise GradientError.here(
            f"{name}: {what} that requires grad cannot be changed in place; change it inside "
            f"no_grad(), or work on x.clone()"
        )
    if root.tracked and not _flows(x):
        raise GradientError.here(
            f"{name}: a view that was made under no_grad() or inference_mode(), of what needs a "
            f"gradient; make the view where it is changed, or change it there"
        )


def _flows(x: Handle) -> bool:
    """Whether gradients flow from a view to its root base."""
    view = x.window
    while view is not None and not view.lens.detached:
        if not view.flows:
            return False
        view = view.base.window
    return True


def become(x: T, view: Handle, name: str) -> T:
    """Give `x` the shape and value of a view of it; returns `x`.

    Raises:
        GradientError: see `check_writable`.
    """
    check_writable(x, name)
    x.become(view)
    return x


def rewrite(x: Handle, lazy: Lazy, name: str) -> None:
    """`write` a result that a function computed in place, also of another shape.

    Raises:
        ShapeError: the shape differs and the tensor is a view or has views.
    """
    old, new = known(x.lazy.type.shape), known(lazy.type.shape)
    if [n for n in old if n > 1] == [n for n in new if n > 1]:
        write(x, lazy if old == new else Shaped(old).take(lazy), name)
        if old != new:
            x.become(view_of(x, Shaped(new)))
        return
    check_writable(x, name)
    if x.window is not None or x.views:
        raise ShapeError.here(
            f"{name}: a function changes the shape of an argument in place that is a view, or has "
            f"views; clone() it first"
        )
    x.replace(lazy)


@recorded
def filled(x: Value, value: Value) -> Value:
    """The value in the shape of `x`, which has no gradient from it."""
    return catalogue.broadcast_to(value, shape=concrete(x))


def write(x: T, lazy: Lazy, name: str) -> T:
    """Give `x` a newly recorded value, cast to its dtype; returns `x`.

    Where gradients are recorded, a value without any ends those of `x`: it was drawn, or compared.

    Raises:
        GradientError: see `check_writable`.
        DTypeError: the dtype's kind does not fit, for example floating-point into integer.
        ShapeError: the value has another shape.
    """
    check_writable(x, name)
    old, new = x.lazy.type, lazy.type
    if old is new:
        return _put(x, lazy)
    if old.shape != new.shape:
        raise ShapeError.here(
            f"{name}: the result has to have the shape of the tensor that it is written to: "
            f"expected {show(known(old.shape))}, got {show(known(new.shape))}"
        )
    if _KINDS.index(new.dtype.kind) > max(_KINDS.index(old.dtype.kind), 2 * old.dtype.is_integer):
        raise DTypeError.here(
            f"{name}: a result of {new.dtype} does not fit into a tensor of {old.dtype}; "
            f"convert the tensor first: x = x.to({new.dtype})"
        )
    found = cast(lazy, old.dtype)
    if found.type is not old:  # drawn numbers are on the first device
        found = moved(found, device_of(old))
    return _put(x, found)


def _put(x: T, lazy: Lazy) -> T:
    if trace.now.grad_mode and x.lazy.tracked and not lazy.tracked:
        lazy = filled.record((x, lazy), {})[0]
    x.replace(lazy)
    return x
