"""Dual numbers: tensors that carry a tangent, under the names of PyTorch's `forward_ad`.

Tangents are computed when a result is unpacked, from its history; those of custom functions when
these are called.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

from weft.eager.record.pending.lazy import Lazy
from weft.eager.record.pending.mode import Setting
from weft.eager.record.pending.state import trace
from weft.eager.tensor.autograd.backward import history, zeros
from weft.eager.tensor.autograd.custom_function import Call
from weft.eager.tensor.autograd.forward_mode import push
from weft.eager.tensor.autograd.function_context import tensor_of
from weft.eager.tensor.dispatch import cast, lazy_of, wrap
from weft.eager.tensor.handle import Handle
from weft.errors import ArgumentError, GradientError, ShapeError
from weft.func.gradient import same, untracked
from weft.func.level import closed, has_gradient, is_differentiated, opened, variable
from weft.ir.shape import show

__all__ = [
    "UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual",
    "unpack_dual",
]  # fmt: skip


class UnpackedDualTensor(NamedTuple):
    """The parts of a dual tensor; `tangent` is `None` if it has none."""

    primal: Any
    tangent: Any


class dual_level:
    """A context manager in which tensors may carry tangents, which are dropped at its end.

    Dual tensors and their parts do not share memory. Results are recorded inside, as after
    `enable_grad()`; under an inner `no_grad()` nothing has a tangent.

    >>> import weft as wf
    >>> with dual_level():
    ...     x = make_dual(wf.tensor(3.0), wf.tensor(1.0))
    ...     unpack_dual(x * x).tangent.item()
    6.0
    """

    def __init__(self) -> None:
        self.moves: dict[Lazy, Lazy] = {}  # tangents of variables
        self._known: dict[Lazy, Lazy] = {}  # and of results, as far as known
        self._still: set[Lazy] = set()  # values without tangent, whatever their history
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
        """The tangents of values, for those that have one.

        Raises:
            GradientError: a backward pass has freed their graph.
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
        """Give results of a custom function the tangents from its `jvp`."""
        given = self.along([x for x in call.inputs if x is not None])
        if not given:
            return
        found = call.push([None if x is None else given.get(x) for x in call.inputs])
        for y in results:
            self._known[y] = self.still(found[y.index]) if y.index in found else zeros(y)

    def still(self, x: Lazy) -> Lazy:
        """The value without tangent at this level; gradients still flow through it."""
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
        """Give a variable a tangent."""
        self.moves[x] = self._known[x] = tangent

    def tangent(self, x: Lazy) -> Any:
        """The tangent of a value, if any; the original tensor if one was given."""
        move = self.along([x]).get(x)
        return None if move is None else tensor_of(move) if x in self._known else wrap(move)

    def is_moved_alone(self, x: Lazy) -> bool:
        """Whether a value is tracked for forward mode only, with no gradient wanted."""
        return not has_gradient(x, {y for level in trace.now.duals for y in level.moves})


def enter_dual_level() -> dual_level:
    """Begin a level; `exit_dual_level` ends it."""
    return dual_level().__enter__()


def exit_dual_level(*, level: dual_level | None = None) -> None:
    """End a level, the innermost by default."""
    _level("exit_dual_level", level).__exit__()


def _level(name: str, level: dual_level | None) -> dual_level:
    duals = trace.now.duals
    if not duals:
        raise GradientError.here(f"{name}: expected a dual_level() around it")
    return duals[-1] if level is None else level


def make_dual(tensor: Any, tangent: Any, *, level: dual_level | None = None) -> Any:
    """A dual tensor with a tangent of its shape.

    Raises:
        GradientError: there is no level, or one of both has a tangent at that level already.
        ArgumentError: the tensor or the tangent is not floating-point.
        ShapeError: the tangent has another shape.
    """
    chosen = _level("make_dual", level)
    for what, x in (("tensor", tensor), ("tangent", tangent)):
        if isinstance(x, Handle):
            _check(what, x, chosen)
    dual, lazy = variable(tensor, "make_dual")
    move = cast(lazy_of(tangent, lazy.type.dtype), lazy.type.dtype)
    if move.type.shape != lazy.type.shape:
        raise ShapeError.here(
            f"make_dual: expected a tangent of shape {show(lazy.type.shape)}, got "
            f"{show(move.type.shape)}"
        )
    chosen.set(lazy, move)
    return dual


def _check(what: str, x: Handle, level: dual_level) -> None:
    """Check that a part of a dual tensor is floating-point and has no tangent itself."""
    lazy = x.lazy
    if not lazy.type.dtype.is_inexact:
        raise ArgumentError.here(
            f"make_dual: expected a floating or complex {what}, got {lazy.type.dtype}; convert "
            f"it with float()"
        )
    if lazy.tracked and level.along([lazy]):
        raise GradientError.here(
            f"make_dual: expected a {what} that does not move at this level; take its part with "
            f"unpack_dual(), or detach() it"
        )


def unpack_dual(tensor: Any, *, level: dual_level | None = None) -> UnpackedDualTensor:
    """The value and the tangent of a tensor.

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
