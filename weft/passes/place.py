"""Place: orders the launches and assigns memory to every argument."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, cast

from weft.host.memory import LINE
from weft.ir.extent import planned
from weft.ir.node import Node, TensorType, Value
from weft.ir.shape import is_stack, known, size
from weft.ops.boundary import state
from weft.ops.declaration import is_hosted, is_region, op_of
from weft.ops.indexing.gather import gather, scatter_add
from weft.ops.indexing.lagged_table import lag_gather
from weft.ops.indexing.scatter import scatter_set
from weft.passes import memory
from weft.passes.blueprint import (
    Argument,
    Blueprint,
    Constant,
    External,
    Feed,
    InArena,
    Kept,
    Place,
    Placed,
    Source,
    Stack,
    Variable,
)
from weft.passes.control.body import owner
from weft.passes.control.cursor import steered, steers
from weft.passes.control.record import Tape
from weft.passes.group import Fused, Group, nbytes, row_bytes
from weft.passes.launch import ERROR, Flat, Launch, Scratch, moves
from weft.passes.prelude import handed_on, prelude_launches
from weft.passes.schedule import Schedule
from weft.passes.step import Step

MOST_EARLY: Final = 1 << 20  # bytes of a copy that may be made early: it occupies memory for longer
Copy = Callable[[Value | Scratch, Value | Scratch, int], Launch]


def only_checks(launch: Launch) -> bool:
    """Whether a launch only checks indices."""
    return launch.check and not launch.writes


class Placing:
    """Decides the parts of a blueprint, one after another.

    Args:
        step: a simplified step.
        threads: how many copies of per-thread scratch memory to plan.
        fused: its groups.
        lowered: the launches of each group.
        copy: makes a launch that copies bytes.
    """

    def __init__(
        self, step: Step, threads: int, fused: Fused,
        lowered: Mapping[Group, tuple[Launch, ...]], copy: Copy,
    ) -> None:  # fmt: skip
        self.step = step
        self.threads = threads
        self.fused = fused
        self.lowered = lowered
        self.copy = copy
        self.launches: list[tuple[Launch, Group | None]] = []
        self.uses: dict[Value, dict[int, list[int]]] = {}  # value -> launch -> argument slots
        self.externals: dict[Value | Scratch, Source] = {}
        self.states: dict[str, Value] = {}  # key -> the variable's node's output
        self._feed_of = {name: i for i, name in enumerate(step.feeds)}
        self.flat = Flat(aliases=dict(fused.aliases))  # including those of loop bodies and branches
        for launch in [launch for launches in lowered.values() for launch in launches]:
            if launch.inside is not None:
                self.flat.include(launch.inside)
        for node in (*step.graph.nodes, *self.flat.constants):
            self._external(node)
        self.tapes = self._stacks()
        self.checks = self._checks()
        self.adopted: dict[Value, str] = {}  # new value -> variable whose memory it is written to
        self.copied: dict[str, Value] = {}  # variable -> new value to copy at the end
        self.ids: dict[Value | Scratch, int] = {}  # of buffers in the arena
        self.sizes: dict[int, int] = {}  # of these, in bytes
        self.kept = 0  # how many launches the prelude has
        self.snapshots: dict[Value, Scratch] = {}  # old value that is needed after its update

    def _external(self, node: Node) -> None:
        match op_of(node):
            case state.placeholder:
                self.externals[node.outputs[0]] = Feed(self._feed_of[node.name])
            case state.variable:
                (value,), key = node.outputs, str(node.attrs["key"])
                self.externals[value] = Variable(key, value.type)
                self.states[key] = value
            case state.CONSTANT:
                self.externals[node.outputs[0]] = Constant(node.attrs["value"].array)
            case _:
                pass

    def _stacks(self) -> dict[Tape, int]:
        """Numbers of the tapes, including those of loops that call Python."""
        stacks = self.flat.stacks
        for node in filter(is_hosted, self.step.graph.nodes):
            tape = Tape(node)
            stacks.update({v: (tape, row_bytes(v)) for v in node.outputs if is_stack(v.shape)})
        numbers: dict[Tape, int] = {}
        for value, (tape, row) in stacks.items():
            number = numbers.setdefault(tape, len(numbers))
            self.externals[value] = Stack(number, row, tape.loop.describe())
        return numbers

    # -- order

    def wishes(self) -> tuple[list[tuple[Value | None, Value]], set[Group]]:
        """For scheduling: old and new value of each update, and groups that check indices."""
        pairs = [(self.states.get(key), value) for key, value in self._updates().items()]
        return pairs, self.checks

    def _updates(self) -> dict[str, Value]:
        return {key: self.fused.root(v) for key, v in self.step.new_values.items()}

    def order(self, plan: Schedule) -> None:
        """Orders the launches, and decides which updates are in place."""
        for launch, group in self._copies_early([
            (x, g) for g in plan.groups for x in self.lowered[g]
            if g in self.checks or not only_checks(x)
        ]):  # fmt: skip
            self.flat.add(launch, group)
        self.launches = self.flat.launches
        for position, (launch, _) in enumerate(self.launches):
            for slot, argument in enumerate(launch.args):
                value = None if isinstance(argument, int) else owner(argument, self.flat)
                if isinstance(value, Value):
                    places = self.uses.setdefault(value, {})
                    places.setdefault(position, []).append(slot)
        for key, value in self._updates().items():
            if value is self.states.get(key):
                continue
            if value in plan.in_place and self._adoptable(key, value):
                self.adopted[value] = key
            else:
                self.copied[key] = value

    def _copies_early(
        self, launches: list[tuple[Launch, Group | None]]
    ) -> list[tuple[Launch, Group | None]]:
        """Moves launches that only pack a feed to its first reader, while the feed is in cache.

        Then a caller that leaves the program running (`weft.eager.record.run.async_execution`) need
        not copy the feed.
        """
        found: list[list[tuple[Launch, Group | None]]] = []  # a launch, and the launches after it
        readers: dict[Value | Scratch, int] = {}  # feed -> position in `found` of its first reader
        for launch, group in launches:
            feed = self._laid_out(launch)
            place = None if feed is None else readers.get(feed)
            if place is not None:
                found[place].append((launch, group))
                continue
            for argument in launch.args:
                if isinstance(argument, Value):
                    readers.setdefault(self.fused.root(argument), len(found))
            found.append([(launch, group)])
        return [pair for pairs in found for pair in pairs]

    def _laid_out(self, launch: Launch) -> Value | None:
        """The feed that a launch only copies to a small buffer of its group, or `None`."""
        values = [self.fused.root(x) for x in launch.args if isinstance(x, Value)]
        scratch = [x for x in launch.args if isinstance(x, Scratch)]
        room = sum(map(self._size, scratch))
        if len(values) != 1 or room > MOST_EARLY or len(launch.writes) != len(scratch):
            return None
        return values[0] if isinstance(self.externals.get(values[0]), Feed) else None

    def _checks(self) -> set[Group]:
        """Groups that may report a bad index, unless a lookup reports it before them.

        The gradient of a lookup comes at the end of a step. No update should wait for its checks,
        nor a caller that waits for the loss, so launches that only check are dropped there.
        """
        checks = {g for g, ls in self.lowered.items() if any(x.check or x.inside for x in ls)}
        looked_up = {
            (self.fused.root(x.inputs[1]), known(x.inputs[0].shape)[x.attrs.get("axis", 0)])
            for g in checks
            if op_of(x := g.nodes[0]) in (gather, lag_gather)
        }
        return {
            g
            for g in checks
            if op_of(x := g.nodes[0]) not in (scatter_add, scatter_set)
            or (self.fused.root(x.inputs[1]), known(x.inputs[0].shape)[0]) not in looked_up
        }

    def _adoptable(self, key: str, value: Value) -> bool:
        """Whether `value` may be computed directly into the variable's memory.

        Results of a loop may not: a loop writes them several times, and may be interrupted.
        """
        old = self.states.get(key)
        if value in self.externals or value in self.adopted or is_region(value.node):
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

    def add_copies(self) -> None:
        """Adds copies: old values read after their update, and updates that are not in place."""
        changed = {*self.adopted.values(), *self.copied}
        for value in self.step.fetches:
            self._snapshot(self.fused.root(value), changed)
        for value in self.copied.values():
            self._snapshot(value, changed)
        before = [
            (self.copy(value, scratch, nbytes(value)), None)
            for value, scratch in self.snapshots.items()
        ]
        after: list[tuple[Launch, Group | None]] = []
        for key, value in self.copied.items():
            self.externals.setdefault(self._handle(key), self._variable(key))
            source = self.snapshots.get(value, value)
            after.append((self.copy(source, self._handle(key), nbytes(value)), None))
        self.launches = [*before, *self.launches, *after]

    def _snapshot(self, value: Value, changed: Iterable[str]) -> None:
        external = self.externals.get(value)
        if isinstance(external, Variable) and external.key in changed:
            self.snapshots.setdefault(value, Scratch(nbytes(value)))

    def _variable(self, key: str) -> Variable:
        """A changed variable; what it gets may be computed in another shape, and is reshaped."""
        return Variable(key, self.step.new_values[key].type)

    def _handle(self, key: str) -> Value:
        """A value that stands for a variable's memory, even if nothing reads it."""
        if key not in self.states:
            kind = self.step.new_values[key].type
            attrs = {"key": key, "dtype": kind.dtype, "shape": kind.shape}
            node = self.step.graph.add("variable", (), attrs, (kind,), f"variable/{key}")
            self.states[key] = node.outputs[0]
        return self.states[key]

    def keep(self) -> None:
        """Splits off the prelude; results that others read get memory of their own."""
        for key in self.adopted.values():
            self.externals[self._handle(key)] = self._variable(key)
        if not self.step.lasting:
            return
        launches = [launch for launch, _ in self.launches]
        found = prelude_launches(
            [launch for launch in launches],
            self._buffer,
            self._stays,
            self.externals.__contains__,
            lambda buffer: moves(buffer, self.flat),
        )
        for buffer in handed_on(launches, found, self._buffer):
            self.externals[buffer] = Kept(-(-self._size(buffer) // LINE) * LINE)
        kept = {launches[i] for i in found}
        self.launches.sort(key=lambda pair: pair[0] not in kept)  # the prelude first
        self.kept = len(kept)

    def needs(self) -> tuple[list[memory.Step], dict[int, int], list[int]]:
        """The arena buffers that each launch touches, their sizes, and those alive to the end."""
        steps = [self._memory_step(launch) for launch, _ in self.launches]
        keep = [self.ids[b] for b in self._fetched() if b in self.ids]
        return steps, self.sizes, keep

    def _fetched(self) -> list[Value | Scratch]:
        roots = [self.fused.root(v) for v in self.step.fetches]
        return [self.snapshots.get(v, v) for v in roots]

    def finish(self, plan: memory.Plan) -> Blueprint:
        """Assigns a place to every argument."""
        ids, sizes = self.ids, self.sizes
        outside = {value: i for i, value in enumerate(self.externals)}

        def place(argument: Value | Scratch) -> Place:
            buffer = self._buffer(argument)
            if buffer in ids:
                return InArena(plan.offsets[ids[buffer]], sizes[ids[buffer]])
            if buffer not in outside and not self._size(buffer):
                return InArena(0, 0)  # launches without elements do nothing
            return External(outside[buffer], self._size(buffer))

        checked = any(launch.check for launch, _ in self.launches)
        writable = {*self.adopted.values(), *self.copied} if checked else set[str]()

        def placement(argument: Value | Scratch | int) -> Argument:
            if isinstance(argument, int) or argument is ERROR:
                return cast(Argument, argument)
            return place(argument)

        main = [launch for launch, _ in self.launches[self.kept :]]
        records = steers(main, self.flat, place, self.tapes)

        def placed(position: int, launch: Launch, group: Group | None) -> Placed:
            control = launch.control
            args = [
                placement(a)
                for slot, a in enumerate(launch.args)
                if control is None or steered(control, slot)
            ]
            steer = records.get(position - self.kept)
            return Placed(launch, tuple(args), self._guarded(launch, writable), group, steer)

        calls = tuple([placed(i, *pair) for i, pair in enumerate(self.launches)])
        fetches = tuple(
            (place(buffer), TensorType(v.dtype, v.shape))
            for buffer, v in zip(self._fetched(), self.step.fetches, strict=True)
        )
        names = {i: b.name for b, i in ids.items() if isinstance(b, Value)}
        return Blueprint(
            calls[self.kept :], tuple(self.externals.values()), plan, fetches, names,
            tuple(self.states_read()), tuple(self.step.updates), self.step, self.fused,
            calls[: self.kept],
        )  # fmt: skip

    def _stays(self, external: Value | Scratch) -> bool:
        """Whether memory outside the arena keeps its contents between steps."""
        match self.externals[external]:
            case Constant():
                return True
            case Feed(index):
                return self.step.feeds[index] in self.step.lasting
            case _:
                return False

    def states_read(self) -> Iterable[str]:
        """Variables that must be initialized before the step."""
        read = {
            owner(a, self.flat)
            for launch, _ in self.launches
            for i, a in enumerate(launch.args)
            if not isinstance(a, int) and i not in launch.writes
        }
        read.update(self.fused.root(v) for v in self.step.fetches)
        read.update(self.copied.values())
        return (key for key, value in self.states.items() if value in read)

    def _guarded(self, launch: Launch, writable: set[str]) -> bool:
        """Whether a launch changes a variable and so must not run after an error."""
        for i in launch.writes:
            argument = launch.args[i]
            if isinstance(argument, Value) and launch.control is None:
                external = self.externals.get(self._buffer(argument))
                if isinstance(external, Variable) and external.key in writable:
                    return True
        return False

    def _buffer(self, argument: Value | Scratch) -> Value | Scratch:
        """The memory behind an argument; for an in-place update, the variable's."""
        root = owner(argument, self.flat)
        if isinstance(root, Scratch):
            return root
        return self.states[self.adopted[root]] if root in self.adopted else root

    def _memory_step(self, launch: Launch) -> memory.Step:
        ids, sizes = self.ids, self.sizes
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
            return planned(nbytes(buffer))
        return planned(buffer.size) * (self.threads if buffer.per_thread else 1)
