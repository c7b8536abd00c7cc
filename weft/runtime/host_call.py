"""Operations that call Python in a step, on arrays that are the program's memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.errors import UserOpError, WeftError
from weft.host.deferred import Deferred
from weft.ir.node import Node, TensorType
from weft.ir.shape import compatible, known
from weft.ops.declaration import Opaque, op_of, writes_into
from weft.passes.blueprint import Argument, External, InArena, Place
from weft.runtime.execution.call import NativeCall
from weft.runtime.memory.address import array_at
from weft.runtime.memory.views import ProgramMemory

if TYPE_CHECKING:
    from weft.codegen import all_reduce
else:
    all_reduce = Deferred("weft.codegen.all_reduce")


Array = np.ndarray[Any, Any]


def native_call(node: Node, python: Callable[[int], None]) -> NativeCall | None:
    """A call that native code makes, and Python where that cannot; `None` for most."""
    lower = op_of(node).lower
    found = lower.native(node) if isinstance(lower, Opaque) and lower.native else None
    if found is None:
        return None
    kernel = all_reduce.kernel(found.name, found.dtype, found.members)
    if kernel is None:
        return None

    def call(at: int) -> None:
        if not found.is_shown:
            python(at)
            return
        try:
            found.wait()
        except WeftError as error:
            raise type(error)(f"{node.op}: {error}: {node.describe()}") from error.__cause__

    return NativeCall(kernel, call, found)


Read = Callable[[int], Array]
"""The memory of an argument, given where the call's addresses are."""


def python_function(
    node: Node, args: Sequence[Argument], memory: ProgramMemory, moving: AbstractSet[int],
    describe: Callable[[], str],
) -> Callable[[int], None]:  # fmt: skip
    """A function that reads a call's inputs, computes, and writes its outputs.

    Args:
        moving: numbers of the arguments whose addresses change, as in a loop; the function is told
            where the call's addresses are.
        describe: gives the node's name and the user's line, for errors.
    """
    op, attrs = op_of(node), dict(node.attrs)
    compute = op.fast or op.reference
    count = len(node.inputs)
    types = [v.type for v in (*node.inputs, *node.outputs)]
    arguments = list(zip(range(len(types)), args, types, strict=True))
    inputs = [_reader(memory, *each, moving) for each in arguments[:count]]
    into = writes_into(node)
    if into is not None:
        places = [_reader(memory, *each, moving) for each in arguments[count:]]

        def fill(at: int) -> None:
            try:
                into([read(at) for read in inputs], [read(at) for read in places], **attrs)
            except WeftError as error:
                raise type(error)(f"{node.op}: {error}: {describe()}") from error.__cause__

        return fill
    outputs = [_writer(memory, *each, moving) for each in arguments[count:]]

    def call(at: int) -> None:
        try:
            results = compute(*[read(at) for read in inputs], **attrs)
        except WeftError as error:
            raise type(error)(f"{node.op}: {error}: {describe()}") from error.__cause__
        for write, array, value in zip(outputs, results, node.outputs, strict=True):
            if not compatible(array.shape, value.shape):
                raise UserOpError(
                    f"{node.op}: expected a result of shape {value.shape}, "
                    f"got {array.shape}: {describe()}"
                )
            write(at, array)

    return call


def _reader(
    memory: ProgramMemory, slot: int, argument: object, kind: TensorType, moving: AbstractSet[int]
) -> Read:
    if slot not in moving:
        read = memory.reader(_place(argument), kind)
        return lambda _: read()
    shape, dtype, offset = known(kind.shape), kind.dtype.numpy, 8 * slot

    def read_moved(at: int) -> Array:
        return array_at(ctypes.c_int64.from_address(at + offset).value, shape, dtype)

    return read_moved


def _writer(
    memory: ProgramMemory, slot: int, argument: object, kind: TensorType, moving: AbstractSet[int]
) -> Callable[[int, Array], None]:
    if slot not in moving:
        write = memory.writer(_place(argument), kind)
        return lambda _, array: write(array)
    read = _reader(memory, slot, argument, kind, moving)

    def write_moved(at: int, array: Array) -> None:
        read(at)[...] = array

    return write_moved


def _place(argument: object) -> Place:
    assert isinstance(argument, InArena | External)
    return argument
