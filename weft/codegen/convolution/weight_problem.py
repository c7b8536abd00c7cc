"""The problem of a convolution's weight gradient, in numbers.

gradient[t, c, k] = sum over images and positions p of y of
                    x[p * stride + t * dilation - low, c] * g[p, k]
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from weft.codegen.convolution.geometry import Window
from weft.ir.dtype import DType, float32
from weft.ir.extent import same


@dataclass(frozen=True)
class Side:
    """One axis."""

    source: int  # positions of x
    result: int  # positions of g
    taps: int
    stride: int
    dilation: int
    low: int  # zeros before x

    @property
    def inside(self) -> bool:
        """Whether every tap lies inside x for every position."""
        return self.low <= 0 and self.window(self.result) - self.low <= self.source

    @property
    def pointwise(self) -> bool:
        """Whether positions of x and g are the same."""
        return self.taps == 1 and self.stride == 1 and self.low == 0 and self.source == self.result

    def window(self, count: int) -> int:
        """Positions of x that `count` adjacent positions of g span."""
        return (count - 1) * self.stride + (self.taps - 1) * self.dilation + 1


@dataclass(frozen=True)
class WeightGradient:
    """One weight gradient."""

    images: int
    sides: tuple[Side, Side, Side]
    groups: int
    channels: int  # of a group
    columns: int  # of a group
    dtype: DType

    def planned(self) -> WeightGradient:
        """The problem for the planned sizes: decisions on speed depend on these."""
        a, b, c = (
            replace(side, source=int(side.source), result=int(side.result)) for side in self.sides
        )
        return replace(
            self, images=int(self.images), sides=(a, b, c), channels=int(self.channels),
            columns=int(self.columns),
        )  # fmt: skip

    @property
    def extents(self) -> tuple[int, int, int, int]:
        """Images and positions of g."""
        z, y, x = self.sides
        return self.images, z.result, y.result, x.result

    @property
    def sums(self) -> DType:
        """The type that sums are kept in."""
        return float32 if self.dtype.size < 4 else self.dtype

    @property
    def rows(self) -> int:
        """Rows of the gradient as a matrix: taps and channels of one group."""
        return prod(side.taps for side in self.sides) * self.channels

    @property
    def width(self) -> int:
        """Columns of the gradient as a matrix: those of all groups."""
        return self.groups * self.columns

    @property
    def pixels(self) -> int:
        """Positions of g."""
        return self.images * prod(side.result for side in self.sides)

    @property
    def elements(self) -> int:
        """Elements of x and of g."""
        x = self.images * prod(s.source for s in self.sides) * self.groups * self.channels
        return x + self.pixels * self.width

    @property
    def inside(self) -> bool:
        """Whether no tap ever lies outside x."""
        return all(side.inside for side in self.sides)

    @property
    def flops(self) -> float:
        """Additions and multiplications."""
        return 2.0 * self.pixels * self.rows * self.width

    @property
    def bytes(self) -> float:
        """Memory that must move at least once."""
        return float((self.elements + self.rows * self.width) * self.dtype.size)

    @property
    def label(self) -> str:
        """For kernel names."""
        result = "x".join(str(s.result) for s in self.sides if not same(s.result, 1)) or "1"
        taps = "x".join(str(s.taps) for s in self.sides[-2:])
        channels = self.groups * self.channels
        return f"{self.dtype}_{self.images}x{result}_{channels}to{self.width}_{taps}"


def weight_gradient_of(
    x: tuple[int, ...], w: tuple[int, ...], g: tuple[int, ...], window: Window, dtype: DType
) -> WeightGradient:
    """The weight gradient for the shapes of x, w and g; pointwise ones as one row of pixels."""
    a, b, c = (Side(*numbers) for numbers in window.sides(x, g))
    columns = w[-1] // window.groups
    problem = WeightGradient(x[0], (a, b, c), window.groups, w[-2], columns, dtype)
    if not all(side.pointwise for side in (a, b, c)):
        return problem
    unit, row = Side(1, 1, 1, 1, 1, 0), Side(problem.pixels, problem.pixels, 1, 1, 1, 0)
    return WeightGradient(1, (unit, unit, row), window.groups, w[-2], columns, dtype)
