"""The library as a code generator: launches of programs whose kernels are there already."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Final

from weft.codegen.copy import copy
from weft.codegen.python_call import python_call
from weft.codegen.target import Target
from weft.errors import CompileError
from weft.ir.shape import is_static
from weft.library.collapse import collapsed
from weft.library.entry import copying, entry_of, link, there
from weft.library.form import UnsizedError
from weft.library.literal import without_constants
from weft.library.variant import Code, Number, Template, Variant
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
        self._found: dict[Group, tuple[Group, Variant]] = {}  # what `has` has found

    def has(self, group: Group) -> bool:
        """Whether the library has kernels of a group already."""
        if group not in self._found and _is_sized(group):
            own = without_constants(group)
            like = collapsed(own)
            with contextlib.suppress(UnsizedError):
                variant = there(like, self._target)
                if variant is not None:
                    self._found[group] = own, variant
        return group in self._found

    def lower(self, group: Group) -> tuple[Launch, ...]:
        """See `weft.passes.launch.Generator`.

        Raises:
            CompileError: the library has no kernels for it.
        """
        node = group.nodes[0]
        if is_hosted(node):
            return (python_call(node),)
        found = self._found.get(group)
        group, variant = self._made(without_constants(group)) if found is None else found
        values: list[Buffer] = [*group.inputs, *[v for n in group.all_nodes for v in n.outputs]]
        values += [Scratch(_number(size), each) for size, each in variant.scratch]
        return tuple([self._launch(x, values, len(group.inputs)) for x in variant.templates])

    def _made(self, group: Group) -> tuple[Group, Variant]:
        like = collapsed(group)
        try:
            entry, sizes = entry_of(like, self._target)
        except UnsizedError:
            raise CompileError(f"{group.name}: the library has no kernels for it") from None
        return group, entry.at(like, sizes)

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


def _is_sized(group: Group) -> bool:
    """Whether all its values have sizes: loops' stacks have none."""
    values = [*group.inputs, *[v for node in group.all_nodes for v in node.outputs]]
    return all([is_static(v.shape) for v in values])


def _number(number: Number) -> int:
    assert isinstance(number, int)
    return number
