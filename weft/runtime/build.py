"""From a step to a blueprint: launches in order, and a place in memory for every argument."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np

from weft.codegen.copy import copy
from weft.codegen.kernel import ERROR, Kernel, Launch, Scratch
from weft.codegen.lower import lower
from weft.codegen.target import Target
from weft.ir.extent import planned
from weft.ir.node import Node, TensorType, Value
from weft.ir.shape import known, size
from weft.ops import state
from weft.ops.base import op_of
from weft.ops.gather import gather, scatter_add
from weft.ops.lag import lag_gather
from weft.passes import memory
from weft.passes.fuse import Fused, fuse
from weft.passes.group import Group
from weft.passes.schedule import Schedule, schedule
from weft.passes.step import Step
from weft.runtime.call import Argument as Placement
from weft.runtime.call import External, InArena, Place
from weft.runtime.keep import handed_on, kept_launches


@dataclass(frozen=True)
class Feed:
    """Memory that the caller provides at each run."""

    index: int


@dataclass(frozen=True)
class Variable:
    """Memory of a state, bound once per state."""

    key: str
    type: TensorType


@dataclass(frozen=True, eq=False)
class Constant:
    """Memory that belongs to the program."""

    array: np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Kept:
    """Memory of the program, `size` bytes, that its prelude writes and its steps read."""

    size: int


LINE: Final = 64  # bytes: what is kept begins on one
MOST_EARLY: Final = 1 << 20  # bytes of a copy that is made early: it takes memory for longer
Source = Feed | Variable | Constant | Kept


@dataclass(frozen=True)
class Placed:
    """One launch with its arguments placed; a guarded one is left out once an error is set."""

    launch: Launch
    args: tuple[Placement, ...]
    guard: bool
    group: Group | None  # for messages and profiles; `None` for copies


@dataclass(frozen=True)
class Blueprint:
    """Everything about a program except addresses.

    The calls of the prelude have to run before the first step, and again once one of the feeds
    has changed that `step.lasting` names.
    """

    calls: tuple[Placed, ...]
    externals: tuple[Source, ...]
    arena: memory.Plan
    fetches: tuple[tuple[Place, TensorType], ...]
    names: dict[int, str]  # of the arena's buffers
    kept: tuple[str, ...]  # variables whose value before the step is used
    changed: tuple[str, ...]  # variables that the step changes
    step: Step
    fused: Fused
    prelude: tuple[Placed, ...]

    @property
    def kept_bytes(self) -> int:
        """Memory for what the prelude computes."""
        return sum(x.size for x in self.externals if isinstance(x, Kept))


def is_host(placed: Placed) -> bool:
    """Whether it is a call into Python."""
    return placed.group is not None and op_of(placed.group.nodes[0]) is state.host_call


def build(
    step: Step, target: Target, threads: int, fusing: bool = True,
    announce: Callable[[Kernel], None] | None = None,
) -> Blueprint:  # fmt: skip
    """Plan a simplified step.

    Args:
        step: what `weft.passes.pipeline.optimise` returned.
        target: the instruction set to lower to.
        threads: how many copies of per-thread scratch memory to plan.
        fusing: whether nodes may share a kernel.
        announce: called with every kernel as soon as its text is known.
    """
    fused = fuse(step, fusing)
    lowered: dict[Group, tuple[Launch, ...]] = {}
    told: set[int] = set()
    for group in fused.groups:
        lowered[group] = launches = _lower(group, target)
        if announce is None or op_of(group.nodes[0]) is state.host_call:
            continue
        kernels = [x.kernel for x in launches if not _only_checks(x)]  # which may be left out
        for kernel in [kernel for kernel in kernels if id(kernel) not in told]:
            told.add(id(kernel))
            announce(kernel)
    builder = _Builder(step, threads, fused, lowered)
    builder.order()
    builder.settle()
    return builder.finish()


def _lower(group: Group, target: Target) -> tuple[Launch, ...]:
    """The group's launches; a call into Python stands as one launch that is never compiled."""
    node = group.nodes[0]
    if op_of(node) is not state.host_call:
        return lower(group, target)
    writes = tuple(range(len(node.inputs), len(node.inputs) + len(node.outputs)))
    return (Launch(Kernel("host_call", ""), (*node.inputs, *node.outputs), writes, check=True),)


def _only_checks(launch: Launch) -> bool:
    """Whether a launch does nothing but look at indices."""
    return launch.check and not launch.writes


class _Builder:
    """The parts of a blueprint as they are decided."""

    def __init__(
        self, step: Step, threads: int, fused: Fused, lowered: dict[Group, tuple[Launch, ...]]
    ) -> None:
        self.step = step
        self.threads = threads
        self.fused = fused
        self.lowered = lowered
        self.launches: list[tuple[Launch, Group | None]] = []
        self.uses: dict[Value, dict[int, list[int]]] = {}  # value -> launch -> argument slots
        self.externals: dict[Value | Scratch, Source] = {}
        self.states: dict[str, Value] = {}  # key -> the variable's node's output
        for node in step.graph.nodes:
            self._external(node)
        self.adopted: dict[Value, str] = {}  # new value -> variable whose memory it is written to
        self.copied: dict[str, Value] = {}  # variable -> new value to copy at the end
        self.snapshots: dict[Value, Scratch] = {}  # old value that is needed after its update

    def _external(self, node: Node) -> None:
        match op_of(node):
            case state.placeholder:
                self.externals[node.outputs[0]] = Feed(self.step.feeds.index(node.name))
            case state.variable:
                (value,), key = node.outputs, str(node.attrs["key"])
                self.externals[value] = Variable(key, value.type)
                self.states[key] = value
            case state.CONSTANT:
                self.externals[node.outputs[0]] = Constant(node.attrs["value"].array)
            case _:
                pass

    # -- order

    def order(self) -> None:
        """Decide the order of launches and which updates are in place."""
        new = {key: self.fused.root(v) for key, v in self.step.new_values.items()}
        checks = self._checks()
        pairs = [(self.states.get(key), value) for key, value in new.items()]
        plan: Schedule = schedule(self.fused, pairs, checks)
        self.launches = self._copies_early([
            (x, g) for g in plan.groups for x in self.lowered[g]
            if g in checks or not _only_checks(x)
        ])  # fmt: skip
        for position, (launch, _) in enumerate(self.launches):
            for slot, argument in enumerate(launch.args):
                if isinstance(argument, Value):
                    places = self.uses.setdefault(self.fused.root(argument), {})
                    places.setdefault(position, []).append(slot)
        for key, value in new.items():
            if value is self.states.get(key):
                continue
            if value in plan.in_place and self._adoptable(key, value):
                self.adopted[value] = key
            else:
                self.copied[key] = value

    def _copies_early(
        self, launches: list[tuple[Launch, Group | None]]
    ) -> list[tuple[Launch, Group | None]]:
        """Launches that only lay a feed out follow the first reader of it: it is in cache then.

        And whoever leaves the program meanwhile (`weft/eager/ahead.py`) need not copy the feed.
        """
        found: list[tuple[Launch, Group | None]] = []
        readers: dict[Value | Scratch, int] = {}  # feed -> its first reader's place in `found`
        for launch, group in launches:
            feed = self._laid_out(launch)
            place = None if feed is None else readers.get(feed)
            if place is None:
                place = len(found) - 1
            else:
                readers = {x: i + (i > place) for x, i in readers.items()}
            found.insert(place + 1, (launch, group))
            for argument in launch.args:
                if isinstance(argument, Value):
                    readers.setdefault(self.fused.root(argument), place + 1)
        return found

    def _laid_out(self, launch: Launch) -> Value | None:
        """The feed that a launch copies to a little memory of its group, if it does no more."""
        values = [self.fused.root(x) for x in launch.args if isinstance(x, Value)]
        scratch = [x for x in launch.args if isinstance(x, Scratch)]
        room = sum(map(self._size, scratch))
        if len(values) != 1 or room > MOST_EARLY or len(launch.writes) != len(scratch):
            return None
        return values[0] if isinstance(self.externals.get(values[0]), Feed) else None

    def _checks(self) -> set[Group]:
        """Groups that may report a bad index, but those that a lookup would report before them.

        The gradient of a lookup comes at the end of a step, where no update should wait for it, nor
        a caller that waits for the loss: what only checks is left out there.
        """
        checks = {g for g, ls in self.lowered.items() if any(x.check for x in ls)}
        looked_up = {
            (self.fused.root(x.inputs[1]), known(x.inputs[0].shape)[x.attrs.get("axis", 0)])
            for g in checks
            if op_of(x := g.nodes[0]) in (gather, lag_gather)
        }
        return {
            g
            for g in checks
            if op_of(x := g.nodes[0]) is not scatter_add
            or (self.fused.root(x.inputs[1]), known(x.inputs[0].shape)[0]) not in looked_up
        }

    def _adoptable(self, key: str, value: Value) -> bool:
        """Whether `value` may be computed straight into the variable's memory."""
        old = self.states.get(key)
        if value in self.externals or value in self.adopted:
            return False
        if old is not None and (
            old.type.dtype is not value.dtype or size(old.shape) != size(value.shape)
        ):
            return False
        readings = self.uses.get(old, {}) if old is not None else {}
        written = False
        for position in sorted({*self.uses.get(value, {}), *readings}):
            launch = self.launches[position][0]
            writes = [i for i in launch.writes if launch.args[i] is value]
            reads = readings.get(position, ())
            if not writes and not (written and reads):
                continue
            if written and reads:
                return False
            written = True
            if any((w, r) not in launch.inplace for w in writes for r in reads):
                return False
        return written

    # -- memory

    def settle(self) -> None:
        """Add copies: old values that outlive their update, and updates that are not in place."""
        changed = {*self.adopted.values(), *self.copied}
        for value in self.step.fetches:
            self._snapshot(self.fused.root(value), changed)
        for value in self.copied.values():
            self._snapshot(value, changed)
        before = [
            (copy(value, scratch, self._bytes(value)), None)
            for value, scratch in self.snapshots.items()
        ]
        after: list[tuple[Launch, Group | None]] = []
        for key, value in self.copied.items():
            self.externals.setdefault(self._handle(key, value), Variable(key, value.type))
            source = self.snapshots.get(value, value)
            after.append((copy(source, self._handle(key, value), self._bytes(value)), None))
        self.launches = [*before, *self.launches, *after]

    def _snapshot(self, value: Value, changed: Iterable[str]) -> None:
        external = self.externals.get(value)
        if isinstance(external, Variable) and external.key in changed:
            self.snapshots.setdefault(value, Scratch(self._bytes(value)))

    def _handle(self, key: str, value: Value) -> Value:
        """A value that stands for the memory of a variable, also if nothing reads it."""
        if key not in self.states:
            kind = value.type
            attrs = {"key": key, "dtype": kind.dtype, "shape": kind.shape}
            node = self.step.graph.add("variable", (), attrs, (kind,), f"variable/{key}")
            self.states[key] = node.outputs[0]
        return self.states[key]

    @staticmethod
    def _bytes(value: Value) -> int:
        return size(value.shape) * value.dtype.size

    def finish(self) -> Blueprint:
        """Number the buffers, plan the arena, place every argument."""
        for value, key in self.adopted.items():
            self.externals[self._handle(key, value)] = Variable(key, value.type)
        kept = self._keep()
        ids: dict[Value | Scratch, int] = {}
        sizes: dict[int, int] = {}
        self.launches.sort(key=lambda pair: pair[0] not in kept)  # the prelude first
        steps = [self._memory_step(launch, ids, sizes) for launch, _ in self.launches]
        roots = [self.fused.root(v) for v in self.step.fetches]
        buffers = [self.snapshots.get(v, v) for v in roots]
        plan = memory.plan(steps, sizes, keep=[ids[b] for b in buffers if b in ids])
        outside = {value: i for i, value in enumerate(self.externals)}

        def place(argument: Value | Scratch) -> Place:
            buffer = self._buffer(argument)
            if buffer in ids:
                return InArena(plan.offsets[ids[buffer]], sizes[ids[buffer]])
            if buffer not in outside and not self._size(buffer):
                return InArena(0, 0)  # nothing is computed that has no elements
            return External(outside[buffer], self._size(buffer))

        checked = any(launch.check for launch, _ in self.launches)
        writable = {*self.adopted.values(), *self.copied} if checked else set[str]()

        def placement(argument: Value | Scratch | int) -> Placement:
            if isinstance(argument, int) or argument is ERROR:
                return cast(Placement, argument)
            return place(argument)

        calls = tuple(
            Placed(launch, tuple(map(placement, launch.args)), self._guarded(launch, writable), g)
            for launch, g in self.launches
        )
        fetches = tuple(
            (place(buffer), TensorType(v.dtype, known(v.shape)))
            for buffer, v in zip(buffers, self.step.fetches, strict=True)
        )
        names = {i: b.name for b, i in ids.items() if isinstance(b, Value)}
        return Blueprint(
            calls[len(kept) :], tuple(self.externals.values()), plan, fetches, names,
            tuple(self.states_read()), tuple(self.step.updates), self.step, self.fused,
            calls[: len(kept)],
        )  # fmt: skip

    def _keep(self) -> set[Launch]:
        """The launches of the prelude; what they hand on gets memory of its own."""
        if not self.step.lasting:
            return set()
        launches = [launch for launch, _ in self.launches]
        found = kept_launches(launches, self._buffer, self._stays, self.externals.__contains__)
        for buffer in handed_on(launches, found, self._buffer):
            self.externals[buffer] = Kept(-(-self._size(buffer) // LINE) * LINE)
        return {launches[i] for i in found}

    def _stays(self, external: Value | Scratch) -> bool:
        """Whether memory outside the arena is what it was before."""
        match self.externals[external]:
            case Constant():
                return True
            case Feed(index):
                return self.step.feeds[index] in self.step.lasting
            case _:
                return False

    def states_read(self) -> Iterable[str]:
        """Variables that must have a value before the step."""
        read = {
            self.fused.root(a)
            for launch, _ in self.launches
            for i, a in enumerate(launch.args)
            if isinstance(a, Value) and i not in launch.writes
        }
        read.update(self.fused.root(v) for v in self.step.fetches)
        read.update(self.copied.values())
        return (key for key, value in self.states.items() if value in read)

    def _guarded(self, launch: Launch, writable: set[str]) -> bool:
        """Whether a launch changes a variable and so must not run after a fault."""
        for i in launch.writes:
            argument = launch.args[i]
            if isinstance(argument, Value):
                external = self.externals.get(cast(Value, self._buffer(argument)))
                if isinstance(external, Variable) and external.key in writable:
                    return True
        return False

    def _buffer(self, argument: Value | Scratch) -> Value | Scratch:
        """The memory behind an argument: a variable's for an update in place."""
        if isinstance(argument, Scratch):
            return argument
        root = self.fused.root(argument)
        return self.states[self.adopted[root]] if root in self.adopted else root

    def _memory_step(
        self, launch: Launch, ids: dict[Value | Scratch, int], sizes: dict[int, int]
    ) -> memory.Step:
        numbers: list[int | None] = []
        for argument in launch.args:
            buffer = None if isinstance(argument, int) else self._buffer(argument)
            if buffer is None or buffer is ERROR or buffer in self.externals:
                numbers.append(None)
                continue
            if buffer not in ids:
                ids[buffer] = len(ids)
                sizes[ids[buffer]] = self._size(buffer)
            numbers.append(ids[buffer])
        reads = [n for i, n in enumerate(numbers) if n is not None and i not in launch.writes]
        writes = [n for i in launch.writes if (n := numbers[i]) is not None]
        pairs = [(numbers[w], numbers[r]) for w, r in launch.inplace]
        inplace = [(w, r) for w, r in pairs if w is not None and r is not None]
        return memory.Step(tuple(reads), tuple(writes), tuple(inplace))

    def _size(self, buffer: Value | Scratch) -> int:
        if isinstance(buffer, Value):
            return planned(self._bytes(buffer))
        return planned(buffer.size) * (self.threads if buffer.per_thread else 1)
