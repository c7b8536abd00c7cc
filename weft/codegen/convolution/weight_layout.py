"""What a weight gradient's kernel knows before it is written: sizes, pitches, places in scratch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from weft.codegen.contraction.tile import ceil_div
from weft.codegen.convolution.geometry import Triple
from weft.codegen.convolution.halo import Image, pitches_of
from weft.codegen.convolution.panels import Extents, Panels
from weft.codegen.convolution.weight_plan import Plan
from weft.codegen.convolution.weight_problem import WeightGradient
from weft.codegen.convolution.weight_sum import Tiling
from weft.host.memory import LINE


def taps_of(problem: WeightGradient, plan: Plan) -> Triple:
    """Taps of each axis that are in tiles of their own."""
    z, y, x = problem.sides
    return z.taps, 1 if plan.tall else y.taps, 1 if plan.joined else x.taps


def tiling_of(problem: WeightGradient, plan: Plan) -> Tiling:
    """Tiles of taps and channels by columns."""
    run = problem.channels * (problem.sides[2].taps if plan.joined else 1)
    height = problem.sides[1].taps if plan.tall else 1
    taps = prod(taps_of(problem, plan))
    return Tiling(plan.tile, problem.groups, problem.columns, run, height, taps)


@dataclass(frozen=True)
class Layout:
    """Distances are in bytes.

    Attributes:
        spare: between positions of a copy of x.
    """

    problem: WeightGradient
    plan: Plan
    tiling: Tiling
    spare: int = 0

    @property
    def size(self) -> int:
        """Of an element of the sums, and of copies of x and g."""
        return self.problem.sums.size

    @property
    def largest(self) -> Extents:
        """Images and positions of the largest block."""
        return self.plan.cuts.sizes

    @cached_property
    def windows(self) -> Triple:
        """Positions of x that a block reads."""
        sides = zip(self.problem.sides, self.largest[1:], strict=True)
        z, y, x = (side.window(count) for side, count in sides)
        return z, y, x

    @cached_property
    def x_image(self) -> Image:
        """How x lies in memory."""
        z, y, x = (side.source for side in self.problem.sides)
        return Image((z, y, x), self.problem.groups * self.problem.channels, self.problem.dtype)

    @cached_property
    def g_image(self) -> Image:
        """How g lies in memory."""
        return Image(self.problem.extents[1:], self.problem.width, self.problem.dtype)

    @cached_property
    def x_copy(self) -> Extents:
        """Pitches of a copy of a block's x."""
        return pitches_of(self.windows, self.x_image.channels * self.size + self.spare)

    @cached_property
    def g_copy(self) -> Extents:
        """Pitches of a copy of a block's g."""
        return pitches_of(self.largest[1:], self.problem.width * self.size)

    @cached_property
    def packing(self) -> Panels:
        """Panels of a block's g."""
        tile = self.plan.tile
        columns = self.problem.columns
        sums, groups = self.problem.sums, self.problem.groups
        return Panels(self.largest, columns, tile.columns, tile.lanes, sums, groups)

    @cached_property
    def folded(self) -> bool:
        """Whether positions of x that no tap reads are skipped."""
        return self.plan.split and all(side.taps == 1 for side in self.problem.sides)

    @cached_property
    def flat(self) -> bool:
        """Whether a block's panels of x and g hold the same positions, one after the other."""
        return self.folded and self.problem.inside

    @cached_property
    def splitting(self) -> Panels:
        """Panels of a block's x."""
        extents = self.largest[0], *(self.largest[1:] if self.folded else self.windows)
        tiling, tile = self.tiling, self.plan.tile
        return Panels(extents, tiling.run, tiling.rows, tile.lanes, self.problem.sums, early=True)

    @cached_property
    def panels(self) -> int:
        """Maximum panels of columns in a slice."""
        return ceil_div(self.tiling.groups * self.tiling.across, self.plan.slices[1])

    @cached_property
    def pieces(self) -> int:
        """Maximum pieces of a run in a slice."""
        return ceil_div(self.tiling.pieces, self.plan.slices[0])

    @property
    def widened(self) -> bool:
        """Whether the sums have another type than x and g."""
        return self.problem.dtype is not self.problem.sums

    @cached_property
    def x_bytes(self) -> int:
        """Scratch for a block's x, which comes first."""
        if self.plan.split:
            return self.pieces * self.splitting.bytes
        return (self.largest[0] * self.x_copy[0] // LINE + 1) * LINE if self.plan.copied else 0

    @cached_property
    def sums_at(self) -> int:
        """Where in scratch the sums of a single part are, after a block's x and g."""
        if self.plan.packed:
            return self.x_bytes + (0 if self.plan.before else self.panels * self.packing.bytes)
        lines = ceil_div(self.largest[0] * self.g_copy[0], LINE) if self.widened else 0
        return self.x_bytes + lines * LINE

    @cached_property
    def scratch(self) -> int:
        """Scratch of a thread."""
        sums = self.panels * self.pieces * self.tiling.taps * self.tiling.bytes
        return self.sums_at + (sums if self.plan.parts == 1 else 0)
