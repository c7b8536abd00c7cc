"""Attention forward: one band of queries at a time computes scores, softmax and values in cache.

The keys of a head (transposed) and its values are packed once. Then, band by band: scores into
scratch, exponentials of each row in place, the matmul with the values, and division by the row's
sum when stored. Columns behind a causal band's last query are skipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from weft.codegen import vecmath
from weft.codegen.attention.nest import Coming, Layout, Nest, Packed, Panels, placed
from weft.codegen.attention.problem import (
    QUERIES,
    Attention,
    attention_of,
    band_rows,
    row_tile,
    score_tile,
    usual,
)
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
    layout = _Layout(problem, target)
    scratch = Scratch(layout.used, per_thread=True)
    args = (*node.data_inputs, scratch, *node.outputs)
    moved = problem.elements * problem.dtype.size
    kernel = Kernel(f"attention_{problem.label}", _Forward(layout).text())
    return (
        Launch(kernel, args, (3, 4, 5), layout.heads.chunks, flops=problem.flops(2), bytes=moved),
    )  # fmt: skip


class _Layout(Layout):
    def __init__(self, problem: Attention, target: Target) -> None:
        super().__init__(problem, target)
        p = problem
        self.tile: Final = score_tile(p, target, p.width)
        self.band: Final = band_rows(p.queries, self.tile)
        self.out: Final = row_tile(usual(self.band, QUERIES), p.depth, self.dtype, target)
        self.keys: Final = Panels(self.stored, self.tile, self.steps(p.width), p.keys, turned=True)
        self.values: Final = Panels(self.stored, self.out, p.keys, p.depth)
        self.pitch: Final = self.keys.count * self.tile.columns + self.lanes
        scores, wide = self.band * self.pitch * self.size, self.band * p.width * self.size
        places, self.used = placed([
            self.keys.bytes, self.values.bytes, scores, self.band * self.size,
            wide if self.widens else 0,
        ])  # fmt: skip
        self.keys_at, self.values_at, self.scores_at, self.factors_at, self.queries_at = places


@dataclass(frozen=True)
class _Head:
    """The registers of a head."""

    q: Reg
    y: Reg
    sums: Reg  # logarithms
    keys: Packed
    values: Packed
    scores: Reg
    factors: Reg
    coming: Coming


class _Forward(Nest):
    def __init__(self, layout: _Layout) -> None:
        super().__init__(layout, 3, layout.used)
        self.layout: Final = layout

    def text(self) -> str:
        """The kernel; arguments q, k, v, scratch, y, logarithms of sums."""
        b, p, layout = self.b, self.problem, self.layout
        by_q, by_k, by_v, by_y = p.places[:4]
        with layout.heads.loop(b) as number:
            keys, values, scores, factors = (
                b.offset(self.own, place)
                for place in (layout.keys_at, layout.values_at, layout.scores_at, layout.factors_at)
            )
            q, k, v = (
                self.matrix(slot, number, place) for slot, place in enumerate((by_q, by_k, by_v))
            )
            y = self.matrix(4, number, by_y)
            columns = (p.width, p.width, p.depth)
            coming = self.coming(number, list(zip(range(3), p.places[:3], columns, strict=True)))
            head = _Head(
                q, y, self.vector(5, number, p.queries), Packed(layout.keys, keys),
                Packed(layout.values, values), scores, factors, coming,
            )  # fmt: skip
            head.keys.copy(b, k, by_k.row, self.target)
            head.values.copy(b, v, by_v.row, self.target)
            with b.loop(0, ceil_div(p.queries, layout.band)) as loop:
                row = smaller(b, b.mul(loop.index, layout.band), p.queries - layout.band)
                self._band(head, row)
        return b.module()

    def _band(self, head: _Head, row: Reg) -> None:
        """The queries from `row` on."""
        b, p, layout = self.b, self.problem, self.layout
        tile, by_q, by_y = layout.tile, p.places[0].row, p.places[3].row
        limit = self.visible(b.add(row, layout.band - 1))  # columns that the band attends to
        panels = b.binary("udiv", b.add(limit, tile.columns - 1), integer(tile.columns))
        band = self.band_of(head.q, row, (layout.band, p.width), by_q, layout.queries_at)
        steps = layout.steps(p.width)

        def scores(first: Reg, _: Reg) -> None:
            left = self.left(band, first)
            line = self.at(head.scores, first, layout.pitch)
            with b.loop(0, panels, at_least_once=True) as loop:
                sums = self.product(tile, left, head.keys.right(b, loop.index, integer(0)), steps)
                to = scaled(b, line, loop.index, tile.columns, self.size)
                self.store(sums, to, layout.pitch, self.dtype)

        self.rows(tile, layout.band, scores)
        whole = layout.band - layout.band % TOGETHER
        for begin, end, step in ((0, whole, TOGETHER), (whole, layout.band, 1)):
            with b.loop(begin, end, step) as loop:
                first = b.add(row, loop.index)
                for i in range(step):
                    self.ask(head.coming, b.add(first, i))
                    self.ask_row(self.line(head.y, b.add(first, i), by_y), p.depth, True)
                self._softmax(head, loop.index, first, limit, step)

        def values(first: Reg, _: Reg) -> None:
            left = self.at(head.scores, first, layout.pitch), layout.pitch * self.size, self.size
            line = self.line(head.y, b.add(row, first), by_y)
            with b.loop(0, layout.values.count) as loop:
                right = head.values.right(b, loop.index, integer(0))
                sums = self.product(layout.out, left, right, limit)
                to = scaled(b, line, loop.index, layout.out.columns, self.stored.size)
                self.store(sums, to, by_y, self.stored, self.at(head.factors, first, 1))

        self.rows(layout.out, layout.band, values)

    def _softmax(self, head: _Head, index: Reg, row: Reg, limit: Reg, together: int) -> None:
        """Turns lines of scores from `index` on into exponentials, factors, and log-sum-exps."""
        b, dtype = self.b, self.dtype
        pitch = self.layout.pitch
        lines = [self.at(head.scores, b.add(index, i), pitch) for i in range(together)]
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
                self._finish(head, b.add(index, i), b.add(row, i), top, vector)

    def _top(self, largest: Reg) -> Reg:
        """The largest lane, or 0 if everything is masked."""
        b = self.b
        top = across(b, "maximum", self.dtype, largest)
        none = b.compare("fcmp oeq", top, constant(float("-inf"), self.scalar))
        return choose(b, none, constant(0, self.scalar), top)

    def _finish(self, head: _Head, index: Reg, row: Reg, top: Reg, sums: Reg) -> None:
        """Stores the factor of a line and the log of its sum."""
        b = self.b
        total = across(b, "add", self.dtype, sums)
        total = combine(b, "maximum", self.dtype, total, constant(1, self.scalar))
        factor = b.binary("fdiv", constant(1, self.scalar), total)
        b.store(factor, self.at(head.factors, index, 1), self.size)
        log = b.binary("fadd", top, vecmath.log(b, total))
        b.store(log, self.at(head.sums, row, 1), self.size)
