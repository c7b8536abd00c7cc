"""scan, while_loop, fori_loop, map: loops inside the program."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from weft.eager.record.call.interned_type import intern
from weft.eager.record.memory.array_value import leaf
from weft.eager.record.pending.lazy import Lazy
from weft.eager.tensor.dispatch import lazy_of, record
from weft.eager.tensor.handle import Handle
from weft.errors import ArgumentError, DTypeError, ShapeError, TreeError
from weft.func.control.body import (
    Argument,
    Body,
    Nest,
    agree,
    body_of,
    described,
    gives_way,
    nest,
    tensors,
    union,
)
from weft.func.function import Function
from weft.func.tree import Tree
from weft.func.vmap import vmap
from weft.ir.dtype import bool_, uint64
from weft.ir.node import TensorType, Value
from weft.ir.shape import known, show
from weft.ops.call import Subgraph
from weft.ops.call import trace as traced
from weft.ops.declaration import REGISTRY

__all__ = ["fori_loop", "map", "scan", "while_loop"]

_SCAN: Final = REGISTRY["scan"]
_WHILE: Final = REGISTRY["while_loop"]
MOST_TRACES: Final = 8
"""How often a body is traced until the types of its carry no longer change; two or three do."""
_ITERATION_STRIDE: Final = np.uint64(0x9E3779B97F4A7C15)
"""The distance of the random counters of two iterations: 2**64 over the golden ratio.

It keeps all iterations far from each other and from calls around the loop.
"""


def scan(
    f: Function, init: Any, xs: Any = None, length: int | None = None, reverse: bool = False,
    unroll: int | bool = 1, *, rematerialize: int = 0,
) -> tuple[Any, Any]:  # fmt: skip
    """Call `carry, y = f(carry, x)` for each slice of `xs`, in order.

    `f` is traced once and runs in the program. It may use outside tensors, with gradients, and
    change them in place. Random numbers differ from step to step.

    Args:
        init: the first carry: nested tensors, arrays and numbers.
        xs: nested tensors whose first axes have the same length; `None` with a `length` for none.
        length: the number of steps, if `xs` is `None`.
        reverse: begin with the last slice; `ys` stay in the order of `xs`.
        unroll: no effect; the compiler decides.
        rematerialize: keep the carry only every so many steps for the gradient, and recompute the
            steps between; 0 keeps what the gradient needs of every step.

    Returns:
        The last carry, and all `y` stacked along the first axis.

    Raises:
        TreeError: the carry is returned with another structure or other types.
        ShapeError: slices of different lengths, or no length.

    >>> import weft as wf
    >>> total, sums = scan(lambda c, x: (c + x, c + x), 0.0, wf.tensor([1.0, 2.0, 3.0]))
    >>> total.item(), sums.tolist()
    (6.0, [1.0, 3.0, 6.0])
    """
    return _scan("scan", f, init, xs, length, reverse, rematerialize)


def _scan(
    what: str, f: Function, init: Any, xs: Any, length: int | None, reverse: bool,
    rematerialize: int,
) -> tuple[Any, Any]:  # fmt: skip
    if rematerialize < 0:
        raise ArgumentError.here(f"{what}: rematerialize: expected 0 or more, got {rematerialize}")
    carry, mapped = nest(init, f"{what}: init"), nest(xs, f"{what}: xs")
    mapped = mapped.like(carry)
    steps = _length(what, mapped, length)
    rows = [intern(x.type.dtype, known(x.type.shape)[1:]) for x in mapped.lazies]
    slices = Argument(mapped.tree, rows, mapped.kinds, [False] * len(rows))

    def traced_for(carry: Nest) -> Body:
        return body_of(what, f, [carry.argument, slices], carry.types)

    carry, body = _converged(carry.like(mapped), traced_for)
    tree, ys = _pair(what, body)
    count = carry.tree.size
    _keeps(what, carry, tree, body)
    loop = _loop([body], body.changed)
    iterations = [_iterations(steps)] if loop.draws else []
    attrs = {
        "body": _turn(body, loop, carry.types, rows),
        "length": steps,
        "carried": count + len(loop.changed),
        "mapped": len(rows) + len(iterations),
        "reverse": bool(reverse),
        "rematerialize": rematerialize,
    }
    held = [h.lazy for h in loop.changed]
    found = record(
        _SCAN, (*carry.lazies, *held, *mapped.lazies, *iterations, *loop.captured), attrs
    )
    behind = count + len(held)
    loop.change(found[count:behind])
    last = tensors(carry.tree, found[:count], carry.kinds)
    usual = next(iter((*mapped.kinds, *carry.kinds)), Handle.default)
    kinds = [usual if k is None else k for k in body.kinds[count:]]
    return last, tensors(ys, found[behind:], kinds)


def _converged(carry: Nest, traced_for: Callable[[Nest], Body]) -> tuple[Nest, Body]:
    """The body for a carry of which Python numbers, and arrays, have become what it returns."""
    body = traced_for(carry)
    for _ in range(MOST_TRACES):
        new = _as_returned(carry, body)
        if new.types == carry.types and new.kinds == carry.kinds:
            break
        carry, body = new, traced_for(new)
    return carry, body


def _as_returned(carry: Nest, body: Body) -> Nest:
    """The carry with the types and classes that the body gives it."""
    if body.tree.size < len(carry.leaves):
        return carry
    pairs = zip(body.kinds, carry.kinds, strict=False)
    kinds = [usual if k is None else k for k, usual in pairs]
    rows = zip(carry.types, carry.weak, body.types, strict=False)
    dtypes = [new.dtype if gives_way(w, t.dtype, new.dtype) else t.dtype for t, w, new in rows]
    return carry.of_kinds(kinds).of_dtypes(dtypes)


def _length(what: str, mapped: Nest, length: int | None) -> int:
    """The number of steps.

    Raises:
        ShapeError: the length is missing or ambiguous.
    """
    if () in [x.shape for x in mapped.types]:
        raise ShapeError(f"{what}: xs: expected tensors of rank 1 or more, got a scalar")
    told = {known(t.shape)[0] for t in mapped.types}
    if length is not None:
        told.add(int(length))
    if len(told) == 1 and min(told) >= 0:
        return told.pop()
    if not told:
        raise ShapeError.here(f"{what}: expected xs or a length")
    lines = described(mapped.tree, mapped.types)
    shown = "".join([f"\n  xs{'' if line.startswith('[') else ' '}{line}" for line in lines])
    said = "" if length is None else f"\n  length {length}"
    raise ShapeError.here(f"{what}: expected one length of 0 or more, got{shown}{said}")


def _pair(what: str, body: Body) -> tuple[Tree, Tree]:
    """The structures of the new carry and of y."""
    if body.tree.kind is not tuple or len(body.tree.children) != 2:
        raise TreeError.here(
            f"{what}: expected a function{body.line} that returns a pair (carry, y), got"
            f" {', '.join(described(body.tree, body.types)) or 'nothing'}"
        )
    return body.tree.children[0], body.tree.children[1]


def _keeps(what: str, carry: Nest, tree: Tree, body: Body) -> None:
    """Refuse a body that does not return the carry as it got it."""
    text = f"{what}: expected the carry back as the function{body.line} got it (carry | result)"
    rows = zip(body.types, body.weak, carry.types, strict=False)
    types = [
        new if gives_way(w, t.dtype, new.dtype) and t.shape == new.shape else t
        for t, w, new in rows
    ]
    found = types if len(types) == tree.size else body.types[: tree.size]
    agree(text, (carry.tree, carry.types), (tree, found))


class _Loop(NamedTuple):
    """The outside values of a loop's functions.

    Attributes:
        captured: loop-invariant values.
        changed: tensors that they change in place, which are carried.
        draws: random counters, which differ in every iteration.
    """

    captured: tuple[Lazy, ...]
    changed: tuple[Handle, ...]
    draws: frozenset[Lazy]

    def held(
        self, captured: Sequence[Value], now: Sequence[Value], iteration: Value | None
    ) -> dict[Lazy, Value]:
        """The stand-ins for outside values in an iteration."""
        pairs = zip(self.captured, captured, strict=True)
        found = {
            x: v + iteration if iteration is not None and x in self.draws else v for x, v in pairs
        }
        return found | {h.lazy: v for h, v in zip(self.changed, now, strict=True)}

    def change(self, found: Sequence[Lazy]) -> None:
        """Set changed tensors to their values after the loop."""
        if self.changed:
            Handle.replace_all(self.changed, found)


def _loop(bodies: Sequence[Body], changed: tuple[Handle, ...]) -> _Loop:
    carried = {h.lazy for h in changed}
    captured = [x for x in union(*[b.captured for b in bodies]) if x not in carried]
    drawn = [x for b in bodies for x, d in zip(b.captured, b.drawn, strict=True) if d]
    return _Loop(tuple(captured), changed, frozenset(drawn))


def _iterations(steps: int) -> Lazy:
    """The increment of random counters in each iteration."""
    return leaf(np.arange(steps, dtype=np.uint64) * _ITERATION_STRIDE)


def _turn(
    body: Body, loop: _Loop, carry: Sequence[TensorType], rows: Sequence[TensorType]
) -> Subgraph:
    """A scan's body; takes carry, changed tensors, slices, iteration if needed, captured values."""
    count, held = len(carry), len(loop.changed)
    inside = [*carry, *[h.lazy.type for h in loop.changed], *rows]
    iteration = [intern(uint64, ())] if loop.draws else []

    def run(*xs: Value) -> list[Value]:
        now, slices = xs[count : count + held], xs[count + held : len(inside)]
        captured = xs[len(inside) + len(iteration) :]
        outside = loop.held(captured, now, xs[len(inside)] if iteration else None)
        found = body.apply([*xs[:count], *slices], outside, [t.dtype for t in carry])
        return [*found.result[:count], *found.changed, *found.result[count:]]

    return traced(run, [*inside, *iteration, *[x.type for x in loop.captured]])


def while_loop(
    cond_fun: Function, body_fun: Function, init_val: Any, *, maximum: int | None = None
) -> Any:
    """Call `val = body_fun(val)` while `cond_fun(val)` is true.

    Both are traced once and run in the program, as with `scan`.

    Args:
        init_val: nested tensors, arrays and numbers.
        maximum: the maximal number of iterations.

    Raises:
        TreeError: `body_fun` returns another structure, or other types.
        DTypeError: `cond_fun` does not return one bool.
        OutOfMemoryError: the gradient keeps more of all iterations than fits in memory.

    >>> import weft as wf
    >>> while_loop(lambda x: x < 100, lambda x: x * 2, wf.tensor(3)).item()
    192
    """
    if maximum is not None and maximum < 0:
        raise ArgumentError.here(f"while_loop: maximum: expected 0 or more, got {maximum}")
    return _while_loop("while_loop", cond_fun, body_fun, init_val, maximum)


def _while_loop(
    what: str, cond_fun: Function, body_fun: Function, init_val: Any, maximum: int | None
) -> Any:
    carry = nest(init_val, f"{what}: init_val")

    def traced_for(carry: Nest) -> Body:
        return body_of(what, body_fun, [carry.argument], carry.types)

    carry, body = _converged(carry, traced_for)
    condition = body_of(what, cond_fun, [carry.argument])
    _checked(condition)
    _keeps(what, carry, body.tree, body)
    loop = _loop([condition, body], body.changed)
    held = [h.lazy for h in loop.changed]
    iteration = [leaf(np.zeros((), np.uint64))] if loop.draws else []
    inits = (*carry.lazies, *held, *iteration)
    types = [x.type for x in (*inits, *loop.captured)]
    attrs = {
        "condition": traced(_while(condition, loop, carry.types, True), types),
        "body": traced(_while(body, loop, carry.types, False), types),
        "carried": len(inits),
        "maximum": maximum,
    }
    found = record(_WHILE, (*inits, *loop.captured), attrs)
    count = len(carry.types)
    loop.change(found[count : count + len(held)])
    return tensors(carry.tree, found[:count], carry.kinds)


def _checked(condition: Body) -> None:
    """Refuse a condition that does not return one bool, or that changes something."""
    if condition.types != (intern(bool_, ()),) or condition.tree.kind is not None:
        raise DTypeError.here(
            f"while_loop: expected cond_fun{condition.line} to give one bool, got"
            f" {', '.join(described(condition.tree, condition.types)) or 'nothing'}"
        )
    if condition.changed:
        raise ArgumentError.here(
            f"while_loop: cond_fun{condition.line} changes a tensor in place; only body_fun may"
        )


def _while(body: Body, loop: _Loop, carry: Sequence[TensorType], only_result: bool) -> Any:
    """A function; takes carry, changed tensors, iteration if needed, captured values."""
    count = len(carry)
    wanted = [] if only_result else [t.dtype for t in carry]
    held = count + len(loop.changed)
    first = held + bool(loop.draws)

    def run(*xs: Value) -> Iterable[Value]:
        iteration = xs[held] if loop.draws else None
        found = body.apply(xs[:count], loop.held(xs[first:], xs[count:held], iteration), wanted)
        if only_result:
            return list(found.result)
        more = [] if iteration is None else [iteration + _ITERATION_STRIDE]
        return [*found.result, *found.changed, *more]

    return run


def fori_loop(
    lower: Any, upper: Any, body_fun: Function, init_val: Any, *, unroll: int | bool | None = None
) -> Any:
    """Call `val = body_fun(i, val)` for `i` in [lower, upper).

    If both bounds are Python integers it is a `scan`, with all kinds of gradients; otherwise a
    `while_loop`.

    Args:
        lower, upper: integer scalars.
        unroll: accepted; the compiler decides.

    Raises:
        DTypeError: a bound is no integer.
        ShapeError: a bound is no scalar.
        TreeError: `body_fun` gives another structure, or other types.

    >>> import weft as wf
    >>> fori_loop(1, 5, lambda i, x: x * i, wf.tensor(1)).item()
    24
    """
    for name, bound in (("lower", lower), ("upper", upper)):
        kind = lazy_of(bound).type
        if not kind.dtype.is_integer:
            raise DTypeError.here(f"fori_loop: {name}: expected an integer, got {kind.dtype}")
        if kind.shape != ():
            raise ShapeError.here(f"fori_loop: {name}: expected a scalar, got {show(kind.shape)}")
    if isinstance(lower, int) and isinstance(upper, int):

        @functools.wraps(body_fun)
        def step(val: Any, i: Any) -> tuple[Any, None]:
            return body_fun(i, val), None

        numbers = np.arange(lower, max(lower, upper), dtype=np.int64)
        return _scan("fori_loop", step, init_val, numbers, None, False, 0)[0]

    @functools.wraps(body_fun)
    def iteration(state: Any) -> Any:
        i, end, val = state
        return i + 1, end, body_fun(i, val)

    def holds(state: Any) -> Any:
        return state[0] < state[1]

    return _while_loop("fori_loop", holds, iteration, (lower, upper, init_val), None)[2]


def map(f: Function, xs: Any, *, batch_size: int | None = None) -> Any:
    """Apply `f` to each slice of `xs` along the first axis, in order, and stack the results.

    It needs less memory than `vmap(f)(xs)`, which computes all at once.

    Args:
        xs: nested tensors whose first axes have the same length.
        batch_size: how many slices to compute at once, by `vmap`; one by default.

    >>> import weft as wf
    >>> map(lambda x: x * x, wf.tensor([1.0, 2.0, 3.0])).tolist()
    [1.0, 4.0, 9.0]
    """

    @functools.wraps(f)
    def step(_: None, x: Any) -> tuple[None, Any]:
        return None, f(x)

    if batch_size is None:
        return _scan("map", step, None, xs, None, False, 0)[1]
    return vmap(f, chunk_size=batch_size)(xs)
