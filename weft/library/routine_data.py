"""Routines as data, which take a tenth of the time to read that they take to write."""

from __future__ import annotations

from typing import Any, Final, cast

from weft.codegen.target import Target
from weft.ir.extent import Extent, Extents
from weft.ir.node import Literal
from weft.library.case import Made
from weft.library.entry import entry_for
from weft.library.form import Form
from weft.library.form_text import NoTextError, part_of, plain
from weft.library.routine import Part, Routine

LARGEST: Final = 1 << 10
"""Elements of a constant, such as a mask, which is read in some 50 us."""


def as_data(made: Made) -> dict[str, Any]:
    """A routine as data for JSON.

    Raises:
        NoTextError: it calls Python, or has a large constant.
    """
    routine = made.routine
    parts = [part for part in routine.parts if isinstance(part, Part)]
    if len(parts) < len(routine.parts):
        raise NoTextError
    return {
        "inputs": routine.inputs, "results": routine.results, "found": made.found,
        "rows": made.rows, "constants": [plain(Literal(x), LARGEST) for x in routine.constants],
        "temporaries": [*map(_number, routine.temporaries)],
        "fails": routine.fails, "updates": sorted(routine.updates),
        "parts": [(plain(p.form.key, LARGEST), [*map(_number, p.sizes)], p.buffers) for p in parts],
    }  # fmt: skip


def _number(number: int) -> int | list[int]:
    return [number.index] if type(number) is Extent else int(number)


def from_data(data: dict[str, Any], target: Target, extents: Extents | None) -> Made:
    """The routine of `as_data`.

    Args:
        extents: those of its sizes, if it is for many.
    """

    def number(told: Any) -> int:
        if not isinstance(told, list):
            return told
        assert extents is not None
        return extents.at(cast("list[int]", told)[0])

    def numbers(told: list[Any]) -> tuple[int, ...]:
        return tuple([*map(number, told)])

    parts: list[Part] = []
    for key, sizes, buffers in data["parts"]:
        entry, form = entry_for(Form(part_of(key), numbers(sizes)), target)
        parts.append(Part(form, entry, tuple(buffers)))
    routine = Routine(
        data["inputs"], tuple(data["results"]),
        tuple([part_of(x).array for x in data["constants"]]), numbers(data["temporaries"]),
        tuple(parts),
    )  # fmt: skip
    vars(routine).update(
        fails=data["fails"], updates=frozenset([(x, y) for x, y in data["updates"]])
    )
    return Made(routine, tuple(data["found"]), data["rows"])
