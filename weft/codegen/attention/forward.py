"""Attention forward: one band of queries at a time computes scores, softmax and values in cache.

The keys of a head (transposed) and its values are packed once. Then, band by band: scores into
scratch, exponentials of each row in place, the matmul with the values, and division by the row's
sum when stored. Columns behind a causal band's last query are skipped.
"""

from __future__ import annotations

from weft.codegen import vecmath
from weft.codegen.attention.nest import Nest, Panels
from weft.codegen.attention.problem import Attention, attention_of, band_rows, row_tile, score_tile
from weft.codegen.builder import Reg, constant, integer
from weft.codegen.contraction.emit import scaled, smaller
from weft.codegen.contraction.tile import ceil_div
from weft.codegen.loop.arithmetic import across, combine
from weft.codegen.loop.convert import choose
from weft.codegen.target import Target
from weft.passes.group import Group
from weft.passes.launch import Kernel, Launch, Scratch

TOGETHER = 4
"""Rows of scores whose softmax is interleaved: an exponential is a chain of 20 instructions
(48 heads of 256 x 64: 11 to 17% faster than row by row, Cascade Lake; backward, where nothing is
added up along a row, gains nothing).
"""


def flash_attention(group: Group, target: Target) -> tuple[Launch, ...]:
    """The launch of a `flash_attention` node."""
    node = group.nodes[0]
    problem = attention_of(node)
    if not problem.heads * problem.queries:
        return ()
    nest = _Forward(problem, target)
    ir = nest.ir()
    scratch = Scratch(nest.used, per_thread=True)
    args = (*node.data_inputs, scratch, *node.outputs)
    moved = problem.elements * problem.dtype.size
    kernel = Kernel(f"attention_{problem.label}", ir)
    return (
        Launch(kernel, args, (3, 4, 5), nest.items.chunks, flops=problem.flops(2), bytes=moved),
    )  # fmt: skip


class _Forward(Nest):
    def __init__(self, problem: Attention, target: Target) -> None:
        super().__init__(problem, target)
        p = problem
        self.tile = score_tile(p, target, p.width)
        self.band = band_rows(p.queries, self.tile)
        self.out = row_tile(self.band, p.depth, self.dtype, target)
        self.keys = Panels(self.stored, self.tile, self.steps(p.width), p.keys, turned=True)
        self.values = Panels(self.stored, self.out, p.keys, p.depth)
        self.pitch = self.keys.count * self.tile.columns + self.lanes
        self.by_q, self.by_k, self.by_v, self.by_y = p.places[:4]
        self.places = [
            self.reserve(size)
            for size in (
                self.keys.bytes, self.values.bytes, self.band * self.pitch * self.size,
                self.band * self.size, self.band * p.width * self.size if self.widens else 0,
            )
        ]  # fmt: skip

    def ir(self) -> str:
        """The kernel; arguments q, k, v, scratch, y, logarithms of sums."""
        b, p = self.b, self.problem
        with self.heads(3) as head:
            self.keys.base, self.values.base, self.scores, self.factors = (
                b.offset(self.own, place) for place in self.places[:4]
            )
            q, k, v = (self.matrix(slot, head, p.places[slot]) for slot in range(3))
            self.y = self.matrix(4, head, self.by_y)
            columns = (p.width, p.width, p.depth)
            self.expect(head, list(zip(range(3), p.places[:3], columns, strict=True)))
            self.sums = self.vector(5, head, p.queries)
            self.keys.copy(b, k, self.by_k.row, self.target)
            self.values.copy(b, v, self.by_v.row, self.target)
            with b.loop(0, ceil_div(p.queries, self.band)) as loop:
                row = smaller(b, b.mul(loop.index, self.band), p.queries - self.band)
                self._band(q, row)
        return b.module()

    def _band(self, q: Reg, row: Reg) -> None:
        """The queries from `row` on."""
        b, p, tile = self.b, self.problem, self.tile
        limit = self.visible(b.add(row, self.band - 1))  # columns that the band attends to
        panels = b.binary("udiv", b.add(limit, tile.columns - 1), integer(tile.columns))
        band = self.band_of(q, row, (self.band, p.width), self.by_q.row, self.places[4])
        steps = self.steps(p.width)

        def scores(first: Reg, _: Reg) -> None:
            left = self.left(band, first)
            line = self.at(self.scores, first, self.pitch)
            with b.loop(0, panels, at_least_once=True) as loop:
                sums = self.product(tile, left, self.keys.right(b, loop.index, integer(0)), steps)
                to = scaled(b, line, loop.index, tile.columns, self.size)
                self.store(sums, to, self.pitch, self.dtype)

        self.rows(tile, self.band, scores)
        whole = self.band - self.band % TOGETHER
        for begin, end, step in ((0, whole, TOGETHER), (whole, self.band, 1)):
            with b.loop(begin, end, step) as loop:
                first = b.add(row, loop.index)
                for i in range(step):
                    self.ask(b.add(first, i))
                    self.ask_row(self.line(self.y, b.add(first, i), self.by_y.row), p.depth, True)
                self._softmax(loop.index, first, limit, step)

        def values(first: Reg, _: Reg) -> None:
            left = self.at(self.scores, first, self.pitch), self.pitch * self.size, self.size
            line = self.line(self.y, b.add(row, first), self.by_y.row)
            with b.loop(0, self.values.count) as loop:
                sums = self.product(
                    self.out, left, self.values.right(b, loop.index, integer(0)), limit
                )
                to = scaled(b, line, loop.index, self.out.columns, self.stored.size)
                self.store(sums, to, self.by_y.row, self.stored, self.at(self.factors, first, 1))

        self.rows(self.out, self.band, values)

    def _softmax(self, index: Reg, row: Reg, limit: Reg, together: int) -> None:
        """Turns lines of scores from `index` on into exponentials, factors, and log-sum-exps."""
        b, dtype = self.b, self.dtype
        lines = [self.at(self.scores, b.add(index, i), self.pitch) for i in range(together)]
        seen = [self.visible(b.add(row, i)) for i in range(together)]
        count = self.vectors(seen[-1])
        lows = [constant(float("-inf"), self.type)] * together
        with b.loop(0, count, 1, lows, at_least_once=True) as loop, b.interleaved() as next_run:
            for i, line in enumerate(lines):
                next_run()
                value = self.scaled_scores(line, loop.index, seen[i])
                loop.next[i] = combine(b, "maximum", dtype, loop.carried[i], value)
        tops: list[Reg] = []
        with b.interleaved() as next_run:
            for largest in loop.results:
                next_run()
                tops.append(self._top(largest))
        wide = [b.splat(top, self.lanes) for top in tops]
        zeros = [constant(0, self.type)] * together
        with b.loop(0, count, 1, zeros, at_least_once=True) as loop, b.interleaved() as next_run:
            for i, line in enumerate(lines):
                next_run()
                value = self.scaled_scores(line, loop.index, seen[i])
                value = self.exp(b.binary("fsub", value, wide[i]))
                b.store(value, scaled(b, line, loop.index, self.lanes, self.size), self.size)
                loop.next[i] = b.binary("fadd", loop.carried[i], value)
        last = self.vectors(limit)
        for line in lines:
            self.clear(line, count, last)
        with b.interleaved() as next_run:
            for i, (top, vector) in enumerate(zip(tops, loop.results, strict=True)):
                next_run()
                self._finish(b.add(index, i), b.add(row, i), top, vector)

    def _top(self, largest: Reg) -> Reg:
        """The largest lane, or 0 if everything is masked."""
        b = self.b
        top = across(b, "maximum", self.dtype, largest)
        none = b.compare("fcmp oeq", top, constant(float("-inf"), self.scalar))
        return choose(b, none, constant(0, self.scalar), top)

    def _finish(self, index: Reg, row: Reg, top: Reg, sums: Reg) -> None:
        """Stores the factor of a line and the log of its sum."""
        b = self.b
        total = across(b, "add", self.dtype, sums)
        total = combine(b, "maximum", self.dtype, total, constant(1, self.scalar))
        factor = b.binary("fdiv", constant(1, self.scalar), total)
        b.store(factor, self.at(self.factors, index, 1), self.size)
        log = b.binary("fadd", top, vecmath.log(b, total))
        b.store(log, self.at(self.sums, row, 1), self.size)
