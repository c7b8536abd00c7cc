"""Transforms windows of an image, as code inside a kernel.

The addresses of a window come from a table of pointers, made once per window, in which positions
outside the image point at zeros. The transform along either axis is a loop through memory: unrolled
it would be most of the kernel, and need more registers than there are.

Each point is a stream of its own, more than hardware prefetching follows: lines of the next window
are prefetched while this one is stored.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.codegen.builder import Builder, Reg, integer, vector
from weft.codegen.contraction.emit import divide, read, smaller, subtract
from weft.codegen.microkernel import first_lanes, prefetch
from weft.codegen.winograd.transform import Matrix, apply
from weft.ir.dtype import float32
from weft.ir.extent import assume

SIZE = float32.size
PLACES = 8
"""Positions of a window whose addresses are computed at a time."""
LEAST_ZEROS = 4096
"""Bytes of zeros in a kernel; fixed, so that kernels for few channels are equal."""
Channels = tuple[Reg, Reg]


@dataclass(frozen=True)
class Windows:
    """Windows of an NHWC image: how they are read, transformed and written.

    Window (i, j) begins at `step * i + low`, and likewise across; there are `grid` of them per
    image. A point of it goes to panels of `panel` channels.
    """

    matrix: Matrix  # points x positions of a window, along either axis
    grid: tuple[Reg, Reg]
    step: int
    low: tuple[int, int]
    extents: tuple[Reg, Reg]
    channels: Reg
    panel: int  # 0: all channels
    lanes: int
    window_bytes: int  # between windows of a panel
    panel_bytes: Reg  # between panels of a point
    point_bytes: Reg  # between points
    zeros: int  # bytes, at least those of a pixel
    whole: bool  # whole vectors of channels

    @property
    def side(self) -> int:
        """Positions along an axis."""
        return len(self.matrix[0])


def zeros_for(channels: int) -> int:
    """Bytes of zeros for positions outside the image."""
    found = max(LEAST_ZEROS, 1 << (int(channels) * SIZE - 1).bit_length())
    assume(channels * SIZE <= found)
    return found


def square_at(b: Builder, grid: tuple[Reg, Reg], index: Reg) -> tuple[Reg, Reg, Reg]:
    """Image, row and column of a window, counted through all images."""
    rest, column = divide(b, index, grid[1])
    image, row = divide(b, rest, grid[0])
    return image, row, column


class WindowTransform:
    """Writes the transform of windows; created at the entry of a kernel."""

    def __init__(self, b: Builder, windows: Windows) -> None:
        self.b = b
        self.windows = windows
        self.pixel = b.mul(windows.channels, SIZE)
        self.line = b.mul(windows.extents[1], self.pixel)
        side = windows.side
        self.type = vector("float", windows.lanes)
        b.declarations.add(f"@zeros = private constant [{windows.zeros} x i8] zeroinitializer")
        self.zeros = b.emit("i64", "ptrtoint ptr @zeros to i64")
        places = [divmod(n, side) for n in range(-(-(side**2) // PLACES) * PLACES)]
        self.blocks = [places[n : n + PLACES] for n in range(0, len(places), PLACES)]
        self.table = b.emit("ptr", f"alloca [{len(places)} x ptr], align 64")
        self.away = b.emit("ptr", f"alloca [{len(places)} x i64], align 64")
        for n, (i, j) in enumerate(places):
            away = b.add(b.mul(self.line, i), b.mul(self.pixel, j))
            b.store(away, b.offset(self.away, n * 8), 8)
        self.between = b.emit(
            "ptr", f"alloca [{side * len(windows.matrix)} x {self.type}], align 64"
        )

    def write(
        self, source: Reg, to: Reg, first: Reg, count: Reg, channels: Channels | None = None
    ) -> None:
        """Transforms `count` windows from number `first` on to contiguous places in `to`.

        Args:
            channels: first and end, the first one divisible by lanes; all if not given.
        """
        b, windows = self.b, self.windows
        channels = channels or (integer(0), windows.channels)
        with b.loop(0, count) as loop:
            image, row, column = square_at(b, windows.grid, b.add(first, loop.index))
            y = b.add(b.mul(row, windows.step), windows.low[0])
            x = b.add(b.mul(column, windows.step), windows.low[1])
            line = b.add(b.mul(image, windows.extents[0]), y)
            corner = b.add(b.mul(line, self.line), b.mul(x, self.pixel))
            start = b.add(b.emit("i64", f"ptrtoint {source} to i64"), corner)
            self._fill(start, (y, x))
            self._channels(b.offset(to, b.mul(loop.index, windows.window_bytes)), channels)

    def _fill(self, start: Reg, at: tuple[Reg, Reg]) -> None:
        """Fills the table for the window at row and column `at` of its image."""
        b = self.b
        wide = [b.splat(x, PLACES) for x in (start, self.zeros, *at, *self.windows.extents)]
        type_ = wide[0].type
        for n, places in enumerate(self.blocks):
            tests: list[Reg] = []
            for axis in range(2):
                steps = ", ".join([f"i64 {place[axis]}" for place in places])
                index = b.binary("add", wide[2 + axis], Reg(type_, f"<{steps}>"))
                tests.append(b.compare("icmp ult", index, wide[4 + axis]))
            away = b.load(type_, b.offset(self.away, n * PLACES * 8), 64)
            inside = b.binary("add", wide[0], away)
            some = b.binary("and", *tests)
            found = b.emit(type_, f"select {some}, {inside}, {wide[1]}")
            b.store(found, b.offset(self.table, n * PLACES * 8), 64)

    def _channels(self, goal: Reg, channels: Channels) -> None:
        """The channels of one window, by vectors."""
        b, windows = self.b, self.windows
        start, end = channels
        if windows.whole:
            with b.loop(start, end, windows.lanes) as loop:
                self._vector(goal, loop.index, None)
            return
        whole = b.binary("and", windows.channels, integer(-windows.lanes))
        with b.loop(start, smaller(b, end, whole), windows.lanes) as loop:
            self._vector(goal, loop.index, None)
        with b.when(b.compare("icmp slt", whole, end)):
            mask = first_lanes(b, subtract(b, windows.channels, whole), windows.lanes)
            self._vector(goal, whole, mask)

    def _vector(self, goal: Reg, channel: Reg, mask: Reg | None) -> None:
        b, windows, side = self.b, self.windows, self.windows.side
        bytes_ = windows.lanes * SIZE
        away = b.mul(channel, SIZE)
        with b.loop(0, side) as j:
            entries = b.offset(self.table, j.index, "ptr")
            places = [b.load("ptr", b.offset(entries, i * side * 8), 8) for i in range(side)]
            values = [
                read(b, b.offset(place, away), windows.lanes, float32, float32, mask)
                for place in places
            ]
            to = b.offset(self.between, j.index, self.type)
            for i, value in enumerate(apply(b, windows.matrix, values)):
                b.store(value, b.offset(to, i * side * bytes_), bytes_)
        if windows.panel:
            panel, inner = divide(b, channel, integer(windows.panel))
            away = b.add(b.mul(panel, windows.panel_bytes), b.mul(inner, SIZE))
        goal, row_bytes = b.offset(goal, away), b.mul(windows.point_bytes, len(windows.matrix))
        with b.loop(0, len(windows.matrix)) as i:
            row = b.offset(self.between, b.mul(i.index, side * bytes_))
            values = [b.load(self.type, b.offset(row, j * bytes_), bytes_) for j in range(side)]
            to = b.offset(goal, b.mul(i.index, row_bytes))
            for j, value in enumerate(apply(b, windows.matrix, values)):
                place = b.offset(to, b.mul(windows.point_bytes, j))
                b.store(value, place, SIZE)
                prefetch(b, b.offset(place, windows.window_bytes), 3, write=True)
