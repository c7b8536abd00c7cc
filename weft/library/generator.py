"""The library as a code generator: launches of programs whose kernels are there already."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from weft.codegen.copy import copy
from weft.codegen.python_call import python_call
from weft.codegen.target import Target
from weft.errors import CompileError
from weft.library.collapse import collapsed
from weft.library.entry import copying, entry_of, link
from weft.library.form import UnsizedError
from weft.library.literal import without_constants
from weft.library.variant import Code, Number, Template
from weft.ops.declaration import is_hosted
from weft.passes.group import Group
from weft.passes.launch import (
    BYTES_PER_NS,
    ERROR,
    Argument,
    Buffer,
    Kernel,
    Launch,
    Scratch,
    SerialLoop,
)


class LibraryGenerator:
    """Launches of library kernels, in place of kernels that are compiled for a program."""

    def __init__(self, target: Target) -> None:
        self._target: Final = target
        self._codes: dict[Kernel, Code] = {}

    def lower(self, group: Group) -> tuple[Launch, ...]:
        """See `weft.passes.launch.Generator`.

        Raises:
            CompileError: the library has no kernels for it.
        """
        node = group.nodes[0]
        if is_hosted(node):
            return (python_call(node),)
        group = without_constants(group)
        like = collapsed(group)
        try:
            entry, sizes = entry_of(like, self._target)
        except UnsizedError:
            raise CompileError(f"{node.op}: the library has no kernels for it") from None
        variant = entry.at(like, sizes)
        values: list[Buffer] = [*group.inputs, *[v for n in group.all_nodes for v in n.outputs]]
        values += [Scratch(_number(size), each) for size, each in variant.scratch]
        return tuple([self._launch(x, values, len(group.inputs)) for x in variant.templates])

    def _launch(self, template: Template, values: list[Buffer], inputs: int) -> Launch:
        args: list[Argument] = [_number(x) for x in template.slots]
        for slot, number in template.buffers:
            args[slot] = values[number]
        check = template.error >= 0
        if check:
            args[template.error] = ERROR
        writes = tuple([slot for slot, number in template.buffers if number >= inputs])
        return Launch(
            self._noted(template.code), tuple(args), writes, _number(template.chunks),
            bytes=BYTES_PER_NS * template.ns, check=check,
        )  # fmt: skip

    def copy(self, source: Argument, target: Argument, size: int) -> Launch:
        """See `weft.passes.launch.Generator`."""
        code = copying(self._target)
        return copy(source, target, size, self._noted(code))

    def serial(self, name: str, loop: SerialLoop) -> Launch | None:
        """Loops with short iterations have kernels of their own, never of the library."""
        raise AssertionError(name, loop)

    def addresses(self) -> Mapping[Kernel, int]:
        """The addresses of all kernels of its launches.

        Raises:
            CompileError: LLVM rejected a kernel.
            NoCompilerError: a kernel is missing, and there is no compiler.
        """
        link([code for code in self._codes.values() if not code.address])
        return {kernel: code.address for kernel, code in self._codes.items()}

    def _noted(self, code: Code) -> Kernel:
        self._codes[code.kernel] = code
        return code.kernel


def _number(number: Number) -> int:
    assert isinstance(number, int)
    return number
