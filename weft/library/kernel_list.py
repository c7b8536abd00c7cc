"""Lists of library kernels, whatever the sizes: stitched for given ones, then run by one call."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from weft import config
from weft.codegen.driver import list_layout
from weft.errors import CompileError, NoCompilerError
from weft.library import workspace
from weft.library.case import Case, case_at
from weft.library.entry import link
from weft.library.formula import Choice, numbers
from weft.library.host_part import HostPart
from weft.library.routine import Part
from weft.library.variant import Code, variant_at
from weft.library.workspace import Workspace, reserve
from weft.runtime.execution import driver
from weft.runtime.memory.address import address_of


class Row(NamedTuple):
    """A step: a call at the sizes from `first` on, of a case of this layout, on numbered values.

    Attributes:
        cases: of the call; none where memory is divided.
        inputs: -1 is one that is not read.
        outputs: of each result the numbers of an `Output` (`weft.codegen.driver.list_layout`).
        dead: values whose memory is free after it.
    """

    cases: Choice | None
    first: int
    layout: int
    inputs: Sequence[int]
    outputs: Sequence[int]
    dead: Sequence[int]


_OUTPUT: Final = len(list_layout.Output._fields_)


class Origin(NamedTuple):
    """Where a launch comes from: a step, a part of its call and the sizes of this part."""

    step: int
    part: Part
    sizes: tuple[int, ...]


class Host(NamedTuple):
    """A call of Python before a launch; the addresses of its buffers are 0 where there is none."""

    launch: int
    step: int
    part: HostPart
    places: Sequence[int]


class KernelList:
    """Steps on numbered values.

    Args:
        count: how many values there are.
        given: those whose addresses are given.
    """

    def __init__(self, rows: Sequence[Row], count: int, given: Sequence[int]) -> None:
        self._rows = rows  # and the tables to which theirs refer
        pool, table, end = [*given], list[int](), 8 * len(given)
        for cases, first, layout, inputs, outputs, dead in rows:
            pool += inputs
            pool += outputs
            pool += dead
            places = [end, end + 8 * len(inputs), end + 8 * (len(inputs) + len(outputs))]
            end = 8 * len(pool)
            table += (
                0 if cases is None else cases.address, first, layout, places[0], len(inputs),
                places[1], len(outputs) // _OUTPUT, places[2], len(dead),
            )  # fmt: skip
        self._pool = numbers(pool)
        self._steps = steps = numbers(table).reshape(-1, 9)
        steps[:, [3, 5, 7]] += address_of(self._pool)
        self._places = numbers([0] * count)
        self._bytes = numbers([0] * count)
        self._struct = list_layout.List(
            address_of(steps), len(steps), address_of(self._pool), len(given),
            address_of(self._places), address_of(self._bytes),
        )  # fmt: skip
        self._address = ctypes.addressof(self._struct)
        reserve(count)

    def stitch(
        self, into: Workspace, sizes: bytes, addresses: bytes, add: Callable[[int], None]
    ) -> bool:
        """Writes the launches for these sizes, with linked kernels; whether the list fits them.

        Args:
            addresses: of the given values.
            add: makes the case of a step for these sizes.

        Raises:
            CompileError: there is no kernel for something.
        """
        table, stitch = into.table, driver.entries().stitch
        while True:
            state = stitch(self._address, into.address, sizes, addresses)
            if state == list_layout.DONE:
                if not table.unlinked:
                    return True
                self._link(into, sizes)
            elif state == list_layout.NO_ROOM:
                into.grow()
            elif state == list_layout.NO_CASE:
                add(table.step)
            elif state == list_layout.NO_VARIANT:
                part, own = self._part(table.step, table.case, table.part, sizes)
                part.add(own)
            else:
                return False

    def run(self, sizes: bytes, addresses: bytes) -> bool:
        """Stitches and runs it at once, if nothing stands in the way; whether it was run.

        It may be run again if it was not, or if a value did not fit.
        """
        into = workspace.take(int(config.get("threads")))
        table, stitch = into.table, driver.entries().stitch
        state = stitch(self._address, into.address, sizes, addresses)
        while state == list_layout.NO_ROOM:
            into.grow()
            state = stitch(self._address, into.address, sizes, addresses)
        fault = state or table.unlinked or table.host_count or into.run(0, table.launch_count)
        workspace.give(into)
        return not fault

    def _part(self, step: int, case: int, part: int, sizes: bytes) -> tuple[Part, tuple[int, ...]]:
        return case_at(case).part_at(part, sizes[8 * self._rows[step].first :])

    def _link(self, stitched: Workspace, sizes: bytes) -> None:
        """Links kernels; those whose object code is gone are written again."""
        missing: dict[Code, None] = {}
        origins = stitched.origins()
        for *_, variant in origins:
            if not variant:  # a copy
                continue
            codes = [template.code for template in variant_at(variant).templates]
            missing.update(dict.fromkeys([code for code in codes if not code.address]))
        try:
            link([*missing])
        except NoCompilerError:
            raise
        except CompileError:
            parts = [self._part(step, case, part, sizes)[0] for step, part, case, v in origins if v]
            lost = [code for part in parts for code in part.restore()]
            if not lost:
                raise
            link(lost)

    def origin(self, stitched: Workspace, launch: int, sizes: bytes) -> Origin:
        """Where a launch comes from, of the list that was stitched for these sizes."""
        step, part, case, _ = stitched.origins()[launch]
        return Origin(step, *self._part(step, case, part, sizes))

    def hosts(self, stitched: Workspace) -> list[Host]:
        """The calls of Python in order."""
        found: list[Host] = []
        for launch, step, number, case, slot in stitched.hosts():
            part = case_at(case).routine.parts[number]
            assert isinstance(part, HostPart)
            found.append(Host(launch, step, part, stitched.slots(slot, len(part.buffers))))
        return found

    def cases(self, stitched: Workspace) -> list[Case]:
        """The cases of all launches and calls of Python."""
        found = {row[2] for row in stitched.origins()} | {row[3] for row in stitched.hosts()}
        return [case_at(case) for case in found if case]

    def place(self, value: int) -> int:
        """The address of a value in the list that was stitched last."""
        return int(self._places[value])
