"""Results whose differentiation raises: `once_differentiable`, and functions without a gradient."""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

from weft.eager.record.pending.state import trace
from weft.eager.tensor.autograd.custom_function import Context, Function
from weft.eager.tensor.dispatch import kind_of, lazy_of, recorded
from weft.eager.tensor.handle import Handle
from weft.errors import GradientError, UndefinedRuleError
from weft.ir.node import Value, at_user_line
from weft.ir.shape import known
from weft.ops.boundary.host import call
from weft.ops.boundary.routine import routine


def once_differentiable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a `backward` that is not differentiable, for example because it uses NumPy.

    Differentiating its results raises `GradientError` instead of treating them as constants.
    """

    @functools.wraps(function)
    def once(context: Context, *gs: Any) -> Any:
        now, before = trace.now, trace.now.grad_mode
        now.grad_mode = False
        try:
            found = function(context, *gs)
        finally:
            now.grad_mode = before
        tracked = [g for g in gs if isinstance(g, Handle) and g.lazy.tracked]
        if not tracked:
            return found
        results = found if isinstance(found, tuple) else (found,)
        text = (
            "backward: a function marked with @once_differentiable cannot be differentiated twice"
        )
        ends = [x if x is None else _End.apply(GradientError, text, x, *tracked) for x in results]
        return tuple(ends) if isinstance(found, tuple) else ends[0]

    return once


def undefined(name: str, y: Any, x: Any) -> Any:
    """`x` as a result of `name`: a backward pass through it raises instead of stopping silently."""
    if not (trace.now.grad_mode and isinstance(x, Handle) and x.lazy.tracked):
        return y
    text = f"{name}: has no gradient; detach() its input"
    if trace.now.depth:  # raised if the traced function is ever differentiated
        return _end.on(kind_of(y), lazy_of(y), x.lazy, text=text + at_user_line())
    return _End.apply(UndefinedRuleError, text, y, x)


@recorded
def _end(y: Value, x: Value, *, text: str) -> Value:
    kind = (y.dtype, known(y.shape))
    return call(_first, y, x, types_of=[kind], gradient=partial(_refuse, text), wide=True)[0]


@routine
def _first(y: Any, x: Any) -> Any:
    return y


def _refuse(text: str, *_: Any) -> NoReturn:
    raise UndefinedRuleError(text)


class _End(Function):
    """A value with an unknown dependence on others."""

    @staticmethod
    def forward(ctx: Any, error: type[Exception], text: str, x: Any, *others: Any) -> Any:
        """The value."""
        ctx.error, ctx.text = error, text + at_user_line()
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gs: Any) -> Any:
        """Refuse."""
        raise ctx.error(ctx.text)
