"""Attention backward: recomputes the weights from the log-sum-exps of the forward pass.

    p = exp(scale * q @ k.T - log_sums)        dv = p.T @ g
    ds = p * (g @ v.T - shared) * scale        dq = ds @ k,  dk = ds.T @ q

One thread does a head, in blocks of queries by blocks of keys, whose p and ds stay in L2. dk and dv
accumulate in scratch over blocks of queries, dq over blocks of keys. Blocks that a causal mask
hides are skipped.
"""

from __future__ import annotations

from contextlib import nullcontext

from weft.codegen.attention.nest import Nest, Panels
from weft.codegen.attention.problem import Attention, attention_of, band_rows, row_tile, score_tile
from weft.codegen.builder import Reg, constant, integer
from weft.codegen.contraction.emit import divide, larger, scaled, smaller, subtract, write
from weft.codegen.contraction.finish import load_tile, store_tile
from weft.codegen.contraction.tile import ceil_div
from weft.codegen.microkernel import Tile
from weft.codegen.target import Target
from weft.ir.extent import largest, planned, smallest
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
    nest = _Backward(problem, target)
    ir = nest.ir()
    scratch = Scratch(nest.used, per_thread=True)
    args = (*node.data_inputs, scratch, *node.outputs)
    moved = 2 * problem.elements * problem.dtype.size
    writes = tuple(range(6, len(args)))
    kernel = Kernel(f"attention_grad_{problem.label}", ir)
    return (
        Launch(kernel, args, writes, nest.items.chunks, flops=problem.flops(5), bytes=moved),
    )  # fmt: skip


class _Backward(Nest):
    def __init__(self, problem: Attention, target: Target) -> None:
        super().__init__(problem, target)
        p = problem
        self.tile = score_tile(p, target, max(p.width, p.depth))
        self.band = band_rows(p.queries, self.tile)
        self.by_query = row_tile(self.band, p.width, self.dtype, target)
        self.by_key = row_tile(int(p.keys), p.width, self.dtype, target)
        self.by_value = row_tile(int(p.keys), p.depth, self.dtype, target)
        self.keys_turned = Panels(self.stored, self.tile, self.steps(p.width), p.keys, turned=True)
        self.values_turned = Panels(
            self.stored, self.tile, self.steps(p.depth), p.keys, turned=True
        )
        self.keys = Panels(self.stored, self.by_query, p.keys, p.width)
        self.across = max(1, target.l2 // SPAN // self.tile.columns)  # panels of a block of keys
        self.span = self.across * self.tile.columns
        self.spans = ceil_div(p.keys, self.span)
        self.splits = planned(self.spans) > 1
        self.wide = smallest(self.span, self.keys_turned.count * self.tile.columns)
        self.padded = self.wide
        for tile in (self.by_key, self.by_value):
            self.padded = largest(self.padded, self._tiles(tile) * tile.rows)
        vectors = ceil_div(self.padded, self.lanes)
        self.pitch = (vectors + 1 - vectors % 2) * self.lanes
        # Both scratch matrices of a block take half of L2.
        most = max(self.band, target.l2 // 2 // (2 * int(self.pitch) * self.size))
        self.block = largest(self.band, ceil_div(p.queries, ceil_div(int(p.queries), most)))
        self.blocks = ceil_div(p.queries, self.block)
        self.adds = self.splits or planned(self.blocks) > 1  # sums for the part of the block before
        self.queries = Panels(self.stored, self.by_key, self.block, p.width)
        self.cotangents = Panels(self.stored, self.by_value, self.block, p.depth)
        self.joined = p.places[0].beside > 1  # all cotangents in one array
        self.panels = (
            self.keys_turned, self.values_turned, self.keys, self.queries, self.cotangents,
        )  # fmt: skip
        self.places = [self.reserve(panels.bytes) for panels in self.panels]
        matrix = self.block * self.pitch * self.size
        self.matrices = [self.reserve(matrix), self.reserve(matrix)]
        self.grown_bytes = [
            self.spans * self._tiles(tile) * self._line_bytes(tile, n)
            for tile, n in ((self.by_key, p.width), (self.by_value, p.depth))
        ]
        self.grown = [self.reserve(size) for size in self.grown_bytes]
        self.down = ceil_div(self.band, self.by_query.rows)
        bands = ceil_div(self.block, self.band) if self.splits else 0
        self.query_bytes = bands * self.down * self._line_bytes(self.by_query, p.width)
        self.query_sums = self.reserve(self.query_bytes)
        self.bands = [
            self.reserve(self.band * n * self.size if self.widens else 0)
            for n in (p.width, p.depth)
        ]

    def _tiles(self, tile: Tile) -> int:
        """Tiles that cover the keys of a block."""
        return ceil_div(smallest(self.span, self.problem.keys), tile.rows)

    @staticmethod
    def _tile_bytes(tile: Tile) -> int:
        return tile.rows * tile.columns * tile.dtype.size

    def _line_bytes(self, tile: Tile, columns: int) -> int:
        """Bytes of a line: the tiles next to each other."""
        return self._tile_bytes(tile) * (columns // tile.columns)

    def _clear(self, place: int, size: int) -> None:
        count = integer(size // (self.lanes * self.size))
        self.clear(self.b.offset(self.own, place), integer(0), count)

    def ir(self) -> str:
        """The kernel; arguments g, q, k, v, log_sums, shared, scratch, dq, dk, dv."""
        b, p = self.b, self.problem
        with self.heads(6) as head:
            for panels, place in zip(self.panels, self.places, strict=True):
                panels.base = b.offset(self.own, place)
            self.p, self.ds = (b.offset(self.own, place) for place in self.matrices)
            by_q, by_k, by_v, by_g, *by = p.places
            g = self.matrix(0, head, by_g)
            q, k, v = (
                self.matrix(1 + i, head, place) for i, place in enumerate((by_q, by_k, by_v))
            )
            self.sums, self.shared = (self.vector(slot, head, p.queries) for slot in (4, 5))
            slots, columns = (1, 2, 3, 0), (p.width, p.width, p.depth, p.depth)
            self.expect(head, list(zip(slots, p.places[:4], columns, strict=True)))
            dq, dk, dv = (
                self.matrix(7 if self.joined else 7 + i, head, place) for i, place in enumerate(by)
            )
            self.keys_turned.copy(b, k, by_k.row, self.target)
            self.values_turned.copy(b, v, by_v.row, self.target)
            self.keys.copy(b, k, by_k.row, self.target)
            if not self.adds:
                self._block((q, g, dq), integer(0), integer(0))
            else:
                for place, size in zip(self.grown, self.grown_bytes, strict=True):
                    self._clear(place, size)
                with b.loop(0, self.blocks) as loop:
                    first = b.mul(loop.index, self.block)
                    row = smaller(b, first, p.queries - self.block)
                    self._block((q, g, dq), row, subtract(b, first, row))
            self._hand_over(self.by_key, self.grown[0], (dk, by[1].row), p.width)
            self._hand_over(self.by_value, self.grown[1], (dv, by[2].row), p.depth)
        return b.module()

    def _block(self, operands: tuple[Reg, Reg, Reg], row: Reg, done: Reg) -> None:
        """The queries from `row` on, of which an earlier block did the first `done`."""
        b, p = self.b, self.problem
        q, g, dq = operands
        by_q, _, _, by_g, by_dq, *_ = p.places
        q, g, dq = (
            self.line(x, row, place.row) for x, place in ((q, by_q), (g, by_g), (dq, by_dq))
        )
        self.queries.copy(b, q, by_q.row, self.target)
        self.cotangents.copy(b, g, by_g.row, self.target)
        if not self.splits:
            self._square((q, g, dq), row, done, integer(0))
            return
        self._clear(self.query_sums, self.query_bytes)
        seen = self.visible(b.add(row, self.block - 1))
        spans = b.binary("udiv", b.add(seen, self.span - 1), integer(self.span))
        with b.loop(0, spans) as loop:
            self._square((q, g, dq), row, done, loop.index)

    def _square(self, operands: tuple[Reg, Reg, Reg], row: Reg, done: Reg, span: Reg) -> None:
        """One block of queries, from `row` on, with one block of keys, number `span`."""
        b = self.b
        with b.loop(0, ceil_div(self.block, self.band)) as loop:
            first = smaller(b, b.mul(loop.index, self.band), self.block - self.band)
            limit = self._seen(b.add(b.add(row, first), self.band - 1), span)
            sees = b.compare("icmp sgt", limit, integer(0))
            with b.when(sees) if self.splits else nullcontext():
                self._band(operands, (loop.index, first), row, span, limit)
        self._grow((self.by_value, self.cotangents, self.p), self.grown[1], (row, done), span)
        self._grow((self.by_key, self.queries, self.ds), self.grown[0], (row, done), span)

    def _seen(self, row: Reg, span: Reg) -> Reg:
        """How many keys of a block the query at `row` attends to; less than 1 if none."""
        b = self.b
        seen = self.visible(row)
        if not self.splits:
            return seen
        return smaller(b, subtract(b, seen, b.mul(span, self.span)), self.span)

    def _band(
        self, operands: tuple[Reg, Reg, Reg], place: tuple[Reg, Reg], row: Reg, span: Reg,
        limit: Reg,
    ) -> None:  # fmt: skip
        """Weights, their gradients and dq for a band of the block that begins at `row`.

        Args:
            place: the band's number and first query.
            limit: how many keys of the block of keys it attends to.
        """
        b, p, tile = self.b, self.problem, self.tile
        (q, g, dq), (number, first) = operands, place
        panels = b.binary("udiv", b.add(limit, tile.columns - 1), integer(tile.columns))
        before = b.mul(span, self.across)

        by_q, _, _, by_g, by_dq, *_ = p.places
        queries_of = self.band_of(q, first, (self.band, p.width), by_q.row, self.bands[0])
        slopes_of = self.band_of(g, first, (self.band, p.depth), by_g.row, self.bands[1])

        def scores(start: Reg, _: Reg) -> None:
            at = b.add(first, start)
            for x, n, right, goal in (
                (queries_of, p.width, self.keys_turned, self.p),
                (slopes_of, p.depth, self.values_turned, self.ds),
            ):
                left = self.left(x, start)
                line = self.at(goal, at, self.pitch)
                with b.loop(0, panels, at_least_once=True) as loop:
                    panel = right.right(b, b.add(before, loop.index), integer(0))
                    sums = self.product(tile, left, panel, self.steps(n))
                    to = scaled(b, line, loop.index, tile.columns, self.size)
                    self.store(sums, to, self.pitch, self.dtype)

        self.rows(tile, self.band, scores)
        # Tiles of keys start at one of their queries, and read the columns of the whole tile.
        tall = max(self.by_key.rows, self.by_value.rows)
        wide = smaller(b, b.add(limit, tall), self.padded) if p.causal else limit
        with b.loop(0, self.band) as loop:
            at = b.add(first, loop.index)
            self.ask(b.add(row, at))
            self.ask_row(self.line(dq, at, by_dq.row), p.width, True)
            self._weights(at, b.add(row, at), span, wide)
        self._queries((number, first), dq, span, limit, self._is_last(b.add(row, first), span))

    def _is_last(self, row: Reg, span: Reg) -> Reg:
        """Whether the band from `row` on attends to no later block of keys."""
        b = self.b
        end = b.mul(b.add(span, 1), self.span)
        return b.compare("icmp sle", self.visible(b.add(row, self.band - 1)), end)

    def _queries(
        self, place: tuple[Reg, Reg], dq: Reg, span: Reg, limit: Reg, is_last: Reg
    ) -> None:
        """Adds a block of keys to a band's dq; the last block stores it."""
        b, tile, (number, first) = self.b, self.by_query, place
        row = self.problem.places[4].row
        each = self._line_bytes(tile, self.problem.width)
        sums_of = scaled(b, b.offset(self.own, self.query_sums), number, self.down * each, 1)

        def queries(start: Reg, index: Reg) -> None:
            at = b.add(first, start)
            left = self.at(self.ds, at, self.pitch), self.pitch * self.size, self.size
            line = self.line(dq, at, row)
            kept = scaled(b, sums_of, index, each, 1)
            with b.loop(0, self.keys.count) as loop:
                right = self.keys.right(b, loop.index, b.mul(span, self.span))
                goal = scaled(b, kept, loop.index, self._tile_bytes(tile), 1)
                begin = load_tile(b, tile, goal) if self.splits else None
                sums = self.product(tile, left, right, limit, begin)
                to = scaled(b, line, loop.index, tile.columns, self.stored.size)
                if self.splits:
                    store_tile(b, tile, sums, goal)
                with b.when(is_last) if self.splits else nullcontext():
                    self.store(sums, to, row, self.stored)

        self.rows(tile, self.band, queries)

    def _weights(self, index: Reg, row: Reg, span: Reg, wide: Reg) -> None:
        """Line `index` of both matrices: scores to p, and g @ v.T to ds."""
        b = self.b
        p, ds = self.at(self.p, index, self.pitch), self.at(self.ds, index, self.pitch)
        seen = self._seen(row, span)
        if self.splits:
            seen = larger(b, seen, integer(0))
        count = self.vectors(seen)
        log_sum, shared = (
            b.splat(b.load(self.scalar, self.at(x, row, 1), self.size), self.lanes)
            for x in (self.sums, self.shared)
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
        self, operands: tuple[Tile, Panels, Reg], place: int, rows: tuple[Reg, Reg], span: Reg
    ) -> None:
        """Adds the block's share to dk or dv: the transposed matrix times the block's rows."""
        b, (tile, right, matrix), (row, done) = self.b, operands, rows
        base, each = b.offset(self.own, place), self._tile_bytes(tile)
        before, begin = b.mul(span, self._tiles(tile)), b.mul(span, self.span)
        count: Reg | int = self._tiles(tile)
        if self.splits:  # the last block of keys may be shorter, or partly masked
            seen = self._seen(b.add(row, self.block - 1), span)
            count = b.binary("udiv", b.add(seen, tile.rows - 1), integer(tile.rows))
        with b.loop(0, count) as loop:
            key = b.mul(loop.index, tile.rows)
            first = done
            if self.problem.causal:  # earlier queries do not attend to these keys
                behind = subtract(b, b.add(begin, key), row)
                first = b.call("i64", "llvm.smax.i64", (behind, done))
                first = smaller(b, first, self.block)
            left = scaled(b, self.at(matrix, first, self.pitch), key, 1, self.size)
            depth = subtract(b, integer(self.block), first)
            with b.loop(0, right.count) as inner:
                at = b.add(b.mul(b.add(before, loop.index), right.count), inner.index)
                goal = scaled(b, base, at, each, 1)
                start = load_tile(b, tile, goal) if self.adds else None
                sums = self.product(
                    tile, (left, self.size, self.pitch * self.size),
                    right.right(b, inner.index, first), depth, start,
                )  # fmt: skip
                store_tile(b, tile, sums, goal)

    def _hand_over(self, tile: Tile, place: int, to: tuple[Reg, int], columns: int) -> None:
        """Copies accumulated tiles to their output rows, which are `to[1]` apart."""
        b, across, step = self.b, columns // tile.columns, self.lanes * self.size
        with b.loop(0, self.problem.keys) as loop:
            span, key = divide(b, loop.index, integer(self.span))
            number, line = divide(b, key, integer(tile.rows))
            number = b.add(b.mul(span, self._tiles(tile)), number)
            each = across * self._tile_bytes(tile)
            source = scaled(b, b.offset(self.own, place), number, each, 1)
            source = scaled(b, source, line, tile.columns * self.size, 1)
            goal = self.line(to[0], loop.index, to[1])
            self.ask_row(self.line(to[0], b.add(loop.index, AHEAD), to[1]), columns, True)
            for i in range(across):
                for v in range(tile.vectors):
                    offset = i * self._tile_bytes(tile) + v * step
                    value = b.load(self.type, b.offset(source, offset), self.size)
                    at = (i * tile.vectors + v) * self.lanes * self.stored.size
                    write(b, value, b.offset(goal, at), self.stored, None)
