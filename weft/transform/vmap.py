"""Batching: turns a function of one example into a function of a batch.

`batch` rewrites a traced function node by node; the batch is the leading axis. Most rules are one
line (`weft.transform.batching`). A composite without a rule is batched through its expansion; an
operation with neither runs once per example. The result is ordinary nodes, so batching nests,
applies to gradients and is differentiable.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np

from weft.errors import GraphError, ShapeError
from weft.ir.graph import current_graph
from weft.ir.node import Node, TensorType, Value
from weft.ir.shape import known, normal_axis, show
from weft.ops.boundary.host import Host
from weft.ops.call import Subgraph, inline, trace, trace_closure
from weft.ops.declaration import Array, Composite, Elementwise, catalogue, op_of
from weft.ops.random.counter_based import random_bits
from weft.transform.batching import communication, contraction, movement, position, region
from weft.transform.batching.job import Job, Same, Table, entering, job_of, moved, repeated
from weft.transform.gradient import dense

__all__ = ["Batched", "batch", "vmap"]

_RULES: Final[Table] = {
    **movement.RULES, **contraction.RULES, **position.RULES, **communication.RULES,
}  # fmt: skip
_rule = entering(_RULES)

Axes = int | Sequence[int | None] | None
Lane = tuple[Value, bool]  # a value, and whether it has the leading batch axis


@dataclass(frozen=True, eq=False)
class Batched(Subgraph):
    """A batched function; `mapped` tells which outputs have a leading batch axis."""

    mapped: tuple[bool, ...] = ()


def batch(
    function: Subgraph, mapped: Sequence[bool], size: int, fresh_bits: bool = False
) -> Batched:
    """Rewrites `function` for `size` examples at once.

    Args:
        function: a function of one example, all shapes known.
        mapped: which inputs have a leading batch axis; all examples share the others.
        fresh_bits: draw random bits per example, instead of the same for all.

    Raises:
        ShapeError: a shape inside is not known.
    """
    if len(mapped) != len(function.inputs) or size < 1:
        raise ShapeError(
            f"vmap: expected a flag for each of {len(function.inputs)} inputs and a positive size,"
            f" got {len(mapped)} flags and size {size}"
        )
    return _batched(function, tuple(mapped), size, fresh_bits)


@functools.lru_cache(1 << 8)  # equal functions, as those traced again, are batched once
def _batched(
    function: Subgraph, mapped: tuple[bool, ...], size: int, fresh_bits: bool
) -> Batched:  # fmt: skip
    pairs = zip(function.input_types, mapped, strict=True)
    types = [_batch_type(t, size) if m else t for t, m in pairs]
    found: list[bool] = []

    def run(*xs: Value) -> tuple[Value, ...]:
        lanes = _walk(function, list(zip(xs, mapped, strict=True)), size, fresh_bits)
        found.extend(m for _, m in lanes)
        return tuple(y for y, _ in lanes)

    traced = trace(run, types, None, function.rematerialize)
    own = {f.name: getattr(traced, f.name) for f in fields(traced)}
    own |= {"captured": function.captured, "backward": function.backward}
    if function.backward is not None and any(mapped):
        own["backward"] = _Backward(function.backward, mapped, tuple(found), size)
    return Batched(**own, mapped=tuple(found))


def _batch_type(kind: TensorType, size: int) -> TensorType:
    return TensorType(kind.dtype, (size, *known(kind.shape)))


def _walk(function: Subgraph, inputs: Sequence[Lane], size: int, fresh_bits: bool) -> list[Lane]:
    """Adds the batched nodes to the current graph; returns the outputs."""
    found: dict[Value, Lane] = dict(zip(function.inputs, inputs, strict=True))
    graph = current_graph()
    for node in function.nodes:
        lanes = [found[v] for v in node.inputs]
        with graph.on_behalf_of(node):
            outputs = _visit(node, lanes, size, fresh_bits)
        found.update(zip(node.outputs, outputs, strict=True))
    outputs = [found[y] for y in function.outputs]
    if function.backward is None or not any(m for _, m in inputs):
        return outputs
    # Cotangents are sums over examples, so the cotangent of a shared output would count too often.
    return [(y if m else repeated(y, size), True) for y, m in outputs]


def _visit(node: Node, lanes: Sequence[Lane], size: int, fresh_bits: bool) -> list[Lane]:
    xs, mapped = [x for x, _ in lanes], [m for _, m in lanes]
    job = job_of(node, xs, mapped, size, fresh_bits)
    if fresh_bits and op_of(node) is random_bits and not any(mapped):
        return [(y, True) for y in job.again(*xs, shape=(size, *job.attrs["shape"]))]
    if not any(job.mapped):
        new = current_graph().add(
            node.op, job.xs, job.attrs, node.types, None, (), node.regions, node.source
        )
        return [(y, False) for y in new.outputs]
    outputs = _by_rule(job)
    return [(y.value, False) if isinstance(y, Same) else (y, True) for y in outputs]


def _by_rule(job: Job) -> Sequence[Value | Same]:
    """The operation's own rule, else its declared batching, else the rule of its kind."""
    own = _RULES.get(job.op.name)
    found = None if own is None else own(job)
    if found is not None:
        return found
    if job.op.facts.batching is not None:
        return movement.DECLARED[job.op.facts.batching](job)
    if isinstance(job.op.lower, Elementwise):
        return movement.elementwise(job)
    if len(job.xs) == 1 and {"axes", "keepdims"} <= set(job.attrs):
        return movement.reduction(job)
    return _expanded(job) if isinstance(job.op.lower, Composite) else _unrolled(job)


def _expanded(job: Job) -> Sequence[Value | Same]:
    """Batches a composite through its expansion."""
    assert isinstance(job.op.lower, Composite)
    expand = job.op.lower.expand
    return _inlined(job, trace(lambda *xs: expand(*xs, **job.attrs), job.types))


def _inlined(job: Job, function: Subgraph) -> Sequence[Value | Same]:
    inner = batch(function, job.mapped, job.size, job.fresh_bits)
    pairs = zip(inline(inner, job.xs), inner.mapped, strict=True)
    return [y if m else Same(y) for y, m in pairs]


def _unrolled(job: Job) -> Sequence[Value]:
    """Runs the operation on one example after the other."""
    rows: list[tuple[Value, ...]] = []
    for i in range(job.size):
        xs = [_example(x, i) if m else x for x, m in zip(job.xs, job.mapped, strict=True)]
        rows.append(job.again(*xs))
    return [catalogue.stack(*column, axis=0) for column in zip(*rows, strict=True)]


def _example(x: Value, i: int) -> Value:
    rest = known(x.shape)[1:]
    row = catalogue.slice(x, begin=(i, *[0] * len(rest)), end=(i + 1, *rest))
    return catalogue.reshape(row, shape=rest)


# Calls


@_rule("call")
def _call(job: Job) -> Sequence[Value | Same]:
    inner = batch(job.attrs["function"], job.mapped, job.size, job.fresh_bits)
    pairs = zip(catalogue.call.all(*job.xs, function=inner), inner.mapped, strict=True)
    return [y if m else Same(y) for y, m in pairs]


@_rule("switch")
def _switch(job: Job) -> Sequence[Value | Same]:
    return region.switch(job, batch)


@_rule("scan")
def _scan(job: Job) -> Sequence[Value | Same]:
    return region.scan(job, batch)


@_rule("while_loop")
def _while_loop(job: Job) -> Sequence[Value | Same]:
    return region.while_loop(job, batch)


@_rule("host_call")
def _host_call(job: Job) -> Sequence[Value]:
    attrs, gradient = job.attrs, job.attrs["gradient"]
    function = attrs["function"]
    if isinstance(function, Host) and function.wide:
        pairs = zip(job.xs, job.mapped, strict=True)
        xs = [x if m else repeated(x, job.size) for x, m in pairs]
        many = function.of_many(job.size)
        return job.again(*xs, function=many, shapes=tuple([shape for _, shape in many.types]))
    shapes = [None if s is None else (job.size, *s) for s in attrs["shapes"]]
    several = _Examples(attrs["function"], attrs["dtypes"], job.mapped, job.size)
    if gradient is not None:
        back = _Backward(_FromGradient(gradient), job.mapped, (True,) * len(shapes), job.size)
        gradient = _AsGradient(back)
    return job.again(*job.xs, function=several, shapes=tuple(shapes), gradient=gradient)


@dataclass(frozen=True)
class _Examples:
    """A function of arrays, called once per example."""

    function: Callable[..., Any]
    dtypes: tuple[Any, ...]
    mapped: tuple[bool, ...]
    size: int

    def __call__(self, *arrays: Array) -> list[Array]:
        """Results of all examples, stacked."""
        attrs = {"function": self.function, "dtypes": self.dtypes}
        rows: list[Sequence[Array]] = []
        for i in range(self.size):
            xs = [a[i] if m else a for a, m in zip(arrays, self.mapped, strict=True)]
            rows.append(catalogue.host_call.reference(*xs, **attrs))
        return [np.stack(column) for column in zip(*rows, strict=True)]


@dataclass(frozen=True)
class _FromGradient:
    """The gradient of a host call as a `backward`."""

    gradient: Callable[..., Any]

    def __call__(self, gs: Sequence[Any], ys: Sequence[Value], xs: Sequence[Value]) -> Any:
        return self.gradient(tuple(gs), tuple(ys), *xs)


@dataclass(frozen=True)
class _AsGradient:
    """A `backward` as the gradient of a host call."""

    backward: _Backward

    def __call__(self, gs: Any, ys: Any, *xs: Value) -> Any:
        return tuple(self.backward(gs, ys, xs))


@dataclass(frozen=True)
class _Backward:
    """A custom gradient of a function of one example, for a batch."""

    backward: Callable[[Sequence[Any], Sequence[Value], Sequence[Value]], Sequence[Any]]
    inputs: tuple[bool, ...]  # which inputs are mapped
    outputs: tuple[bool, ...]
    size: int

    def __call__(
        self, gs: Sequence[Any], ys: Sequence[Value], xs: Sequence[Value]
    ) -> list[Value | None]:
        """Batched cotangents for mapped inputs, sums over the batch for shared ones."""
        given = [g is not None for g in gs]
        there: list[bool] = []

        def example(*values: Value) -> list[Value]:
            rest = iter(values)
            inner = [next(rest) if g else None for g in given]
            found = self.backward(inner, [next(rest) for _ in ys], list(rest))
            there.extend(g is not None for g in found)
            return [dense(g) for g in found if g is not None]

        values = [*[dense(g) for g in gs if g is not None], *ys, *xs]
        flags = [m for m, g in zip(self.outputs, given, strict=True) if g]
        flags += [*self.outputs, *self.inputs]
        types = [_example_type(v.type) if m else v.type for v, m in zip(values, flags, strict=True)]
        function, captured = trace_closure(example, types)
        inner = batch(function, [*flags, *[False] * len(captured)], self.size)
        lanes = iter(zip(inline(inner, [*values, *captured]), inner.mapped, strict=True))
        wanted = zip(there, self.inputs, strict=False)
        return [self._cotangent(next(lanes), shared=not m) if t else None for t, m in wanted]

    def _cotangent(self, lane: Lane, shared: bool) -> Value:
        y, mapped = lane
        y = y if mapped else repeated(y, self.size)
        return catalogue.sum(y, axes=(0,)) if shared else y


def _example_type(kind: TensorType) -> TensorType:
    return TensorType(kind.dtype, known(kind.shape)[1:])


# The function of values


def vmap(
    function: Callable[..., Any],
    in_axes: Axes = 0,
    out_axes: Axes = 0,
    fresh_bits: bool = False,
) -> Callable[..., Any]:
    """Vectorizes `function`, written for one example, over batch axes of its arguments.

    Args:
        in_axes: the batch axis of each argument; `None` where all examples share it.
        out_axes: the batch axis of each result; `None` for a result that does not depend on the
            batch.
        fresh_bits: as in `batch`.

    Raises:
        ShapeError: batch axes of several sizes, or none; an unknown shape.

    Example:
        >>> x = catalogue.iota(shape=(2, 3), dtype="float32")
        >>> print(vmap(lambda row: catalogue.sum(row))(x).shape)
        (2,)
    """

    def run(*xs: Value) -> Any:
        pairs = zip(_each(in_axes, len(xs), "in_axes"), xs, strict=True)
        axes = [None if a is None else normal_axis(a, len(known(x.shape))) for a, x in pairs]
        size = _size(xs, axes)
        lanes = [x if a is None else moved(x, a, 0) for x, a in zip(xs, axes, strict=True)]
        flags = [a is not None for a in axes]
        types = [_example_type(v.type) if m else v.type for v, m in zip(lanes, flags, strict=True)]
        single: list[bool] = []

        def traced(*values: Value) -> Any:
            found = function(*values)
            single.append(not isinstance(found, tuple | list))
            return found

        example, captured = trace_closure(traced, types)
        inner = batch(example, [*flags, *[False] * len(captured)], size, fresh_bits)
        ys = inline(inner, [*lanes, *captured])
        places = _each(out_axes, len(ys), "out_axes")
        found = tuple(map(_placed, ys, inner.mapped, places, [size] * len(ys)))
        return found[0] if single[0] else found

    return run


def _each(axes: Axes, count: int, what: str) -> list[int | None]:
    """One axis for each of `count` arguments or results."""
    found = [axes] * count if axes is None or isinstance(axes, int) else list(axes)
    if len(found) != count:
        raise GraphError(f"vmap: expected {what} for {count} values, got {len(found)}")
    return found


def _size(xs: Sequence[Value], axes: Sequence[int | None]) -> int:
    pairs = zip(xs, axes, strict=True)
    sizes = [known(x.shape)[a] for x, a in pairs if a is not None]
    if len(set(sizes)) != 1:
        shapes = ", ".join(show(x.shape) for x in xs)
        raise ShapeError.here(
            f"vmap: expected batch axes of one size, got {sizes} in arguments of shapes {shapes}"
        )
    return sizes[0]


def _placed(y: Value, mapped: bool, axis: int | None, size: int) -> Value:
    """Moves a result's batch axis to where it is wanted."""
    if axis is None and mapped:
        raise GraphError.here(
            "vmap: expected an out_axes of None only where a result does not depend on the batch,"
            f" got {y}"
        )
    if axis is None:
        return y
    full = y if mapped else repeated(y, size)
    return moved(full, 0, normal_axis(axis, len(known(full.shape))))
