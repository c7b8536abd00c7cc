"""Dual numbers: tensors that carry a tangent, under the names of PyTorch's `forward_ad`.

Tangents are computed from how a result was computed, when it is unpacked; those of the user's own
functions when these are called.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

from weft.eager.record.lazy import Lazy
from weft.eager.record.mode import Setting
from weft.eager.record.state import trace
from weft.eager.tensor.autograd.backward import history, zeros
from weft.eager.tensor.autograd.custom_function import Call, tensor_of
from weft.eager.tensor.autograd.forward_mode import push
from weft.eager.tensor.dispatch import cast, lazy_of, wrap
from weft.eager.tensor.handle import Handle
from weft.errors import ArgumentError, GradientError, ShapeError
from weft.func.gradient import same, untracked
from weft.func.level import closed, has_gradient, is_differentiated, opened, variable
from weft.ir.shape import show
from weft.ops.base import at_user_line

__all__ = [
    "UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual",
    "unpack_dual",
]  # fmt: skip


class UnpackedDualTensor(NamedTuple):
    """The parts of a dual tensor; it has no tangent where it does not move."""

    primal: Any
    tangent: Any


class dual_level:
    """Where tensors may carry tangents: a context manager, which ends with all tangents forgotten.

    Dual tensors and their parts have memory of their own: changes of one in place leave the others.
    Results are recorded inside, as after `enable_grad()`; under a `no_grad()` inside nothing moves.

    >>> import weft as wf
    >>> with dual_level():
    ...     x = make_dual(wf.tensor(3.0), wf.tensor(1.0))
    ...     unpack_dual(x * x).tangent.item()
    6.0
    """

    def __init__(self) -> None:
        self.moves: dict[Lazy, Lazy] = {}  # of variables
        self._known: dict[Lazy, Lazy] = {}  # and of results, as far as they are known
        self._still: set[Lazy] = set()  # values that do not move, whatever led to them
        self._mode = Setting("grad_mode", True)

    def __enter__(self) -> Self:
        self._mode.__enter__()
        opened(self.moves)
        trace.now.duals.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        trace.now.duals.remove(self)
        closed(self.moves)
        self._mode.__exit__()

    def along(self, values: Sequence[Lazy]) -> dict[Lazy, Lazy]:
        """The tangents of those of some values that move.

        Raises:
            GradientError: a backward pass has freed what led to them.
        """
        past = history(values)
        known = {x: t for x, t in self._known.items() if x in past.values}
        reached = past.towards([x for x in known if x not in self._still], self._still).values
        found = {y: known[y] for y in values if y in known and y in reached}
        rest = [y for y in values if y in reached and y not in found]
        if rest:
            recorded = trace.now.grad_mode and (
                is_differentiated(past, list(known)) or any([t.tracked for t in known.values()])
            )
            pushed = push(rest, list(known), list(known.values()), past, recorded)
            found.update(zip(rest, map(self.still, pushed), strict=True))
        return found

    def follow(self, call: Call, results: Sequence[Lazy]) -> None:
        """Have results of a function of the user's own move as its `jvp` says."""
        given = self.along([x for x in call.inputs if x is not None])
        if not given:
            return
        found = call.push([None if x is None else given.get(x) for x in call.inputs])
        for y in results:
            self._known[y] = self.still(found[y.index]) if y.index in found else zeros(y)

    def still(self, x: Lazy) -> Lazy:
        """A value that does not move at this level; gradients flow through it as they did."""
        if not x.tracked:
            return x
        past = history([x])
        if not any([y in self._known for y in past.values]):
            return x
        if not is_differentiated(past, list(self.moves)):
            return untracked(x)
        found = same(x)
        self._still.add(found)
        self._known[found] = zeros(found)
        return found

    def set(self, x: Lazy, tangent: Lazy) -> None:
        """Have a variable move."""
        self.moves[x] = self._known[x] = tangent

    def tangent(self, x: Lazy) -> Any:
        """What a value moves along, if it does, as the tensor that was given if there was one."""
        move = self.along([x]).get(x)
        return None if move is None else tensor_of(move) if x in self._known else wrap(move)

    def is_moved_alone(self, x: Lazy) -> bool:
        """Whether nobody takes a gradient of what a value depends on: it moves at levels alone."""
        return not has_gradient(x, {y for level in trace.now.duals for y in level.moves})


def enter_dual_level() -> dual_level:
    """Begin a level, for `exit_dual_level` to end."""
    return dual_level().__enter__()


def exit_dual_level(*, level: dual_level | None = None) -> None:
    """End a level, the innermost by default."""
    _level("exit_dual_level", level).__exit__()


def _level(name: str, level: dual_level | None) -> dual_level:
    duals = trace.now.duals
    if not duals:
        raise GradientError(f"{name}: expected a dual_level() around it{at_user_line()}")
    return duals[-1] if level is None else level


def make_dual(tensor: Any, tangent: Any, *, level: dual_level | None = None) -> Any:
    """A tensor that moves along a tangent, of its shape.

    Raises:
        GradientError: there is no level, or one of both moves at that level already.
        ArgumentError: the tensor or the tangent is not floating.
        ShapeError: the tangent has another shape.
    """
    chosen = _level("make_dual", level)
    for what, x in (("tensor", tensor), ("tangent", tangent)):
        if isinstance(x, Handle):
            _check(what, x, chosen)
    dual, lazy = variable(tensor, "make_dual")
    move = cast(lazy_of(tangent, lazy.type.dtype), lazy.type.dtype)
    if move.type.shape != lazy.type.shape:
        raise ShapeError(
            f"make_dual: expected a tangent of shape {show(lazy.type.shape)}, got "
            f"{show(move.type.shape)}{at_user_line()}"
        )
    chosen.set(lazy, move)
    return dual


def _check(what: str, x: Handle, level: dual_level) -> None:
    """A part of a dual tensor is floating, and does not move itself."""
    lazy = x.lazy
    if not lazy.type.dtype.is_inexact:
        raise ArgumentError(
            f"make_dual: expected a floating or complex {what}, got {lazy.type.dtype}; convert "
            f"it with float(){at_user_line()}"
        )
    if lazy.tracked and level.along([lazy]):
        raise GradientError(
            f"make_dual: expected a {what} that does not move at this level; take its part with "
            f"unpack_dual(), or detach() it{at_user_line()}"
        )


def unpack_dual(tensor: Any, *, level: dual_level | None = None) -> UnpackedDualTensor:
    """The value of a tensor, and how it moves with what `make_dual` has made.

    >>> import weft as wf
    >>> unpack_dual(wf.ones(2)).tangent is None
    True
    """
    lazy = lazy_of(tensor)
    if not trace.now.duals or not lazy.tracked:
        return UnpackedDualTensor(tensor, None)
    chosen = _level("unpack_dual", level)
    tangent = chosen.tangent(lazy)
    if tangent is None:
        return UnpackedDualTensor(tensor, None)
    primal = chosen.still(lazy)
    return UnpackedDualTensor(tensor if primal is lazy else wrap(primal, tensor), tangent)
