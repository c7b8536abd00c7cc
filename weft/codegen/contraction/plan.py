"""The blocking of a matmul: tile, blocks, chunks, and which operands are packed.

The loops, outermost first (after Goto and van de Geijn, "Anatomy of High-Performance Matrix
Multiplication", with the panel of y packed by the thread that uses it):

    item      a block of the output, `tall x wide` tiles; items are dealt to chunks
      block   of k, `depth` steps: a panel of y (depth x columns) stays in L1
        across  one panel of y, packed by this thread if its layout is unsuitable
          down  tiles of x; the item's block of x stays in L2
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from weft.codegen.chunk import CHUNKS
from weft.codegen.contraction.product import Product
from weft.codegen.contraction.tile import (
    BROAD,
    CROWDED_ROWS,
    ceil_div,
    choose_tile,
    most_rows,
)
from weft.codegen.microkernel import Tile, max_rows
from weft.codegen.target import Target
from weft.ir.extent import Extent, largest, smallest

DEPTH = 256
"""Maximum steps of k in a block: 256 x 2 vectors of 64 bytes are 32 KB, two thirds of Zen 5's
L1.
"""
WHOLE = 384
"""Maximum steps of k in a single block: carrying sums to a second one would cost more than a panel
of y that passes through L1 (2048 x 384 x 1536 and 384 x 384: 5 to 10% on Cascade Lake).
"""
CHUNK_FLOPS = 500_000
"""Minimum work of a chunk, about 2 us: less is not worth waking another thread for."""
CHUNK_BYTES = 1 << 17
"""The same if memory takes the time."""
TEAM = 16
"""Chunks from which rows are not divided further, because every part packs its panels of y."""
HALF_TEAM = 8
"""Chunks of columns if all rows of x are packed: 128 columns and more are worth reading them from
L3 (400 x 4096 x 1024: 2% faster with 128 than with a packed y, 8% with 256; 400 x 4096 x 2048: 1%
slower, 2% faster).
"""
COPY_ROWS = 128
"""Rows that a packed panel of y should serve: packing then costs 4 / 128 of the arithmetic."""
SHARED_ROWS = 256
"""Rows from which a launch packs y once for all items, instead of each thread its own panels."""
ITEM_ROWS = 128
"""Rows of an item then: y passes through the caches once for so many."""
LEAST_ROWS = 48
"""Minimum rows of such an item, where more chunks are needed."""
ITEM_COLUMNS = 256
"""Columns that a packed block of x should serve."""
CROWDED_TILE = 8
"""Maximum rows of a tile whose lines fit one L1 set beside a panel of y of `SHALLOW` bytes: 8 and 4
of Zen 5's 12 ways. Crowded rows of x are then best read in place (1024 x 1024 x 1024: 95% of the
peak, 91% with a packed x and panels of 32 KB).
"""
SHALLOW = 16384
"""Bytes of a panel of y beside crowded rows of x."""
PAGE = 4096
"""Bytes after which addresses fall into the same L1 set (64 sets of 64 bytes)."""
LARGE_PANEL = 16384
"""Bytes of a panel of y from which packing pays if rows are far apart: in place they fall into few
cache sets and need a TLB entry each (Cascade Lake: 2048 x 384 x 384 24% faster packed, 128 x 512 x
512 84%).
"""
LARGE_OUTPUT = 2
"""An output of so many times L2 leaves it before anyone reads it."""
SHORT = 64
"""Steps of k up to which writing such an output takes the time, not multiply-adds."""
FAR = 16
"""A y that is so many times L2 comes from memory."""
DISTANCE = 16
"""Prefetch distance in steps of k for a y read in place, from memory, whose steps are pages apart
(16 x 1000 x 2048: 1.9 times faster, Cascade Lake; 8 and 32 are slower).
"""
RUN = 512
"""Minimum columns of such a y that are read of a step at once (4 x 4096 x 4096: 12% faster than
256; 1024 gain 15% more, but leave 4 items).
"""
RUNNING = 6
"""Minimum rows that are written at the same time then (9 x 3 beside 4 x 6 and 14 x 2: k of 32 8 to
20% and 0 to 15% faster, Cascade Lake).
"""


@dataclass(frozen=True)
class Plan:
    """The blocking of one matmul; sizes in tiles, steps of k, or items."""

    tile: Tile
    depth: int
    tall: int
    wide: int
    group: int  # items in a chunk
    pack_left: bool  # a previous launch packs x
    pack_right: bool  # each thread packs its own panels of y
    before: bool = False  # a previous launch packs y, once for all
    left_before: bool = False  # a previous launch packs x, once for all
    by_rows: bool = False  # a tile's rows meet all panels before the next rows do
    single: bool = False  # k is one block for all sizes
    room: int = 0  # steps of k that a panel of x has room for, if more than `depth`
    most: tuple[int, int] = (0, 0)  # tiles down and across that scratch has room for, or those two
    part: int = 0  # steps of k whose sums are added to those before; 0: sums go on


def plan_of(product: Product, target: Target, again: bool = False) -> Plan:
    """Chooses the blocking; depends on shapes and target only, never on threads.

    Args:
        again: whether y is the same in many calls, so that packing it costs nothing: it is done
            once.
    """
    pack_left = _pack_left(product, target)
    if _memory_bound(product, target):
        return _by_rows(product, target, pack_left)
    if not pack_left and passes_once(product, target):
        return _in_passing(product, target)
    if pack_left and _apart(product, target):
        return one_by_one(product, target)
    tile = choose_tile(product, target, pack_left, product.m >= SHARED_ROWS)
    across = ceil_div(product.n, tile.columns)
    down = ceil_div(product.m, tile.rows)
    again = again and not pack_left and product.m < SHARED_ROWS
    pack_right = again or pack_left or _pack_right(product, tile, target)
    before = not again and pack_right and (pack_left or product.m >= SHARED_ROWS)
    shallow = pack_right and not (before or again) and _crowded_rows(product, tile)
    most = _deepest(product, tile, shallow, before or again or not pack_right, target)
    blocks = max(1, ceil_div(product.k, most)) if pack_right else 1
    depth = ceil_div(ceil_div(product.k, blocks), 8) * 8 if blocks > 1 else max(product.k, 1)
    if before and _columns_first(product, tile, depth, pack_left, target):
        widest = max(1, target.l2 // 2 // (down * tile.rows * tile.columns * tile.dtype.size))
        items = HALF_TEAM if pack_left else TEAM
        parts = max(ceil_div(items, product.count), ceil_div(across, widest))
        wide = ceil_div(across, ceil_div(parts, HALF_TEAM) * HALF_TEAM)
        group = ceil_div(product.count * ceil_div(across, wide), CHUNKS)
        return Plan(tile, depth, down, wide, group, pack_left, pack_right, left_before=pack_left)
    if before:
        sums = target.l2 if blocks > 1 else 1 << 62
        tall, wide, group = _row_blocks(product, tile, (down, across), sums)
        shared = pack_left and wide < across and _fits(product, depth, target)
        return Plan(tile, depth, tall, wide, group, pack_left, pack_right, before, shared)
    # Half of L2 for the item's block of x, the rest for sums and passing panels.
    kept = DEPTH if shallow else min(depth, DEPTH)  # crowded rows fill few sets of L2, too
    high = max(1, target.l2 // 2 // (tile.rows * kept * tile.dtype.size))
    tall = ceil_div(down, ceil_div(down, high))
    widest = across
    if blocks > 1:  # a quarter of L2 for the item's sums
        widest = max(1, target.l2 // 4 // (tall * tile.rows * tile.columns * tile.dtype.size))
    chunks = TEAM if shallow else CHUNKS  # rows from memory should serve many columns
    copies = pack_right and not again
    tall, wide, group = _shares(product, tile, (down, across), (tall, widest), copies, chunks)
    return Plan(tile, depth, tall, wide, group, pack_left, pack_right, again)


def in_parts(plan: Plan, part: int) -> Plan:
    """The plan with sums of `part` steps each, which are added in order."""
    each = ceil_div(ceil_div(part, ceil_div(part, plan.depth)), 8) * 8
    return replace(plan, depth=each, part=part, single=False)


def _deepest(product: Product, tile: Tile, shallow: bool, shared: bool, target: Target) -> int:
    """Maximum steps of k in a block; a thread's own packed panel has half of L1.

    The other half is for rows of x, and for the source of the copy (128 x 784 x 512 and 512 x 512:
    5% and 3% faster than with panels of 32 KB, Cascade Lake).
    """
    line = tile.columns * tile.dtype.size
    if shallow:
        return min(DEPTH, SHALLOW // line)
    if product.k <= WHOLE:
        return WHOLE
    if shared or product.m < COPY_ROWS:
        return DEPTH
    return min(DEPTH, target.l1 // 2 // line)


def _memory_bound(product: Product, target: Target) -> bool:
    """Whether sums are so short that writing them is most of the time."""
    bytes_ = product.m * product.n * product.dtype.size
    return product.k <= SHORT and bytes_ >= LARGE_OUTPUT * target.l2


def _by_rows(product: Product, target: Target, pack_left: bool) -> Plan:
    """Few rows at a time, each written in long runs, to its end where it goes to memory.

    Transposed rows of x are read in place: the few steps of k are few lines.
    """
    dtype = product.accumulator
    lanes = target.lanes(dtype.size)
    vectors = max(v for v in range(1, BROAD + 1) if max_rows(target, v) >= RUNNING)
    tile = Tile(most_rows(target, vectors), vectors, lanes, dtype, product.pairs)
    down, across = ceil_div(product.m, tile.rows), ceil_div(product.n, tile.columns)
    pack_right = pack_left or _pack_right(product, tile, target)
    if product.x_transposed and product.dtype is dtype and not (product.x_woven or product.odd):
        pack_left = crowded(product.x_step, dtype.size, PAGE // 2)
    panel = max(product.k, 1) * tile.columns * dtype.size
    to_memory = product.m * product.n * product.dtype.size > FAR // 2 * target.l2
    widest = max(1, (target.l2 // 2 if to_memory else target.l1 * 3 // 4) // panel)
    wide = ceil_div(across, ceil_div(across, widest))
    parts = product.count * ceil_div(across, wide)
    tall = ceil_div(down, max(1, CHUNKS // parts // 2 * 2))
    group = ceil_div(parts * ceil_div(down, tall), CHUNKS)
    return Plan(
        tile, max(product.k, 1), tall, wide, group, pack_left, pack_right, pack_right, by_rows=True
    )


def from_memory(product: Product, target: Target) -> bool:
    """Whether y comes from memory, and has long rows."""
    bytes_ = product.count * product.k * product.n * product.dtype.size
    return product.n >= TEAM * ITEM_COLUMNS and bytes_ > FAR * target.l2


def passes_once(product: Product, target: Target) -> bool:
    """Whether few rows meet a y that comes from memory."""
    plain = product.dtype is product.accumulator and not product.pairs
    few = not product.y_transposed and product.m <= CROWDED_ROWS
    return few and plain and from_memory(product, target)


def _in_passing(product: Product, target: Target) -> Plan:
    """A few steps of y at a time, read along its rows; the sums wait in cache for the next ones."""
    widest = target.registers // 4 if product.m < RUNNING else BROAD
    most = min(product.m, RUNNING)
    vectors = max(v for v in range(1, widest + 1) if max_rows(target, v) >= most)
    down = ceil_div(product.m, max_rows(target, vectors))
    lanes = target.lanes(product.dtype.size)
    tile = Tile(ceil_div(product.m, down), vectors, lanes, product.dtype)
    across = ceil_div(product.n, tile.columns)
    if product.count > 1:  # long runs, sums in half of L1
        kept = max(1, target.l1 // 2 // (product.m * tile.columns * tile.dtype.size))
        wide = ceil_div(across, ceil_div(across, kept))
    else:
        wide = max(ceil_div(across, TEAM), ceil_div(RUN, tile.columns))
    items = product.count * ceil_div(across, wide)
    group = ceil_div(items, CHUNKS)
    return Plan(tile, min(DISTANCE, product.k), down, wide, group, False, False)


def _apart(product: Product, target: Target) -> bool:
    """Whether the matmuls of a batch are long sums that stay in L2."""
    rows_together = product.x_transposed and not product.y_transposed
    sums = product.m * product.n * product.accumulator.size
    small = sums <= target.l2 // 4 and _fits(product, DEPTH, target)
    return product.count > 1 and rows_together and product.k > WHOLE and small


def one_by_one(product: Product, target: Target) -> Plan:
    """Each thread does a whole matmul, packing both operands block by block.

    They are not shared: packed by a launch before, they would go through memory twice more.
    """
    tile = choose_tile(product.planned(), target, pack_left=True)
    across, down = ceil_div(product.n, tile.columns), ceil_div(product.m, tile.rows)
    depth = min(DEPTH, target.l1 // 2 // (tile.columns * tile.dtype.size))
    return Plan(tile, depth, down, across, ceil_div(product.count, CHUNKS), True, True)


def crowded(stride: int, size: int, period: int = PAGE) -> bool:
    """Whether the rows of an operand begin in few L1 sets."""
    return stride * size % period == 0


def _pack_right(product: Product, tile: Tile, target: Target) -> bool:
    if product.n < tile.columns and product.n % tile.lanes and not target.masked:
        return True  # no masked loads: the copy pads the columns
    if product.y_transposed or product.dtype is not tile.dtype or product.pairs:
        return True
    if crowded(product.y_step, tile.dtype.size, PAGE // 2):
        return product.m >= CROWDED_ROWS
    panel = product.k * tile.columns * tile.dtype.size
    if product.x_transposed and panel > target.l2 // 2:  # k in blocks, or nothing stays in L2
        return product.m >= CROWDED_ROWS
    if product.m < COPY_ROWS or product.y_step <= tile.columns:
        return False
    return panel >= LARGE_PANEL or product.m >= TEAM * ITEM_ROWS  # items of all columns


def _pack_left(product: Product, target: Target) -> bool:
    dtype = product.accumulator
    columns = 2 * target.lanes(dtype.size)
    if product.dtype is not dtype or product.x_woven or product.odd:
        return True
    if product.x_transposed:
        return product.m >= CROWDED_ROWS and product.n >= 2 * columns
    if product.m < SHARED_ROWS or product.n < 4 * columns:
        return False
    apart = crowded(product.x_row, dtype.size) or _y_in_memory(product, target)
    return apart and product.k > DEPTH


def _y_in_memory(product: Product, target: Target) -> bool:
    """Whether a y in memory is best packed in passing, beside a packed x."""
    size = product.accumulator.size
    fits = product.m * DEPTH * size <= target.l2 // 2 and product.n >= 2 * product.m
    return fits and product.count * product.k * product.n * size > FAR * target.l2


def _crowded_rows(product: Product, tile: Tile) -> bool:
    """Whether rows of x fall into one cache set, but few enough to stay there."""
    if product.x_transposed or product.k <= DEPTH or tile.rows > CROWDED_TILE:
        return False
    return product.m >= CROWDED_ROWS and crowded(product.x_row, tile.dtype.size)


def chunks_of(product: Product) -> int:
    """How many chunks the work of a matmul is worth; powers of two divide evenly when few."""
    flops = 2 * product.count * product.m * product.n * product.depth
    work = largest(flops // CHUNK_FLOPS, product.moved // CHUNK_BYTES)
    chunks = largest(1, smallest(CHUNKS, work))
    if isinstance(chunks, Extent):
        return chunks
    return chunks if chunks >= TEAM else 1 << (chunks.bit_length() - 1)


def _fits(product: Product, depth: int, target: Target) -> bool:
    """Whether a block of x fits half of L2."""
    return product.m * depth * product.accumulator.size <= target.l2 // 2


def _columns_first(
    product: Product, tile: Tile, depth: int, pack_left: bool, target: Target
) -> bool:
    """Whether all rows of a block of x fit an item: a large y is then packed once, in passing.

    So is a medium-sized one beside an x that a launch has packed for all items.
    """
    fits = _fits(product, depth, target)
    bytes_ = product.count * product.k * product.n * tile.dtype.size
    columns = product.count * product.n
    if pack_left and product.n >= 2 * product.m:
        return fits and bytes_ > target.l2 and columns >= HALF_TEAM * COPY_ROWS
    return fits and bytes_ > 4 * target.l2 and columns >= TEAM * ITEM_COLUMNS


def _row_blocks(
    product: Product, tile: Tile, tiles: tuple[int, int], sums: int
) -> tuple[int, int, int]:
    """Tiles down and across an item, and items in a chunk, if panels of y are packed already.

    Items are as wide as possible, because each packs its rows of x; `sums` are the bytes that the
    sums of an item may take.
    """
    down, across = tiles
    chunks = min(chunks_of(product), TEAM)
    tall = min(down, ceil_div(ITEM_ROWS, tile.rows))
    widest = max(1, sums // (tall * tile.rows * tile.columns * tile.dtype.size))
    least = ceil_div(ITEM_COLUMNS, tile.columns)
    parts = product.count * ceil_div(down, tall)
    columns = min(ceil_div(chunks, parts), max(1, across // least))
    wide = min(widest, ceil_div(across, columns))
    wide = ceil_div(across, ceil_div(across, wide))
    parts = product.count * ceil_div(across, wide)
    lowest = min(tall, ceil_div(LEAST_ROWS, tile.rows))
    tall = min(tall, max(lowest, ceil_div(down, ceil_div(chunks, parts))))
    tall = ceil_div(down, ceil_div(down, tall))
    items = parts * ceil_div(down, tall)
    return tall, wide, ceil_div(items, chunks_of(product))


def _shares(
    product: Product, tile: Tile, tiles: tuple[int, int], most: tuple[int, int], pack_right: bool,
    columns: int = CHUNKS,
) -> tuple[int, int, int]:  # fmt: skip
    """Tiles down and across an item, both at `most`, and items in a chunk.

    Columns are divided until there are `columns` items, or as many as there are chunks.
    """
    (down, across), (tall, widest) = tiles, most
    chunks = chunks_of(product)
    parts = product.count * ceil_div(down, tall)
    wide = min(widest, ceil_div(across, max(1, min(across, ceil_div(min(chunks, columns), parts)))))
    parts = product.count * ceil_div(across, wide)
    least = min(tall, ceil_div(COPY_ROWS, tile.rows) if pack_right else 1)
    wanted = ceil_div(min(chunks, TEAM), parts)
    tall = min(tall, max(least, ceil_div(down, wanted)))
    items = parts * ceil_div(down, tall)
    return tall, wide, ceil_div(items, chunks)
