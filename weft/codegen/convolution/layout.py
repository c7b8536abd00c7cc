"""What a convolution's kernel knows before it is written: sizes, pitches, places in scratch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from weft.codegen.contraction.tile import ceil_div
from weft.codegen.convolution.geometry import Correlation
from weft.codegen.convolution.halo import Image, pitches_of
from weft.codegen.convolution.panels import Extents
from weft.codegen.convolution.plan import Plan, pixel_bytes
from weft.host.memory import LINE


@dataclass(frozen=True)
class Layout:
    """Distances are in bytes."""

    problem: Correlation
    plan: Plan

    @property
    def size(self) -> int:
        """Of an element of the sums, and of a copy of the source."""
        return self.problem.sums.size

    @cached_property
    def panels(self) -> int:
        """Panels of a group."""
        return ceil_div(self.problem.columns, self.plan.tile.columns)

    @cached_property
    def extents(self) -> Extents:
        """Images and positions of all phases."""
        z, y, x = self.problem.axes
        return self.problem.images, z.count, y.count, x.count

    @cached_property
    def largest(self) -> Extents:
        """Images and positions of the largest block."""
        if self.plan.sizes is not None:
            return self.plan.sizes
        cuts = zip(self.extents, self.plan.blocks, strict=True)
        n, z, y, x = (ceil_div(extent, parts) for extent, parts in cuts)
        return n, z, y, x

    @cached_property
    def image(self) -> Image:
        """How the source lies in memory, unless in planes."""
        z, y, x = (axis.source for axis in self.problem.axes)
        return Image((z, y, x), self.problem.groups * self.problem.depth, self.problem.dtype)

    @cached_property
    def pitches(self) -> Extents:
        """From image to image, and along the axes, of the source or its copy."""
        if not self.plan.copied:
            return self.image.pitches
        windows = zip(self.problem.axes, self.largest[1:], strict=True)
        z, y, x = (axis.window(count) for axis, count in windows)
        return pitches_of((z, y, x), pixel_bytes(self.problem, self.plan.slices))

    @cached_property
    def copy_bytes(self) -> int:
        """Scratch for a copy of the source, which comes first."""
        if not self.plan.copied:
            return 0
        return (self.largest[0] * self.pitches[0] // LINE + 1) * LINE

    @cached_property
    def phases(self) -> int:
        """How many phases there are."""
        return prod(len(axis.phases) for axis in self.problem.axes)

    @cached_property
    def tiles(self) -> int:
        """Tiles of the largest block."""
        n, z, y, x = self.largest
        rows = self.plan.tile.rows
        return (
            ceil_div(n * z * y * x, rows) if self.plan.scattered else n * z * y * ceil_div(x, rows)
        )

    @cached_property
    def phase_bytes(self) -> int:
        """Sums of a slice, kept for the next: tile after tile, phase after phase."""
        tile = self.plan.tile
        return self.tiles * tile.rows * tile.columns * self.size

    @cached_property
    def scratch(self) -> int:
        """Scratch of a thread."""
        if self.plan.slices == 1:
            return self.copy_bytes
        panels = ceil_div(self.problem.groups * self.panels, self.plan.shares)
        return self.copy_bytes + panels * self.phases * self.phase_bytes
