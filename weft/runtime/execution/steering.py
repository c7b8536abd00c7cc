"""The driver's tables for control flow: loops, branches, and arguments that advance with loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.passes.control.record import Kind, Steer
from weft.runtime.execution import driver
from weft.runtime.execution.call import Call

Table = np.ndarray[Any, Any]


class Steering:
    """The control-flow records of a program, in the driver's format.

    Args:
        calls: all calls of the program.
        slots: the table of arguments.
        starts: index in it of each call's first argument.
        base: the address of the arena.
        tapes: rows and capacity of each tape.
    """

    def __init__(
        self, calls: Sequence[Call], slots: Table, starts: Sequence[int], base: int,
        address: Callable[[Table], int], tapes: Table,
    ) -> None:  # fmt: skip
        self._address = address
        self._slots = address(slots)
        self._starts = starts
        self._base = base
        none = np.zeros(1, driver.TAPE)
        self._tapes = [*[address(tapes[i : i + 1]) for i in range(len(tapes))], address(none)]
        self._keep: list[Table] = [tapes, none]
        self._pairs: list[tuple[Table, Sequence[int]]] = []  # tables of targets, in calls
        self._loops: dict[int, int] = {}  # number -> address
        self._moving: dict[int, Table] = {}
        self.records: dict[int, Table] = {}
        for number, call in enumerate(calls):
            if isinstance(call.function, Steer):
                self.records[number] = self._record(number, call.function)

    def address_of(self, number: int) -> int:
        """The address of the record that is this call."""
        return self._address(self.records[number])

    def in_segments(self, segment_of: Sequence[int]) -> None:
        """Converts targets of records to segments; a record has a segment of its own."""
        for table, targets in self._pairs:
            # What follows a record begins a segment.
            table["segment"] = [segment_of[target - 1] + 1 for target in targets]

    def _record(self, number: int, steer: Steer) -> Table:
        if steer.kind is Kind.BEGIN:
            self._begin(steer)
        record = np.zeros(1, driver.STEER)
        record["kind"] = steer.kind
        if steer.loop >= 0:
            record["loop"] = self._loops[steer.loop]
            items = self._moving[steer.loop]
        else:
            items = np.zeros(0, driver.TARGET)
        if steer.kind is Kind.CHOOSE:
            targets = (number + 1, *steer.targets)
            items = np.zeros(len(targets), driver.TARGET)
            items["call"] = targets
            self._pairs.append((items, targets))
            self._keep.append(items)
        elif steer.targets:
            record["call"] = steer.targets[0]
            self._pairs.append((record, steer.targets))
        else:
            record["call"] = number + 1
            self._pairs.append((record, (number + 1,)))
        record["count"], record["items"] = len(items), self._address(items)
        return record

    def _begin(self, steer: Steer) -> None:
        loop = np.zeros(1, driver.LOOP)
        loop["most"] = steer.most
        for name, number in (("counted", steer.counted), ("tape", steer.tape)):
            loop[name] = self._tapes[number] if number >= 0 else 0
        self._keep.append(loop)
        self._loops[steer.loop] = self._address(loop)
        table = np.zeros(len(steer.cursors), driver.CURSOR)
        for row, cursor in zip(table, steer.cursors, strict=True):
            even, odd = (self._base + offset for offset in cursor.swap)
            slot = self._slots + 8 * (self._starts[cursor.call] + cursor.slot)
            row["slot"], row["start"], row["stride"] = slot, cursor.start, cursor.stride
            row["swap"] = even ^ odd
            row["height"], row["tape"] = cursor.height, self._tapes[cursor.tape]
        self._moving[steer.loop] = table
