"""Structures seen before: interpreted at first, compiled once they are hot."""

from __future__ import annotations

import contextlib
import sys
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from weft import config
from weft.eager.record import memory_pool
from weft.eager.record.async_execution import Ahead
from weft.eager.record.collective_calls import collective_calls
from weft.eager.record.determinism import are_deterministic_algorithms_enabled
from weft.eager.record.expansion import Expanded, expand
from weft.eager.record.lazy import Lazy
from weft.eager.record.parameter_cache import Watch, lasting_leaves
from weft.eager.record.placed_program import OverDevices
from weft.eager.record.structure import Structure
from weft.eager.record.tier import was_stitched
from weft.errors import NoCompilerError
from weft.host.garbage_collection import uncollected
from weft.ir.node import Node
from weft.ir.shape import known
from weft.ops.declaration import inner_nodes, is_region
from weft.passes.pipeline import optimize
from weft.passes.specialize import specialize
from weft.passes.step import Request, Step, storing
from weft.runtime.compilation import compiler
from weft.runtime.device.local import processor
from weft.runtime.executable import Executable
from weft.runtime.finish import finish
from weft.runtime.flight import land
from weft.runtime.memory.forecast import Forecast
from weft.runtime.memory.state import State
from weft.runtime.oracle import Oracle
from weft.transform.interpretation import Interpretation
from weft.transform.interpreter import needs_interpreter

Array = np.ndarray[Any, Any]
MOST_PROGRAMS: Final = 512  # the least recently used goes first
INTERPRETED_RUNS: Final = 2
"""First runs of a structure that library kernels cannot compute and that has no loop."""

Types = Sequence[tuple[tuple[int, ...], np.dtype[Any]]]


class Prepared:
    """A structure seen before: how often it ran, and its program once it is hot."""

    def __init__(self, structure: Structure, as_rows: bool = False) -> None:
        self.devices = structure.devices
        self.expanded: Expanded | None = expand(structure, as_rows)  # until it is compiled
        self._as_rows = as_rows
        self._run: Interpretation | None = None
        self.rows = self.expanded.rows
        self._interpreted = needs_interpreter(self.expanded.graph)
        self._loops = any(map(_has_loop, self.expanded.graph.nodes))
        homes: list[int] = []
        for i, home in enumerate(structure.homes):
            homes += [-1, -1] if i in self.rows else [home]
        self.homes = tuple(homes)
        self.keys = tuple([f"out{i}" for i in range(len(homes))])
        self.runs = INTERPRETED_RUNS if was_stitched(structure) else 0
        self.executable: Executable | None = None
        self.over_devices: OverDevices | None = None
        self.lasting = lasting_leaves(structure)
        self.watch: Watch | None = None  # set if values computed from `lasting` alone are cached
        self.oracle: Oracle | None = None  # WEFT_REFERENCE=1
        self._token: object | None = None  # of the last call, if what it read may be kept
        self.collectives = collective_calls(structure, as_rows)

    def interpreted(self, structure: Structure, leaves: Sequence[Array]) -> list[Array] | None:
        """Fresh arrays for the outputs; `None` once there is a program to launch."""
        self.runs += 1
        if self.over_devices is not None:
            return self.over_devices(leaves)
        if (
            self.executable is None
            and not sys.is_finalizing()  # a compiler needs more than is left of the interpreter
            and compiler.available()
            and self._is_hot()
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
        if self._run is None:
            expanded = self._graph(structure)
            self._run = Interpretation(expanded.graph, expanded.outputs, expanded.feeds)
        return self._run(leaves)

    def _graph(self, structure: Structure) -> Expanded:
        if self.expanded is None:
            self.expanded = expand(structure, self._as_rows)
        return self.expanded

    def place_of(self, wanted: Lazy | None, outputs: Sequence[Lazy]) -> int:
        """The position of an output among the program's; -1 if it is none."""
        if wanted is None or wanted not in outputs:
            return -1
        i = outputs.index(wanted)
        return i + sum([row <= i for row in self.rows])

    def _is_hot(self) -> bool:
        if self._interpreted:
            return False
        if bool(config.get("compile")) or are_deterministic_algorithms_enabled():
            return True
        return self._loops or self.runs > INTERPRETED_RUNS

    @uncollected
    def _compile(self, structure: Structure) -> Executable:
        threads, (device, *_) = int(config.get("threads")), (*self.devices, 0)
        forecast = None if device else Forecast(str(threads), *structure.outline)
        expanded = self._graph(structure)
        self.types = tuple([(known(y.type.shape), y.type.dtype.numpy) for y in expanded.outputs])
        step = _specialized(expanded)
        if bool(config.get("reference")) and self.collectives is None:  # else run twice
            self.oracle = Oracle(optimize(step), threads)
        lasting = frozenset([step.feeds[i] for i in self.lasting])
        step = self._storing(replace(step, lasting=lasting))
        self.expanded, self._run = None, None
        make = partial(finish, processor=processor(device)) if device else finish
        found = make(step, threads)
        if forecast is not None:
            forecast.note(found.arena.size)
        return found

    @uncollected
    def _compile_over_devices(self, structure: Structure) -> OverDevices:
        step = _specialized(self._graph(structure))
        compared = bool(config.get("reference")) and self.collectives is None  # else run twice
        self.expanded, self._run = None, None
        return OverDevices(step, max(self.devices) + 1, compared)

    def _storing(self, step: Step) -> Step:
        """The step, writing its results to memory of leaves or to given memory."""
        homes = {leaf: self.keys[i] for i, leaf in enumerate(self.homes) if leaf >= 0}
        return storing(step, self.keys, homes)

    def launch(self, structure: Structure, leaves: Sequence[Array], wanted: int) -> list[Array]:
        """Run the program; return the outputs' arrays. Waits for `wanted`: see `place_of`."""
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

    def _memories(self, leaves: Sequence[Array], types: Types) -> list[Array]:
        """Memory for the results: that of a leaf, or fresh."""
        return [
            memory_pool.empty(*kind) if home < 0 else leaves[home]
            for home, kind in zip(self.homes, types, strict=True)
        ]


def _has_loop(node: Node) -> bool:
    """Whether a node is a loop or a branch, or a function that has one: it may take long."""
    return is_region(node) or any(map(_has_loop, inner_nodes(node)))


def _specialized(expanded: Expanded) -> Step:
    """The pure step of an expanded structure."""
    request = Request(expanded.graph, expanded.outputs, (), expanded.feeds)
    return specialize(request, [v.type for v in expanded.feeds], {}, {})


_programs: OrderedDict[Any, Prepared] = OrderedDict()


def prepared(structure: Structure, as_rows: bool = False) -> Prepared:
    """The program of a structure, from the cache or new."""
    key = (structure.key, as_rows)
    found = _programs.get(key)
    if found is not None:
        _programs.move_to_end(key)
        return found
    found = _programs[key] = Prepared(structure, as_rows)
    if len(_programs) > MOST_PROGRAMS:
        _programs.popitem(last=False)
    return found
