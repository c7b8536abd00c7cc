"""From a fused group to launches: kernel families for opaque nodes, loops for everything else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from weft.codegen.family.conv import conv, conv_grad_input, conv_grad_weight
from weft.codegen.family.matmul import matmul
from weft.codegen.kernel import Launch
from weft.codegen.loop.schedule import loops
from weft.codegen.target import Target
from weft.errors import CompileError
from weft.ops.base import Opaque, op_of
from weft.passes.group import Group

Family = Callable[[Group, Target], tuple[Launch, ...]]

FAMILIES: Final[dict[str, Family]] = {
    "matmul": matmul,
    "conv": conv,
    "conv_grad_input": conv_grad_input,
    "conv_grad_weight": conv_grad_weight,
}
"""Kernel families by the name that `Opaque` carries."""


def lower(group: Group, target: Target) -> tuple[Launch, ...]:
    """The launches that compute a group, in order.

    Raises:
        CompileError: there is no kernel for it; the message names the node.
    """
    first = group.nodes[0]
    lowering = op_of(first).lower
    if isinstance(lowering, Opaque):
        family = FAMILIES.get(lowering.family)
        if family is None:
            raise CompileError(f"{first.describe()}: there is no kernel for {first.op}")
        return family(group, target)
    return loops(group, target)
