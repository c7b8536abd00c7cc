"""The blocks of k of a matmul: how many there are, and where each begins."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from weft.codegen.builder import Builder, Reg, integer
from weft.codegen.contraction.emit import divide, larger, smaller, subtract
from weft.codegen.contraction.plan import Plan
from weft.codegen.contraction.product import Product
from weft.codegen.contraction.tile import ceil_div
from weft.ir.extent import largest


@dataclass(frozen=True)
class Blocks:
    """Blocks of `depth` steps, of which there are `k`; parts of `part` steps begin with a block."""

    k: int
    depth: int
    part: int
    single: bool

    @cached_property
    def each(self) -> int:
        """Blocks of a part."""
        return ceil_div(self.part, self.depth)

    @cached_property
    def count(self) -> int:
        """All blocks."""
        if self.single:
            return 1
        if self.part:
            return ceil_div(self.k, self.part) * self.each
        return largest(1, ceil_div(self.k, self.depth))

    def at(self, b: Builder, number: Reg, k: Reg) -> tuple[Reg, Reg]:
        """The first step of a block, and its steps, if there are `k` in all."""
        if self.single:
            return integer(0), k
        if not self.part:
            first = b.mul(number, self.depth)
            return first, smaller(b, subtract(b, k, first), self.depth)
        part, block = self.places(b, number)
        begin = b.mul(block, self.depth)
        first = b.add(b.mul(part, self.part), begin)
        steps = smaller(b, subtract(b, integer(self.part), begin), subtract(b, k, first))
        return first, larger(b, smaller(b, steps, self.depth), 0)

    def places(self, b: Builder, number: Reg) -> tuple[Reg, Reg]:
        """The part of a block, and its number there."""
        return divide(b, number, integer(self.each))


def blocks_of(product: Product, plan: Plan) -> Blocks:
    """The blocks of a plan."""
    return Blocks(product.k, plan.depth, plan.part, plan.single)
