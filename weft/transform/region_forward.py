"""Forward mode through branches and loops: bodies that compute tangents beside values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, Final

from weft.ir.node import Node, TensorType, Value
from weft.ir.shape import is_stack, is_static
from weft.ops.call import Subgraph, inline, trace
from weft.ops.control.scan import reads_stacks, scan
from weft.ops.control.switch import switch
from weft.ops.control.while_loop import while_loop
from weft.ops.declaration import Op, catalogue, op_of
from weft.ops.shape.creation import zeros_like
from weft.transform.split_body import applied

Push = Callable[..., list[Value | None]]
"""`weft.transform.forward.pushforward`."""
Tangents = Sequence[Value | None]


def push_through_bodies(node: Node, tangents: Tangents, push: Push) -> list[Value | None] | None:
    """Tangents of the outputs of a branch or a loop; `None` where shapes are not known."""
    op = op_of(node)
    xs, attrs = node.data_inputs, {**op.attrs, **node.attrs}
    if node.operands:
        return None
    told = is_stack if reads_stacks(op, attrs) else is_static
    if not all([is_static(x.shape) or told(x.shape) for x in xs]):
        return None
    attrs = dict(op.normal(*[x.shape for x in xs], **attrs))
    return _RULES[op](node, tangents, attrs, push)


def _moving(function: Subgraph, moves: Sequence[bool]) -> list[bool]:
    """Which outputs have tangents if these inputs do."""
    bits = sum([1 << i for i, m in enumerate(moves) if m])
    return [bool(f & bits) for f in function.flowing]


def _pushed(
    function: Subgraph, xs: Sequence[Value], tangents: Tangents, moves: Sequence[bool], push: Push
) -> list[Value]:
    """Outputs of a function, then the tangents of those that have one."""
    copies = [catalogue.identity(x) for x in xs]
    ys = applied(function, copies)
    found = push(ys, copies, tangents)
    pairs = zip(ys, found, moves, strict=True)
    return [*ys, *[zeros_like(y) if t is None else t for y, t, m in pairs if m]]


def _of(moves: Sequence[bool], given: Sequence[Value]) -> Tangents:
    """A tangent, or `None`, for each."""
    rest = iter(given)
    return [next(rest) if m else None for m in moves]


def _filled(xs: Sequence[Value], tangents: Tangents, moves: Sequence[bool]) -> list[Value]:
    rows = zip(xs, tangents, moves, strict=True)
    return [zeros_like(x) if t is None else t for x, t, m in rows if m]


def _switch(node: Node, tangents: Tangents, attrs: Any, push: Push) -> list[Value | None]:
    index, *xs = node.data_inputs
    moves = [t is not None for t in tangents[1:]]
    branches: Sequence[Subgraph] = attrs["branches"]
    columns = zip(*[_moving(b, moves) for b in branches], strict=True)
    out = [any(column) for column in columns]
    given = _filled(xs, tangents[1:], moves)
    types = [v.type for v in (*xs, *given)]

    def run(branch: Subgraph, *vs: Value) -> list[Value]:
        return _pushed(branch, vs[: len(xs)], _of(moves, vs[len(xs) :]), out, push)

    pushed = tuple([trace(lambda *vs, b=b: run(b, *vs), types) for b in branches])
    found = switch.all(index, *xs, *given, branches=pushed)
    return list(_of(out, found[len(out) :]))


def _converged(body: Subgraph, carried: int, tangents: Tangents) -> list[bool]:
    """Which inputs have tangents once the carry has converged."""
    moves = [t is not None for t in tangents]
    while True:
        found = _moving(body, moves)[:carried]
        both = [a or b for a, b in zip(moves[:carried], found, strict=True)]
        if both == moves[:carried]:
            return moves
        moves[:carried] = both


def _scan(node: Node, tangents: Tangents, attrs: Any, push: Push) -> list[Value | None]:
    body, carried, mapped = attrs["body"], attrs["carried"], attrs["mapped"]
    moves = _converged(body, carried, tangents)
    out = _moving(body, moves)
    out[:carried] = moves[:carried]
    xs, first = node.data_inputs, carried + mapped
    parts = (slice(0, carried), slice(carried, first), slice(first, len(xs)))
    given = [_filled(xs[p], tangents[p], moves[p]) for p in parts]
    extra = len(given[0])

    def run(*vs: Value) -> list[Value]:
        values, moved = list[Value](), list[Value]()
        rest = iter(vs)
        for p, more in zip(parts, given, strict=True):
            values += islice(rest, p.stop - p.start)
            moved += islice(rest, len(more))
        found = _pushed(body, values, _of(moves, moved), out, push)
        ys, ts = found[: len(out)], found[len(out) :]
        return [*ys[:carried], *ts[:extra], *ys[carried:], *ts[extra:]]

    sides = [(*xs[p], *more) for p, more in zip(parts, given, strict=True)]
    rows = [TensorType(v.dtype, (v.shape or ())[1:]) for v in sides[1]]
    types = [*[v.type for v in sides[0]], *rows, *[v.type for v in sides[2]]]
    attrs |= {"body": trace(run, types), "carried": len(sides[0]), "mapped": len(sides[1])}
    found = scan.all(*[v for side in sides for v in side], **attrs)
    stacks = found[len(sides[0]) + len(out) - carried :]
    return list(_of(out, [*found[carried : len(sides[0])], *stacks]))


def _while(node: Node, tangents: Tangents, attrs: Any, push: Push) -> list[Value | None]:
    condition, body, carried = attrs["condition"], attrs["body"], attrs["carried"]
    moves = _converged(body, carried, tangents)
    xs = node.data_inputs
    out = _moving(body, moves)
    out[:carried] = moves[:carried]
    inits = _filled(xs[:carried], tangents[:carried], moves[:carried])
    fixed = _filled(xs[carried:], tangents[carried:], moves[carried:])
    first = carried + len(inits)
    behind = first + len(xs) - carried

    def holds(*vs: Value) -> Sequence[Value]:
        return inline(condition, [*vs[:carried], *vs[first:behind]])

    def run(*vs: Value) -> list[Value]:
        values = [*vs[:carried], *vs[first:behind]]
        tangents = _of(moves, [*vs[carried:first], *vs[behind:]])
        ys = _pushed(body, values, tangents, out, push)
        ts = ys[len(out) :]
        return [*ys[:carried], *ts[: len(inits)], *ys[carried : len(out)], *ts[len(inits) :]]

    inputs = [*xs[:carried], *inits, *xs[carried:], *fixed]
    types = [v.type for v in inputs]
    attrs |= {"condition": trace(holds, types), "body": trace(run, types), "carried": first}
    found = while_loop.all(*inputs, **attrs)
    stacks = found[first + len(out) - carried :]
    return list(_of(out, [*found[carried:first], *stacks]))


_RULES: Final[dict[Op, Callable[..., list[Value | None]]]] = {
    switch: _switch,
    scan: _scan,
    while_loop: _while,
}
