"""custom_vjp: a function with a custom gradient."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from weft.eager.record.pending.lazy import Lazy
from weft.eager.record.pending.state import trace
from weft.eager.tensor.autograd.tracing import Traced, subgraph_plan, trace_tensors
from weft.eager.tensor.dispatch import cast, lazy_of
from weft.errors import GradientError, WeftError
from weft.func.function import DATA, Arguments, Function, take_apart, trace_function
from weft.func.tree import Tree, flatten
from weft.ir.node import TensorType, Value
from weft.ir.shape import known
from weft.ops.call import Subgraph, inline, trace_closure
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
        outside: the places among the inputs of the values from outside that each of both reads.
    """

    forward: Subgraph
    backward: Subgraph
    results: int
    given: tuple[bool, ...]
    outside: tuple[tuple[int, ...], tuple[int, ...]]

    def __call__(
        self, gs: Sequence[Any], ys: Sequence[Value], xs: Sequence[Value]
    ) -> list[Value | None]:
        theirs, ours = [[xs[i] for i in places] for places in self.outside]
        residuals = inline(self.forward, [*xs[: len(self.given)], *theirs])[self.results :]
        cotangents = [_zeros(y) if g is None else g for g, y in zip(gs, ys, strict=True)]
        found = iter(inline(self.backward, [*residuals, *cotangents, *ours]))
        own = [next(found) if given else None for given in self.given]
        rest = xs[len(own) :]  # zeros, so that a gradient that is asked of them raises
        return [*own, *[_zeros(x) if x.dtype.is_inexact else None for x in rest]]


@dataclass(frozen=True)
class _Refusing:
    """The gradient rule of a function whose own rule raises this error: asking for it does."""

    kind: type[Exception]
    arguments: tuple[Any, ...]

    def __call__(self, gs: Sequence[Any], ys: Sequence[Value], xs: Sequence[Value]) -> Any:
        raise self.kind(*self.arguments)


_refusing: Final = weakref.WeakSet[Lazy]()


def refuses(x: Lazy) -> bool:
    """Whether a value is the result of a function whose gradient rule raises."""
    return x in _refusing


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
        """Call the function. An error that `fwd` or `bwd` raises is raised with the gradient.

        Raises:
            GradientError: `defvjp` was not called, or `bwd` returned a wrong result.
            TracerError: a function reads the value of an argument.
        """
        if self._forward is None or self._backward is None:
            raise GradientError.here(f"custom_vjp: call {self.__name__}.defvjp(fwd, bwd) first")
        apart = take_apart((args, {}))
        plain = trace_function(self.function, apart, constants=True)
        try:
            forward = trace_function(self._forward, apart, constants=True)
            self._check(plain, forward)
            backward, given = _trace_backward(self._backward, forward, plain, apart, args)
        except WeftError:
            raise
        except Exception as error:  # of the rule itself: no gradient may be asked for
            function = plain.function.with_gradient(_Refusing(type(error), error.args))
            inputs = (*apart.lazies, *plain.captured)
            found = trace.now.record(subgraph_plan(function), inputs)
            _refusing.update(found)
            return plain.result.rebuilt(found)
        traced = (plain, forward, backward)
        outside = tuple(dict.fromkeys([x for t in traced for x in t.captured]))
        places = {x: len(given) + i for i, x in enumerate(outside)}
        _, theirs, ours = [tuple([places[x] for x in t.captured]) for t in traced]
        rule = _Backward(
            forward.function, backward.function, len(plain.function.outputs), given, (theirs, ours)
        )
        inner = {*plain.captured, *forward.captured}
        function = plain.function.reading([x.type for x in outside[len(plain.captured) :]])
        passed = [_without_gradient(x) if x in inner else x for x in outside]
        plan = subgraph_plan(function.with_gradient(rule))
        return plain.result.rebuilt(trace.now.record(plan, (*apart.lazies, *passed)))

    def _check(self, plain: Traced, forward: Traced) -> None:
        if any([t.result.written or t.changed for t in (plain, forward)]):
            raise GradientError.here(
                "custom_vjp: expected functions that change no tensor in place but their own; "
                "change a clone()"
            )
        results = len(plain.function.outputs)
        pair: Tree = forward.result.tree
        if pair.kind is not tuple or len(pair.children) != 2 or pair.children[0].size != results:
            raise GradientError.here("custom_vjp: expected fwd to return (result, residuals)")


def _refused(gs: Sequence[Any], ys: Sequence[Value], xs: Sequence[Value]) -> list[Value | None]:
    raise GradientError.here(
        "custom_vjp: a gradient is asked of a tensor that its functions use from outside; pass "
        "that as an argument"
    )


def _same(x: Value) -> Value:
    return x


def _without_gradient(x: Lazy) -> Lazy:
    """A value whose gradient raises."""
    if not x.type.dtype.is_inexact:
        return x
    same = trace_closure(_same, [x.type])[0].with_gradient(_refused)
    return trace.now.record(subgraph_plan(same), (x,))[0]


def _trace_backward(
    bwd: Function, forward: Traced, plain: Traced, apart: Arguments, args: Sequence[Any]
) -> tuple[Traced, tuple[bool, ...]]:
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
    return traced, traced.result


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
        apart = take_apart(argument)
        leaves, tree = flatten(part)
        for g, place in zip(_aligned(tree, apart.tree, iter(leaves)), apart.static, strict=True):
            if place is not DATA:
                continue
            kind = next(kinds)
            given.append(g is not None)
            if g is not None:
                lazies.append(cast(lazy_of(g, kind.dtype), kind.dtype))
    return lazies, tuple(given)


def _aligned(part: Tree, whole: Tree, leaves: Iterator[Any]) -> Iterator[Any]:
    """For each leaf of an argument, that of its cotangent: `None` stands for a whole part."""
    if not part.size:
        yield from [None] * whole.size
    elif whole.kind is None:
        yield next(leaves)
    else:
        for inner, child in zip(part.children, whole.children, strict=True):
            yield from _aligned(inner, child, leaves)


def custom_vjp(fun: Function) -> CustomVjp:
    """Give a function a custom gradient.

    The functions may use tensors from outside, which get no gradient.

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
