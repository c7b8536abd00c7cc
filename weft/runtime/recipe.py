"""A compiled program as data: on disk, it spares the next process all planning and compiling.

The bytes are a length, JSON, and the contents of constants. Kernels are referred to by the keys of
their object code, which is stored beside it (`weft.runtime.compilation.cache`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weft.host.deferred import Deferred
from weft.ir.dtype import as_dtype
from weft.ir.node import Node, TensorType
from weft.ir.shape import Shape, known
from weft.ops.boundary.state import variable
from weft.ops.declaration import op_of
from weft.passes.blueprint import (
    Blueprint,
    Constant,
    Feed,
    Kept,
    Placed,
    Source,
    Stack,
    Variable,
    is_host,
)
from weft.passes.control.record import Cursor, Kind, Steer
from weft.passes.launch import ERROR, Kernel, Scratch
from weft.runtime.execution.call import Argument, Call, External, InArena, Place, Unbound
from weft.runtime.node_text import node_of, node_text

if TYPE_CHECKING:
    import json
else:
    json = Deferred("json")

MOST_CONSTANTS: Final = 64 << 20  # bytes: a program with more of them is not stored
_LENGTH: Final = 8


@dataclass(frozen=True)
class Recipe:
    """Everything that a run needs.

    Attributes:
        calls: in order; those into Python are `Unbound`.
        prelude: calls that come before the first step, as in `Blueprint`.
        arena: size in bytes.
        kept: variables whose value before the step is used.
        counters: where those among them start that are counters.
    """

    calls: tuple[Call, ...]
    prelude: tuple[Call, ...]
    externals: tuple[Source, ...]
    arena: int
    fetches: tuple[tuple[Place, TensorType], ...]
    kept: tuple[str, ...]
    counters: Mapping[str, int | None]

    def returning(self, fetches: int | None) -> Recipe:
        """The recipe of a program that returns so many of the fetches; `None`: all."""
        return self if fetches is None else replace(self, fetches=self.fetches[:fetches])


def recipe_of(blueprint: Blueprint) -> Recipe:
    """The recipe of a blueprint."""
    calls, prelude = (
        tuple([_call(number, placed) for number, placed in enumerate(side)])
        for side in (blueprint.calls, blueprint.prelude)
    )
    variables = [n for n in blueprint.step.graph.nodes if op_of(n) is variable]
    counters = {str(n.attrs["key"]): n.attrs["start"] for n in variables if n.attrs.get("counter")}
    return Recipe(
        calls, prelude, blueprint.externals, blueprint.arena.total, blueprint.fetches,
        blueprint.kept, {key: counters[key] for key in blueprint.kept if key in counters},
    )  # fmt: skip


def _call(number: int, placed: Placed) -> Call:
    launch, args = placed.launch, placed.args
    host = placed.group.nodes[0] if placed.group is not None and is_host(placed) else None
    if placed.steer is not None:
        return Call(placed.steer, args, ())
    if (
        launch.check and host is None
    ):  # the integer after the cell tells which call reported a fault
        tag = args.index(ERROR) + 1
        args = (*args[:tag], number, *args[tag + 1 :])
    return Call(
        launch.kernel if host is None else Unbound(host), args, launch.writes, launch.chunks,
        launch.flops, launch.bytes, launch.check, placed.guard,
    )  # fmt: skip


# -- to bytes


def dump(recipe: Recipe, key_of: Callable[[Kernel], str]) -> bytes | None:
    """A recipe as bytes; `None` if it is too large, or what Python computes in it has no text.

    Args:
        key_of: the cache key of a kernel's object code.
    """
    arrays = [source.array for source in recipe.externals if isinstance(source, Constant)]
    functions = [call.function for call in (*recipe.prelude, *recipe.calls)]
    number: dict[Kernel, int] = {}
    nodes: dict[Node, str] = {}
    for function in functions:
        if isinstance(function, Kernel):
            number.setdefault(function, len(number))
        elif isinstance(function, Unbound):
            text = node_text(function.node)
            if text is None:
                return None
            nodes[function.node] = text
    if sum([array.nbytes for array in arrays]) > MOST_CONSTANTS:
        return None
    head = {
        "kernels": [(kernel.name, key_of(kernel)) for kernel in number],
        "calls": [_call_as_data(call, number, nodes) for call in recipe.calls],
        "prelude": [_call_as_data(call, number, nodes) for call in recipe.prelude],
        "externals": [_source(source) for source in recipe.externals],
        "arena": recipe.arena,
        "fetches": [(_argument(place), _type(kind)) for place, kind in recipe.fetches],
        "kept": recipe.kept,
        "counters": recipe.counters,
    }  # fmt: skip
    text = json.dumps(head, separators=(",", ":")).encode()
    contents = [np.ascontiguousarray(array).tobytes() for array in arrays]
    return b"".join([len(text).to_bytes(_LENGTH, "little"), text, *contents])


def _call_as_data(
    call: Call, number: Mapping[Kernel, int], nodes: Mapping[Node, str]
) -> tuple[Any, ...]:
    match call.function:
        case Kernel() as kernel:
            which: Any = number[kernel]
        case Unbound(node):
            which = nodes[node]
        case Steer() as steer:
            which = _steer(steer)
        case bound:
            raise TypeError(f"recipe: {bound} is of one program")
    return (
        which, [_argument(a) for a in call.args], call.writes, call.chunks, call.flops, call.bytes,
        call.check, call.guard,
    )  # fmt: skip


def _steer(steer: Steer) -> tuple[Any, ...]:
    return (*astuple(steer)[:-1], [astuple(cursor) for cursor in steer.cursors])


def _read_steer(
    kind: int, loop: int, most: int, counted: int, tape: int, targets: Any, cursors: Any
) -> Steer:
    moving = tuple([Cursor(*row, swap=tuple(swap)) for *row, swap in cursors])
    return Steer(Kind(kind), loop, most, counted, tape, tuple(targets), moving)


def _argument(argument: Argument) -> Any:
    match argument:
        case InArena(offset, size):
            return 0, offset, size
        case External(index, size):
            return 1, index, size
        case Scratch():
            assert argument is ERROR
            return None
        case _:
            return argument


def _type(kind: TensorType) -> tuple[str, Shape]:
    return kind.dtype.name, kind.shape


def _source(source: Source) -> tuple[Any, ...]:
    match source:
        case Feed(index):
            return "feed", index
        case Variable(key, kind):
            return "variable", key, *_type(kind)
        case Constant(array):
            return "constant", as_dtype(array.dtype).name, array.shape
        case Kept(size):
            return "kept", size
        case Stack(tape, row, loop):
            return "stack", tape, row, loop


# -- and back


def load(data: bytes, texts: Mapping[str, Kernel] | None = None) -> Recipe:
    """The recipe that `dump` wrote.

    Args:
        texts: kernels by their keys, where they are not on disk.
    """
    texts = texts or {}
    size = int.from_bytes(data[:_LENGTH], "little")
    head = json.loads(data[_LENGTH : _LENGTH + size])
    kernels = [texts.get(key) or Kernel(name, "", key) for name, key in head["kernels"]]
    places: dict[tuple[int, int, int], Place] = {}
    calls, prelude = (
        tuple([
            Call(
                _read_function(which, kernels),
                tuple([_read(a, places) for a in args]), tuple(writes), chunks, flops, bytes_,
                check, guard,
            )
            for which, args, writes, chunks, flops, bytes_, check, guard in head[side]
        ])
        for side in ("calls", "prelude")
    )  # fmt: skip
    fetches = [(_place(place, places), _read_type(*kind)) for place, kind in head["fetches"]]
    return Recipe(
        calls, prelude, _sources(head["externals"], data[_LENGTH + size :]), head["arena"],
        tuple(fetches), tuple(head["kept"]), head["counters"],
    )  # fmt: skip


def _read_function(which: Any, kernels: Sequence[Kernel]) -> Kernel | Unbound | Steer:
    match which:
        case int():
            return kernels[which]
        case str():
            return Unbound(node_of(which))
        case _:
            return _read_steer(*which)


def _read(argument: Any, places: dict[tuple[int, int, int], Place]) -> Argument:
    if argument is None:
        return ERROR
    return argument if isinstance(argument, int) else _place(argument, places)


def _place(numbers: Sequence[int], places: dict[tuple[int, int, int], Place]) -> Place:
    kind, where, size = numbers
    found = places.get((kind, where, size))
    if found is None:
        found = External(where, size) if kind else InArena(where, size)
        places[kind, where, size] = found
    return found


def _read_type(dtype: str, shape: Sequence[int]) -> TensorType:
    return TensorType(as_dtype(dtype), tuple(shape))


def _sources(externals: Sequence[Any], contents: bytes) -> tuple[Source, ...]:
    found: list[Source] = []
    start = 0
    for kind, *fields in externals:
        if kind == "feed":
            found.append(Feed(fields[0]))
        elif kind == "kept":
            found.append(Kept(fields[0]))
        elif kind == "stack":
            found.append(Stack(*fields))
        elif kind == "variable":
            found.append(Variable(fields[0], _read_type(*fields[1:])))
        else:
            dtype, shape = _read_type(*fields)
            array = np.empty(known(shape), dtype.numpy)
            end = start + array.nbytes
            array.reshape(-1).view(np.uint8)[:] = np.frombuffer(contents[start:end], np.uint8)
            found.append(Constant(array))
            start = end
    return tuple(found)
