"""Operations that call Python in a step, on arrays that are the program's memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from weft.errors import UserOpError, WeftError
from weft.host.deferred import Deferred
from weft.ir.shape import compatible
from weft.ops.declaration import Opaque, op_of, writes_into
from weft.passes.blueprint import External, InArena, Place, Placed
from weft.runtime.execution.call import NativeCall
from weft.runtime.memory.views import ProgramMemory

if TYPE_CHECKING:
    from weft.codegen import all_reduce
else:
    all_reduce = Deferred("weft.codegen.all_reduce")


def native_call(placed: Placed, memory: ProgramMemory) -> NativeCall | None:
    """A call that native code makes, and Python where that cannot; `None` for most."""
    assert placed.group is not None
    node = placed.group.nodes[0]
    lower = op_of(node).lower
    found = lower.native(node) if isinstance(lower, Opaque) and lower.native else None
    if found is None:
        return None
    kernel = all_reduce.kernel(found.name, found.dtype, found.members)
    if kernel is None:
        return None
    whole = host_function(placed, memory)

    def call() -> None:
        if not found.is_shown:
            whole()
            return
        try:
            found.wait()
        except WeftError as error:
            raise type(error)(f"{node.op}: {error}: {node.describe()}") from error.__cause__

    return NativeCall(kernel, call, found)


def host_function(placed: Placed, memory: ProgramMemory) -> Callable[[], None]:
    """A function without arguments that reads a call's inputs, computes, and writes its outputs.

    Its errors name the node and the user's line.
    """
    assert placed.group is not None
    node = placed.group.nodes[0]
    op, attrs = op_of(node), dict(node.attrs)
    compute = op.fast or op.reference
    count = len(node.inputs)
    inputs = [
        memory.reader(_place(a), v.type)
        for a, v in zip(placed.args[:count], node.inputs, strict=True)
    ]
    into = writes_into(node)
    if into is not None:
        places = [
            memory.reader(_place(a), v.type)
            for a, v in zip(placed.args[count:], node.outputs, strict=True)
        ]

        def fill() -> None:
            try:
                into([read() for read in inputs], [read() for read in places], **attrs)
            except WeftError as error:
                raise type(error)(f"{node.op}: {error}: {node.describe()}") from error.__cause__

        return fill
    outputs = [
        memory.writer(_place(a), v.type)
        for a, v in zip(placed.args[count:], node.outputs, strict=True)
    ]

    def call() -> None:
        try:
            results = compute(*[read() for read in inputs], **attrs)
        except WeftError as error:
            raise type(error)(f"{node.op}: {error}: {node.describe()}") from error.__cause__
        for write, array, value in zip(outputs, results, node.outputs, strict=True):
            if not compatible(array.shape, value.shape):
                raise UserOpError(
                    f"{node.op}: expected a result of shape {value.shape}, "
                    f"got {array.shape}: {node.describe()}"
                )
            write(array)

    return call


def _place(argument: object) -> Place:
    assert isinstance(argument, InArena | External)
    return argument
