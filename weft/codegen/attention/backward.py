"""Attention backward: recomputes the weights from the log-sum-exps of the forward pass.

    p = exp(scale * q @ k.T - log_sums)        dv = p.T @ g
    ds = p * (g @ v.T - shared) * scale        dq = ds @ k,  dk = ds.T @ q

One thread does a head, in blocks of queries by blocks of keys, whose p and ds stay in L2. dk and dv
accumulate in scratch over blocks of queries, dq over blocks of keys. Blocks that a causal mask
hides are skipped.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Final

from weft.codegen.attention.nest import Coming, Layout, Nest, Packed, Panels, placed
from weft.codegen.attention.problem import (
    KEYS,
    QUERIES,
    Attention,
    attention_of,
    band_rows,
    row_tile,
    score_tile,
    usual,
)
from weft.codegen.builder import Reg, constant, integer
from weft.codegen.contraction.emit import divide, larger, scaled, smaller, subtract, write
from weft.codegen.contraction.finish import load_tile, store_tile
from weft.codegen.contraction.tile import ceil_div
from weft.codegen.microkernel import Tile
from weft.codegen.target import Target
from weft.ir.extent import Extent, largest, smallest
from weft.passes.group import Group
from weft.passes.launch import Kernel, Launch, Scratch

AHEAD = 8
"""Prefetch distance of output rows."""
SPAN = 4096
"""Bytes of L2 per key of a block: 256 keys for 1 MB. Sums of dq are then loaded and stored once in
256 steps, and p, ds and the block's panels fit together.
"""


def flash_attention_grad(group: Group, target: Target) -> tuple[Launch, ...]:
    """The launch of a `flash_attention_grad` node."""
    node = group.nodes[0]
    problem = attention_of(node)
    if not problem.heads:
        return ()
    layout = _Layout(problem, target)
    scratch = Scratch(layout.used, per_thread=True)
    args = (*node.data_inputs, scratch, *node.outputs)
    moved = 2 * problem.elements * problem.dtype.size
    writes = tuple(range(6, len(args)))
    kernel = Kernel(f"attention_grad_{problem.label}", _Backward(layout).text())
    return (
        Launch(kernel, args, writes, layout.heads.chunks, flops=problem.flops(5), bytes=moved),
    )  # fmt: skip


def _tile_bytes(tile: Tile) -> int:
    return tile.rows * tile.columns * tile.dtype.size


def _line_bytes(tile: Tile, columns: int) -> int:
    """Bytes of a line: the tiles next to each other."""
    return _tile_bytes(tile) * (columns // tile.columns)


class _Layout(Layout):
    def __init__(self, problem: Attention, target: Target) -> None:
        super().__init__(problem, target)
        p = problem
        self.tile: Final = score_tile(p, target, max(p.width, p.depth))
        self.band: Final = band_rows(p.queries, self.tile)
        self.by_query: Final = row_tile(usual(self.band, QUERIES), p.width, self.dtype, target)
        self.by_key: Final = row_tile(usual(p.keys, KEYS), p.width, self.dtype, target)
        self.by_value: Final = row_tile(usual(p.keys, KEYS), p.depth, self.dtype, target)
        self.keys_turned: Final = Panels(
            self.stored, self.tile, self.steps(p.width), p.keys, turned=True
        )
        self.values_turned: Final = Panels(
            self.stored, self.tile, self.steps(p.depth), p.keys, turned=True
        )
        self.keys: Final = Panels(self.stored, self.by_query, p.keys, p.width)
        # Panels of a block of keys, and its keys.
        self.across: Final = max(1, target.l2 // SPAN // self.tile.columns)
        self.span: Final = self.across * self.tile.columns
        self.spans: Final = ceil_div(p.keys, self.span)
        self.splits: Final = self.spans > 1
        padded = smallest(self.span, self.keys_turned.count * self.tile.columns)
        for tile in (self.by_key, self.by_value):
            padded = largest(padded, self.tiles(tile) * tile.rows)
        self.padded: Final = padded
        vectors = ceil_div(padded, self.lanes)
        self.pitch: Final = (vectors + 1 - vectors % 2) * self.lanes
        # Both scratch matrices of a block take half of L2.
        pitch = self.span if isinstance(p.keys, Extent) else self.pitch
        most = largest(self.band, target.l2 // 2 // (2 * pitch * self.size))
        self.block: Final = largest(self.band, ceil_div(p.queries, ceil_div(p.queries, most)))
        self.blocks: Final = ceil_div(p.queries, self.block)
        # Whether there are sums for the part of the block before.
        self.adds: Final = self.splits or self.blocks > 1
        self.queries: Final = Panels(self.stored, self.by_key, self.block, p.width)
        self.cotangents: Final = Panels(self.stored, self.by_value, self.block, p.depth)
        self.joined: Final = p.places[0].beside > 1  # all cotangents in one array
        panels = (
            self.keys_turned, self.values_turned, self.keys, self.queries, self.cotangents,
        )  # fmt: skip
        matrix = self.block * self.pitch * self.size
        self.grown_bytes: Final = [
            self.spans * self.tiles(tile) * _line_bytes(tile, n)
            for tile, n in ((self.by_key, p.width), (self.by_value, p.depth))
        ]
        self.down: Final = ceil_div(self.band, self.by_query.rows)
        bands = ceil_div(self.block, self.band) if self.splits else 0
        self.query_bytes: Final = bands * self.down * _line_bytes(self.by_query, p.width)
        wide = [self.band * n * self.size if self.widens else 0 for n in (p.width, p.depth)]
        places, self.used = placed([
            *(each.bytes for each in panels), matrix, matrix, *self.grown_bytes,
            self.query_bytes, *wide,
        ])  # fmt: skip
        self.panels: Final = tuple(zip(panels, places, strict=False))
        self.matrices: Final = places[5:7]  # p and ds
        self.grown: Final = places[7:9]  # dk and dv
        self.query_sums: Final = places[9]
        self.bands: Final = places[10:]

    def tiles(self, tile: Tile) -> int:
        """Tiles that cover the keys of a block."""
        return ceil_div(smallest(self.span, self.problem.keys), tile.rows)


@dataclass(frozen=True)
class _Head:
    """The registers of a head."""

    keys_turned: Packed
    values_turned: Packed
    keys: Packed
    queries: Packed  # of a block, as the following
    cotangents: Packed
    p: Reg
    ds: Reg
    sums: Reg  # logarithms
    shared: Reg
    coming: Coming


class _Backward(Nest):
    def __init__(self, layout: _Layout) -> None:
        super().__init__(layout, 6, layout.used)
        self.layout: Final = layout

    def _clear(self, place: int, size: int) -> None:
        count = integer(size // (self.lanes * self.size))
        self.clear(self.b.offset(self.own, place), integer(0), count)

    def text(self) -> str:
        """The kernel; arguments g, q, k, v, log_sums, shared, scratch, dq, dk, dv."""
        b, p, layout = self.b, self.problem, self.layout
        with layout.heads.loop(b) as number:
            packed = [Packed(each, b.offset(self.own, place)) for each, place in layout.panels]
            weights, slopes = (b.offset(self.own, place) for place in layout.matrices)
            by_q, by_k, by_v, by_g, *by = p.places
            g = self.matrix(0, number, by_g)
            q, k, v = (
                self.matrix(1 + i, number, place) for i, place in enumerate((by_q, by_k, by_v))
            )
            sums, shared = (self.vector(slot, number, p.queries) for slot in (4, 5))
            slots, columns = (1, 2, 3, 0), (p.width, p.width, p.depth, p.depth)
            coming = self.coming(number, list(zip(slots, p.places[:4], columns, strict=True)))
            head = _Head(
                packed[0], packed[1], packed[2], packed[3], packed[4], weights, slopes, sums,
                shared, coming,
            )  # fmt: skip
            dq, dk, dv = (
                self.matrix(7 if layout.joined else 7 + i, number, place)
                for i, place in enumerate(by)
            )
            head.keys_turned.copy(b, k, by_k.row, self.target)
            head.values_turned.copy(b, v, by_v.row, self.target)
            head.keys.copy(b, k, by_k.row, self.target)
            if not layout.adds:
                self._block(head, (q, g, dq), integer(0), integer(0))
            else:
                for place, size in zip(layout.grown, layout.grown_bytes, strict=True):
                    self._clear(place, size)
                with b.loop(0, layout.blocks) as loop:
                    first = b.mul(loop.index, layout.block)
                    row = smaller(b, first, p.queries - layout.block)
                    self._block(head, (q, g, dq), row, subtract(b, first, row))
            self._hand_over(layout.by_key, layout.grown[0], (dk, by[1].row), p.width)
            self._hand_over(layout.by_value, layout.grown[1], (dv, by[2].row), p.depth)
        return b.module()

    def _block(self, head: _Head, operands: tuple[Reg, Reg, Reg], row: Reg, done: Reg) -> None:
        """The queries from `row` on, of which an earlier block did the first `done`."""
        b, p, layout = self.b, self.problem, self.layout
        q, g, dq = operands
        by_q, _, _, by_g, by_dq, *_ = p.places
        q, g, dq = (
            self.line(x, row, place.row) for x, place in ((q, by_q), (g, by_g), (dq, by_dq))
        )
        head.queries.copy(b, q, by_q.row, self.target)
        head.cotangents.copy(b, g, by_g.row, self.target)
        if not layout.splits:
            self._square(head, (q, g, dq), row, done, integer(0))
            return
        self._clear(layout.query_sums, layout.query_bytes)
        seen = self.visible(b.add(row, layout.block - 1))
        spans = b.binary("udiv", b.add(seen, layout.span - 1), integer(layout.span))
        with b.loop(0, spans) as loop:
            self._square(head, (q, g, dq), row, done, loop.index)

    def _square(
        self, head: _Head, operands: tuple[Reg, Reg, Reg], row: Reg, done: Reg, span: Reg
    ) -> None:
        """One block of queries, from `row` on, with one block of keys, number `span`."""
        b, layout = self.b, self.layout
        with b.loop(0, ceil_div(layout.block, layout.band)) as loop:
            first = smaller(b, b.mul(loop.index, layout.band), layout.block - layout.band)
            limit = self._seen(b.add(b.add(row, first), layout.band - 1), span)
            sees = b.compare("icmp sgt", limit, integer(0))
            with b.when(sees) if layout.splits else nullcontext():
                self._band(head, operands, (loop.index, first), row, span, limit)
        self._grow(head.cotangents, head.p, layout.grown[1], (row, done), span)
        self._grow(head.queries, head.ds, layout.grown[0], (row, done), span)

    def _seen(self, row: Reg, span: Reg) -> Reg:
        """How many keys of a block the query at `row` attends to; less than 1 if none."""
        b = self.b
        seen = self.visible(row)
        if not self.layout.splits:
            return seen
        begin = b.mul(span, self.layout.span)
        return smaller(b, subtract(b, seen, begin), self.layout.span)

    def _band(
        self, head: _Head, operands: tuple[Reg, Reg, Reg], place: tuple[Reg, Reg], row: Reg,
        span: Reg, limit: Reg,
    ) -> None:  # fmt: skip
        """Weights, their gradients and dq for a band of the block that begins at `row`.

        Args:
            place: the band's number and first query.
            limit: how many keys of the block of keys it attends to.
        """
        b, p, layout = self.b, self.problem, self.layout
        tile = layout.tile
        (q, g, dq), (number, first) = operands, place
        panels = b.binary("udiv", b.add(limit, tile.columns - 1), integer(tile.columns))
        before = b.mul(span, layout.across)

        by_q, _, _, by_g, by_dq, *_ = p.places
        queries_of = self.band_of(q, first, (layout.band, p.width), by_q.row, layout.bands[0])
        slopes_of = self.band_of(g, first, (layout.band, p.depth), by_g.row, layout.bands[1])

        def scores(start: Reg, _: Reg) -> None:
            at = b.add(first, start)
            for x, n, right, goal in (
                (queries_of, p.width, head.keys_turned, head.p),
                (slopes_of, p.depth, head.values_turned, head.ds),
            ):
                left = self.left(x, start)
                line = self.at(goal, at, layout.pitch)
                with b.loop(0, panels, at_least_once=True) as loop:
                    panel = right.right(b, b.add(before, loop.index), integer(0))
                    sums = self.product(tile, left, panel, layout.steps(n))
                    to = scaled(b, line, loop.index, tile.columns, self.size)
                    self.store(sums, to, layout.pitch, self.dtype)

        self.rows(tile, layout.band, scores)
        # Tiles of keys start at one of their queries, and read the columns of the whole tile.
        tall = max(layout.by_key.rows, layout.by_value.rows)
        wide = smaller(b, b.add(limit, tall), layout.padded) if p.causal else limit
        with b.loop(0, layout.band) as loop:
            at = b.add(first, loop.index)
            self.ask(head.coming, b.add(row, at))
            self.ask_row(self.line(dq, at, by_dq.row), p.width, True)
            self._weights(head, at, b.add(row, at), span, wide)
        is_last = self._is_last(b.add(row, first), span)
        self._queries(head, (number, first), dq, span, limit, is_last)

    def _is_last(self, row: Reg, span: Reg) -> Reg:
        """Whether the band from `row` on attends to no later block of keys."""
        b = self.b
        end = b.mul(b.add(span, 1), self.layout.span)
        return b.compare("icmp sle", self.visible(b.add(row, self.layout.band - 1)), end)

    def _queries(
        self, head: _Head, place: tuple[Reg, Reg], dq: Reg, span: Reg, limit: Reg, is_last: Reg
    ) -> None:
        """Adds a block of keys to a band's dq; the last block stores it."""
        b, layout, (number, first) = self.b, self.layout, place
        tile, pitch = layout.by_query, layout.pitch
        row = self.problem.places[4].row
        each = _line_bytes(tile, self.problem.width)
        sums_of = scaled(b, b.offset(self.own, layout.query_sums), number, layout.down * each, 1)

        def queries(start: Reg, index: Reg) -> None:
            at = b.add(first, start)
            left = self.at(head.ds, at, pitch), pitch * self.size, self.size
            line = self.line(dq, at, row)
            kept = scaled(b, sums_of, index, each, 1)
            with b.loop(0, layout.keys.count) as loop:
                right = head.keys.right(b, loop.index, b.mul(span, layout.span))
                goal = scaled(b, kept, loop.index, _tile_bytes(tile), 1)
                begin = load_tile(b, tile, goal) if layout.splits else None
                sums = self.product(tile, left, right, limit, begin)
                to = scaled(b, line, loop.index, tile.columns, self.stored.size)
                if layout.splits:
                    store_tile(b, tile, sums, goal)
                with b.when(is_last) if layout.splits else nullcontext():
                    self.store(sums, to, row, self.stored)

        self.rows(tile, layout.band, queries)

    def _weights(self, head: _Head, index: Reg, row: Reg, span: Reg, wide: Reg) -> None:
        """Line `index` of both matrices: scores to p, and g @ v.T to ds."""
        b, pitch = self.b, self.layout.pitch
        p, ds = self.at(head.p, index, pitch), self.at(head.ds, index, pitch)
        seen = self._seen(row, span)
        if self.layout.splits:
            seen = larger(b, seen, integer(0))
        count = self.vectors(seen)
        log_sum, shared = (
            b.splat(b.load(self.scalar, self.at(x, row, 1), self.size), self.lanes)
            for x in (head.sums, head.shared)
        )
        with b.loop(0, count, at_least_once=True) as loop:
            score = self.scaled_scores(p, loop.index, seen)
            weight = self.exp(b.binary("fsub", score, log_sum))
            place = scaled(b, ds, loop.index, self.lanes, self.size)
            slope = b.binary("fsub", b.load(self.type, place, self.size), shared)
            slope = b.binary("fmul", slope, constant(self.problem.scale, self.type))
            inside = b.compare("fcmp une", weight, constant(0, self.type))
            slope = b.binary("fmul", slope, weight)
            slope = b.emit(self.type, f"select {inside}, {slope}, {self.type} zeroinitializer")
            b.store(slope, place, self.size)
            b.store(weight, scaled(b, p, loop.index, self.lanes, self.size), self.size)
        last = self.vectors(wide)
        self.clear(p, count, last)
        self.clear(ds, count, last)

    def _grow(
        self, right: Packed, matrix: Reg, place: int, rows: tuple[Reg, Reg], span: Reg
    ) -> None:
        """Adds the block's share to dk or dv: the transposed matrix times the block's rows."""
        b, layout, (row, done) = self.b, self.layout, rows
        panels, tile, pitch = right.panels, right.panels.tile, layout.pitch
        base, each = b.offset(self.own, place), _tile_bytes(tile)
        before, begin = b.mul(span, layout.tiles(tile)), b.mul(span, layout.span)
        count: Reg | int = layout.tiles(tile)
        if layout.splits:  # the last block of keys may be shorter, or partly masked
            seen = self._seen(b.add(row, layout.block - 1), span)
            count = b.binary("udiv", b.add(seen, tile.rows - 1), integer(tile.rows))
        with b.loop(0, count) as loop:
            key = b.mul(loop.index, tile.rows)
            first = done
            if self.problem.causal:  # earlier queries do not attend to these keys
                behind = subtract(b, b.add(begin, key), row)
                first = b.call("i64", "llvm.smax.i64", (behind, done))
                first = smaller(b, first, layout.block)
            left = scaled(b, self.at(matrix, first, pitch), key, 1, self.size)
            depth = subtract(b, integer(layout.block), first)
            with b.loop(0, panels.count) as inner:
                at = b.add(b.mul(b.add(before, loop.index), panels.count), inner.index)
                goal = scaled(b, base, at, each, 1)
                start = load_tile(b, tile, goal) if layout.adds else None
                sums = self.product(
                    tile, (left, self.size, pitch * self.size),
                    right.right(b, inner.index, first), depth, start,
                )  # fmt: skip
                store_tile(b, tile, sums, goal)

    def _hand_over(self, tile: Tile, place: int, to: tuple[Reg, int], columns: int) -> None:
        """Copies accumulated tiles to their output rows, which are `to[1]` apart."""
        b, across, step = self.b, columns // tile.columns, self.lanes * self.size
        with b.loop(0, self.problem.keys) as loop:
            span, key = divide(b, loop.index, integer(self.layout.span))
            number, line = divide(b, key, integer(tile.rows))
            number = b.add(b.mul(span, self.layout.tiles(tile)), number)
            each = across * _tile_bytes(tile)
            source = scaled(b, b.offset(self.own, place), number, each, 1)
            source = scaled(b, source, line, tile.columns * self.size, 1)
            goal = self.line(to[0], loop.index, to[1])
            self.ask_row(self.line(to[0], b.add(loop.index, AHEAD), to[1]), columns, True)
            for i in range(across):
                for v in range(tile.vectors):
                    offset = i * _tile_bytes(tile) + v * step
                    value = b.load(self.type, b.offset(source, offset), self.size)
                    at = (i * tile.vectors + v) * self.lanes * self.stored.size
                    write(b, value, b.offset(goal, at), self.stored, None)
