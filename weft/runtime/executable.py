"""A recipe made executable: kernels compiled, arena mapped, addresses bound."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import count
from typing import Any, Final, NamedTuple

import numpy as np

from weft import config
from weft.codegen import llvm
from weft.codegen.target import Target, current
from weft.errors import OutOfRangeError, UninitializedError, WeftError
from weft.ir.node import Node, TensorType
from weft.ir.shape import known
from weft.ops.boundary.state import first_count
from weft.ops.declaration import fault_of
from weft.passes.blueprint import Blueprint, Constant, Feed, Kept, Stack, Variable
from weft.passes.launch import Kernel
from weft.passes.step import Step
from weft.runtime.compilation.compiler import compile_kernels
from weft.runtime.execution.call import Call, NativeCall, PythonCall, Unbound, moving_arguments
from weft.runtime.execution.processor import FIRST, Processor
from weft.runtime.execution.program import Fault, Program
from weft.runtime.fetching import fetch
from weft.runtime.host_call import native_call, python_function
from weft.runtime.measurement.profile import Run, arena_map, measure, summarize, watchers, work_of
from weft.runtime.measurement.stopwatch import Stopwatch
from weft.runtime.memory.address import address_of
from weft.runtime.memory.shared import arena_of
from weft.runtime.memory.state import State, aligned
from weft.runtime.memory.tape import Tapes
from weft.runtime.memory.views import ProgramMemory
from weft.runtime.recipe import Recipe
from weft.transform.interpreter import located

Array = np.ndarray[Any, Any]


AHEAD_NS: Final = 200_000.0  # leaving earlier is not worth it for a shorter rest


class Departure(NamedTuple):
    """Where a caller may return before the program has finished."""

    leave: int  # the segment
    feeds: frozenset[int]  # positions of feeds that are read later
    done: frozenset[str]  # variables that are not touched later


class Direct(NamedTuple):
    """What it takes to run a program whose addresses a caller sets itself, holding the GIL.

    Attributes:
        lock: held from setting addresses to the end of the run.
        enter: runs the program at `pointer`; anything but 0 says that it did not end.
        addresses: of what lies outside the arena, by number.
        feeds: positions of feeds, and their numbers.
        outputs: the number of each output.
    """

    executable: Executable
    lock: Any
    enter: Any
    pointer: Any
    addresses: Any
    feeds: tuple[tuple[int, int], ...]
    outputs: tuple[int, ...]


class Executable:
    """A compiled step. `run` takes feeds and a state, and gives fresh arrays.

    Attributes:
        zeroed: variables that a run sets to zeros at its end, of the state alone.
    """

    def __init__(
        self, recipe: Recipe, whole: Callable[[], Blueprint], threads: int,
        target: Target | None = None, watch: Stopwatch | None = None, processor: Processor = FIRST,
        linked: Mapping[Kernel, int] | None = None,
    ) -> None:  # fmt: skip
        """With `whole`, the blueprint is recomputed if more than a run is requested.

        Kernels are compiled unless they are `linked`.
        """
        team, pool = processor
        self._whole = whole
        self.zeroed: Final[dict[str, TensorType]] = {}
        watch = watch or Stopwatch()
        functions = [call.function for call in (*recipe.prelude, *recipe.calls)]
        kernels = dict.fromkeys(f for f in functions if isinstance(f, Kernel))
        # Python called in the middle of a step may run another program.
        shared = not any([isinstance(call.function, Unbound) for call in recipe.calls])
        self.arena, lock = arena_of(recipe.arena, shared, pool)  # resident once made
        stacks = {i: x for i, x in enumerate(recipe.externals) if isinstance(x, Stack)}
        self._tapes = Tapes(stacks)
        self._memory = ProgramMemory(self.arena, recipe.externals, self._tapes)
        moving = () if shared else moving_arguments(recipe.calls)
        calls = (
            recipe.calls if shared else tuple(map(self._bound_call, count(), recipe.calls, moving))
        )
        native = [c.function.kernel for c in calls if isinstance(c.function, NativeCall)]
        made = {} if linked is None else linked
        missing = [kernel for kernel in (*kernels, *native) if kernel not in made]
        addresses = {**made, **compile_kernels(missing, target or current())}
        watch.lap("kernels")
        self._externals = recipe.externals
        externals = len(recipe.externals)
        self.program = Program(
            calls, addresses, self.arena, externals, threads, lock, self._tapes, team
        )
        self._memory.addresses = self.program.addresses
        for number, address in self._tapes.addresses.items():
            self.program.addresses[number] = address
        self.prelude: Program | None = None  # to be run before the first step: see `Blueprint`
        if recipe.prelude:
            self.prelude = Program(
                recipe.prelude, addresses, self.arena, externals, threads, lock, team=team
            )
        self.kept: Array | None = None
        self._feeds: list[tuple[int, int]] = []  # position among the feeds, external
        self._variables: list[tuple[Variable, int]] = []
        self._constants: list[Array] = []  # keeps their memory alive
        for number, source in enumerate(recipe.externals):
            match source:
                case Feed(index):
                    self._feeds.append((index, number))
                case Variable():
                    self._variables.append((source, number))
                case Constant(array):
                    self._constants.append(array)
                    self.program.addresses[number] = address_of(array)
                case Kept() | Stack():
                    pass
        self._feeds.sort()
        kept = frozenset(recipe.kept)
        self._kept = [v.key for v, _ in self._variables if v.key in kept]
        self._counters = recipe.counters
        self._state: State | None = None
        self._version = -1
        self._lent: list[tuple[str, int]] = []  # variables in the caller's memory: key, external
        self._bound: list[Array] = []  # the state's arrays, kept alive while their addresses are
        self._fetches = [fetch(self._memory, place, kind) for place, kind in recipe.fetches]
        self._debug = int(config.get("debug")) >= 2
        show_kernels(kernels, target or current())
        watch.lap("tables and memory")

    @functools.cached_property
    def blueprint(self) -> Blueprint:
        """Everything about the program, for inspection."""
        return self._whole()

    @property
    def step(self) -> Step:
        """The simplified step that it computes."""
        return self.blueprint.step

    # -- building

    def _bound_call(self, number: int, call: Call, moving: AbstractSet[int]) -> Call:
        """A call with the memory of its arguments.

        Args:
            moving: the arguments that advance with a loop.
        """
        if not isinstance(call.function, Unbound):
            return call
        node = call.function.node
        python = python_function(
            node, call.args, self._memory, moving, lambda: self._described(number)
        )
        native = None if moving else native_call(node, python)
        if native is None:
            return replace(call, function=PythonCall(python))
        writes = tuple([i + 1 for i in call.writes])  # the table comes first
        args = (native.shared.place, *call.args)
        return replace(call, function=native, args=args, writes=writes)

    def _described(self, number: int) -> str:
        """The node of a call into Python, as this process knows it."""
        group = self.blueprint.calls[number].group
        assert group is not None
        return group.nodes[0].describe()

    # -- running

    def run(
        self, arrays: Sequence[Array], state: State, outputs: Mapping[str, Array] | None = None
    ) -> list[Any]:
        """Runs the step once; returns its fetches.

        Args:
            arrays: the feeds.
            state: the variables.
            outputs: memory for variables that are the caller's, by key: C-contiguous arrays of
                their types, always of the same keys.

        Raises:
            UninitializedError: a variable is read that has no value.
            OutOfRangeError: an index is out of bounds; no variable has changed.
        """
        program = self.program
        with state.lock, program.lock:  # programs that share variables take turns
            if state is not self._state or state.version != self._version:
                self._bind(state, outputs or ())
            if outputs is not None:
                for key, number in self._lent:
                    program.addresses[number] = address_of(outputs[key])
            held = self._feed(arrays)
            try:
                fault = self._recorded() if self._debug or watchers else program.run()
                if fault is not None:
                    raise self._out_of_range(fault)
                self._memory.feeds = held
                results = [fetch() for fetch in self._fetches]
                for key, kind in self.zeroed.items():
                    state.set_zeros(key, known(kind.shape), kind.dtype.numpy)
            finally:
                self._memory.feeds = ()
                if self._tapes.grown:
                    self._tapes.release()
            return results

    def launch(
        self, arrays: Sequence[Array], memories: Mapping[str, Array], fresh: bool = False,
        moved: int | None = None, departure: Departure | None = None,
    ) -> None:  # fmt: skip
        """Runs the step once on the caller's memory; for programs without fetches.

        Args:
            arrays: the feeds.
            memories: C-contiguous arrays of the variables' types, by key.
            fresh: whether the lasting feeds are the same as in the last run.
            moved: feeds from this one on are the same arrays as in the last run; `None`: none are.
            departure: where to return and leave the rest to the team, if anywhere: see `departure`.

        Raises:
            OutOfRangeError: an index is out of bounds; no variable has changed.
        """
        program = self.program
        with program.lock:
            addresses = program.addresses
            held = self._feed(arrays, moved)
            for variable, number in self._variables:
                addresses[number] = address_of(memories[variable.key])
            self._version = -1  # a state's variables are no longer bound
            kept = self._prepare(fresh)
            if departure is not None and not watchers:
                done = frozenset([id(memories[key]) for key in departure.done])
                fault = program.run_ahead(departure.leave, done, (self, held, memories))
            else:
                try:
                    fault = self._recorded() if self._debug or watchers else program.run()
                finally:
                    if self._tapes.grown:
                        self._tapes.release()
            del held, kept
        if fault is not None:
            raise self._out_of_range(fault)

    def direct(self, keys: Sequence[str]) -> Direct | None:
        """How to run it without `launch`; `None` if a run takes more than addresses.

        Args:
            keys: of the outputs.
        """
        program = self.program
        if self._debug or self.zeroed or not program.is_brief:
            return None
        numbers = {variable.key: number for variable, number in self._variables}
        if numbers.keys() != set(keys):
            return None
        return Direct(
            self, program.lock, program.enter, program.pointer, program.addresses,
            tuple(self._feeds), tuple([numbers[key] for key in keys]),
        )  # fmt: skip

    def departure(self, wanted: tuple[str, ...]) -> Departure | None:
        """Where a caller that waits for these variables may return; `None` if it does not pay."""
        ends = None if self.prelude is not None or self._debug else self.program.ends
        if ends is None:
            return None
        numbers = [n for v, n in self._variables if v.key in wanted]
        leave = 1 + max([ends.checks, *[int(ends.externals[n]) for n in numbers]])
        if ends.left_ns[leave] < AHEAD_NS:
            return None
        return Departure(
            leave,
            frozenset([i for i, n in self._feeds if ends.externals[n] >= leave]),
            frozenset([v.key for v, n in self._variables if ends.externals[n] < leave]),
        )

    def _prepare(self, fresh: bool) -> Array | None:
        """Computes what depends on lasting feeds alone, if outdated; returns its place."""
        memory, prelude = self.kept, self.prelude
        if prelude is None or (memory is not None and fresh):
            return memory
        if memory is None:
            sizes = [x.size for x in self._externals if isinstance(x, Kept)]
            memory = self.kept = aligned((sum(sizes),), np.dtype(np.uint8))
            place = address_of(memory)
            for number, source in enumerate(self._externals):
                if isinstance(source, Kept):
                    self.program.addresses[number] = place
                    place += source.size
        prelude.addresses[:] = self.program.addresses
        prelude.run()
        return memory

    def forget(self) -> None:
        """Drops the results of the prelude."""
        self.kept = None

    def _feed(self, arrays: Sequence[Array], moved: int | None = None) -> Sequence[Array]:
        """Binds the feeds; returns the arrays to keep until the step is over."""
        addresses = self.program.addresses
        held = arrays
        for index, number in self._feeds:
            if moved is not None and index >= moved:
                break
            array = arrays[index]
            if type(array) is not np.ndarray or not array.flags.c_contiguous:
                array = np.ascontiguousarray(array)
                held = [*held, array]
            addresses[number] = address_of(array)
        return held

    def _recorded(self) -> Fault | None:
        """Runs the step with clocks, and prints or reports where its time went."""
        recording = self.program.record()
        if self._debug:
            print(summarize(self.program, [recording]), file=sys.stderr)
        if watchers:
            watchers.tell(Run(self.program, self._works, recording, self.blueprint))
        return recording.fault

    @functools.cached_property
    def _works(self) -> list[str]:
        """What each call computes; cached, as it would cost a profiled step 20 ms."""
        return [work_of(placed.group) for placed in self.blueprint.calls]

    def profile(self, arrays: Sequence[Array], state: State, runs: int = 5) -> str:
        """Where the time and the memory of a step go, as text; runs `runs` real steps."""
        with state.lock, self.program.lock:
            self._bind(state)
            held = self._feed(arrays)
            found = measure(self.program, runs)
            del held
        return f"{found}\n\n{arena_map(self.blueprint.arena, self.blueprint.names)}"

    def _bind(self, state: State, lent: Container[str] = ()) -> None:
        """Binds the variables of a state, but for those of the caller."""
        for key in self._kept:
            if key not in state:
                self._initialize(key, state)
        bound: list[Array] = []
        self._lent = [(v.key, number) for v, number in self._variables if v.key in lent]
        for variable, number in self._variables:
            if variable.key in lent:
                continue
            kind = variable.type
            memory = state.reserve(variable.key, known(kind.shape), kind.dtype.numpy)
            self.program.addresses[number] = address_of(memory)
            bound.append(memory)
        self._state = self._memory.state = state
        self._version, self._bound = state.version, bound

    def _initialize(self, key: str, state: State) -> None:
        """Starts a counter; other variables must have a value.

        Raises:
            UninitializedError: names the variable and the user's line.
        """
        if key in self._counters:
            state[key] = np.array(first_count(self._counters[key]), np.uint64)
            return
        nodes = [n for n in self.step.graph.nodes if n.attrs.get("key") == key]
        raise uninitialized(key, nodes[0])

    def _out_of_range(self, fault: Fault) -> WeftError:
        group = self.blueprint.calls[fault.tag].group
        assert group is not None
        node, say = next((n, f) for n in group.nodes if (f := fault_of(n)) is not None)
        return located(OutOfRangeError(say(node, fault.position, fault.value)), node)

    def brief(self) -> str:
        """The size of the program, in a few words."""
        calls = self.program.calls
        kernels = {c.function for c in calls if isinstance(c.function, Kernel)}
        return f"{len(calls)} calls of {len(kernels)} kernels, arena {self.arena.size:,} B"

    def summary(self) -> str:
        """One line: how many kernels, calls and bytes."""
        kernels = {p.launch.kernel.ir for p in self.blueprint.calls}
        before, kept = len(self.blueprint.prelude), self.blueprint.kept_bytes
        prelude = f" after {before} in a prelude that keeps {kept:,} B" if before else ""
        return (
            f"{len(self.step.graph.nodes)} nodes, {len(self.blueprint.calls)} calls of "
            f"{len(kernels)} kernels{prelude}, {self.blueprint.arena}"
        )


def uninitialized(key: str, node: Node) -> UninitializedError:
    """The error for a variable that is read before it has a value."""
    return UninitializedError(
        f"variable {key!r} is used before it has a value; run its initializer first "
        f"(created at {node.source})"
    )


def show_kernels(kernels: Iterable[Kernel], target: Target) -> None:
    """Prints new kernels as `WEFT_DEBUG` asks: from 5 as LLVM IR, from 6 as assembly too."""
    level = int(config.get("debug"))
    for kernel in kernels:
        if level < 5 or kernel.ir in _shown or not kernel.ir:
            continue
        _shown.add(kernel.ir)
        print(f"# kernel {kernel.name}\n{kernel.ir}", file=sys.stderr)
        if level >= 6:
            print(llvm.to_assembly(kernel.ir, target.cpu, target.features), file=sys.stderr)


_shown: set[str] = set()
