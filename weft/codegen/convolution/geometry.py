"""The problem of a convolution, in numbers: forward and input gradient alike.

Both read a *source* (x, or the cotangent g) and write a *result* (y, or the input gradient), both
NHWC, and for both

    result[p, c] = sum over taps t and channels k of source[p * stride + offset + t * dilation, k]
                   * weight[t, k, c]

in every axis, where positions outside the source are zero. The input gradient of a strided
convolution falls into *phases*: result positions that are equal modulo the stride use the same
taps, and within a phase it is again such a sum, of stride 1. There are always three axes; missing
ones have extent 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from math import gcd, prod

from weft.ir.dtype import DType, float32
from weft.ir.extent import largest, pinned, same, smallest
from weft.ir.node import Node
from weft.ir.shape import known

Triple = tuple[int, int, int]


@dataclass(frozen=True)
class Phase:
    """Result positions `first, first + step, ...` of one axis and the taps that they use."""

    first: int
    count: int
    offset: int  # source position of the first tap for the first result position
    tap: int  # its first tap, in the order of packed weights
    taps: int


@dataclass(frozen=True)
class Axis:
    """One spatial axis."""

    source: int  # positions of the source
    result: int  # positions of the result
    step: int  # between adjacent positions of a phase
    stride: int  # source positions from one result of a phase to the next
    dilation: int  # source positions from tap to tap
    phases: tuple[Phase, ...]
    order: tuple[int, ...]  # taps of the weights in packed order: source positions ascend

    @property
    def low(self) -> int:
        """The lowest source position that the first result positions of the phases read."""
        return min((p.offset for p in self.phases if p.taps), default=0)

    @property
    def reach(self) -> int:
        """The highest source position that they read, relative to `low`."""
        ends = [p.offset + (p.taps - 1) * self.dilation for p in self.phases if p.taps]
        return max(ends, default=0) - self.low

    @property
    def count(self) -> int:
        """Maximum result positions of a phase."""
        return reduce(largest, [p.count for p in self.phases])

    @property
    def fewest(self) -> int:
        """Minimum result positions of a phase."""
        return reduce(smallest, [p.count for p in self.phases])

    def window(self, count: int) -> int:
        """Source positions that `count` adjacent result positions span."""
        return (count - 1) * self.stride + self.reach + 1

    def touched(self, count: int) -> int:
        """Those of them that some tap reads: a stride may be longer than all taps."""
        return min(self.window(count), count * max(1, *(p.taps for p in self.phases)))

    @property
    def inside(self) -> bool:
        """Whether no position outside the source is read."""
        return self.low >= 0 and all(
            p.offset + (p.count - 1) * self.stride + (p.taps - 1) * self.dilation < self.source
            for p in self.phases
            if p.taps
        )

    def each(self, as_number: Callable[[int], int]) -> Axis:
        """The axis with other numbers in place of those that follow from sizes."""
        phases = tuple([replace(p, count=as_number(p.count)) for p in self.phases])
        source, result = as_number(self.source), as_number(self.result)
        return replace(self, source=source, result=result, phases=phases)

    @property
    def pointwise(self) -> bool:
        """Whether each result position reads the source at the same position only, by tap 0."""
        alone = self.phases == (Phase(0, self.result, 0, 0, 1),) and self.order == (0,)
        return alone and self.source == self.result


def forward_axis(source: int, result: int, taps: int, stride: int, dilation: int, low: int) -> Axis:
    """An axis of y = conv(x, w), `low` zeros before x."""
    phase = Phase(0, result, -low, 0, taps)
    return Axis(source, result, 1, stride, dilation, (phase,), tuple(range(taps)))


def backward_axis(
    source: int, result: int, taps: int, stride: int, dilation: int, low: int
) -> Axis:
    """An axis of the input gradient: source g, result of x's extent.

    y at o reads x at `o * stride + t * dilation - low`; solved for o, x at i uses the taps for
    which the stride divides `i + low - t * dilation`.
    """
    phases: list[Phase] = []
    order: list[int] = []
    for first in range(min(stride, result)):
        met = [t for t in reversed(range(taps)) if (first + low - t * dilation) % stride == 0]
        offset = (first + low - met[0] * dilation) // stride if met else 0
        count = -(-(result - first) // stride)
        phases.append(Phase(first, count, offset, len(order), len(met)))
        order.extend(met)
    return Axis(
        source, result, stride, 1, dilation // gcd(dilation, stride), tuple(phases), tuple(order)
    )


@dataclass(frozen=True)
class Correlation:
    """One convolution, or the input gradient of one."""

    images: int
    axes: tuple[Axis, Axis, Axis]
    groups: int
    depth: int  # source channels of a group
    columns: int  # result channels of a group
    taps: Triple  # of the weights in memory
    turned: bool  # weights lie as [tap, column, group, depth], else [tap, depth, group, column]
    dtype: DType

    @property
    def sums(self) -> DType:
        """The type of the sums: float32 for half precision."""
        return float32 if self.dtype.size < 4 else self.dtype

    @property
    def packed_taps(self) -> int:
        """Taps that some result position uses."""
        return prod(len(axis.order) for axis in self.axes)

    @property
    def pixels(self) -> int:
        """Positions of the result."""
        return self.images * prod(axis.result for axis in self.axes)

    @property
    def products(self) -> int:
        """Multiplications, including those with the zeros around the source."""
        met = prod(sum(p.taps * p.count for p in axis.phases) for axis in self.axes)
        return self.images * met * self.groups * self.depth * self.columns

    @property
    def flops(self) -> float:
        """Additions and multiplications."""
        return 2.0 * self.products

    @cached_property
    def bytes(self) -> float:
        """Memory that must move at least once."""
        source = self.images * prod(a.source for a in self.axes) * self.groups * self.depth
        weights = prod(self.taps) * self.depth * self.groups * self.columns
        return float(
            (source + weights + self.pixels * self.groups * self.columns) * self.dtype.size
        )

    @property
    def inside(self) -> bool:
        """Whether nothing outside the source is read."""
        return all(axis.inside for axis in self.axes)

    @property
    def label(self) -> str:
        """For kernel names."""
        result = "x".join(str(a.result) for a in self.axes if not same(a.result, 1)) or "1"
        taps = "x".join(str(t) for t in self.taps[-2:])
        return (
            f"{self.dtype}_{self.images}x{result}_{self.groups * self.depth}to"
            f"{self.groups * self.columns}_{taps}"
        )

    def planned(self) -> Correlation:
        """The problem for the planned sizes: decisions on speed depend on these."""
        return self._each(int)

    def pinned(self) -> Correlation:
        """The problem for these sizes alone."""
        return self._each(pinned)

    def _each(self, as_number: Callable[[int], int]) -> Correlation:
        a, b, c = (axis.each(as_number) for axis in self.axes)
        return replace(
            self, images=as_number(self.images), axes=(a, b, c), depth=as_number(self.depth),
            columns=as_number(self.columns),
        )  # fmt: skip

    def merged(self) -> Correlation:
        """A pointwise convolution as one row of pixels: a plain matmul."""
        if not all(axis.pointwise for axis in self.axes):
            return self
        unit = forward_axis(1, 1, 1, 1, 1, 0)
        row = forward_axis(self.pixels, self.pixels, 1, 1, 1, 0)
        return Correlation(
            1, (unit, unit, row), self.groups, self.depth, self.columns, self.taps, self.turned,
            self.dtype,
        )  # fmt: skip


@dataclass(frozen=True)
class Window:
    """The numbers of a convolution node, padded to three axes."""

    taps: Triple
    strides: Triple
    dilation: Triple
    low: Triple  # zeros before x
    groups: int

    def sides(self, source: tuple[int, ...], result: tuple[int, ...]) -> Iterator[Side]:
        """Along each axis, for shapes of images: source, result, taps, stride, dilation, zeros."""
        return zip(
            triple(source[1:-1], 1), triple(result[1:-1], 1), self.taps, self.strides,
            self.dilation, self.low, strict=True,
        )  # fmt: skip


Side = tuple[int, int, int, int, int, int]


def triple(values: tuple[int, ...], fill: int) -> Triple:
    """Pads `values` to three numbers with leading `fill`."""
    a, b, c = (fill,) * (3 - len(values)) + values
    return a, b, c


def window_of(node: Node, weights: tuple[int, ...]) -> Window:
    """The window of a convolution node or gradient, from its attributes and its weights' shape."""
    low = tuple(pinned(pair[0]) for pair in node.attrs["padding"])
    taps = tuple([pinned(t) for t in weights[:-2]])
    return Window(
        triple(taps, 1), triple(tuple(node.attrs["strides"]), 1),
        triple(tuple(node.attrs["dilation"]), 1), triple(low, 0), int(node.attrs["groups"]),
    )  # fmt: skip


def forward_of(
    x: tuple[int, ...], w: tuple[int, ...], y: tuple[int, ...], window: Window, dtype: DType
) -> Correlation:
    """y = conv(x, w) for the three shapes."""
    a, b, c = (forward_axis(*numbers) for numbers in window.sides(x, y))
    columns = w[-1] // window.groups
    return Correlation(
        x[0], (a, b, c), window.groups, w[-2], columns, window.taps, False, dtype
    ).merged()


def backward_of(
    x: tuple[int, ...], w: tuple[int, ...], g: tuple[int, ...], window: Window, dtype: DType
) -> Correlation:
    """The input gradient of y = conv(x, w), for the shapes of x, w and y."""
    a, b, c = (backward_axis(*numbers) for numbers in window.sides(g, x))
    depth = w[-1] // window.groups
    return Correlation(
        x[0], (a, b, c), window.groups, depth, w[-2], window.taps, True, dtype
    ).merged()


def shapes_of(node: Node) -> tuple[tuple[int, ...], ...]:
    """Concrete shapes of a node's inputs, then of its output."""
    return tuple(known(v.shape) for v in (*node.data_inputs, node.outputs[0]))
