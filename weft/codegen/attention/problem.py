"""The problem of an attention kernel: its sizes, and how it is tiled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from weft.codegen.contraction.product import Product
from weft.codegen.contraction.tile import ceil_div, choose_tile
from weft.codegen.microkernel import Tile, max_rows
from weft.codegen.target import Target
from weft.ir.dtype import DType, bfloat16, float32
from weft.ir.extent import Extent
from weft.ir.node import Node
from weft.ir.shape import known

BAND = 24
"""Rows of queries that go through all steps together: their scores (24 x 256 x 4 bytes) stay in L1,
and 24 is a multiple of the tiles' usual rows.
"""


QUERIES = (32, 128), (16, 16), (8, 8), (4, 4), (2, 2), (1, 1)
"""Classes of queries that differ from run to run: the least, and for how many tiles are chosen. A
tile has no more rows than there are queries, so it computes up to twice as many.
"""
KEYS = (32, 128), (0, 16)
"""Classes of keys; tiles of more than there are compute what nobody reads."""


@dataclass(frozen=True)
class Place:
    """The layout of an operand's matrices, in elements.

    The `beside` matrices of one batch entry begin `width` apart: adjacent heads share rows.
    """

    row: int  # from row to row
    batch: int  # from one batch entry's first matrix to the next one's
    beside: int = 1
    width: int = 0
    first: int = 0  # offset of the first matrix


@dataclass(frozen=True)
class Attention:
    """`heads` independent attentions of `queries` rows to `keys` rows."""

    heads: int
    queries: int
    keys: int
    width: int  # of queries and keys
    depth: int  # width of the values
    causal: bool
    scale: float
    dtype: DType
    places: tuple[Place, ...]  # of q, k, v, y (and its cotangent), cotangents of q, k, v

    @property
    def accumulator(self) -> DType:
        """The type of scores, weights and sums: float32 for half precision."""
        return float32 if self.dtype.size < 4 else self.dtype

    @property
    def label(self) -> str:
        """For kernel names."""
        sizes = f"{self.heads}x{self.queries}x{self.keys}x{self.width}x{self.depth}"
        causal = "_causal" if self.causal else ""
        beside = self.places[0].beside
        return f"{self.dtype}_{sizes}{causal}{f'_{beside}_beside' if beside > 1 else ''}"

    @property
    def elements(self) -> float:
        """Elements of q, k, v and y together."""
        return float(self.heads * (self.queries + self.keys) * (self.width + self.depth))

    def flops(self, products: int) -> float:
        """Arithmetic of that many matmuls of queries and keys; halved if causal."""
        each = 2.0 * self.heads * self.queries * self.keys * max(self.width, self.depth)
        return products * each * (0.5 if self.causal else 1.0)


def attention_of(node: Node) -> Attention:
    """The problem of an attention node or of its gradient."""
    first = 1 if node.op.endswith("_grad") else 0
    q, k, v = (known(x.shape) for x in node.data_inputs[first : first + 3])
    rest = bool(node.attrs["causal"]), float(node.attrs["scale"]), node.data_inputs[0].dtype
    heads: int | None = node.attrs.get("heads")
    if heads is None:
        apart = [Place(x[-1], x[-2] * x[-1]) for x in (q, k, v, (*q[:-1], v[-1]))]
        return Attention(
            prod(q[:-2]), q[-2], k[-2], q[-1], v[-1], *rest, (*apart, *apart[:3])
        )  # fmt: skip
    joined = (*q[:-2], 3 * heads, q[-1])
    places = [
        Place(x[-2] * x[-1], x[-3] * x[-2] * x[-1], heads, x[-1], n * x[-1])
        for x, n in zip(
            (q, k, v, (*q[:-2], heads, v[-1]), joined, joined, joined),
            (*node.attrs["first"], 0, 0, heads, 2 * heads),
            strict=True,
        )
    ]
    return Attention(
        heads * prod(q[:-3]), q[-3], k[-3], q[-1], v[-1], *rest, tuple(places)
    )  # fmt: skip


def in_pairs(problem: Attention, target: Target) -> bool:
    """Whether scores use instructions on bfloat16 pairs; widths must be even."""
    return target.bf16 and problem.dtype is bfloat16


def score_tile(problem: Attention, target: Target, width: int) -> Tile:
    """The tile of queries by keys, whose sums take `width` steps."""
    product = Product(
        usual(problem.queries, QUERIES),
        usual(problem.keys, KEYS),
        width,
        width,
        1,
        1,
        width,
        problem.dtype,
    )
    return choose_tile(product.paired() if in_pairs(problem, target) else product, target)


def row_tile(rows: int, columns: int, dtype: DType, target: Target) -> Tile:
    """The tile for `columns`, whole vectors, that wastes no column and the fewest loads."""
    lanes = target.lanes(dtype.size)
    wide = columns // lanes
    options: list[tuple[float, Tile]] = []
    for vectors in range(1, min(wide, target.registers // 4) + 1):
        if wide % vectors:
            continue
        tile = Tile(min(rows, max_rows(target, vectors)), vectors, lanes, dtype)
        sums = tile.rows * vectors
        loads = vectors + (sums if vectors == 1 else tile.rows)
        waste = ceil_div(rows, tile.rows) * tile.rows / rows
        options.append((waste * max(sums, loads, 8) / sums, tile))
    return min(options, key=lambda option: (option[0], -option[1].rows))[1]


def band_rows(rows: int, tile: Tile) -> int:
    """Rows of a band: whole tiles, but no more than there are."""
    most = ceil_div(BAND, tile.rows) * tile.rows
    return most if rows >= most else rows


def usual(size: int, classes: Sequence[tuple[int, int]]) -> int:
    """The size for which tiles are chosen: of one that differs from run to run, of its class."""
    if not isinstance(size, Extent):
        return size
    return next(chosen for least, chosen in classes if size >= least)
