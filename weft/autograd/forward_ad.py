"""Dual numbers: tensors that carry a tangent, under the names of PyTorch's `forward_ad`.

Tangents are computed from how a result was computed, when it is unpacked.
"""

from __future__ import annotations

import threading
from typing import Any, Final, NamedTuple, Self

from weft.eager.call import cast, lazy_of, wrap
from weft.eager.custom import tensor_of
from weft.eager.forward import push
from weft.eager.lazy import Lazy, trace
from weft.eager.mode import Setting
from weft.eager.walk import History, history
from weft.errors import GradientError, ShapeError
from weft.func.gradient import untracked
from weft.func.level import closed, is_differentiated, opened, variable
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


class _Open(threading.local):
    def __init__(self) -> None:
        self.levels: list[dual_level] = []


_open: Final = _Open()


class dual_level:
    """Where tensors may carry tangents: a context manager, which ends with all tangents forgotten.

    Results are recorded inside, as after `enable_grad()`; under a `no_grad()` inside nothing moves.

    >>> import weft as wf
    >>> with dual_level():
    ...     x = make_dual(wf.tensor(3.0), wf.tensor(1.0))
    ...     unpack_dual(x * x).tangent.item()
    6.0
    """

    def __init__(self) -> None:
        self.moves: dict[Lazy, Lazy] = {}
        self._mode = Setting("grad_mode", True)

    def __enter__(self) -> Self:
        self._mode.__enter__()
        opened(self.moves)
        _open.levels.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _open.levels.remove(self)
        closed(self.moves)
        self._mode.__exit__()


def enter_dual_level() -> dual_level:
    """Begin a level, for `exit_dual_level` to end."""
    return dual_level().__enter__()


def exit_dual_level(*, level: dual_level | None = None) -> None:
    """End a level, the innermost by default."""
    _level("exit_dual_level", level).__exit__()


def _level(name: str, level: dual_level | None) -> dual_level:
    if not _open.levels:
        raise GradientError(f"{name}: expected a dual_level() around it{at_user_line()}")
    return _open.levels[-1] if level is None else level


def make_dual(tensor: Any, tangent: Any, *, level: dual_level | None = None) -> Any:
    """A tensor that moves along a tangent, of its shape.

    Raises:
        GradientError: there is no level, or the tensor is not floating.
        ShapeError: the tangent has another shape.
    """
    moves = _level("make_dual", level).moves
    dual, lazy = variable(tensor, "make_dual")
    move = cast(lazy_of(tangent, lazy.type.dtype), lazy.type.dtype)
    if move.type.shape != lazy.type.shape:
        raise ShapeError(
            f"make_dual: expected a tangent of shape {show(lazy.type.shape)}, got "
            f"{show(move.type.shape)}{at_user_line()}"
        )
    moves[lazy] = move
    return dual


def unpack_dual(tensor: Any, *, level: dual_level | None = None) -> UnpackedDualTensor:
    """The value of a tensor, and how it moves with what `make_dual` has made.

    >>> import weft as wf
    >>> unpack_dual(wf.ones(2)).tangent is None
    True
    """
    lazy = lazy_of(tensor)
    if not _open.levels or not lazy.tracked:
        return UnpackedDualTensor(tensor, None)
    moves, past = _level("unpack_dual", level).moves, history([lazy])
    xs = [x for x in moves if x in past.values]
    if not xs:
        return UnpackedDualTensor(tensor, None)
    primal = lazy if is_differentiated(past, xs) else untracked(lazy)
    tangents = [moves[x] for x in xs]
    if lazy in moves:
        tangent = tensor_of(moves[lazy])
    else:
        pushed = push((lazy,), xs, tangents, past, _recorded(past, xs, tangents))[0]
        tangent = wrap(pushed, tensor)
    return UnpackedDualTensor(tensor if primal is lazy else wrap(primal, tensor), tangent)


def _recorded(past: History, xs: list[Lazy], tangents: list[Lazy]) -> bool:
    """Whether someone may differentiate the tangent."""
    known = is_differentiated(past, xs) or any([t.tracked for t in tangents])
    return trace.now.grad_mode and known
