"""Structures with a program of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from weft import config
from weft.eager.record.listing.collective_calls import collective_calls
from weft.eager.record.listing.expansion import Expanded
from weft.eager.record.memory import memory_pool
from weft.eager.record.pending.lazy import Array, Lazy
from weft.eager.record.recognition.structure import Structure
from weft.eager.record.run.async_execution import Ahead
from weft.eager.record.run.parameter_cache import Watch, lasting_leaves
from weft.eager.record.run.tier import Compute, Interpreted, Results, Tier
from weft.errors import NoCompilerError
from weft.host.garbage_collection import uncollected
from weft.ir.shape import known
from weft.passes.pipeline import optimize
from weft.passes.specialize import specialize
from weft.passes.step import Request, Step, storing
from weft.runtime import finish
from weft.runtime.device.local import processor
from weft.runtime.executable import Direct, Executable
from weft.runtime.flight import land
from weft.runtime.memory.forecast import Forecast
from weft.runtime.memory.state import State
from weft.runtime.oracle import Oracle
from weft.transport import session


class Compiled(Tier):
    """A program of its own, on one CPU; its kernels may still be compiled by other processes.

    Args:
        beside: whether other processes plan it, too.

    Raises:
        CompileError: there is no kernel for something.
        NoCompilerError: no compiler process is available.
    """

    runs: int
    """How many there were."""

    @uncollected
    def __init__(
        self, structure: Structure, as_rows: bool, expanded: Expanded, beside: bool = False
    ) -> None:
        super().__init__(as_rows)
        self.overwrites = True
        self._beside = beside
        self._rows = expanded.rows
        homes: list[int] = []
        for i, home in enumerate(structure.homes):
            homes += [-1, -1] if i in self._rows else [home]
        self._homes = tuple(homes)
        self._keys = tuple([f"out{i}" for i in range(len(homes))])
        kinds = [y.type for y in expanded.outputs]
        self._types = tuple([(known(t.shape), t.dtype.numpy) for t in kinds])
        self._lasting = lasting_leaves(structure)
        self._collectives = collective_calls(structure, as_rows)
        self.watch: Watch | None = None  # set if values computed from `lasting` alone are cached
        self._token: object | None = None  # of the last call, if what it read may be kept
        threads, (device, *_) = int(config.get("threads")), (*structure.devices, 0)
        self._forecast = None if device else Forecast(str(threads), *structure.outline)
        step = specialized(expanded)
        compared = bool(config.get("reference")) and self._collectives is None  # else run twice
        self._oracle = Oracle(optimize(step), threads) if compared else None
        lasting = frozenset([step.feeds[i] for i in self._lasting])
        homes_of = {leaf: self._keys[i] for i, leaf in enumerate(homes) if leaf >= 0}
        step = storing(replace(step, lasting=lasting), self._keys, homes_of)
        self._executable: Callable[[], Executable] | None = self._begun(step, threads, device)
        self._program: tuple[Executable, Ahead] | None = None
        self.runs = 0

    @property
    def why(self) -> str:
        """See `Tier`."""
        return "a program of its own"

    @property
    def is_ready(self) -> bool:
        """See `Tier`."""
        return self._program is not None

    def begin(self, structure: Structure, leaves: Sequence[Array], wanted: Lazy | None) -> Compute:
        """See `Tier`."""
        program = self._program or self._finished()
        self.runs += 1
        if self._collectives is not None:
            session.enter(self._collectives)
        place = self._place_of(wanted, structure.outputs)
        return partial(self._launch, program, structure, leaves, place)

    def _begun(self, step: Step, threads: int, device: int) -> Callable[[], Executable]:
        """What gives the program once its kernels are there."""
        make = partial(finish.begin, processor=processor(device)) if device else finish.begin
        return make(step, threads, beside=self._beside).executable

    @property
    def direct(self) -> Direct | None:
        """How to run the program without `begin`; `None` if a run takes more than that."""
        if self._program is None or self._oracle is not None or self._collectives is not None:
            return None
        if self._rows:
            return None
        return self._program[0].direct(self._keys)

    @uncollected
    def _finished(self) -> tuple[Executable, Ahead]:
        """The program, once its kernels are there."""
        assert self._executable is not None
        executable = self._executable()
        if self._forecast is not None:
            self._forecast.note(executable.arena.size)
        if executable.prelude:
            self.watch = Watch(self._lasting, executable.forget)
        program = executable, Ahead(executable, self._keys, self._homes)
        self._program = program  # Ctrl-C may come before
        self._executable = None
        return program

    def instead(self, structure: Structure, error: Exception) -> Tier:
        """See `Tier`."""
        if isinstance(error, NoCompilerError):
            return Interpreted(structure, self.as_rows)
        return super().instead(structure, error)

    def _place_of(self, wanted: Lazy | None, outputs: Sequence[Lazy]) -> int:
        """The position of an output among the program's; -1 if it is none."""
        if wanted is None or wanted not in outputs:
            return -1
        i = outputs.index(wanted)
        return i + sum([row <= i for row in self._rows])

    def _launch(
        self, program: tuple[Executable, Ahead], structure: Structure, leaves: Sequence[Array],
        wanted: int,
    ) -> Results:  # fmt: skip
        """Runs the program. Waits for `wanted`: see `_place_of`."""
        executable, ahead = program
        if self._oracle is not None:
            land()
            self._oracle.compare(leaves, State())
        memories = dict(zip(self._keys, self._memories(leaves), strict=True))
        known = structure.known
        still = known is not None and known.token is self._token
        self._token = None
        fresh = self.watch is not None and self.watch.is_fresh(structure.leaves, still)
        moved, departure = None, None
        if known is None:
            departure = ahead.departure(wanted, structure.leaves, leaves)
        elif still:
            moved = known.arguments
        executable.launch(leaves, memories, fresh, moved, departure)
        self._token = None if known is None else known.token
        return Results(list(memories.values()), self._rows)

    def _memories(self, leaves: Sequence[Array]) -> list[np.ndarray[Any, Any]]:
        """Memory for the results: that of a leaf, or fresh."""
        return [
            memory_pool.empty(*kind) if home < 0 else leaves[home]
            for home, kind in zip(self._homes, self._types, strict=True)
        ]


def specialized(expanded: Expanded) -> Step:
    """The pure step of an expanded structure."""
    request = Request(expanded.graph, expanded.outputs, (), expanded.feeds)
    return specialize(request, [v.type for v in expanded.feeds], {}, {})
