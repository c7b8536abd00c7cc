"""Layout: keeps images as the kernels need them, (N, spatial..., C), whatever users write.

Every operation on images has a transpose to channels last before it and one back after it. This
pass sinks the ones back: elementwise operations, maxima and minima, padding, slices and
concatenations of images transposed to channels first run before that transpose, until the next
transpose cancels it. Those that remain are needed in the user's order, as by sums: the order of the
axes is the order in which elements are added.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from weft.ir.graph import Graph, rewrite
from weft.ir.node import Node, Value
from weft.ir.shape import known, size
from weft.ops.call import barrier
from weft.ops.declaration import REGISTRY, Elementwise, Reduce, op_of
from weft.ops.shape.broadcast import broadcast_to
from weft.ops.shape.joining import concatenate
from weft.ops.shape.reshape import flip, reshape, transpose
from weft.passes.step import Step

SMALL: Final = 8
"""Values so many times smaller than the result may be transposed for it."""

Perm = tuple[int, ...]


def layout(step: Step) -> Step:
    """Sinks transposes to channels first, in one walk."""
    if not any(_to_first(v) for node in step.graph.nodes for v in node.inputs):
        return step
    return step.with_graph(rewrite(step.graph, _sink))


def _to_first(value: Value) -> Perm | None:
    """The permutation by which a value is an image transposed to channels first, or `None`."""
    if op_of(value.node) is not transpose:
        return None
    perm: Perm = value.node.attrs["perm"]
    rank = len(perm)
    return perm if rank >= 3 and perm == (0, rank - 1, *range(1, rank - 1)) else None


def _sink(node: Node, out: Graph) -> Sequence[Value] | None:
    perm = next((p for v in node.inputs if (p := _to_first(v))), None)
    if perm is None:
        return None
    lower = op_of(node).lower
    with out.on_behalf_of(node, ""):
        if isinstance(lower, Elementwise):
            found = _elementwise(node, perm)
        elif isinstance(lower, Reduce):
            found = None if lower.is_ordered(node.types[0].dtype) else _reduce(node, perm)
        elif op_of(node) is barrier:
            return _barrier(node)
        else:
            found = RULES[node.op](node, perm) if node.op in RULES else None
    return None if found is None else (found,)


def _outside(value: Value, perm: Perm) -> Value:
    order = perm == tuple(range(len(perm)))
    return value if order else transpose(value, perm=perm)


def _inner(items: Sequence[Any], perm: Perm) -> tuple[Any, ...]:
    """Reorders a sequence with one item per axis to the axes before `perm`."""
    return tuple([items[perm.index(axis)] for axis in range(len(perm))])


def _before(value: Value, perm: Perm, most: int) -> Value | None:
    """The value whose transpose by `perm` gives `value`, if it is nearly free.

    Args:
        most: the largest size that may be transposed.
    """
    if _to_first(value) == perm:
        return value.node.inputs[0]
    shape = (1,) * (len(perm) - len(known(value.shape))) + known(value.shape)
    if sum(d != 1 for d in shape) <= 1:  # it keeps its order
        return value if size(shape) == 1 else _reshaped(value, _inner(shape, perm))
    if op_of(value.node) is broadcast_to:
        narrow = _before(value.node.inputs[0], perm, most)
        return narrow and broadcast_to(narrow, shape=_inner(shape, perm))
    if size(shape) > most:
        return None
    return transpose(_reshaped(value, shape), perm=_inner(range(len(perm)), perm))


def _reshaped(value: Value, shape: tuple[int, ...]) -> Value:
    return value if value.shape == shape else reshape(value, shape=shape)


def _elementwise(node: Node, perm: Perm) -> Value | None:
    shape = known(node.types[0].shape)
    if len(shape) != len(perm):
        return None
    inputs: list[Value] = []
    for value in node.inputs:
        before = _before(value, perm, size(shape) // SMALL)
        if before is None:
            return None
        inputs.append(before)
    return _outside(REGISTRY[node.op](*inputs, **node.attrs), perm)


def _reduce(node: Node, perm: Perm) -> Value | None:
    keep: bool = node.attrs["keepdims"]
    outer = [axis for axis in range(len(perm)) if keep or axis not in node.attrs["axes"]]
    axes = tuple(sorted(perm[axis] for axis in node.attrs["axes"]))
    y = REGISTRY[node.op](node.inputs[0].node.inputs[0], axes=axes, keepdims=keep)
    kept = [perm[axis] for axis in outer]
    return _outside(y, tuple([sorted(kept).index(axis) for axis in kept]))


def _barrier(node: Node) -> list[Value]:
    """Passes each input through in its layout before the transpose."""
    perms = [_to_first(v) for v in node.inputs]
    inside = [v.node.inputs[0] if p else v for v, p in zip(node.inputs, perms, strict=True)]
    held = barrier.all(*inside)
    return [_outside(v, p) if p else v for v, p in zip(held, perms, strict=True)]


def _transpose(node: Node, perm: Perm) -> Value:
    order = tuple([perm[axis] for axis in node.attrs["perm"]])
    return _outside(node.inputs[0].node.inputs[0], order)


def _broadcast(node: Node, perm: Perm) -> Value | None:
    shape = known(node.types[0].shape)
    if len(shape) != len(perm):
        return None
    x = node.inputs[0].node.inputs[0]
    return _outside(broadcast_to(x, shape=_inner(shape, perm)), perm)


def _concatenate(node: Node, perm: Perm) -> Value | None:
    inside = [_before(v, perm, 0) for v in node.inputs]
    if None in inside:
        return None
    return _outside(concatenate(*inside, axis=perm[node.attrs["axis"]]), perm)


def _movement(*per_axis: str) -> Callable[[Node, Perm], Value]:
    """The rule of a shape operation; the attributes listed have one entry per axis."""

    def rule(node: Node, perm: Perm) -> Value:
        attrs: Mapping[str, Any] = {
            key: _inner(given, perm) if key in per_axis and given else given
            for key, given in node.attrs.items()
        }
        return _outside(REGISTRY[node.op](node.inputs[0].node.inputs[0], **attrs), perm)

    return rule


def _flip(node: Node, perm: Perm) -> Value:
    axes = tuple(sorted(perm[axis] for axis in node.attrs["axes"]))
    return _outside(flip(node.inputs[0].node.inputs[0], axes=axes), perm)


# With t a transpose to channels first and x' the value that t transposes to x:
RULES: Final[Mapping[str, Callable[[Node, Perm], Value | None]]] = {
    "transpose": _transpose,  # transpose(t(x), p) -> transpose(x, p after t)
    "broadcast_to": _broadcast,  # broadcast_to(t(x)) -> t(broadcast_to(x))
    "concatenate": _concatenate,  # concatenate(t(x), t(y)) -> t(concatenate(x, y))
    "pad": _movement("paddings"),  # pad(t(x)) -> t(pad(x))
    "slice": _movement("begin", "end", "strides"),  # slice(t(x)) -> t(slice(x))
    "unslice": _movement("shape", "begin", "end", "strides"),  # unslice(t(x)) -> t(unslice(x))
    "flip": _flip,  # flip(t(x)) -> t(flip(x))
}
"""Elementwise f(t(x), y) -> t(f(x, y')); max(t(x)) -> max(x); barrier(t(x)) -> t(barrier(x))."""
