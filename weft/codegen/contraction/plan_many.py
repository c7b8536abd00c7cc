"""The blocking of a matmul for sizes that differ from run to run.

A kernel serves a class of sizes, whatever sizes it is planned with. Guards tell classes apart:

    rows        all tiles are equally tall, as far as possible: up to `EVEN` tiles of at most
                `most_rows` rows, each height is a class; more rows are one class (few rows or
                columns have kernels of their own)
    columns     less than one vector, less than two, or more
    steps of k  one block, or any number
    packing     from `TALL` rows all of y is packed by a launch before, and x, if blocks may be
                several; from `CROWDED_ROWS` rows a transposed x is packed, too

Shares and chunks follow from each run's sizes. For one size, there is more to choose among
(`weft.codegen.contraction.plan`); results are the same (`weft.codegen.contraction.order`).
"""

from __future__ import annotations

from typing import Final

from weft.codegen.contraction.plan import (
    DEPTH,
    ITEM_COLUMNS,
    ITEM_ROWS,
    LEAST_ROWS,
    TEAM,
    WHOLE,
    Plan,
    chunks_of,
)
from weft.codegen.contraction.product import Product
from weft.codegen.contraction.tile import CROWDED_ROWS, ceil_div, most_rows
from weft.codegen.microkernel import Tile
from weft.codegen.target import Target
from weft.ir.extent import Extent, largest, pinned, smallest

EVEN: Final = 4
"""Tiles down that are equally tall; with more, the last one's overlap is less than a fifth."""
TALL: Final = 128
"""Rows from which y is packed: 4 / 128 of the arithmetic."""


def is_many(product: Product) -> bool:
    """Whether a size differs from run to run."""
    return any(isinstance(n, Extent) for n in (*product.sizes, *product.batch))


def plan_of_many(product: Product, target: Target) -> Plan:
    """The blocking for the class of a product's sizes."""
    tile = _tile(product, target)
    narrow = product.dtype is not tile.dtype or product.pairs
    tall = int(product.m) >= TALL or product.m >= TALL  # serve fewer rows, too
    several = int(product.k) > WHOLE or product.k > WHOLE  # serve a k of one block, too
    pack_left = (
        narrow
        or (product.x_transposed and product.m >= CROWDED_ROWS)
        or (several and tall)  # rows of x may fall into few cache sets
    )
    pack_right = (
        tall or pack_left or product.y_transposed
        or (several and product.m > EVEN * most_rows(target, tile.vectors))
    )  # fmt: skip
    if product.n < tile.columns and not target.masked:
        pack_right = True  # no masked loads: the copy pads the columns
    before = tall
    single = not (pack_right and several)
    depth = largest(product.k, 1) if single else DEPTH
    least = LEAST_ROWS if pack_right else 1, ITEM_COLUMNS if pack_left else tile.columns
    most = _largest_item(tile, target)
    down, wide, group = _shares(product, tile, single, least, most)
    room = WHOLE if single else DEPTH
    return Plan(
        tile, depth, down, wide, group, pack_left, pack_right, before, single=single, room=room,
        most=most,
    )  # fmt: skip


def _tile(product: Product, target: Target) -> Tile:
    """The tile of the class of rows and columns."""
    dtype = product.accumulator
    lanes = target.lanes(dtype.size)
    vectors = 1 if product.n <= lanes else 2
    most = most_rows(target, vectors)
    if product.m > EVEN * most:
        rows = most
    else:
        rows = pinned(ceil_div(product.m, ceil_div(product.m, most)))
    return Tile(rows, vectors, lanes, dtype, product.pairs)


def _largest_item(tile: Tile, target: Target) -> tuple[int, int]:
    """The most tiles down and across an item whose sums are kept: in a quarter of L2."""
    tall = ceil_div(ITEM_ROWS, tile.rows)
    return tall, max(1, target.l2 // 4 // (tall * tile.rows * tile.columns * tile.dtype.size))


def _shares(
    product: Product, tile: Tile, single: bool, least: tuple[int, int], most: tuple[int, int]
) -> tuple[int, int, int]:
    """Tiles down and across an item, and items in a chunk.

    Args:
        least: rows and columns that an item should have, for which it packs or reads others.
        most: tiles down and across; if k is a single block, there may be more across.
    """
    down, across = ceil_div(product.m, tile.rows), ceil_div(product.n, tile.columns)
    chunks = chunks_of(product)
    wanted = smallest(chunks, TEAM)
    tall = smallest(down, most[0])
    columns = smallest(
        ceil_div(wanted, product.count * ceil_div(down, tall)),
        largest(1, product.n // least[1]),
    )
    wide = ceil_div(across, columns)
    if not single:
        wide = smallest(wide, most[1])
    parts = product.count * ceil_div(across, wide)
    lowest = smallest(tall, ceil_div(least[0], tile.rows))
    tall = largest(lowest, smallest(tall, ceil_div(down, ceil_div(wanted, parts))))
    items = parts * ceil_div(down, tall)
    return tall, wide, ceil_div(items, largest(chunks, 1))
