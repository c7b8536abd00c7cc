"""Control-flow records by call number: jump targets, and arguments that advance with loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from weft.ir.node import Value
from weft.passes.blueprint import InArena, Place
from weft.passes.control.body import owner
from weft.passes.control.record import Control, Cursor, Kind, Loop, Steer, Tape
from weft.passes.launch import Buffer, Flat, Launch, Slice, Swapped


def steers(
    launches: Sequence[Launch], flat: Flat, place: Callable[[Buffer], Place],
    tapes: Mapping[Tape, int],
) -> dict[int, Steer]:  # fmt: skip
    """The records among launches, by position.

    Args:
        flat: knows which buffers move.
        place: where a buffer lies.
        tapes: numbers of the tapes.
    """
    found: dict[int, Steer] = {}
    controls = {launch.control: i for i, launch in enumerate(launches) if launch.control}
    where = _Where(flat, place, tapes)
    moving = _cursors(launches, where) if controls else {}
    numbers: dict[Loop, int] = {}
    for control, position in controls.items():
        loop = control.loop
        targets = tuple([controls[record] + 1 for record in control.behind])
        if loop is None:
            found[position] = Steer(control.kind, targets=targets)
            continue
        number = numbers.setdefault(loop, len(numbers))
        most = -1 if loop.most is None else loop.most
        counted = -1 if loop.counted is None else where.tape_of(loop.counted)
        tape = -1 if loop.tape is None else tapes[loop.tape]
        cursors = tuple(moving.get(loop, ())) if control.kind is Kind.BEGIN else ()
        found[position] = Steer(control.kind, number, most, counted, tape, targets, cursors)
    return found


@dataclass(frozen=True)
class _Where:
    """The place of each buffer."""

    flat: Flat
    place: Callable[[Buffer], Place]
    tapes: Mapping[Tape, int]

    def tape_of(self, stack: Buffer) -> int:
        """The tape number of a stack."""
        whole = owner(stack, self.flat)
        assert isinstance(whole, Value)
        return self.tapes[self.flat.stacks[whole][0]]


def _cursors(launches: Sequence[Launch], where: _Where) -> dict[Loop, list[Cursor]]:
    """The arguments that advance with each loop."""
    found: dict[Loop, list[Cursor]] = {}
    for position, launch in enumerate(launches):
        for slot, argument in enumerate(launch.args):
            control = launch.control
            if isinstance(argument, int) or (control and not steered(control, slot)):
                continue
            for loop, cursor in _moves(argument, position, slot, where):
                found.setdefault(loop, []).append(cursor)
    return found


def steered(control: Control, slot: int) -> bool:
    """Whether a record reads an argument; its other arguments only mark what is alive."""
    return slot == 0 and control.kind in (Kind.HOLDS, Kind.CHOOSE)


def _moves(buffer: Buffer, call: int, slot: int, where: _Where) -> list[tuple[Loop, Cursor]]:
    found: list[tuple[Loop, Cursor]] = []
    flat, place = where.flat, where.place
    while True:
        while isinstance(buffer, Value) and buffer in flat.aliases:
            buffer = flat.aliases[buffer]
        match flat.views.get(buffer):
            case Slice(whole, loop, start, stride, height):
                tape = where.tape_of(whole) if height else -1
                found.append((loop, Cursor(call, slot, start, stride, height, tape, (0, 0))))
                buffer = whole
            case Swapped(even, odd, loop):
                swap = _offset(place(even)), _offset(place(odd))
                found.append((loop, Cursor(call, slot, 0, 0, 0, -1, swap)))
                buffer = even
            case None:
                return found


def _offset(place: Place) -> int:
    assert isinstance(place, InArena)
    return place.offset
