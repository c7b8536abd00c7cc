"""From a fused group to launches: kernel families for opaque nodes, loops for everything else."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Final

from weft.codegen.attention.backward import flash_attention_grad
from weft.codegen.attention.forward import flash_attention
from weft.codegen.attention.single import query_attention
from weft.codegen.contraction.matmul import matmul
from weft.codegen.convolution.conv import conv, conv_grad_input, conv_grad_weight
from weft.codegen.copy import slice_as_copy
from weft.codegen.extents import extents_of, with_extents
from weft.codegen.family.argreduce import argreduce
from weft.codegen.family.check import check
from weft.codegen.family.cumulative import cumulative
from weft.codegen.family.gather import gather
from weft.codegen.family.lag import lag_gather, lag_update
from weft.codegen.family.moments import column_moments
from weft.codegen.family.scatter import scatter
from weft.codegen.family.sort import sort, top_k
from weft.codegen.family.window import avg_pool, avg_pool_grad, max_pool, max_pool_grad
from weft.codegen.loop.schedule import loops
from weft.codegen.recurrent.backward import lstm_sequence_grad
from weft.codegen.recurrent.forward import lstm_sequence
from weft.codegen.sparse.csr import csr_matmul, csr_sampled_matmul, segment
from weft.codegen.sparse.index import csr_indptr, csr_order, csr_rows
from weft.codegen.target import Target
from weft.errors import CompileError
from weft.ir.node import Value
from weft.ops.boundary.state import CONSTANT
from weft.ops.declaration import Opaque, op_of
from weft.passes.group import Group
from weft.passes.launch import ERROR, Argument, Launch, Scratch

Family = Callable[[Group, Target], tuple[Launch, ...]]

FAMILIES: Final[dict[str, Family]] = {
    "matmul": matmul,
    "conv": conv,
    "conv_grad_input": conv_grad_input,
    "conv_grad_weight": conv_grad_weight,
    "gather": gather,
    "lag_gather": lag_gather,
    "lag_update": lag_update,
    "scatter": scatter,
    "argreduce": argreduce,
    "column_moments": column_moments,
    "cumulative": cumulative,
    "check": check,
    "sort": sort,
    "top_k": top_k,
    "max_pool": max_pool,
    "max_pool_grad": max_pool_grad,
    "avg_pool": avg_pool,
    "avg_pool_grad": avg_pool_grad,
    "flash_attention": flash_attention,
    "flash_attention_grad": flash_attention_grad,
    "query_attention": query_attention,
    "lstm_sequence": lstm_sequence,
    "lstm_sequence_grad": lstm_sequence_grad,
    "csr_indptr": csr_indptr,
    "csr_order": csr_order,
    "csr_rows": csr_rows,
    "csr_matmul": csr_matmul,
    "csr_sampled_matmul": csr_sampled_matmul,
    "segment": segment,
}
"""Kernel families by the name in `Opaque`."""
FOR_MANY: Final = frozenset(
    {
        matmul,
        conv,
        conv_grad_input,
        conv_grad_weight,
        gather,
        scatter,
        max_pool,
        max_pool_grad,
        avg_pool,
        avg_pool_grad,
        flash_attention,
        flash_attention_grad,
        query_attention,
    }
)
"""Families whose kernels support sizes that differ from run to run."""


def lower(group: Group, target: Target) -> tuple[Launch, ...]:
    """The launches that compute a group, in order; cached by the group's structure.

    Raises:
        CompileError: there is no kernel for it; the message names the node.
    """
    key = (target, structure(group))
    pattern = _patterns.get(key)
    if pattern is None:
        if len(_patterns) >= MOST_PATTERNS:
            _patterns.clear()
        pattern = _patterns[key] = (group, written(group, target))
    return _instance(group, *pattern)


def written(group: Group, target: Target) -> tuple[Launch, ...]:
    """`lower` without the cache, for groups with extents, which are equal only to themselves."""
    return tuple([with_extents(x, group) for x in _lower(group, target)])


MOST_PATTERNS: Final = 4096
_patterns: dict[tuple[Target, Hashable], tuple[Group, tuple[Launch, ...]]] = {}


def structure(group: Group) -> Hashable:
    """What a group computes, whatever its nodes are called: equal for equal kernels."""
    number: dict[Value, int] = {value: i for i, value in enumerate(group.inputs)}
    nodes: list[Hashable] = []
    for node in group.all_nodes:
        inputs = tuple([number[v] for v in node.inputs])
        nodes.append((node.op, inputs, tuple(node.attrs.items()), node.types))
        for value in node.outputs:
            number[value] = len(number)
    # A kernel may contain the elements of a constant, not only depend on its type.
    read = [v.node.attrs["value"] if op_of(v.node) is CONSTANT else v.type for v in group.inputs]
    outputs = tuple([number[v] for v in group.outputs])
    lasting = tuple([v in group.lasting for v in group.inputs])
    cuts = len(group.before), len(group.nodes), group.repeated
    return tuple(read), lasting, cuts, tuple(nodes), outputs


def _instance(group: Group, like: Group, launches: tuple[Launch, ...]) -> tuple[Launch, ...]:
    """The launches of the group `like`, applied to the values of a group of the same structure."""
    if group is like:
        return launches
    buffers: dict[Value | Scratch, Value | Scratch] = {ERROR: ERROR}
    buffers.update(zip(like.inputs, group.inputs, strict=True))
    for theirs, ours in zip(like.all_nodes, group.all_nodes, strict=True):
        buffers.update(zip(theirs.outputs, ours.outputs, strict=True))

    def argument(old: Argument) -> Argument:
        if isinstance(old, int):
            return old
        if old not in buffers:  # scratch memory is not shared
            assert isinstance(old, Scratch)
            buffers[old] = Scratch(old.size, old.per_thread)
        return buffers[old]

    return tuple(replace(x, args=tuple(map(argument, x.args))) for x in launches)


def _lower(group: Group, target: Target) -> tuple[Launch, ...]:
    first = group.nodes[0]
    lowering = op_of(first).lower
    if isinstance(lowering, Opaque):
        family = FAMILIES.get(lowering.family)
        if family is None:
            raise CompileError(f"{first.describe()}: there is no kernel for {first.op}")
        if family not in FOR_MANY and extents_of(group) is not None:
            raise CompileError(f"{first.describe()}: there is no kernel for more than one size")
        return family(group, target)
    alone = len(group.all_nodes) == 1 and extents_of(group) is None
    part = slice_as_copy(first) if alone else None
    return loops(group, target) if part is None else (part,)
