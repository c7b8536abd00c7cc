"""Batches: which matrices of the operands belong to one of the output."""

from __future__ import annotations

from weft.codegen.builder import Builder, Reg, integer
from weft.codegen.contraction.emit import divide
from weft.codegen.contraction.product import Product
from weft.ir.extent import largest


def matrices(b: Builder, product: Product, matrix: Reg) -> tuple[Reg, Reg]:
    """The numbers of x's and y's matrices for matrix number `matrix` of the output."""
    x, y, rest = integer(0), integer(0), matrix
    x_size, y_size = largest(1, product.m * product.depth), largest(1, product.depth * product.n)
    strides = zip(product.batch, product.x_batch, product.y_batch, strict=True)
    for size, x_stride, y_stride in reversed(list(strides)):
        rest, index = divide(b, rest, integer(size))
        x = b.add(x, b.mul(index, x_stride // x_size))
        y = b.add(y, b.mul(index, y_stride // y_size))
    return x, y


def offsets(b: Builder, product: Product, matrix: Reg) -> tuple[Reg, Reg]:
    """The elements before x's and y's matrices for matrix number `matrix` of the output."""
    x, y, rest = integer(0), integer(0), matrix
    strides = zip(product.batch, product.x_batch, product.y_batch, strict=True)
    for size, x_stride, y_stride in reversed(list(strides)):
        rest, index = divide(b, rest, integer(size))
        x, y = b.add(x, b.mul(index, x_stride)), b.add(y, b.mul(index, y_stride))
    return x, y
