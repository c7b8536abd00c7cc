"""Where records of control flow go on, and which arguments move with loops, in numbers of calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.ir.node import Value
from weft.passes.blueprint import InArena, Place
from weft.passes.control.record import Control, Cursor, Kind, Loop, Steer
from weft.passes.launch import Buffer, Flat, Launch, Slice, Swapped


def steers(
    launches: Sequence[Launch], flat: Flat, place: Callable[[Buffer], Place]
) -> dict[int, Steer]:
    """The records among launches, by their positions.

    Args:
        flat: knows which buffers move.
        place: where a buffer lies.
    """
    found: dict[int, Steer] = {}
    controls = {launch.control: i for i, launch in enumerate(launches) if launch.control}
    moving = _cursors(launches, flat, place) if controls else {}
    numbers: dict[Loop, int] = {}
    for control, position in controls.items():
        loop = control.loop
        targets = tuple([controls[record] + 1 for record in control.behind])
        if loop is None:
            found[position] = Steer(control.kind, targets=targets)
            continue
        number = numbers.setdefault(loop, len(numbers))
        most = -1 if loop.most is None else loop.most
        cursors = tuple(moving.get(loop, ())) if control.kind is Kind.BEGIN else ()
        found[position] = Steer(control.kind, number, most, targets, cursors)
    return found


def _cursors(
    launches: Sequence[Launch], flat: Flat, place: Callable[[Buffer], Place]
) -> dict[Loop, list[Cursor]]:
    """What moves with each loop."""
    found: dict[Loop, list[Cursor]] = {}
    for position, launch in enumerate(launches):
        for slot, argument in enumerate(launch.args):
            control = launch.control
            if isinstance(argument, int) or (control and not steered(control, slot)):
                continue
            for loop, cursor in _moves(argument, position, slot, flat, place):
                found.setdefault(loop, []).append(cursor)
    return found


def steered(control: Control, slot: int) -> bool:
    """Whether a record looks at an argument; the others only tell what is alive."""
    return slot == 0 and control.kind in (Kind.HOLDS, Kind.CHOOSE)


def _moves(
    buffer: Buffer, call: int, slot: int, flat: Flat, place: Callable[[Buffer], Place]
) -> list[tuple[Loop, Cursor]]:
    found: list[tuple[Loop, Cursor]] = []
    while True:
        while isinstance(buffer, Value) and buffer in flat.aliases:
            buffer = flat.aliases[buffer]
        match flat.views.get(buffer):
            case Slice(whole, loop, start, stride):
                found.append((loop, Cursor(call, slot, start, stride, (0, 0))))
                buffer = whole
            case Swapped(even, odd, loop):
                swap = _offset(place(even)), _offset(place(odd))
                found.append((loop, Cursor(call, slot, 0, 0, swap)))
                buffer = even
            case None:
                return found


def _offset(place: Place) -> int:
    assert isinstance(place, InArena)
    return place.offset
