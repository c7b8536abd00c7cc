"""Algebraic simplification: small rewrites of single nodes.

The algebra is data: each rule in `RULES` is a function of a node that returns its replacement or
`None`. No rule changes a floating-point result: `x * 1`, `x / 1` and the like are exact; `x * 0`
stays, because x may be NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.ir.dtype import float32
from weft.ir.graph import Graph, rewrite
from weft.ir.node import Node, Value
from weft.ir.shape import known, size
from weft.ops.boundary.state import CONSTANT
from weft.ops.declaration import op_of
from weft.ops.elementwise.arithmetic import add_n, square
from weft.ops.elementwise.convert import cast
from weft.ops.indexing.lagged_table import lag_gather, lag_update
from weft.ops.indexing.slicing import cut, slice_, unslice
from weft.ops.linalg.matmul import matmul
from weft.ops.shape.broadcast import broadcast_to
from weft.ops.shape.creation import iota
from weft.ops.shape.joining import concatenate
from weft.ops.shape.reshape import reshape, transpose
from weft.passes.heads import gradient_in_place, heads_in_place
from weft.passes.step import Step

MOST_PARTS = 32  # of a concatenation
MOST_TERMS = 16  # of a sum; with what is fused to it, a kernel then reads at most some 35 arrays

Replacement = Value | None
Rule = Callable[[Node], Replacement]


def simplify(step: Step) -> Step:
    """Applies `RULES` until none fires, in one walk: replacements are simplified too."""

    def rule(node: Node, _: Graph) -> Sequence[Value] | None:
        if node.op in WHOLE_RULES:
            return WHOLE_RULES[node.op](node)
        value: Replacement = None
        while (found := _first(node)) is not None:
            value, node = found, found.node
        return None if value is None else (value,)

    return step.with_graph(rewrite(step.graph, rule))


def _first(node: Node) -> Replacement:
    for rule in RULES.get(node.op, ()):
        found = rule(node)
        if found is not None:
            return found
    return None


def _is_constant(value: Value, number: float) -> bool:
    if op_of(value.node) is not CONSTANT:
        return False
    array: np.ndarray[Any, Any] = value.node.attrs["value"].array
    if array.size != 1 or array.dtype.kind == "c":  # (inf + 0j) * (1 + 0j) is inf + nan j
        return False
    found = array.reshape(())[()]
    same_sign = array.dtype.kind in "biu" or np.signbit(found) == np.signbit(number)
    return bool(found == number) and bool(same_sign)  # x + 0.0 would turn -0.0 into 0.0


def _like(value: Value, node: Node) -> Replacement:
    """`value` if it already has the node's type (the node may broadcast it)."""
    return value if value.type == node.types[0] else None


def _neutral(number: float, *, left: bool) -> Rule:
    def rule(node: Node) -> Replacement:
        x, y = node.inputs
        if _is_constant(y, number):
            return _like(x, node)
        if left and _is_constant(x, number):
            return _like(y, node)
        return None

    return rule


def _only_input(node: Node) -> Replacement:
    return node.inputs[0]


def _same_type(node: Node) -> Replacement:
    return _like(node.inputs[0], node)


def _whole_slice(node: Node) -> Replacement:
    backwards = any(s is not None and s < 0 for s in node.attrs["strides"])
    return None if backwards else _same_type(node)


def _twice(node: Node) -> Replacement:
    inner = node.inputs[0].node
    return _like(inner.inputs[0], node) if inner.op == node.op else None


def _known_choice(node: Node) -> Replacement:
    condition, x, y = node.inputs
    if op_of(condition.node) is not CONSTANT or size(condition.shape) != 1:
        return None
    chosen = x if condition.node.attrs["value"].array.item() else y
    return (
        chosen if chosen.type == node.types[0] else broadcast_to(chosen, shape=node.types[0].shape)
    )


def _reshape_of_reshape(node: Node) -> Replacement:
    inner = node.inputs[0].node
    if op_of(inner) is not reshape:
        return None
    return reshape(inner.inputs[0], shape=node.types[0].shape)


def _reshape_of_slice(node: Node) -> Replacement:
    """Reshapes before slicing, where a slice of the last axis is split: a slice of heads.

    Then only views precede the slice, which is fused into its readers.
    """
    part = node.inputs[0]
    inner, shape = part.node, known(node.types[0].shape)
    if op_of(inner) is not slice_ or {*inner.attrs["strides"]} != {1} or len(shape) < 2:
        return None
    source, width = known(inner.inputs[0].shape), shape[-1]
    lead, first = source[:-1], inner.attrs["begin"][-1]
    if known(part.shape)[:-1] != lead or shape[:-2] != lead:
        return None
    if not width or source[-1] % width or first % width:
        return None
    split = reshape(inner.inputs[0], shape=(*lead, source[-1] // width, width))
    return cut(split, len(shape) - 2, first // width, first // width + shape[-2])


def _concatenate_of_reshapes(node: Node) -> Replacement:
    """Concatenates before merging heads, as in the gradient of a slice of heads."""
    inner = [v.node for v in node.inputs]
    rank = len(known(node.types[0].shape))
    if node.attrs["axis"] != rank - 1 or any([op_of(p) is not reshape for p in inner]):
        return None
    sources = [p.inputs[0] for p in inner]
    shapes = [known(v.shape) for v in sources]
    widths = {s[-1:] for s in shapes}
    if len(widths) != 1 or any([len(s) != rank + 1 for s in shapes]):
        return None
    if any([s[:-2] != known(v.shape)[:-1] for s, v in zip(shapes, node.inputs, strict=True)]):
        return None
    joined = _slices_joined(sources, rank - 1)
    if joined is None:
        joined = concatenate(*sources, axis=rank - 1)
    return reshape(joined, shape=node.types[0].shape)


def _slices_joined(values: Sequence[Value], axis: int) -> Replacement:
    """The array whose consecutive slices along an axis make up `values`."""
    parts = [v.node for v in values]
    if any(op_of(p) is not slice_ or {*p.attrs["strides"]} != {1} for p in parts):
        return None
    whole = parts[0].inputs[0]
    shape = known(whole.shape)
    if any(p.inputs[0] is not whole for p in parts):
        return None
    kept = {a: d for a, d in enumerate(shape) if a != axis}
    if any(known(v.shape)[a] != d for v in values for a, d in kept.items()):
        return None
    begins = [p.attrs["begin"][axis] for p in parts]
    ends = [b + known(v.shape)[axis] for b, v in zip(begins, values, strict=True)]
    return whole if [*begins, shape[axis]] == [0, *ends] else None


def _concatenate_of_slices(node: Node) -> Replacement:
    return _slices_joined(node.inputs, node.attrs["axis"])


def _identity_transpose(node: Node) -> Replacement:
    perm: tuple[int, ...] = node.attrs["perm"]
    return node.inputs[0] if perm == tuple(range(len(perm))) else None


def _transpose_of_transpose(node: Node) -> Replacement:
    inner = node.inputs[0].node
    if op_of(inner) is not transpose:
        return None
    first, second = inner.attrs["perm"], node.attrs["perm"]
    return transpose(inner.inputs[0], perm=tuple(first[p] for p in second))


def _transpose_of_unit_axes(node: Node) -> Replacement:
    """A transpose that only moves axes of size 1 is a view."""
    shape = known(node.inputs[0].shape)
    moved = [axis for axis in node.attrs["perm"] if shape[axis] != 1]
    if moved != sorted(moved):
        return None
    return reshape(node.inputs[0], shape=node.types[0].shape)


def _matmul_of_transpose(node: Node) -> Replacement:
    x, y = node.inputs
    flags = {"transpose_x": node.attrs["transpose_x"], "transpose_y": node.attrs["transpose_y"]}
    operands: list[Value] = []
    for flag, value in zip(flags, (x, y), strict=True):
        if op_of(value.node) is transpose and _swaps_last(value.node.attrs["perm"]):
            flags[flag] = not flags[flag]
            value = value.node.inputs[0]
        operands.append(value)
    if operands == [x, y]:
        return None
    return matmul(*operands, **flags)


def _swaps_last(perm: tuple[int, ...]) -> bool:
    rank = len(perm)
    return perm == (*range(rank - 2), rank - 1, rank - 2)


def _power(node: Node) -> Replacement:
    x, y = node.inputs
    if _is_constant(y, 1):
        return _like(x, node)
    if _is_constant(y, 2) and x.type == node.types[0]:
        return square(x)
    return None


def _reduce_of_units(node: Node) -> Replacement:
    shape = known(node.inputs[0].shape)
    if any(shape[axis] != 1 for axis in node.attrs["axes"]):
        return None
    return reshape(node.inputs[0], shape=node.types[0].shape)


def _joined_parts(node: Node) -> Replacement:
    """Concatenates gradients of slices, each padded with zeros, that together cover an array.

    This keeps -0.0, where adding zeros would give 0.0.
    """
    parts = [v.node for v in node.inputs]
    shape = known(node.types[0].shape)
    if any(op_of(p) is not unslice or {*p.attrs["strides"]} != {1} for p in parts):
        return None
    ranges = [list(zip(p.attrs["begin"], p.attrs["end"], strict=True)) for p in parts]
    axes = {a for r in ranges for a, d in enumerate(shape) if r[a] != (0, d)}
    if len(axes) != 1:
        return None
    axis = axes.pop()
    order = sorted(range(len(parts)), key=lambda i: ranges[i][axis])
    ends = [0, *[ranges[i][axis][1] for i in order]]
    if ends[-1] != shape[axis] or [ranges[i][axis][0] for i in order] != ends[:-1]:
        return None
    return concatenate(*[parts[i].inputs[0] for i in order], axis=axis)


def _sum_in_groups(node: Node) -> Replacement:
    """A sum of many terms as nested sums of a few, in the same order: small, equal kernels.

    The compile time of one kernel for all of them would grow quadratically.
    """
    if len(node.inputs) <= MOST_TERMS:
        return None
    kind = node.types[0].dtype
    narrow = kind.is_floating and kind.size < 4  # rounded once, at the end
    terms = [cast(x, dtype=float32) if narrow else x for x in node.inputs]
    total = terms[0]
    for i in range(1, len(terms), MOST_TERMS - 1):
        total = add_n(total, *terms[i : i + MOST_TERMS - 1])
    return cast(total, dtype=kind) if narrow else total


def _concatenate_in_groups(node: Node) -> Replacement:
    """Concatenates a few parts at a time: a kernel tests every part for each element."""
    parts, axis = node.inputs, node.attrs["axis"]
    if len(parts) <= MOST_PARTS:
        return None
    groups = [parts[i : i + MOST_PARTS] for i in range(0, len(parts), MOST_PARTS)]
    return concatenate(*[concatenate(*g, axis=axis) for g in groups], axis=axis)


def _gather_of_lagging(node: Node) -> Replacement:
    """Rows of a whole lagged table: brings only these rows up to date."""
    table = node.inputs[0].node
    if op_of(table) is not lag_gather or op_of(table.inputs[1].node) is not iota:
        return None
    if node.attrs["axis"] or node.attrs["batch_dims"]:
        return None
    x, _, *rest = table.inputs
    return lag_gather(x, node.inputs[1], *rest, **table.attrs)


def _lagging_rows_in_place(node: Node) -> Sequence[Value] | None:
    """An update by a slice of columns, which are read in place."""
    indices, g, *rest = node.inputs
    cut = g.node
    if op_of(cut) is not slice_ or len(known(g.shape)) != 2 or {*cut.attrs["strides"]} != {1}:
        return None
    whole, (row, first) = cut.inputs[0], cut.attrs["begin"]
    if row or node.attrs["first"] or known(whole.shape)[0] != known(g.shape)[0]:
        return None
    rule = node.attrs["rule"]
    return lag_update.all(indices, whole, *rest, rule=rule, first=first)


WHOLE_RULES: dict[str, Callable[[Node], Sequence[Value] | None]] = {
    "flash_attention": heads_in_place,
    "flash_attention_grad": gradient_in_place,
    "lag_update": _lagging_rows_in_place,  # lag_update(i, g[:, a:b]) -> lag_update(i, g, first=a)
}
"""Rules of nodes with several outputs."""

RULES: dict[str, tuple[Rule, ...]] = {
    "identity": (_only_input,),  # identity(x) -> x
    "stop_gradient": (_only_input,),  # stop_gradient(x) -> x
    "cast": (_same_type,),  # cast(x, its own type) -> x
    "reshape": (
        _same_type,  # reshape(x, its own shape) -> x
        _reshape_of_reshape,  # reshape(reshape(x, s), t) -> reshape(x, t)
        _reshape_of_slice,  # reshape(slice(x)) -> slice(reshape(x)), where the last axis is split
    ),
    "broadcast_to": (_same_type,),  # broadcast_to(x, its own shape) -> x
    "transpose": (
        _identity_transpose,  # transpose(x, (0, 1, ...)) -> x
        _transpose_of_transpose,  # transpose(transpose(x, p), q) -> transpose(x, p[q])
        _transpose_of_unit_axes,  # transpose that moves axes of size 1 -> reshape
    ),
    "slice": (_whole_slice,),  # slice of everything, stride 1 -> x
    "concatenate": (
        _concatenate_of_slices,  # concatenate(x[:, :n], x[:, n:]) -> x
        _concatenate_of_reshapes,  # of reshapes -> reshape(concatenate(...))
        _concatenate_in_groups,  # concatenate(x, ..., z) -> concatenate(concatenate(x, ...), ...)
    ),
    "gather": (_gather_of_lagging,),  # gather(lag_gather(x, iota), i) -> lag_gather(x, i)
    "negative": (_twice,),  # -(-x) -> x
    "logical_not": (_twice,),  # not not x -> x
    "select": (_known_choice,),  # select(true, x, y) -> x, select(false, x, y) -> y
    "add": (
        _neutral(-0.0, left=True),  # x + 0 -> x
        _joined_parts,  # unslice(x) + unslice(y) -> concatenate(x, y)
    ),
    "add_n": (
        _joined_parts,  # add_n(unslice(x), unslice(y), ...) -> concatenate(x, y, ...)
        _sum_in_groups,  # add_n(x, y, ..., z) -> add_n(add_n(x, y, ...), ..., z)
    ),
    "subtract": (_neutral(0.0, left=False),),  # x - 0 -> x
    "multiply": (_neutral(1.0, left=True),),  # x * 1 -> x
    "divide": (_neutral(1.0, left=False),),  # x / 1 -> x
    "power": (_power,),  # x ** 1 -> x, x ** 2 -> square(x)
    "sum": (_reduce_of_units,),  # sum over axes of size 1 -> reshape
    "prod": (_reduce_of_units,),  # prod over axes of size 1 -> reshape
    "max": (_reduce_of_units,),  # max over axes of size 1 -> reshape
    "min": (_reduce_of_units,),  # min over axes of size 1 -> reshape
    "any": (_reduce_of_units,),  # any over axes of size 1 -> reshape
    "all": (_reduce_of_units,),  # all over axes of size 1 -> reshape
    "matmul": (_matmul_of_transpose,),  # matmul(transpose(x), y) -> matmul(x, y, transpose_x=True)
}
