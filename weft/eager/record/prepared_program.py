"""Structures seen before: interpreted at first, compiled once they are hot."""

from __future__ import annotations

import contextlib
import sys
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from weft import config
from weft.eager.record import memory_pool
from weft.eager.record.async_execution import Ahead
from weft.eager.record.collective_calls import collective_calls
from weft.eager.record.determinism import are_deterministic_algorithms_enabled
from weft.eager.record.dynamic_program import Case, DynamicProgram, Types, perturbed
from weft.eager.record.dynamic_shape import Family, Sample, family_of
from weft.eager.record.lazy import Lazy
from weft.eager.record.parameter_cache import Watch, lasting_leaves
from weft.eager.record.placed_program import OverDevices
from weft.eager.record.resized_record import resized
from weft.eager.record.structure import (
    Expanded,
    Structure,
    expand,
    interpreted_seconds,
)
from weft.eager.record.tier import was_stitched
from weft.errors import NoCompilerError, WeftError
from weft.host.garbage_collection import uncollected
from weft.host.interrupt import Uninterrupted
from weft.ir.shape import known
from weft.ops.communication.exchange_log import ExchangeLog, exchanges_made
from weft.passes.pipeline import optimize
from weft.passes.specialize import specialize
from weft.passes.step import Request, Step, storing
from weft.runtime.compilation import compiler
from weft.runtime.device.local import processor
from weft.runtime.executable import Executable
from weft.runtime.execution import driver
from weft.runtime.finish import finish
from weft.runtime.flight import land
from weft.runtime.memory.forecast import Forecast
from weft.runtime.memory.state import State
from weft.runtime.oracle import Oracle
from weft.transform.interpretation import Interpretation
from weft.transform.interpreter import needs_interpreter
from weft.transform.resize import SAMPLES, Sizes, UnfitError

Array = np.ndarray[Any, Any]
MOST_PROGRAMS: Final = 512  # the least recently used goes first
# The third run of a structure is compiled, or the first one if interpreting takes longer than that.
INTERPRETED_RUNS: Final = 2
# If the same records keep coming in new shapes, compiling each shape costs more than it saves. Then
# a shape is compiled once interpreting it has taken as long as compiling would, and so has
# interpreting any shape since the last one was compiled. So a loop takes twice as long at most.
CHURN: Final = 8  # shapes
SEPARATE: Final = 8  # shapes, after which an optimizer's update is a program of its own
COMPILE_SECONDS_A_NODE: Final = 1e-3
# A program for many sizes also serves later sizes, so it is made after this share of that time.
HURRY: Final = 0.15
ENOUGH: Final = 0.05  # seconds of interpreting, at least


class Prepared:
    """A structure seen before: its graph, how often it ran, and its program once it is hot."""

    def __init__(self, structure: Structure, as_rows: bool = False) -> None:
        self.devices = structure.devices
        self.family, self.sizes = family_of(structure, as_rows)
        self.family.meet(self.sizes)
        self.expanded: Expanded | None = None  # while it is interpreted from its own records
        self._as_rows = as_rows
        self._case = self._general(structure)  # if a program for many sizes is used
        self._known: Sample | None = None  # if it is not
        self.rows = self.family.rows if self._case else self._sample(structure).rows
        homes: list[int] = []
        for i, home in enumerate(structure.homes):
            homes += [-1, -1] if i in self.rows else [home]
        self.homes = tuple(homes)
        self.keys = tuple([f"out{i}" for i in range(len(homes))])
        self.calls = structure.calls
        self.runs = INTERPRETED_RUNS if was_stitched(structure) else 0
        self.spent = 0.0
        self.executable: Executable | None = None
        self.over_devices: OverDevices | None = None
        self.lasting = lasting_leaves(structure)
        self.watch: Watch | None = None  # set if values computed from `lasting` alone are cached
        self.oracle: Oracle | None = None  # WEFT_REFERENCE=1
        self._token: object | None = None  # of the last call, if what it read may be kept
        self.collectives = collective_calls(structure, as_rows)

    def _general(self, structure: Structure) -> tuple[DynamicProgram, Case] | None:
        """The family's program for many sizes, unless each structure needs a program of its own."""
        if _has_its_own() or any(self.devices):
            return None
        return self.family.general(self.sizes, [x.type for x in structure.leaves])

    def _sample(self, structure: Structure) -> Sample:
        """What is prepared for these sizes alone."""
        if self._known is None:
            found = self.family.at(self.sizes)
            if found is None or _is_heavy(found):
                found = self._expand(structure)
            self._known = found
        return self._known

    @uncollected
    def _expand(self, structure: Structure) -> Sample:
        """Expand the structure's own records, without use of the family."""
        self.expanded = found = expand(structure, self._as_rows)
        graph = found.graph
        seconds = interpreted_seconds(graph)
        never = needs_interpreter(graph)
        return Sample(self.sizes, None, found.rows, len(graph.nodes), seconds, never)

    def interpreted(self, structure: Structure, leaves: Sequence[Array]) -> list[Array] | None:
        """Fresh arrays for the outputs; `None` once there is a program to launch."""
        self.runs += 1
        if self.over_devices is not None:
            return self.over_devices(leaves)
        if self.executable is None:
            self._for_many(structure)
        if self._case is not None:
            general, case = self._case
            return self._tried(general, case, structure, leaves) if general.trials else None
        if (
            self.executable is None
            and not sys.is_finalizing()  # a compiler needs more than is left of the interpreter
            and compiler.available()
            and self._is_hot(self._sample(structure))
        ):
            with contextlib.suppress(NoCompilerError):
                if len(self.devices) > 1:
                    self.over_devices = self._compile_over_devices(structure)
                    return self.over_devices(leaves)
                executable = self._compile(structure)
                self.ahead = Ahead(executable, self.keys, self.homes)
                if executable.prelude:
                    self.watch = Watch(self.lasting, executable.forget)
                self.executable = executable  # last: Ctrl-C may come before
        if self.executable is not None:
            return None
        land()
        start = time.perf_counter()
        found = self._interpret(structure, leaves)
        spent = time.perf_counter() - start
        self.spent += spent
        self.family.spent += spent
        self.family.unpaid += spent
        return found

    def _for_many(self, structure: Structure) -> None:
        """Use the family's program for many sizes, or make one once that pays off."""
        if self._case is None or _has_its_own():
            self._case = self._general(structure)
        if self._case is not None or _has_its_own() or any(self.devices):
            return
        enough = max(ENOUGH, HURRY * _patience(self._sample(structure)))
        if self.family.shapes == SAMPLES - 1 and self.family.spent * SAMPLES > enough:
            driver.prestart()  # without a cache, compiler processes start while samples are taken
        if self.family.shapes > SAMPLES and self.family.spent > enough:
            threads = int(config.get("threads"))
            expanded_at = partial(self._expanded_at, structure)
            self.family.make_program(self.sizes, threads, expanded_at, self._simplified)
            self._case = self._general(structure)

    def _tried(
        self, general: DynamicProgram, case: Case, structure: Structure, leaves: Sequence[Array]
    ) -> list[Array]:
        """Interpret, and check the program for many sizes against the results."""
        land()
        memories = [
            np.empty(*kind) if home < 0 else leaves[home].copy()
            for home, kind in zip(self.homes, case.types, strict=True)
        ]
        log = ExchangeLog()  # other ranks may not be at a trial of theirs
        with log.once():
            found = self._interpret(structure, leaves)
        wanted = [*found, *log.given]
        with log.once():
            general.run(case, leaves, dict(zip(self.keys, memories, strict=True)))

        def again() -> list[Array]:
            with log.once():
                results = self._interpret(structure, list(map(perturbed, leaves)))
            return [*results, *log.given]

        if not general.agrees(wanted, [*memories, *log.given], again):
            self.family.distrust()
        self._case = None
        return found

    def _expanded_at(self, structure: Structure, sizes: Sizes) -> Expanded:
        """The graph of the same calls at other sizes."""
        expanded = expand(resized(structure, sizes), self._as_rows)
        if expanded.rows != self.rows:
            raise UnfitError
        return expanded

    def _simplified(self, expanded: Expanded) -> Step:
        return optimize(self._storing(_specialized(expanded)))

    def place_of(self, wanted: Lazy | None, outputs: Sequence[Lazy]) -> int:
        """The position of an output among the program's; -1 if it is none."""
        if wanted is None or wanted not in outputs:
            return -1
        i = outputs.index(wanted)
        return i + sum([row <= i for row in self.rows])

    def _is_hot(self, sample: Sample) -> bool:
        if _is_heavy(sample) or sample.interpreted:
            return not sample.interpreted
        if bool(config.get("compile")) or are_deterministic_algorithms_enabled():
            return True
        if self.runs <= INTERPRETED_RUNS:
            return False
        if _families[self.calls].shapes < CHURN:
            return True
        patience = _patience(sample)
        hot = min(self.spent, self.family.unpaid) > patience
        if hot:
            self.family.unpaid = 0.0
        return hot

    @uncollected
    def _compile(self, structure: Structure) -> Executable:
        threads, (device, *_) = int(config.get("threads")), (*self.devices, 0)
        forecast = None if device else Forecast(str(threads), *structure.outline)
        expanded = self.expanded or expand(structure, self._as_rows)
        self.types = tuple([(known(y.type.shape), y.type.dtype.numpy) for y in expanded.outputs])
        step = _specialized(expanded)
        if bool(config.get("reference")) and self.collectives is None:  # else run twice
            self.oracle = Oracle(optimize(step), threads)
        lasting = frozenset([step.feeds[i] for i in self.lasting])
        step = self._storing(replace(step, lasting=lasting))
        self.expanded, self._known = None, None
        make = partial(finish, processor=processor(device)) if device else finish
        found = make(step, threads)
        if forecast is not None:
            forecast.note(found.arena.size)
        return found

    @uncollected
    def _compile_over_devices(self, structure: Structure) -> OverDevices:
        step = _specialized(self.expanded or expand(structure, self._as_rows))
        compared = bool(config.get("reference")) and self.collectives is None  # else run twice
        self.expanded, self._known = None, None
        return OverDevices(step, max(self.devices) + 1, compared)

    def _storing(self, step: Step) -> Step:
        """The step, writing its results to memory of leaves or to given memory."""
        homes = {leaf: self.keys[i] for i, leaf in enumerate(self.homes) if leaf >= 0}
        return storing(step, self.keys, homes)

    def launch(self, structure: Structure, leaves: Sequence[Array], wanted: int) -> list[Array]:
        """Run the program; return the outputs' arrays. Waits for `wanted`: see `place_of`."""
        if self._case is not None:
            return self._launch_general(*self._case, structure, leaves, wanted)
        executable = self.executable
        assert executable is not None
        if self.oracle is not None:
            land()
            self.oracle.compare(leaves, State())
        memories = dict(zip(self.keys, self._memories(leaves, self.types), strict=True))
        known = structure.known
        still = known is not None and known.token is self._token
        self._token = None
        fresh = self.watch is not None and self.watch.is_fresh(structure.leaves, still)
        moved, departure = None, None
        if known is None:
            departure = self.ahead.departure(wanted, structure.leaves, leaves)
        elif still:
            moved = known.arguments
        executable.launch(leaves, memories, fresh, moved, departure)
        self._token = None if known is None else known.token
        return list(memories.values())

    def _launch_general(
        self, general: DynamicProgram, case: Case, structure: Structure, leaves: Sequence[Array],
        wanted: int,
    ) -> list[Array]:  # fmt: skip
        """Run the program for many sizes."""
        land()
        memories = self._memories(leaves, case.types)
        ahead = general.ahead(self.keys, self.homes)
        departure = ahead.departure(wanted, structure.leaves, leaves)
        made = exchanges_made()
        try:
            general.run(case, leaves, dict(zip(self.keys, memories, strict=True)), departure)
        except WeftError:
            if made != exchanges_made():  # other ranks are not called twice
                raise
            return self._interpret(structure, leaves)  # whose error shows these shapes
        return memories

    def _memories(self, leaves: Sequence[Array], types: Types) -> list[Array]:
        """Memory for the results: that of a leaf, or fresh."""
        return [
            memory_pool.empty(*kind) if home < 0 else leaves[home]
            for home, kind in zip(self.homes, types, strict=True)
        ]

    def _interpret(self, structure: Structure, leaves: Sequence[Array]) -> list[Array]:
        found = self._resized(self._sample(structure), leaves)
        return self._planned(structure)(leaves) if found is None else found

    def _resized(self, sample: Sample, leaves: Sequence[Array]) -> list[Array] | None:
        """Interpret by the plan derived from other sizes; `None` if it fails or there is none."""
        if self.expanded is not None or sample.run is None:
            return None
        made = exchanges_made()
        try:
            return sample.run(leaves)
        except WeftError:
            if made != exchanges_made():  # other ranks are not called twice
                raise
            return None  # the error's message has to show the shapes of this structure

    def _planned(self, structure: Structure) -> Interpretation:
        """Interpret the structure's own records."""
        sample = self._sample(structure)
        if self.expanded is None or sample.run is None:
            if self.expanded is None:
                sample = self._expand(structure)
            expanded = self.expanded
            assert expanded is not None
            run = Interpretation(expanded.graph, expanded.outputs, expanded.feeds)
            sample = self._known = replace(sample, run=run)
            self.family.learn(sample)
        assert sample.run is not None
        return sample.run


def _has_its_own() -> bool:
    """Whether each structure has its own program: in reference or deterministic mode."""
    return bool(config.get("reference")) or are_deterministic_algorithms_enabled()


def _specialized(expanded: Expanded) -> Step:
    """The pure step of an expanded structure."""
    request = Request(expanded.graph, expanded.outputs, (), expanded.feeds)
    return specialize(request, [v.type for v in expanded.feeds], {}, {})


def _is_heavy(sample: Sample) -> bool:
    """Whether interpreting takes longer than compiling."""
    return sample.seconds > _patience(sample)


def _patience(sample: Sample) -> float:
    """Estimated seconds that compiling takes."""
    return sample.nodes * COMPILE_SECONDS_A_NODE


_programs: OrderedDict[Any, Prepared] = OrderedDict()


class _Met(NamedTuple):
    """What is known of a sequence of calls: its number of shapes, the family of the last."""

    shapes: int
    family: Family | None


_NEVER: Final = _Met(0, None)
_families: dict[tuple[str, ...], _Met] = {}


def prepared(structure: Structure, as_rows: bool = False) -> Prepared:
    """The program of a structure, from the cache or new."""
    key = (structure.key, as_rows)
    found = _programs.get(key)
    if found is not None:
        _programs.move_to_end(key)
        return found
    found = Prepared(structure, as_rows)
    with Uninterrupted():  # both tables have the same keys
        _families[found.calls] = _Met(_families.get(found.calls, _NEVER).shapes + 1, found.family)
        _programs[key] = found
    if len(_programs) > MOST_PROGRAMS:
        _programs.popitem(last=False)
    return found


def keeps_changing_shape(structure: Structure) -> bool:
    """Whether its calls keep coming in new shapes, without a program for this one or for many."""
    program = _programs.get((structure.key, True))
    if _has_its_own() or (program is not None and program.executable is not None):
        return False
    shapes, family = _families.get(structure.calls, _NEVER)
    return shapes >= SEPARATE and (family is None or not family.has_program)
