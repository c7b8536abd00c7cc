"""From a fused group to launches: kernel families for opaque nodes, loops for everything else."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from weft.codegen.copy import slice_as_copy
from weft.codegen.extents import with_extents
from weft.codegen.llvm import QUICK
from weft.codegen.target import Target
from weft.errors import CompileError
from weft.host.deferred import Deferred
from weft.ir.extent import varies
from weft.ir.node import Value
from weft.ir.shape import is_static, size
from weft.ops.boundary.state import CONSTANT
from weft.ops.declaration import Opaque, op_of
from weft.passes.group import Group
from weft.passes.launch import ERROR, Argument, Launch, Scratch

if TYPE_CHECKING:
    from weft.codegen.loop import schedule
else:
    schedule = Deferred("weft.codegen.loop.schedule")

Family = Callable[[Group, Target], tuple[Launch, ...]]

FAMILIES: Final[dict[str, str]] = {
    "matmul": "contraction.matmul",
    "conv": "convolution.conv",
    "conv_grad_input": "convolution.conv",
    "conv_grad_weight": "convolution.conv",
    "gather": "family.gather",
    "lag_gather": "family.lag",
    "lag_update": "family.lag",
    "scatter": "family.scatter",
    "argreduce": "family.argreduce",
    "column_moments": "family.moments",
    "cumulative": "family.cumulative",
    "check": "family.check",
    "sort": "family.sort",
    "top_k": "family.sort",
    "max_pool": "family.window",
    "max_pool_grad": "family.window",
    "avg_pool": "family.window",
    "avg_pool_grad": "family.window",
    "flash_attention": "attention.forward",
    "flash_attention_grad": "attention.backward",
    "query_attention": "attention.single",
    "lstm_sequence": "recurrent.forward",
    "lstm_sequence_grad": "recurrent.backward",
    "csr_indptr": "sparse.index",
    "csr_order": "sparse.index",
    "csr_rows": "sparse.index",
    "csr_matmul": "sparse.csr",
    "csr_sampled_matmul": "sparse.csr",
    "segment": "sparse.csr",
}
"""The module of each kernel family, whose function has the name in `Opaque`.

It is imported when a group needs it: all of them are half of the time to load the generator.
"""


def family(name: str) -> Family:
    """The function of a kernel family."""
    found: Family = getattr(importlib.import_module(f"weft.codegen.{FAMILIES[name]}"), name)
    return found


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
        launches = written(group, target)
        pattern = _patterns[key] = (group, _quick(launches) if is_short(group) else launches)
    return _instance(group, *pattern)


SHORT: Final = 1024
"""Elements that a kernel reads and writes in less than about 0.5 us, even without optimization."""
FLOPS: Final = 2048
"""Likewise; see `weft.codegen.contraction.plain`."""


def is_short(group: Group) -> bool:
    """Whether its kernels run so briefly that how long it takes to compile them counts for more."""
    values = [*group.inputs, *[v for node in group.all_nodes for v in node.outputs]]
    if group.repeated or not all([is_static(v.shape) and not varies(v.shape) for v in values]):
        return False
    return sum([size(v.shape) for v in values]) < SHORT


def _quick(launches: Sequence[Launch]) -> tuple[Launch, ...]:
    return tuple([
        replace(x, kernel=replace(x.kernel, ir=QUICK + x.kernel.ir))
        if x.kernel.ir and x.inside is None and x.flops < FLOPS else x
        for x in launches
    ])  # fmt: skip


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
        name = lowering.family
        if name not in FAMILIES:
            raise CompileError(f"{first.describe()}: there is no kernel for {first.op}")
        return family(name)(group, target)
    part = slice_as_copy(first) if len(group.all_nodes) == 1 else None
    return schedule.loops(group, target) if part is None else (part,)
