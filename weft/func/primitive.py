"""Functions written in NumPy, with custom gradients."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from weft.eager.record.call.interned_type import intern
from weft.eager.record.call.plan import Plan, plan_of
from weft.eager.record.pending.access import array_of
from weft.eager.record.pending.lazy import Lazy, known
from weft.eager.record.pending.state import trace
from weft.eager.tensor.autograd.tracing import trace_tensors
from weft.eager.tensor.dispatch import lazy_of, wrap
from weft.eager.tensor.handle import Handle
from weft.errors import GradientError, TracerError, UndefinedRuleError
from weft.func.function import take_apart
from weft.ir.dtype import as_dtype
from weft.ir.node import TensorType, Value
from weft.ops.call import inline
from weft.ops.declaration import REGISTRY

__all__ = ["defvjp", "primitive"]

VjpMaker = Callable[..., Callable[[Any], Any]]
_HOST: Final = REGISTRY["host_call"]


class Primitive:
    """A function of arrays, run at once, with a gradient from `defvjp`."""

    __name__: str

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.makers: dict[int, VjpMaker | None] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the result from the arguments' values; returns tensors.

        Raises:
            TracerError: an argument has no value, because a function is being traced.
        """
        apart = take_apart(args)
        arrays = [array_of(x) for x in apart.lazies]
        result = np.asarray(self.function(*apart.with_tensors(arrays), **kwargs))
        return self._recorded(apart.lazies, result, args, kwargs)

    def _recorded(
        self, lazies: tuple[Lazy, ...], result: Any, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        """The result as a tensor, recorded for autograd."""
        like = next((a for a in args if isinstance(a, Handle)), None)
        kind = intern(as_dtype(result.dtype), result.shape)
        tracked = trace.now.grad_mode and kind.dtype.is_inexact and any(x.tracked for x in lazies)
        if not tracked:
            return wrap(known(result, kind), like)
        rule = _Rule(self, args, kwargs)
        lazy = trace.now.record(_plan(self, rule, lazies, kind), lazies)[0]
        trace.now.pending.pop()  # its value is known, so there is nothing to compute
        lazy.array = result
        return wrap(lazy, like)


@dataclass(frozen=True)
class _Once:
    """Refuses the gradient of a gradient rule that is called with arrays."""

    name: str

    def __call__(self, *_: Any) -> list[Value | None]:
        raise UndefinedRuleError.here(
            f"{self.name}: its gradient rule is called with values, because it is written in NumPy "
            "or calls a primitive, so it has no derivatives itself: neither second ones nor those "
            f"of forward mode; write it with tensor operations"
        )


class _Rule:
    """The gradient of one call, for graph values."""

    def __init__(self, owner: Primitive, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        self.owner = owner
        self.apart = take_apart(args)
        self.kwargs = kwargs
        self.positions = [
            i for i, a in enumerate(args) for _ in take_apart(a).lazies
        ]  # the argument of each tensor

    def __call__(self, gs: Any, ys: Any, *xs: Value) -> list[Value | None]:
        g, y = gs[0], ys[0]
        return [self._pull(i, g, y, xs) if x.dtype.is_inexact else None for i, x in enumerate(xs)]

    def _pull(self, i: int, g: Value, y: Value, xs: Sequence[Value]) -> Value | None:
        position = self.positions[i]
        if position not in self.owner.makers:
            raise UndefinedRuleError.here(
                f"{self.owner.__name__}: has no gradient by argument {position}; say one with "
                f"defvjp"
            )
        maker = self.owner.makers[position]
        if maker is None:
            return None

        def run(tracers: tuple[Lazy, ...]) -> tuple[Sequence[Lazy], None]:
            args = self.apart.with_tensors(list(map(wrap, tracers[2:], self.apart.likes)))
            found = maker(wrap(tracers[1]), *args, **self.kwargs)(wrap(tracers[0]))
            return [lazy_of(found)], None

        types = [v.type for v in (g, y, *xs)]
        try:
            traced = trace_tensors(run, types, constants=True)
        except TracerError:  # it is written in NumPy, so it is called with arrays
            return self._called(maker, g, y, xs, i)
        if traced.captured:
            raise GradientError.here(
                f"{self.owner.__name__}: expected a gradient rule that uses its arguments only, "
                f"but it uses tensors that need gradients themselves"
            )
        return inline(traced.function, [g, y, *xs])[0]

    def _called(self, maker: VjpMaker, g: Value, y: Value, xs: Sequence[Value], i: int) -> Value:
        def call(g: Any, y: Any, *arrays: Any) -> Any:
            found = maker(y, *self.apart.with_tensors(arrays), **self.kwargs)(g)
            return np.asarray(found, xs[i].dtype.numpy)

        kind = xs[i].type
        return _HOST.all(
            g, y, *xs, function=call, dtypes=(kind.dtype,), shapes=(kind.shape,),
            gradient=_Once(self.owner.__name__),
        )[0]  # fmt: skip


def _plan(owner: Primitive, rule: _Rule, lazies: Sequence[Lazy], kind: TensorType) -> Plan:
    """A Python call with this gradient; every call has its own plan."""

    def call(*arrays: Any) -> Any:
        return np.asarray(owner.function(*rule.apart.with_tensors(arrays), **rule.kwargs))

    def expand(*values: Value) -> Sequence[Value]:
        return _HOST.all(
            *values, function=call, dtypes=(kind.dtype,), shapes=(kind.shape,), gradient=rule
        )

    return plan_of(owner.__name__, [x.type for x in lazies], (kind,), expand)


def primitive(fun: Callable[..., Any]) -> Primitive:
    """Turn a function written in NumPy into one of tensors; set its gradient with `defvjp`.

    It reads the values of its arguments, so it runs at once and cannot be traced.

    >>> import numpy as np
    >>> import weft as wf
    >>> @primitive
    ... def cubed(x):
    ...     return np.power(x, 3)
    >>> defvjp(cubed, lambda ans, x: lambda g: g * 3 * x * x)
    >>> x = wf.tensor([1.0, 2.0], requires_grad=True)
    >>> cubed(x).sum().backward()
    >>> x.grad.tolist()
    [3.0, 12.0]
    """
    return Primitive(fun)


def defvjp(
    fun: Primitive, *vjpmakers: VjpMaker | None, argnums: Sequence[int] | None = None
) -> None:
    """Set the gradient of a primitive.

    Args:
        vjpmakers: for each argument a function from (answer, *arguments) to a function from the
            answer's cotangent to the argument's, or `None`. Rules written with tensors can be
            differentiated again, rules in NumPy cannot.
        argnums: the arguments that they are for; by default the first ones.
    """
    positions = range(len(vjpmakers)) if argnums is None else argnums
    fun.makers.update(zip(positions, vjpmakers, strict=True))
