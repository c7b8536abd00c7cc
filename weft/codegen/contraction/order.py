"""The order in which a matmul adds its products: what fixes every bit of the result.

It follows from the sizes, the type and the target alone: not from the layout of the operands (so a
transposition may be a copy of its own or part of the matmul), from tiles, blocks, packing, the
epilogue, chunks or threads, nor from the sizes that a kernel for many was planned with. `rows` are
those that meet one matrix y: m times the batch if y has none.

    dot     rows = n = 1: lane i of a vector adds the terms k = i modulo its lanes, in order; then
            neighbors are added, and neighbors of these (`weft.codegen.contraction.dot`)
    few     rows at most `FEW`, or n at most `few_columns`: the same with `chains_of` lanes
            (`weft.codegen.contraction.few`)
    pairs   bfloat16, a target with instructions on pairs, and enough of all: pair after pair
    split   one y, a long sum, and few results: parts of `steps_of_part` steps, each a chain, are
            added in order (`weft.codegen.contraction.split`)
    chain   everything else: `sum = fma(x, y, sum)` for k = 0, 1, 2, ..., from 0; a block of k
            continues from the sums of the one before

Half precision is widened to float32, and rounded once, after the last term. Integers wrap, so they
have no order. x86-64-v2 has no `fma`: it rounds the product, too.
"""

from __future__ import annotations

from typing import Final

from weft.codegen.contraction.product import Product
from weft.codegen.target import Target
from weft.ir.dtype import bfloat16

FEW: Final = 4
"""Rows of `few`; 5 would need more registers than there are (four sums each)."""
CHAINS: Final = 4
"""A multiply-add takes 4 cycles: a row needs four sums, or it waits. A vector of them is a run of
an operand that is contiguous along k, and four vectors are as many steps of one that is not.
"""
PAIRED: Final = 16, 64, 32
"""Minimum rows, columns and steps of k for which packing in pairs pays."""


def chains_of(lanes: int) -> int:
    """Sums of one result in the order `few`."""
    return min(CHAINS, lanes)


def is_dot(product: Product) -> bool:
    """Whether all matmuls are dot products."""
    return product.n == 1 and product.together == 1


def few_columns(product: Product, target: Target) -> int:
    """Columns of `few`: more fill a vector well enough for a tile."""
    return max(FEW, 3 * target.lanes(product.accumulator.size) // 4)


def is_few(product: Product, target: Target) -> bool:
    """Whether there are few rows or few columns."""
    return product.n <= few_columns(product, target) or product.together <= FEW


def in_pairs(product: Product, target: Target) -> bool:
    """Whether a bfloat16 matmul uses instructions on pairs."""
    if not target.bf16 or product.dtype is not bfloat16:
        return False
    rows, columns, steps = PAIRED
    return product.together >= rows and product.n >= columns and product.k >= steps
