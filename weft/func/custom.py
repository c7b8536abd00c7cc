"""custom_vjp: a function with a custom gradient."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.eager.record.pending.lazy import Lazy
from weft.eager.record.pending.state import trace
from weft.eager.tensor.autograd.tracing import Traced, subgraph_plan, trace_tensors
from weft.eager.tensor.dispatch import cast, lazy_of
from weft.errors import GradientError
from weft.func.function import Arguments, Function, take_apart, trace_function
from weft.func.tree import Tree, flatten
from weft.ir.node import TensorType, Value
from weft.ir.shape import known
from weft.ops.call import Subgraph, inline
from weft.ops.declaration import constant_of
from weft.ops.refusal import check_function


@dataclass(frozen=True)
class _Backward:
    """A gradient rule for graph values, equal if its functions are.

    Args:
        forward: maps the inputs to the results and the residuals.
        backward: maps the residuals and the cotangents of the results to those of the inputs.
        results: the number of results.
        given: the inputs with a cotangent.
    """

    forward: Subgraph
    backward: Subgraph
    results: int
    given: tuple[bool, ...]

    def __call__(
        self, gs: Sequence[Any], ys: Sequence[Value], xs: Sequence[Value]
    ) -> list[Value | None]:
        residuals = inline(self.forward, xs[: len(self.forward.inputs)])[self.results :]
        cotangents = [_zeros(y) if g is None else g for g, y in zip(gs, ys, strict=True)]
        found = iter(inline(self.backward, [*residuals, *cotangents]))
        return [next(found) if given else None for given in self.given]


def _zeros(y: Value) -> Value:
    return constant_of(np.zeros(known(y.shape), y.dtype.numpy))


class CustomVjp:
    """A function with the gradient set by `defvjp`; see `custom_vjp`."""

    __name__: str

    def __init__(self, function: Function) -> None:
        check_function(function, "custom_vjp")
        functools.update_wrapper(self, function)
        self.function = function
        self._forward: Function | None = None
        self._backward: Function | None = None

    def defvjp(self, fwd: Function, bwd: Function) -> None:
        """Set the gradient.

        Args:
            fwd: maps the arguments to (result, residuals), where residuals are nested tensors.
            bwd: maps (residuals, cotangent of the result) to a tuple with the cotangent of each
                argument, or `None`.
        """
        self._forward, self._backward = fwd, bwd

    def __call__(self, *args: Any) -> Any:
        """Call the function.

        Raises:
            GradientError: `defvjp` was not called, or `bwd` returned a wrong result.
            TracerError: a function reads the value of an argument.
        """
        if self._forward is None or self._backward is None:
            raise GradientError.here(f"custom_vjp: call {self.__name__}.defvjp(fwd, bwd) first")
        apart = take_apart((args, {}))
        plain = trace_function(self.function, apart, constants=True)
        forward = trace_function(self._forward, apart, constants=True)
        rule = self._rule(apart, plain, forward, args)
        function = plain.function.with_gradient(rule)
        found = trace.now.record(subgraph_plan(function), (*apart.lazies, *plain.captured))
        return plain.result.rebuilt(found)

    def _rule(
        self, apart: Arguments, plain: Traced, forward: Traced, args: Sequence[Any]
    ) -> _Backward:
        if any([t.result.written or t.changed for t in (plain, forward)]):
            raise GradientError.here(
                "custom_vjp: expected functions that change no tensor in place but their own; "
                "change a clone()"
            )
        if forward.captured or plain.captured:
            raise GradientError.here(
                "custom_vjp: expected functions of their arguments only, but they use tensors "
                "from outside; pass those as arguments"
            )
        results = len(plain.function.outputs)
        pair: Tree = forward.result.tree
        if pair.kind is not tuple or len(pair.children) != 2 or pair.children[0].size != results:
            raise GradientError.here("custom_vjp: expected fwd to return (result, residuals)")
        assert self._backward is not None
        backward, given = _trace_backward(self._backward, forward, plain, apart, args)
        return _Backward(forward.function, backward, results, given)


def _trace_backward(
    bwd: Function, forward: Traced, plain: Traced, apart: Arguments, args: Sequence[Any]
) -> tuple[Subgraph, tuple[bool, ...]]:
    """`bwd` as a graph, and the tensors among the arguments for which it returns a cotangent."""
    outputs = forward.function.output_types
    count = len(plain.function.outputs)

    def run(tracers: tuple[Lazy, ...]) -> tuple[Sequence[Lazy], tuple[bool, ...]]:
        residuals, cotangents = tracers[: len(outputs) - count], tracers[len(outputs) - count :]
        # the residuals in their structure: the second item of fwd's result
        whole = forward.result.rebuilt([*cotangents, *residuals])
        found = bwd(whole[1], plain.result.rebuilt(cotangents))
        return _cotangents(found, args, [x.type for x in apart.lazies])

    traced = trace_tensors(run, [*outputs[count:], *outputs[:count]], constants=True)
    if traced.captured:
        raise GradientError.here("custom_vjp: expected bwd to use its arguments only")
    return traced.function, traced.result


def _cotangents(
    found: Any, args: Sequence[Any], types: Sequence[TensorType]
) -> tuple[list[Lazy], tuple[bool, ...]]:
    """A cotangent for each tensor of the arguments, if there is one."""
    parts = list(found) if isinstance(found, tuple | list) else [found]
    if len(parts) != len(args):
        raise GradientError.here(
            f"custom_vjp: expected bwd to return {len(args)} cotangents, one an argument, got "
            f"{len(parts)}"
        )
    lazies: list[Lazy] = []
    given: list[bool] = []
    kinds = iter(types)
    for part, argument in zip(parts, args, strict=True):
        count = len(take_apart(argument).lazies)
        leaves = [None] * count if part is None else flatten(part)[0]
        for g in leaves:
            kind = next(kinds)
            given.append(g is not None)
            if g is not None:
                lazies.append(cast(lazy_of(g, kind.dtype), kind.dtype))
    return lazies, tuple(given)


def custom_vjp(fun: Function) -> CustomVjp:
    """Give a function a custom gradient.

    >>> import weft as wf
    >>> @custom_vjp
    ... def clipped(x):
    ...     return x * 1.0
    >>> clipped.defvjp(lambda x: (x * 1.0, None), lambda _, g: (wf.clip(g, -1.0, 1.0),))
    >>> x = wf.tensor([1.0, 2.0], requires_grad=True)
    >>> (clipped(x) * wf.tensor([0.5, 9.0])).sum().backward()
    >>> x.grad.tolist()
    [0.5, 1.0]
    """
    return CustomVjp(fun)
