"""Fold: evaluates constant expressions whose bits the NumPy reference gives.

Those are integers, and numbers that are moved. What computes floating-point numbers is left to
kernels, of which NumPy's functions may differ in the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.errors import WeftError
from weft.ir.extent import varies
from weft.ir.function import functions
from weft.ir.graph import Graph, rewrite
from weft.ir.node import Node, Value
from weft.ir.shape import known, size
from weft.ops.boundary.state import CONSTANT
from weft.ops.declaration import Alias, Boundary, Pull, constant_of, op_of
from weft.passes.step import Step
from weft.transform.interpreter import located

# Folding creates constants; larger ones cost more memory than they save time.
FOLD_LIMIT = 65_536


def fold(step: Step) -> Step:
    """Evaluates, by the NumPy reference, nodes whose inputs are all constants."""

    def rule(node: Node, _: Graph) -> Sequence[Value] | None:
        op = op_of(node)
        if op.stateful or isinstance(op.lower, Boundary) or not node.inputs:
            return None
        if any(op_of(v.node) is not CONSTANT for v in node.inputs) or functions(node):
            return None  # a loop may take unboundedly long
        if not isinstance(op.lower, Pull | Alias) and any(k.dtype.is_inexact for k in node.types):
            return None
        if any(varies(kind.shape) for kind in node.types):
            return None
        if sum(size(kind.shape) for kind in node.types) > FOLD_LIMIT:
            return None
        arrays = [v.node.attrs["value"].array for v in node.inputs]
        try:
            with np.errstate(all="ignore"):
                result = op.reference(*arrays, **node.attrs)
        except WeftError as error:
            raise located(error, node) from None
        results = result if isinstance(result, tuple) else (result,)
        return [
            constant_of(np.asarray(array, kind.dtype.numpy).reshape(known(kind.shape)))
            for array, kind in zip(results, node.types, strict=True)
        ]

    return step.with_graph(rewrite(step.graph, rule))
