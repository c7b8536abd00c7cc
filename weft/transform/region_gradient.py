"""Reverse mode through branches and loops, by differentiating their bodies.

The gradient of a switch is a switch of its branches' gradients, each of which recomputes its
branch. The gradient of a loop is a reversed scan that reads residuals saved by a forward loop (the
compiler merges it with the original loop). A `while_loop` saves them on stacks with a row per
iteration. All of them are ordinary operations, so that they can be differentiated again.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from weft.ir.node import Value
from weft.ir.shape import known
from weft.ops.call import Subgraph, inline, retyped, trace
from weft.ops.control.scan import STACKED, parts, reads_stacks, scan
from weft.ops.control.switch import switch
from weft.ops.control.while_loop import while_loop
from weft.ops.declaration import Op, catalogue, constant_of
from weft.ops.indexing.row_sparse import Cotangent, dense
from weft.ops.shape.creation import zeros_like
from weft.transform.loop_matmul import DeferredSum, split_terms
from weft.transform.split_body import Gradients, Split, applied, split
from weft.transform.trip_count import trip_count


@dataclass(frozen=True)
class Pull:
    """The arguments of a rule: it computes cotangents of the inputs from those of the outputs.

    Attributes:
        gs: cotangents of the outputs, `None` where there is none.
        wanted: which inputs need a cotangent.
        gradients: the function that differentiates nodes.
    """

    gs: Sequence[Value | None]
    ys: Sequence[Value]
    xs: Sequence[Value]
    attrs: Mapping[str, Any]
    wanted: Sequence[bool]
    gradients: Gradients

    def through(self, ys: Sequence[Value], inputs: Sequence[Value]) -> list[Cotangent | None]:
        """Cotangents by a function that recomputes the outputs from copies of the inputs."""
        pairs = [(y, g) for y, g in zip(ys, self.gs, strict=True) if g is not None]
        chosen = [x for x, w in zip(inputs, self.wanted, strict=True) if w]
        ends, starts = [y for y, _ in pairs], [g for _, g in pairs]
        found = iter(self.gradients(ends, chosen, starts, stop=inputs))
        return [next(found) if w else None for w in self.wanted]


def pull_through_bodies(op: Op, pull: Pull) -> list[Cotangent | None]:
    """Cotangents of the inputs of an operation whose gradient is `BY_BODY`.

    Raises:
        UnknownShapeError: a shape is not known.
        NotDifferentiableError: something inside has no gradient.
    """
    stacks = _stacks(op, pull)
    for x in pull.xs:
        if x not in stacks:
            known(x.shape)
    return _RULES[op](pull)


def _stacks(op: Op, pull: Pull) -> Sequence[Value]:
    """The inputs whose length is known only at run time."""
    if not reads_stacks(op, pull.attrs):
        return ()
    return parts(pull.xs, pull.attrs["carried"], pull.attrs["mapped"]).mapped


# switch


def _switch(pull: Pull) -> list[Cotangent | None]:
    index, *xs = pull.xs
    given = [g is not None for g in pull.gs]
    flows = [f for b in pull.attrs["branches"] for f, g in zip(b.flowing, given, strict=True) if g]
    wanted = [w and any([f >> i & 1 for f in flows]) for i, w in enumerate(pull.wanted[1:])]
    starts = [g for g in pull.gs if g is not None]
    shapes = [x.shape for x in xs]
    types = [*[x.type for x in xs], *[g.type for g in starts]]

    def back(branch: Subgraph) -> Subgraph:
        whole = retyped(branch, shapes)

        def run(*values: Value) -> list[Value]:
            inputs, cotangents = values[: len(xs)], iter(values[len(xs) :])
            ends = [catalogue.identity(y) for y in applied(whole, inputs)]
            pairs = [(y, next(cotangents)) for y, g in zip(ends, given, strict=True) if g]
            chosen = [x for x, w in zip(inputs, wanted, strict=True) if w]
            ys, gs = [y for y, _ in pairs], [g for _, g in pairs]
            found = pull.gradients(ys, chosen, gs, stop=chosen)
            both = zip(found, chosen, strict=True)
            return [zeros_like(x) if g is None else dense(g) for g, x in both]

        return trace(run, types)

    if not any(wanted):
        return [None] * len(pull.xs)
    branches = tuple(map(back, pull.attrs["branches"]))
    found = iter(switch.all(index, *xs, *starts, branches=branches))
    return [None, *[next(found) if w else None for w in wanted]]


# scan


def _scan(pull: Pull) -> list[Cotangent | None]:
    if pull.attrs["rematerialize"] > 1:
        inputs = [catalogue.identity(x) for x in pull.xs]
        return pull.through(_in_blocks(inputs, pull.attrs), inputs)
    attrs = scan.normal(*[x.shape for x in pull.xs], **pull.attrs)
    return _LoopGradient(pull, scan, attrs).run()


def _in_blocks(xs: Sequence[Value], attrs: Mapping[str, Any]) -> list[Value]:
    """A scan over blocks of steps, each saving only its first carry; and one over the rest."""
    carried, mapped, length = attrs["carried"], attrs["mapped"], attrs["length"]
    size = attrs["rematerialize"]
    blocks = length // size
    inner: dict[str, Any] = {**attrs, "rematerialize": 0}
    arrays, captured = xs[carried : carried + mapped], xs[carried + mapped :]
    cut = blocks * size
    whole = [_range(x, 0, cut) for x in arrays]
    rest = [_range(x, cut, length) for x in arrays]
    if attrs["reverse"]:  # the last steps come first
        whole, rest = (
            [_range(x, length - cut, length) for x in arrays],
            [_range(x, 0, length - cut) for x in arrays],
        )
    turned = [catalogue.reshape(x, shape=(blocks, size, *known(x.shape)[1:])) for x in whole]
    types = [v.type for v in xs[:carried]]
    rows = [catalogue.placeholder.types((), {"dtype": x.dtype, "shape": known(x.shape)[1:]})[0]
            for x in turned]  # fmt: skip
    body = trace(
        lambda *vs: scan.all(*vs, **{**inner, "length": size}),
        [*types, *rows, *[x.type for x in captured]],
    )
    outer: dict[str, Any] = {**inner, "body": body, "length": blocks, "rematerialize": 1}
    found = scan.all(*xs[:carried], *turned, *captured, **outer)
    stacks = [_flat(y, cut) for y in found[carried:]]
    more: dict[str, Any] = {**inner, "length": length - cut, "rematerialize": 1}
    ends = scan.all(*found[:carried], *rest, *captured, **more)
    sides = zip(stacks, ends[carried:], strict=True)
    both = [(b, a) if attrs["reverse"] else (a, b) for a, b in sides]
    return [*ends[:carried], *[catalogue.concatenate(a, b, axis=0) for a, b in both]]


def _flat(y: Value, steps: int) -> Value:
    return catalogue.reshape(y, shape=(steps, *known(y.shape)[2:]))


def _range(x: Value, begin: int, end: int) -> Value:
    shape = known(x.shape)
    first = (begin, *[0] * (len(shape) - 1))
    return catalogue.slice(x, begin=first, end=(end, *shape[1:]))


def _active(body: Subgraph, carried: int, pull: Pull) -> list[bool]:
    """The inputs of a loop through which wanted inputs affect the results."""
    flows = body.flowing
    active = [w and x.dtype.is_inexact for w, x in zip(pull.wanted, pull.xs, strict=True)]
    while True:
        bits = sum([1 << i for i, a in enumerate(active) if a])
        new = [i for i in range(carried) if flows[i] & bits and not active[i]]
        if not new:
            return active
        for i in new:
            active[i] = True


def _live(body: Subgraph, carried: int, pull: Pull) -> list[bool]:
    """Which inputs of a loop reach an output with a cotangent.

    The cotangent of another carried value is zero, but zero times what is not a number is none.
    """
    flows = body.flowing
    read = [g is not None for g in pull.gs]
    while True:
        bits = functools.reduce(operator.or_, [f for f, r in zip(flows, read, strict=True) if r], 0)
        found = [r or bool(bits >> i & 1) for i, r in enumerate(read[:carried])]
        if found == read[:carried]:
            return [*found, *[True] * (len(body.inputs) - carried)]
        read[:carried] = found


class _LoopGradient:
    """The reversed scan, and the forward loop that saves what it reads.

    Args:
        attrs: attributes of the loop, in normal form.
    """

    def __init__(self, pull: Pull, op: Op, attrs: Mapping[str, Any]) -> None:
        self.pull, self.op, self.attrs = pull, op, attrs
        self.carried: int = attrs["carried"]
        self.first: int = self.carried + attrs.get("mapped", 0)  # of the captured inputs
        self.again = attrs.get("rematerialize") == 1
        self.length: int = attrs.get("length", STACKED)
        self.body: Subgraph = attrs["body"]
        live = _live(self.body, self.carried, pull)
        active = _active(self.body, self.carried, pull)
        self.active = [a and n for a, n in zip(active, live, strict=True)]

    def run(self) -> list[Cotangent | None]:
        """Cotangents of the inputs."""
        if not any(self.active):
            return [None] * len(self.active)
        given = [
            *self.active[: self.carried],
            *[g is not None for g in self.pull.gs[self.carried :]],
        ]
        cut = split(self.body, given, self.active, self.pull.gradients)
        return _ScanBackward(self, cut).run()


class _ScanBackward:
    """Builds one reversed scan: what it carries, reads, saves and returns."""

    def __init__(self, loop: _LoopGradient, cut: Split) -> None:
        self.loop = loop
        self.pull, self.body = loop.pull, loop.body
        self.carried, self.first = loop.carried, loop.first
        self.cut = cut
        self.carries = [i for i in range(self.carried) if loop.active[i]]
        slices = range(self.carried, self.first)
        self.slices = [i for i in slices if cut.found[i] is not None]
        captured = range(self.first, len(cut.inputs))
        self.captured = [i for i in captured if cut.found[i] is not None]
        self.after: dict[int, list[DeferredSum]] = {}
        self.summed: list[int] = []  # captured inputs whose cotangents are summed step by step
        self.steps: list[Value] = []  # the terms of these sums
        moving = [v for v in (*cut.inputs[: self.first], *cut.cotangents) if v is not None]
        self.varying = cut.depending(moving)
        self.backward = cut.depending([g for g in cut.cotangents if g is not None])

    def run(self) -> list[Cotangent | None]:
        """Cotangents of the inputs."""
        with self.cut.graph.as_default():
            self._separate()
            sums = [self._placeholder(v) for v in self.steps]
            added = [s + v for s, v in zip(sums, self.steps, strict=True)]
            back = [self._found(i) for i in self.carries]
            counts = [constant_of(np.ones((), np.bool_))] if self.loop.op is while_loop else []
            for flag in counts:  # for `vmap`: an example that has ended keeps its cotangents
                added = [catalogue.select(flag, s, old) for s, old in zip(added, sums, strict=True)]
                before = [_value(self.cut.cotangents[i]) for i in self.carries]
                back = [catalogue.select(flag, g, old) for g, old in zip(back, before, strict=True)]
            rows = [self._found(i) for i in self.slices]
        factors = list(dict.fromkeys(v for a in self._products() for v in a.factors))
        told = [v for v in factors if v in self.backward]
        roots = [*back, *added, *rows, *told]
        residuals = self.cut.residuals(roots, self.loop.again)
        fixed, kept = self._sorted([*residuals, *[v for v in factors if v not in self.backward]])
        read = [v for v in kept if self._is_slice(v)]
        stacks = self._kept([*counts, *[v for v in kept if not self._is_slice(v)]])
        if self.loop.length == STACKED and not stacks and not read:
            read = [self.cut.inputs[self.carried]]  # its length is the number of iterations
        stacks |= {v: self.pull.xs[self.cut.inputs.index(v)] for v in read}
        found = self._scan(sums, roots, fixed, stacks)
        stacks |= dict(zip(told, found[len(found) - len(told) :], strict=True))
        return self._cotangents(found, stacks)

    def _separate(self) -> None:
        """Decides which cotangents of captured inputs are summed after the loop."""
        for i in self.captured:
            total = dense(_there(self.cut.found[i]))
            if self.loop.again or self.loop.length == STACKED:
                after, rest = [], [total]
            else:
                after, rest = split_terms(total, self.varying)
            if after:
                self.after[i] = after
            if rest:
                self.summed.append(i)
                self.steps.append(rest[0] if len(rest) == 1 else catalogue.add_n(*rest))

    def _products(self) -> list[DeferredSum]:
        return [a for products in self.after.values() for a in products]

    def _placeholder(self, like: Value) -> Value:
        return catalogue.placeholder(dtype=like.dtype, shape=known(like.shape))

    def _found(self, i: int) -> Value:
        g = self.cut.found[i]
        return zeros_like(self.cut.inputs[i]) if g is None else dense(g)

    def _is_slice(self, value: Value) -> bool:
        return value in self.cut.inputs[self.carried : self.first]

    def _sorted(self, values: Sequence[Value]) -> tuple[list[Value], list[Value]]:
        """Partitions values into those that are the same in all steps and the others."""
        each = dict.fromkeys(values)
        fixed = [v for v in each if v not in self.varying]
        return fixed, [v for v in each if v in self.varying]

    def _kept(self, values: Sequence[Value]) -> dict[Value, Value]:
        """Stacks of values of the forward loop, which runs once more to save them."""
        if not values:
            return {}
        body = self.cut.part(self.cut.inputs, (*self.cut.outputs, *values))
        attrs: dict[str, Any] = {**self.loop.attrs, "body": body}
        if "rematerialize" in attrs:
            attrs["rematerialize"] = 0
        found = self.loop.op.all(*self.pull.xs, **attrs)
        return dict(zip(values, found[len(self.cut.outputs) :], strict=True))

    def _scan(
        self, sums: Sequence[Value], roots: Sequence[Value], fixed: Sequence[Value],
        stacks: Mapping[Value, Value],
    ) -> tuple[Value, ...]:  # fmt: skip
        """The reversed scan: cotangents of the carry, sums, then per-step results."""
        pull, cut = self.pull, self.cut
        pairs = zip(pull.gs[self.carried :], cut.cotangents[self.carried :], strict=True)
        given = [(g, c) for g, c in pairs if g is not None and c is not None]
        inputs = [
            *[_value(cut.cotangents[i]) for i in self.carries], *sums,
            *[c for _, c in given], *stacks, *fixed,
        ]  # fmt: skip
        starts = [_or_zeros(pull.gs[i], pull.ys[i]) for i in self.carries]
        starts += [zeros_like(pull.xs[i]) for i in self.summed]
        own = inline(cut.part(cut.inputs[self.first :], fixed), pull.xs[self.first :])
        return scan.all(
            *starts, *[g for g, _ in given], *stacks.values(), *own,
            body=cut.part(inputs, roots), length=self.loop.length, carried=len(starts),
            mapped=len(given) + len(stacks), reverse=not pull.attrs.get("reverse", False),
        )  # fmt: skip

    def _cotangents(
        self, found: Sequence[Value], stacks: Mapping[Value, Value]
    ) -> list[Cotangent | None]:
        places = [*self.carries, *self.summed, *self.slices]
        slopes: dict[int, Value] = dict(zip(places, found, strict=False))
        for i, products in self.after.items():
            parts = [a.build([stacks[v] for v in a.factors]) for a in products]
            parts += [slopes[i]] if i in slopes else []
            slopes[i] = parts[0] if len(parts) == 1 else catalogue.add_n(*parts)
        wanted = enumerate(self.pull.wanted)
        return [slopes.get(i) if w else None for i, w in wanted]


def _there(g: Cotangent | None) -> Cotangent:
    assert g is not None
    return g


def _value(g: Value | None) -> Value:
    assert g is not None
    return g


def _or_zeros(g: Value | None, y: Value) -> Value:
    return zeros_like(y) if g is None else g


# while_loop


def _while(pull: Pull) -> list[Cotangent | None]:
    """As a scan, if the number of iterations is known; otherwise on stacks that grow with it."""
    attrs, carried = pull.attrs, pull.attrs["carried"]
    normal = while_loop.normal(*[x.shape for x in pull.xs], **attrs)
    body, maximum = normal["body"], attrs["maximum"]
    stacks = len(body.outputs) > carried
    iterations = None if stacks else trip_count(normal["condition"], body, carried, pull.xs)
    if iterations is None:
        return _LoopGradient(pull, while_loop, normal).run()
    return _as_scan(pull, body, iterations if maximum is None else min(iterations, maximum))


def _as_scan(pull: Pull, body: Subgraph, iterations: int) -> list[Cotangent | None]:
    inputs = [catalogue.identity(x) for x in pull.xs]
    ys = scan.all(*inputs, body=body, length=iterations, carried=pull.attrs["carried"], mapped=0)
    return pull.through(ys, inputs)


_RULES: Final[dict[Op, Callable[[Pull], list[Cotangent | None]]]] = {
    switch: _switch,
    scan: _scan,
    while_loop: _while,
}
