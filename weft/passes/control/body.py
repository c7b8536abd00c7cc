"""The launches of a loop body or a branch, on values of its own."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from weft.ir.function import Function
from weft.ir.graph import Graph
from weft.ir.node import Node, Value
from weft.ir.shape import size
from weft.ops.boundary.state import CONSTANT
from weft.ops.declaration import op_of
from weft.passes.group import Fused, Group
from weft.passes.launch import Buffer, Flat, Launch, SerialLoop, Slice
from weft.passes.schedule import schedule
from weft.passes.step import Step

Lower = Callable[[Step], tuple[Fused, dict[Group, tuple[Launch, ...]]]]
"""The groups of a step, and the launches of each."""
Copy = Callable[[Buffer, Buffer, int], Launch]


@dataclass(frozen=True)
class Planner:
    """Generates launches of bodies.

    Attributes:
        serial: `None` where loops with short iterations have launches as all others.
    """

    lower: Lower
    copy: Copy
    serial: Callable[[str, SerialLoop], Launch | None] | None


@dataclass(frozen=True)
class Body:
    """Launches of a body, in order.

    Attributes:
        inputs: values that stand for its inputs.
        outputs: values that own the memory of its outputs.
        written: values that its launches write.
        in_place: outputs written after every read of the input at the same position.
    """

    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    flat: Flat
    written: AbstractSet[Value]
    in_place: AbstractSet[int] = field(default=frozenset[int]())

    @property
    def checks(self) -> bool:
        """Whether it may report a bad index."""
        return any([launch.check for launch, _ in self.flat.launches])


def plan_body(
    function: Function, planner: Planner, carried: int = 0, changing: int | None = None
) -> Body:
    """The launches of a function.

    Args:
        carried: how many leading outputs replace the inputs at the same positions.
        changing: how many inputs differ between iterations of a loop; `None` if it is none.
    """
    graph, inputs = _copied(function)
    names = [v.node.name for v in inputs]
    lasting = frozenset[str]() if changing is None else frozenset(names[changing:])
    step = Step(graph, tuple(names), (), lasting, changing is not None)
    fused, lowered = planner.lower(step)
    roots = tuple([fused.root(v) for v in graph.outputs])
    pairs = [(inputs[i], roots[i]) for i in range(carried)]
    order = schedule(fused, pairs)
    flat = Flat(aliases=dict(fused.aliases))
    for node in graph.nodes:
        if op_of(node) is CONSTANT:
            flat.constants[node] = None
    for group in order.groups:
        for launch in lowered[group]:
            flat.add(launch, group)
    uses = Uses(flat)
    candidates = [i for i, (_, new) in enumerate(pairs) if new in order.in_place]
    safe = {i for i in candidates if uses.overwrites(*pairs[i])}
    return Body(inputs, roots, flat, uses.written, frozenset(safe))


_serial: Final = count()


def _copied(function: Function) -> tuple[Graph, tuple[Value, ...]]:
    """A copy of the function's nodes, since several loops may share a body."""
    graph = Graph()
    mapped: dict[Value, Value] = {}
    mark = f"@{next(_serial)}"

    def copy(node: Node) -> None:
        inputs = tuple([mapped[v] for v in node.inputs])
        new = Node(
            node.op, inputs, node.attrs, node.types, node.name + mark, node.operands,
            device=node.device, source=node.source,
        )  # fmt: skip
        mapped.update(zip(node.outputs, graph.append(new).outputs, strict=True))

    for value in function.inputs:
        copy(value.node)
    for node in function.nodes:
        copy(node)
    graph.outputs = tuple([mapped[v] for v in function.outputs])
    return graph, tuple([mapped[v] for v in function.inputs])


class Uses:
    """Which launches read and write which memory."""

    def __init__(self, flat: Flat) -> None:
        self._flat = flat
        self.reads: dict[Buffer, dict[int, list[int]]] = {}  # buffer -> launch -> argument slots
        self.writes: dict[Buffer, dict[int, list[int]]] = {}
        for position, (launch, _) in enumerate(flat.launches):
            for slot, argument in enumerate(launch.args):
                if not isinstance(argument, int):
                    side = self.writes if slot in launch.writes else self.reads
                    places = side.setdefault(owner(argument, flat), {})
                    places.setdefault(position, []).append(slot)

    @property
    def written(self) -> frozenset[Value]:
        """The values that are written."""
        return frozenset([buffer for buffer in self.writes if isinstance(buffer, Value)])

    def overwrites(self, old: Value, new: Value) -> bool:
        """Whether `new` may be written where `old` lies: after all reads, or element by element.

        Otherwise it needs memory of its own. Its writers may be in inner loops, after whose first
        write nobody may read `old`.
        """
        readings, writings = self.reads.get(old, {}), self.writes.get(new, {})
        same = old.dtype is new.dtype and size(old.shape) == size(new.shape)
        if not writings or old in self.writes or not same:
            return False
        first = min(writings)
        launch = self._flat.launches[first][0]
        if any(position > first for position in readings):
            return False
        pairs = [(w, r) for w in writings[first] for r in readings.get(first, ())]
        return all(pair in launch.inplace for pair in pairs)


def owner(buffer: Buffer, flat: Flat) -> Buffer:
    """The buffer that owns the memory of another one, or of which that is a part."""
    while True:
        while isinstance(buffer, Value) and buffer in flat.aliases:
            buffer = flat.aliases[buffer]
        view = flat.views.get(buffer)
        if view is None:
            return buffer
        buffer = view.whole if isinstance(view, Slice) else view.even
