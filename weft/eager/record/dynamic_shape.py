"""Families: structures that differ only in sizes, planned for a few sizes and derived for the rest.

A loop over sentences of varying lengths records the same calls each time. Graphs are expanded and
planned for a few lengths only; the interpreter's plan for any other length is derived from those
(`weft.transform.resize`).
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from weft.eager.record.call_pattern import without_sizes
from weft.eager.record.dynamic_program import Case, DynamicProgram
from weft.eager.record.expansion import Expanded
from weft.eager.record.plan import Plan
from weft.eager.record.size_probe import UNSUITED, Probe
from weft.eager.record.structure import Structure
from weft.host.garbage_collection import uncollected
from weft.ir.node import TensorType
from weft.passes.step import Step
from weft.runtime.compilation import compiler
from weft.runtime.execution import driver
from weft.transform.interpretation import Interpretation
from weft.transform.resize import GROWING, ROOM, SAMPLES, Fit, Sizes, Template, UnfitError

MOST_FAMILIES: Final = 64  # the least recently used goes first
MOST_GENERALS: Final = 8  # programs for many sizes, each for larger ones
MOST_TRIALS: Final = 2  # at making one, should the first not suit
ATTEMPTS: Final = 8  # at a template; if sizes decide what is called, there is none


@dataclass(frozen=True)
class Sample:
    """What was prepared for particular sizes.

    Attributes:
        run: `None` before the first run, and if it is compiled.
        rows: positions of the row-sparse outputs, which are two values each, as in `Expanded`.
        nodes: how many the graph has.
        seconds: estimated time of interpreting it.
        interpreted: whether it must always be interpreted.
    """

    sizes: Sizes
    run: Interpretation | None
    rows: frozenset[int]
    nodes: int
    seconds: float
    interpreted: bool


class Family:
    """Structures with the same calls, edges and attributes, apart from the integers in them."""

    def __init__(self) -> None:
        self._samples: list[Sample] = []
        self._template: Template | None = None
        self._attempts = ATTEMPTS
        self._smallest: Sizes = ()
        self._largest: Sizes = ()
        self._recent: list[Sizes] = []
        self._generals: list[DynamicProgram] = []  # the latest first
        self._trials = MOST_TRIALS
        self.shapes = 0
        self.spent = 0.0  # seconds spent interpreting what a program for many sizes could run
        self.unpaid = 0.0  # the same, since one of them was compiled for its sizes alone

    def meet(self, sizes: Sizes) -> None:
        """Count sizes that were not seen before."""
        self.shapes += 1
        self._smallest = tuple(map(min, self._smallest or sizes, sizes))
        self._largest = tuple(map(max, self._largest or sizes, sizes))
        self._recent = [*self._recent, sizes][-SAMPLES:]

    @property
    def has_program(self) -> bool:
        """Whether there is a program for many sizes."""
        return bool(self._generals)

    @property
    def rows(self) -> frozenset[int]:
        """Which outputs are row-sparse, hence two values; known once there is a general program."""
        return self._samples[-1].rows

    def general(
        self, sizes: Sizes, leaves: Sequence[TensorType]
    ) -> tuple[DynamicProgram, Case] | None:
        """The program for many sizes, if there is one, and what it needs for these."""
        for found in self._generals:
            case = found.at(sizes, leaves)
            if case is not None:
                return found, case
        return None

    @uncollected
    def make_program(
        self, sizes: Sizes, threads: int, expanded_at: Callable[[Sizes], Expanded],
        step_of: Callable[[Expanded], Step],
    ) -> None:  # fmt: skip
        """Make a program for many sizes, unless there is one that covers sizes as large as these.

        If that fails, `spent` restarts from 0: as much has to be interpreted before the next
            attempt.

        Args:
            expanded_at: the graph for other sizes; raises `UnfitError` if there is none.
            step_of: its simplified step.
        """
        known = self._generals
        if self._template is None or not self._trials or len(known) == MOST_GENERALS:
            return
        if any([general.is_planned_for(sizes) for general in known]):
            return
        if not compiler.available():
            return
        with contextlib.suppress(*UNSUITED):
            fit = Fit(self._recent)
            self._trials -= 1
            spent, self.spent = self.spent, 0.0
            driver.prestart()  # without a cache, compiler processes start while this one plans
            probe = Probe(fit, expanded_at, step_of)
            rooms = GROWING if known else ROOM
            samples = probe.samples(sizes, self._smallest, self._largest, rooms)
            self._generals = [DynamicProgram(samples, threads), *known]
            self._trials, self.spent = MOST_TRIALS, spent

    def distrust(self) -> None:
        """Stop using programs for many sizes, as results of one were wrong."""
        self._generals, self._trials = [], 0

    def learn(self, sample: Sample) -> None:
        """Add what was prepared without a template."""
        if not self._attempts:
            return
        self._samples = [*self._samples, sample][-SAMPLES:]
        if len(self._samples) < SAMPLES:
            return
        self._attempts -= 1
        if len({s.rows for s in self._samples}) == 1:
            try:
                self._template = Template([(s.sizes, s.run) for s in self._samples if s.run])
            except UnfitError:
                if not self._attempts and self._template is None:
                    self._samples.clear()

    def at(self, sizes: Sizes) -> Sample | None:
        """What would be prepared for these sizes, if it follows from known ones."""
        if self._template is None:
            return None
        try:
            run = self._template.at(sizes)
        except UnfitError:
            return None
        last = self._samples[-1]
        growth = max([a / max(b, 1) for a, b in zip(sizes, last.sizes, strict=True)], default=1.0)
        seconds = last.seconds * max(growth, 1.0) ** 2  # quadratic in the length, as in attention
        return Sample(sizes, run, last.rows, last.nodes, seconds, last.interpreted)


_families: Final[OrderedDict[Any, Family]] = OrderedDict()


def family_of(structure: Structure, as_rows: bool) -> tuple[Family, Sizes]:
    """The family of a structure, and the sizes that tell it from others in it."""
    pattern: list[Any] = [as_rows]
    sizes: list[int] = []
    records = iter(structure.records)
    for item in structure.key:
        if isinstance(item, Plan):
            record = next(records)
            kind, own = item.general or without_sizes(record)
            pattern.append(kind)
            sizes += own
        else:
            pattern.append(item)
    key = tuple(pattern)
    found = _families.get(key)
    if found is None:
        found = _families[key] = Family()
        if len(_families) > MOST_FAMILIES:
            _families.popitem(last=False)
    else:
        _families.move_to_end(key)
    return found, tuple(sizes)
