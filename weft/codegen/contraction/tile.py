"""The tile of a matmul, by estimated cycles."""

from __future__ import annotations

from weft.codegen.contraction.product import Product
from weft.codegen.microkernel import Tile, max_rows
from weft.codegen.target import Target

TILE_COST = 40
"""Overhead cycles of a tile beside its multiply-adds: zeroing, stores, loops (measured)."""
CROWDED_ROWS = 32
"""Rows that a packed panel of y should serve if reading in place would miss L1 at every step
(measured); see `COPY_ROWS`.
"""
BROAD = 3
"""Maximum vectors across a tile, unless there are too few rows to fill it: a wider panel leaves L1
(5 x 5: 87% of the peak, 8 x 3: 100%, Cascade Lake).
"""
SPARE = 10
"""One of so many registers holds neither sums nor vectors of y: with two of 32 left (14 x 2, 9 x 3)
LLVM spills some within the loop over k (up to 10% slower than 13 x 2).
"""


def ceil_div(x: int, y: int) -> int:
    """`x / y`, rounded up: how many tiles of y cover x."""
    return -(-x // y)


def choose_tile(
    product: Product, target: Target, pack_left: bool = False, shared: bool = False
) -> Tile:
    """The tile with the fewest cycles: full tiles count more than large ones.

    With `pack_left`, rows of x are packed: the copy moves a tile's rows at once. Many rows are
    `shared` among items that read the same panels of y.
    """
    dtype = product.accumulator
    lanes = target.lanes(dtype.size)
    narrow = ceil_div(product.n, lanes)
    options: list[tuple[float, Tile]] = []
    widest = target.registers // 4 if product.m < max_rows(target, BROAD) else BROAD
    least = 2 if shared and narrow >= 2 else 1
    if pack_left and product.m >= CROWDED_ROWS and narrow >= 2:
        least = widest = 2
    passing = _passing(product, target, pack_left or shared)
    for vectors in range(least, min(narrow, widest) + 1):
        most = most_rows(target, vectors)
        for rows in range(max(1, min(product.m, most) // 2), min(product.m, most) + 1):
            tile = Tile(rows, vectors, lanes, dtype, product.pairs)
            options.append((tile_cycles(product, tile, passing), tile))
    return min(options, key=lambda option: (option[0], -option[1].rows))[1]


def most_rows(target: Target, vectors: int) -> int:
    """How many rows of a tile leave LLVM the registers that it needs."""
    room = (target.registers - vectors - target.registers // SPARE) // vectors
    return max(1, min(room, max_rows(target, vectors)))


def _passing(product: Product, target: Target, panels: bool) -> float:
    """Cycles per vector of y for each row of tiles that reads it (measured)."""
    if panels:
        return 0.6  # 2048 x 384 x 384: 13 x 2 is 3% faster than 8 x 3, which would waste no row
    beyond = product.k * product.n * product.dtype.size > target.l2
    few = product.m < CROWDED_ROWS and not product.y_transposed  # which are read in place
    return 2.0 if beyond and few else 0.0  # 16 x 4096 x 1024: 16 x 1 is 11% faster than 8 x 2


def tile_cycles(product: Product, tile: Tile, passing: float = 0.0) -> float:
    """Estimated cycles of one matmul with two multiply-adds and two loads a cycle."""
    sums = tile.rows * tile.vectors
    loads = tile.vectors + (sums if tile.vectors == 1 else tile.rows)
    step = max(sums, loads, 8) / 2 + passing * tile.vectors  # 8: latency 4 of two units
    tiles = ceil_div(product.m, tile.rows) * ceil_div(product.n, tile.columns)
    return tiles * (step * product.k + TILE_COST)
