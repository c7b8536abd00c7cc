"""The code generator, as `weft.passes.pipeline` calls it."""

from __future__ import annotations

from dataclasses import dataclass

from weft.codegen.copy import copy
from weft.codegen.lower import lower
from weft.codegen.serial_loop import serial_launch
from weft.codegen.target import Target
from weft.ops.declaration import is_hosted, writes_into
from weft.passes.group import Group
from weft.passes.launch import Argument, Kernel, Launch, SerialLoop


@dataclass(frozen=True)
class Generator:
    """Launches for one instruction set."""

    target: Target

    def lower(self, group: Group) -> tuple[Launch, ...]:
        """The group's launches; a call into Python is one launch that is never compiled."""
        node = group.nodes[0]
        if not is_hosted(node):
            return lower(group, self.target)
        count, total = len(node.inputs), len(node.inputs) + len(node.outputs)
        args, kernel = (*node.inputs, *node.outputs), Kernel(node.op, "")
        pairs = [(total - i, count - i) for i in range(1, min(count, total - count) + 1)]
        inplace = tuple(pairs) if writes_into(node) is not None else ()
        return (Launch(kernel, args, tuple(range(count, total)), inplace=inplace, check=True),)

    def serial(self, name: str, loop: SerialLoop) -> Launch | None:
        """Some iterations of a loop; `None` if its kernels cannot be called from one."""
        return serial_launch(name, loop)

    def copy(self, source: Argument, target: Argument, size: int) -> Launch:
        """Copies `size` bytes between buffers that do not overlap."""
        return copy(source, target, size)
