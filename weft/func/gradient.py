"""Reverse and forward derivatives of functions of tensors, in any order of nesting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.eager.record.call.plan import op_plan
from weft.eager.record.pending.lazy import Lazy
from weft.eager.record.pending.state import trace
from weft.eager.tensor.autograd.anomaly import check_gradients
from weft.eager.tensor.autograd.backward import history, pull, zeros
from weft.eager.tensor.autograd.forward_mode import push
from weft.eager.tensor.dispatch import cast, lazy_of, wrap
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.view.inplace import rewrite
from weft.errors import DTypeError, GradientError, ShapeError, TreeError
from weft.func.level import Variables, is_differentiated, kind_of_leaf
from weft.func.transformed import transformed
from weft.func.tree import flatten, leaves_like
from weft.ir.shape import show, size
from weft.ops.declaration import REGISTRY
from weft.ops.refusal import check_function

__all__ = [
    "elementwise_grad", "grad", "grad_and_value", "jvp", "linearize", "make_jvp", "make_vjp",
    "value_and_grad", "vjp",
]  # fmt: skip

Function = Callable[..., Any]
Argnums = int | Sequence[int]
_ARRAYS = (Handle, np.ndarray, np.generic, int, float, complex)
_STRICT = ("vjp", "jvp", "jacobian", "linearize")  # in which other results are mistakes


class Run:
    """One run of a function on variables: its result and its history.

    Args:
        argnums: the positional arguments to differentiate by; `None` for all.
        has_aux: the function returns a pair; the second item is passed through.
    """

    def __init__(
        self, function: Function, args: Sequence[Any], kwargs: dict[str, Any],
        argnums: Argnums | None, has_aux: bool, what: str,
    ) -> None:  # fmt: skip
        check_function(function, what)
        count, self.before = len(args), trace.now.begin_derivative()
        chosen = range(count) if argnums is None else positions(argnums, count, what)
        self.variables = Variables([args[i] for i in chosen], what)
        changed = list(args)
        for i, x in zip(chosen, self.variables.arguments, strict=True):
            changed[i] = x
        with self.variables.differentiated():
            found = function(*changed, **kwargs)
            self.aux = None
            if has_aux:
                found, self.aux = _pair(found, what)
            leaves, self.tree = flatten(found)
            if what in _STRICT:
                _check_tensors(leaves, what)
            self.ys = tuple([lazy_of(y) for y in leaves])
            self.kinds = tuple([kind_of_leaf(y) for y in leaves])
        changes = self.variables.changed()
        self.past = history([*self.ys, *[y for _, y in changes]])
        self.depends = is_differentiated(self.past, self.variables.values)
        # Under no_grad, the result is a constant for outer derivatives.
        self.outer = trace.now.grad_mode and self.depends
        self.single = isinstance(argnums, int)
        for tensor, y in changes:
            rewrite(tensor, self.outside(y), what)

    def pull(self, cotangents: Sequence[Lazy | None]) -> list[Lazy]:
        """Cotangents of the variables from those of the results."""
        xs = self.variables.values
        starts = [(y, g) for y, g in zip(self.ys, cotangents, strict=True) if y.tracked]
        if not starts:
            return [zeros(x) for x in xs]
        found = pull(starts, xs, self.past, self._recorded(cotangents))
        check_gradients(found)
        self._end()
        return found

    def push(self, tangents: Sequence[Any]) -> Any:
        """The tangents of the results for `tangents` of the variables, in their structure."""
        xs = self.variables.values
        leaves = leaves_like(self.variables.tree, list(tangents))
        moves = [_cotangent(x, t) for x, t in zip(xs, leaves, strict=True)]
        found = push(self.ys, xs, moves, self.past, self._recorded(moves))
        self._end()
        return self.wrapped(found)

    def _end(self) -> None:
        if not (self.outer or trace.now.depth):
            trace.now.end_derivative(*self.before)

    def _recorded(self, directions: Sequence[Lazy | None]) -> bool:
        """Whether results of the vjp or jvp of these may be differentiated again."""
        return trace.now.grad_mode and (self.depends or _any_tracked(directions))

    def arguments(self, lazies: Sequence[Lazy]) -> Any:
        """Values in the structure of the arguments; for a single argnum, of that argument."""
        kinds = self.variables.kinds
        found = self.variables.tree.build(list(map(wrap, lazies, kinds)))
        return found[0] if self.single else tuple(found)

    def result(self) -> Any:
        """The result of the function, as seen from outside."""
        return self.wrapped([self.outside(y) for y in self.ys])

    def wrapped(self, lazies: Sequence[Lazy]) -> Any:
        """Values in the structure of the result."""
        return self.tree.build(list(map(wrap, lazies, self.kinds)))

    def outside(self, y: Lazy) -> Lazy:
        """A result without the variables in its history, unless an outer derivative needs them."""
        if not y.tracked or self.outer:
            return y if y.owner is None else same(y)
        return untracked(y)


def _check_tensors(leaves: Sequence[Any], what: str) -> None:
    """Check that a function returned tensors or numbers, at least one, and nothing else.

    Raises:
        GradientError: it did not.
    """
    wrong = [type(y).__name__ for y in leaves if not isinstance(y, _ARRAYS)]
    if wrong or not leaves:
        raise GradientError.here(
            f"{what}: expected the function to return tensors, got {', '.join(wrong) or 'nothing'}"
        )


def _pair(found: Any, what: str) -> tuple[Any, Any]:
    """The pair returned by a function with `has_aux`."""
    if not isinstance(found, tuple) or len(found) != 2:  # pyright: ignore[reportUnknownArgumentType]
        raise GradientError.here(
            f"{what}: has_aux: expected the function to return a tuple of a result and what goes "
            f"with it, got {type(found).__name__}"
        )
    return found  # pyright: ignore[reportUnknownVariableType]


def positions(argnums: Argnums, count: int, what: str) -> list[int]:
    """The chosen positional arguments, counted from the front, without duplicates.

    Raises:
        GradientError: none, one twice, one out of range, or no integers.
    """
    chosen: list[Any] = list(argnums) if isinstance(argnums, Sequence) else [argnums]
    if not chosen or any(not isinstance(i, int) for i in chosen):
        raise GradientError.here(
            f"{what}: argnums: expected an integer or several, got {argnums!r}"
        )
    if any(not -count <= i < count for i in chosen):
        raise GradientError.here(
            f"{what}: expected argnums below {count}, the number of positional arguments, got "
            f"{argnums}"
        )
    found = [i % count for i in chosen]
    if len(set(found)) != len(found):
        raise GradientError.here(f"{what}: expected different argnums, got {argnums}")
    return found


def _any_tracked(lazies: Sequence[Lazy | None]) -> bool:
    return any(x is not None and x.tracked for x in lazies)


def same(x: Lazy) -> Lazy:
    """The identity."""
    return trace.now.record(op_plan(REGISTRY["identity"], (x.type,), {}), (x,))[0]


def untracked(x: Lazy) -> Lazy:
    """The value, detached."""
    before, trace.now.grad_mode = trace.now.grad_mode, False
    try:
        return same(x)
    finally:
        trace.now.grad_mode = before


def _scalar(run: Run, what: str) -> None:
    for y in run.ys:
        if not y.type.dtype.is_inexact:
            raise DTypeError.here(
                f"{what}: expected the function to return a real number, got {y.type.dtype}, which "
                f"has no derivative"
            )
        if y.type.dtype.is_complex:
            raise DTypeError.here(
                f"{what}: expected the function to return a real number, got {y.type.dtype}; take "
                f"its real or imaginary part, or use vjp"
            )
    if len(run.ys) != 1 or size(run.ys[0].type.shape) != 1:
        shapes = ", ".join(show(y.type.shape) for y in run.ys)
        raise GradientError.here(
            f"{what}: expected the function to return one scalar, got {shapes}; use vjp or "
            f"jacobian for more"
        )


def grad(fun: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """The gradient of a function that returns a scalar, as a function of the same arguments.

    Args:
        argnums: the positional argument to differentiate by, or several; each may be nested.
        has_aux: `fun` returns (scalar, anything), and the result is (gradient, anything).

    Returns:
        A function that returns gradients in the structure of the argument, or a tuple of them.

    Raises:
        GradientError: the result is no scalar, or an argument is not floating-point.
        DTypeError: the result is not floating-point.

    >>> import weft as wf
    >>> grad(grad(lambda x: x * x * x))(wf.tensor(2.0)).item()
    12.0
    """
    both = _value_and_grad(fun, argnums, has_aux, "grad")

    @transformed(fun, "grad")
    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, found = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradient


def value_and_grad(fun: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """A function that returns both the result of `fun` and its gradient; see `grad`.

    >>> import weft as wf
    >>> y, g = value_and_grad(lambda x: (x * x).sum())(wf.tensor([1.0, 2.0]))
    >>> y.item(), g.tolist()
    (5.0, [2.0, 4.0])
    """
    return _value_and_grad(fun, argnums, has_aux, "value_and_grad")


def _value_and_grad(fun: Function, argnums: Argnums, has_aux: bool, what: str) -> Function:
    @transformed(fun, what)
    def both(*args: Any, **kwargs: Any) -> Any:
        run = Run(fun, args, kwargs, argnums, has_aux, "grad")
        _scalar(run, "grad")
        found = run.arguments(run.pull([None]))
        value = run.result()
        return ((value, run.aux) if has_aux else value), found

    return both


def grad_and_value(fun: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """PyTorch's form of `value_and_grad`: the gradient comes first."""
    both = _value_and_grad(fun, argnums, has_aux, "grad_and_value")

    @transformed(fun, "grad_and_value")
    def turned(*args: Any, **kwargs: Any) -> Any:
        value, found = both(*args, **kwargs)
        return found, value

    return turned


def elementwise_grad(fun: Function, argnums: Argnums = 0) -> Function:
    """The derivative of an elementwise function: the gradient of its sum."""

    @transformed(fun, "elementwise_grad")
    def derivative(*args: Any, **kwargs: Any) -> Any:
        run = Run(fun, args, kwargs, argnums, False, "elementwise_grad")
        return run.arguments(run.pull([None] * len(run.ys)))

    return derivative


def vjp(fun: Function, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The result of `fun`, and a function from its cotangents to those of all arguments.

    Returns:
        (result, pull) or, with `has_aux`, (result, pull, aux); `pull(g)` returns a tuple.

    >>> import weft as wf
    >>> y, pull = vjp(lambda x: x * x, wf.tensor([1.0, 2.0]))
    >>> pull(wf.tensor([1.0, 10.0]))[0].tolist()
    [2.0, 40.0]
    """
    run = Run(fun, primals, {}, None, has_aux, "vjp")

    def pull_back(cotangents: Any) -> Any:
        gs = [
            _cotangent(y, g) for y, g in zip(run.ys, leaves_like(run.tree, cotangents), strict=True)
        ]
        return run.arguments(run.pull(gs))

    return (run.result(), pull_back, run.aux) if has_aux else (run.result(), pull_back)


def make_vjp(fun: Function, argnum: Argnums = 0) -> Function:
    """autograd's form of `vjp`: a function that returns (pull, result) for one argument."""

    @transformed(fun, "make_vjp")
    def made(*args: Any, **kwargs: Any) -> Any:
        run = Run(fun, args, kwargs, argnum, False, "make_vjp")

        def pull_back(cotangents: Any) -> Any:
            leaves = leaves_like(run.tree, cotangents)
            gs = [_cotangent(y, g) for y, g in zip(run.ys, leaves, strict=True)]
            return run.arguments(run.pull(gs))

        return pull_back, run.result()

    return made


def _cotangent(y: Lazy, given: Any) -> Lazy:
    g = cast(lazy_of(given, y.type.dtype), y.type.dtype)
    if g.type.shape != y.type.shape:
        raise ShapeError.here(
            f"vjp: expected a cotangent of shape {show(y.type.shape)}, got {show(g.type.shape)}"
        )
    return g


# Forward mode


def jvp(
    fun: Function, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False, *,
    strict: bool = False,
) -> tuple[Any, ...]:  # fmt: skip
    """The result of `fun`, and its tangent for `tangents` of the arguments.

    Unlike in PyTorch, what `fun` computes under `no_grad()` has no tangent.

    Args:
        primals, tangents: tuples (or lists) of equal structure, one entry per argument.
        strict: whether it is an error if a result does not depend on the arguments.

    Raises:
        TreeError: `primals` and `tangents` differ in structure.

    >>> import weft as wf
    >>> y, dy = jvp(lambda x: x * x, (wf.tensor(3.0),), (wf.tensor(1.0),))
    >>> y.item(), dy.item()
    (9.0, 6.0)
    """
    for given in (primals, tangents):
        if type(given) is not type(primals) or not isinstance(given, tuple | list) or not given:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TreeError.here(
                "jvp: expected tuples of primals and of tangents, one entry an argument, got "
                f"{type(primals).__name__} and {type(tangents).__name__}"
            )
    if flatten(primals)[1] != flatten(tangents)[1]:
        raise TreeError.here(
            "jvp: expected primals and tangents of the same structure, got "
            f"{flatten(primals)[1]} and {flatten(tangents)[1]}"
        )
    run = Run(fun, primals, {}, None, has_aux, "jvp")
    if strict and not all(y.tracked for y in run.ys):
        raise GradientError.here("jvp: strict: a result does not depend on the arguments")
    result = run.push(tangents)
    return (run.result(), result, run.aux) if has_aux else (run.result(), result)


def linearize(fun: Function, *primals: Any) -> tuple[Any, Function]:
    """The result of `fun`, and a function from tangents of the arguments to its tangent.

    >>> import weft as wf
    >>> y, push = linearize(lambda x: x * x, wf.tensor(3.0))
    >>> y.item(), push(wf.tensor(1.0)).item(), push(wf.tensor(2.0)).item()
    (9.0, 6.0, 12.0)
    """
    run = Run(fun, primals, {}, None, False, "linearize")

    def along(*tangents: Any) -> Any:
        return run.push(tangents)

    return run.result(), along


def make_jvp(fun: Function, argnum: int = 0) -> Function:
    """autograd's form of `jvp`: returns a function from a tangent to (result, tangent)."""

    def made(*args: Any, **kwargs: Any) -> Any:
        def along(tangent: Any) -> Any:
            def of_one(x: Any) -> Any:
                return fun(*args[:argnum], x, *args[argnum + 1 :], **kwargs)

            return jvp(of_one, (args[argnum],), (tangent,))

        return along

    return made
