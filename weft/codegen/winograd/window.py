"""Windows of an image taken apart into points, written inside a kernel.

Inside the image a window's places are constant distances from its corner. At the border they come
from a table of pointers, made once a window, in which places outside point at zeros.

Each point is a stream of its own, more of them than a processor foresees: lines of the next window
are asked for while this one is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from weft.codegen.builder import Builder, Reg, integer
from weft.codegen.contraction.emit import divide, read, smaller
from weft.codegen.microkernel import first_lanes, prefetch
from weft.codegen.winograd.transform import Matrix, both_axes
from weft.ir.dtype import float32

SIZE = float32.size
Places = Callable[[int, int], Reg]
Channels = tuple[Reg, Reg]


@dataclass(frozen=True)
class Windows:
    """Windows of an NHWC image: where they are read, what becomes of them, where it is written.

    Window (i, j) begins at `step * i + low`, and likewise across; there are `grid` of them an
    image. A point of it goes to panels of `panel` channels.
    """

    matrix: Matrix  # points x places of a window, along either axis
    grid: tuple[int, int]
    step: int
    low: tuple[int, int]
    extents: tuple[int, int]
    channels: int
    panel: int
    lanes: int
    window_bytes: int  # between windows of a panel
    panel_bytes: int  # between panels of a point
    point_bytes: int  # between points

    @property
    def side(self) -> int:
        """Places along an axis."""
        return len(self.matrix[0])


def square_at(b: Builder, grid: tuple[int, int], index: Reg) -> tuple[Reg, Reg, Reg]:
    """Image, row and column of a window, counted through all images."""
    rest, column = divide(b, index, integer(grid[1]))
    image, row = divide(b, rest, integer(grid[0]))
    return image, row, column


class WindowTransform:
    """Writes the transform of windows; made at the entry of a kernel."""

    def __init__(self, b: Builder, windows: Windows) -> None:
        self.b = b
        self.windows = windows
        self.pixel = windows.channels * SIZE
        self.table = b.emit("ptr", f"alloca [{windows.side**2} x ptr], align 64")
        b.declarations.add(f"@zeros = private constant [{self.pixel} x i8] zeroinitializer")

    def write(
        self, source: Reg, to: Reg, first: Reg, count: Reg, channels: Channels | None = None
    ) -> None:
        """Transform `count` windows from number `first` on; they follow each other in `to`.

        Args:
            channels: first and end, the first one divisible by lanes; all if not given.
        """
        b, windows = self.b, self.windows
        channels = channels or (integer(0), integer(windows.channels))
        with b.loop(0, count) as loop:
            image, row, column = square_at(b, windows.grid, b.add(first, loop.index))
            y = b.add(b.mul(row, windows.step), windows.low[0])
            x = b.add(b.mul(column, windows.step), windows.low[1])
            line = b.add(b.mul(image, windows.extents[0]), y)
            corner = b.mul(b.add(b.mul(line, windows.extents[1]), x), self.pixel)
            goal = b.offset(to, b.mul(loop.index, windows.window_bytes))
            inside = self._inside(y, x)
            with b.when(inside):
                self._channels(self._from_corner(b.offset(source, corner)), goal, channels)
            with b.when(b.binary("xor", inside, Reg("i1", "true"))):
                places = self._from_table(source, corner, (y, x))
                self._channels(places, goal, channels)

    def _inside(self, y: Reg, x: Reg) -> Reg:
        b, found = self.b, Reg("i1", "true")
        for at, extent in zip((y, x), self.windows.extents, strict=True):
            for test in (
                b.compare("icmp sle", integer(0), at),
                b.compare("icmp sle", at, integer(extent - self.windows.side)),
            ):
                found = b.binary("and", found, test)
        return found

    def _from_corner(self, corner: Reg) -> Places:
        line = self.windows.extents[1] * self.pixel
        return lambda i, j: self.b.offset(corner, i * line + j * self.pixel)

    def _from_table(self, source: Reg, corner: Reg, at: tuple[Reg, Reg]) -> Places:
        b, side, width = self.b, self.windows.side, self.windows.extents[1]
        rows, columns = (
            [b.compare("icmp ult", b.add(start, i), integer(extent)) for i in range(side)]
            for start, extent in zip(at, self.windows.extents, strict=True)
        )
        for i, j in [(i, j) for i in range(side) for j in range(side)]:
            some = b.binary("and", rows[i], columns[j])
            away = b.add(corner, (i * width + j) * self.pixel)
            place = b.offset(source, b.emit("i64", f"select {some}, {away}, i64 0"))
            place = b.emit("ptr", f"select {some}, {place}, ptr @zeros")
            b.store(place, self._entry(i, j), 8)
        return lambda i, j: b.load("ptr", self._entry(i, j), 8)

    def _entry(self, i: int, j: int) -> Reg:
        return self.b.offset(self.table, (i * self.windows.side + j) * 8)

    def _channels(self, places: Places, goal: Reg, channels: Channels) -> None:
        """The channels of one window, by vectors."""
        b, depth, lanes = self.b, self.windows.channels, self.windows.lanes
        start, end = channels
        whole = depth - depth % lanes
        if whole:
            with b.loop(start, smaller(b, end, whole), lanes) as loop:
                self._vector(places, goal, loop.index, None)
        if whole < depth:
            with b.when(b.compare("icmp slt", integer(whole), end)):
                mask = first_lanes(b, integer(depth - whole), lanes)
                self._vector(places, goal, integer(whole), mask)

    def _vector(self, places: Places, goal: Reg, channel: Reg, mask: Reg | None) -> None:
        b, windows, side = self.b, self.windows, range(self.windows.side)
        away = b.mul(channel, SIZE)
        values = [
            [
                read(b, b.offset(places(i, j), away), windows.lanes, float32, float32, mask)
                for j in side
            ]
            for i in side
        ]
        if windows.panel < windows.channels:
            panel, inner = divide(b, channel, integer(windows.panel))
            away = b.add(b.mul(panel, windows.panel_bytes), b.mul(inner, SIZE))
        goal = b.offset(goal, away)
        found = both_axes(b, windows.matrix, values)
        for i, value in enumerate(v for row in found for v in row):
            place = b.offset(goal, i * windows.point_bytes)
            b.store(value, place, SIZE)
            prefetch(b, b.offset(place, windows.window_bytes), 3, write=True)
