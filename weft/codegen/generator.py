"""The code generator, as `weft.passes.pipeline` calls it."""

from __future__ import annotations

from dataclasses import dataclass

from weft.codegen.copy import copy
from weft.codegen.lower import lower
from weft.codegen.python_call import python_call
from weft.codegen.serial_loop import serial_launch
from weft.codegen.target import Target
from weft.ops.declaration import is_hosted
from weft.passes.group import Group
from weft.passes.launch import Argument, Launch, SerialLoop


@dataclass(frozen=True)
class Generator:
    """Launches for one instruction set."""

    target: Target

    def lower(self, group: Group) -> tuple[Launch, ...]:
        """The group's launches; a call into Python is one launch that is never compiled."""
        node = group.nodes[0]
        if not is_hosted(node):
            return lower(group, self.target)
        return (python_call(node),)

    def serial(self, name: str, loop: SerialLoop) -> Launch | None:
        """Some iterations of a loop; `None` if its kernels cannot be called from one."""
        return serial_launch(name, loop)

    def copy(self, source: Argument, target: Argument, size: int) -> Launch:
        """Copies `size` bytes between buffers that do not overlap."""
        return copy(source, target, size)
