"""Gradients of weights that a loop uses in matmuls: one matmul after the loop.

    sum over t of x[t].T @ g[t]  =  x.T @ g, with all steps stacked as rows

A matmul per step would read and write the whole sum in every step. Stacked, the factors of 50 steps
of 32 rows are one matmul of 1600 rows, which runs at the speed of the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from weft.ir.node import Node, Value
from weft.ir.shape import is_static, known
from weft.ops.declaration import catalogue, op_of
from weft.ops.elementwise.arithmetic import add, add_n
from weft.ops.linalg.matmul import matmul


class DeferredSum(NamedTuple):
    """A sum over steps that is computed after the loop.

    Attributes:
        factors: values of a step, which are stacked.
        build: computes the sum from the stacks, whose leading axis is the step.
    """

    factors: tuple[Value, ...]
    build: Callable[[Sequence[Value]], Value]


def split_terms(total: Value, varying: AbstractSet[Value]) -> tuple[list[DeferredSum], list[Value]]:
    """Splits a value into terms summed after the loop and terms summed step by step.

    Args:
        varying: values that differ between steps.
    """
    node = total.node
    terms = node.inputs if op_of(node) in (add, add_n) and _same_shapes(node) else (total,)
    found = [(v, _after(v, varying)) for v in terms]
    rest = [v for v, product in found if product is None]
    products = [product for _, product in found if product is not None]
    return (products, rest) if products else ([], [total])


def _same_shapes(node: Node) -> bool:
    return all([v.shape == node.outputs[0].shape for v in node.inputs])


def _after(value: Value, varying: AbstractSet[Value]) -> DeferredSum | None:
    node, op = value.node, op_of(value.node)
    if op is matmul:
        return _product(node) if _pays(node, varying) else None
    linear = op.facts.linear and len(node.outputs) == 1
    if not linear or len(node.inputs) != 1 or node.operands:
        return None
    inner = _after(node.inputs[0], varying)
    if inner is None:
        return None
    return DeferredSum(inner.factors, lambda stacks: op(inner.build(stacks), **node.attrs))


def _pays(node: Node, varying: AbstractSet[Value]) -> bool:
    """Whether both factors vary, and together are no larger than the running sum."""
    plain = [v.rank == 2 and is_static(v.shape) and v in varying for v in node.inputs]
    if not all(plain):
        return False
    x, w = (known(v.shape) for v in node.inputs)
    rows, columns = known(node.outputs[0].shape)
    return x[0] * x[1] + w[0] * w[1] <= 2 * rows * columns


def _product(node: Node) -> DeferredSum:
    transpose_x, transpose_y = node.attrs["transpose_x"], node.attrs["transpose_y"]

    def build(stacks: Sequence[Value]) -> Value:
        x, w = _below(stacks[0], not transpose_x), _below(stacks[1], bool(transpose_y))
        return matmul(x, w, transpose_x=True)

    return DeferredSum(tuple(node.inputs), build)


def _below(stack: Value, turn: bool) -> Value:
    """The steps' matrices as rows of one, contraction axis first; transposed before if asked."""
    if turn:
        stack = catalogue.transpose(stack, perm=(0, 2, 1))
    steps, rows, columns = known(stack.shape)
    return catalogue.reshape(stack, shape=(steps * rows, columns))
