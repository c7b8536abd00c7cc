"""Message passing along the edges of a graph, for graph neural networks.

An edge goes from node `edge_index[0, e]` to node `edge_index[1, e]`. Edges are sorted by target, so
that a node's messages are one row of a sparse matrix.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from weft.errors import ArgumentError, DTypeError, ShapeError
from weft.ir.dtype import DType, int32
from weft.ir.node import Value
from weft.ir.shape import show
from weft.ops.boundary.check import count_outside
from weft.ops.declaration import catalogue
from weft.ops.declaration.rule import concrete
from weft.ops.indexing.gather import gather
from weft.ops.shape.creation import full
from weft.ops.sparse.index import csr_order, csr_rows
from weft.ops.sparse.product import csr_matmul
from weft.ops.sparse.segment import identity_of, segment_max, segment_sum

__all__ = ["attend", "convolve", "gathered_edges"]

AGGREGATIONS: Final = ("add", "sum", "mean", "max")
EMPTY: Final = 1e-16  # added to softmax sums, so that a node without edges gets zeros


class Edges(NamedTuple):
    """Edges sorted by target."""

    indptr: Value
    order: Value  # the original position of each
    source: Value
    target: Value


def sorted_edges(edge_index: Value, sources: int, targets: int) -> Edges:
    """The edges, after a check that both nodes of each exist.

    Raises:
        DTypeError, ShapeError: edges that are not integers of shape (2, edges).
        OutOfRangeError: when computed, an edge from or to a node that does not exist.
    """
    dims = concrete(edge_index)
    if not edge_index.dtype.is_integer:
        kind = edge_index.dtype
        raise DTypeError.here(f"edge_index: expected integers, got {kind}")
    if len(dims) != 2 or dims[0] != 2:
        raise ShapeError.here(f"edge_index: expected shape (2, edges), got {show(dims)}")
    source = _checked(edge_index, 0, sources)
    target = _checked(edge_index, 1, targets)
    indptr, order = csr_order.all(target, size=targets)
    rows = csr_rows(indptr, size=dims[1])
    return Edges(indptr, order, gather(source, order), rows)


def _checked(edge_index: Value, row: int, nodes: int) -> Value:
    ends = edge_index[row]
    text = f"edge_index[{row}]: expected nodes that are there, from 0 to {nodes - 1}"
    there = catalogue.check(ends, count_outside(ends, 0, nodes - 1), text=text)
    return there if ends.dtype is int32 else catalogue.cast(there, dtype=int32)


def _column(x: Value, like: Value) -> Value:
    """A number for each node, shaped to broadcast with rows of `like`."""
    return catalogue.reshape(x, shape=(-1, *[1] * (len(concrete(like)) - 1)))


def _ones(count: int, dtype: DType) -> Value:
    return full((count,), 1, dtype)


def convolve(
    x: Value,
    edge_index: Value,
    weight: Value | None,
    *,
    self_weight: float | None = 1.0,
    normalize: bool = True,
) -> Value:
    """`D^-1/2 (A + I) D^-1/2 x` (Kipf and Welling, 2017), without building the matrix.

    Args:
        x: (nodes, ...).
        weight: (edges); ones by default.
        self_weight: of the self loop added to a node without one; `None` adds none.
        normalize: whether to divide by the square roots of the degrees D.
    """
    nodes = concrete(x)[0]
    edges = sorted_edges(edge_index, nodes, nodes)
    if weight is None:
        weight = _ones(concrete(edge_index)[1], x.dtype)
    else:
        weight = gather(weight, edges.order)
    own = None
    if self_weight is not None:
        weight, own = _apart(weight, edges, self_weight)
    if not normalize:
        return _propagated(x, weight, own, edges)
    scale = _column(_inverse_root(_degree(weight, own, edges)), x)
    return _propagated(x * scale, weight, own, edges) * scale


def _apart(weight: Value, edges: Edges, fill: float) -> tuple[Value, Value]:
    """Weights of edges between different nodes, and of each node's self loop."""
    loop = catalogue.equal(edges.source, edges.target)
    is_loop = catalogue.cast(loop, dtype=weight.dtype)
    has_own = catalogue.greater(segment_max(is_loop, edges.indptr), 0)
    given = segment_sum(weight * is_loop, edges.indptr)
    return catalogue.select(loop, 0, weight), catalogue.select(has_own, given, fill)


def _degree(weight: Value, own: Value | None, edges: Edges) -> Value:
    degree = segment_sum(weight, edges.indptr)
    return degree if own is None else degree + own


def _inverse_root(degree: Value) -> Value:
    positive = catalogue.greater(degree, 0)
    return catalogue.select(positive, catalogue.rsqrt(catalogue.select(positive, degree, 1)), 0)


def _propagated(x: Value, weight: Value, own: Value | None, edges: Edges) -> Value:
    y = csr_matmul(edges.indptr, edges.source, weight, x)
    return y if own is None else y + _column(own, x) * x


def gathered_edges(x: Value, edge_index: Value, *, nodes: int, aggr: str) -> Value:
    """For each of `nodes`, the sum, mean or maximum of the rows of `x` at its incoming edges.

    Raises:
        ArgumentError: another `aggr`.
    """
    if aggr not in AGGREGATIONS:
        raise ArgumentError.here(f"aggr: expected {', '.join(AGGREGATIONS)}, got {aggr!r}")
    edges = sorted_edges(edge_index, concrete(x)[0], nodes)
    if aggr == "max":
        return segment_max(x, edges.indptr, edges.source)
    total = segment_sum(x, edges.indptr, edges.source)
    if aggr != "mean":
        return total
    ones = _ones(concrete(edge_index)[1], x.dtype)
    return total / _column(catalogue.maximum(segment_sum(ones, edges.indptr), 1), x)


def attend(
    x: Value,
    by_source: Value,
    by_target: Value,
    edge_index: Value,
    keep: Value | None,
    keep_own: Value | None,
    *,
    slope: float,
    self_loops: bool,
) -> Value:
    """Means of neighbors, weighted by attention (Velickovic et al., 2018).

    Args:
        x: (nodes, heads, features).
        by_source, by_target: (nodes, heads); the attention logit of an edge is the leaky ReLU of
            the sum of both at its ends.
        keep: (edges, heads), dropout factors of the weights.
        keep_own: (nodes, heads), the same for self loops.
        slope: of the leaky ReLU.
        self_loops: whether each node gets one self loop in place of its own.
    """
    nodes = concrete(x)[0]
    edges = sorted_edges(edge_index, nodes, nodes)
    sums = gather(by_source, edges.source) + gather(by_target, edges.target)
    scores = catalogue.leaky_relu(sums, alpha=slope)
    lowest = identity_of("max", x.dtype)
    if self_loops:
        loop = catalogue.equal(edges.source, edges.target)
        scores = catalogue.select(_column(loop, scores), lowest, scores)
    highest = segment_max(scores, edges.indptr, initial=lowest)
    own = None
    if self_loops:
        own = catalogue.leaky_relu(by_source + by_target, alpha=slope)
        highest = catalogue.maximum(highest, own)
    highest = catalogue.stop_gradient(highest)
    weights = catalogue.exp(scores - gather(highest, edges.target))
    total = segment_sum(weights, edges.indptr)
    if keep is not None:
        weights = weights * gather(keep, edges.order)
    y = csr_matmul(edges.indptr, edges.source, weights, x, heads=1)
    if own is not None:
        power = catalogue.exp(own - highest)
        total = total + power
        power = power if keep_own is None else power * keep_own
        y = y + catalogue.expand_dims(power, axis=-1) * x
    return y / catalogue.expand_dims(total + EMPTY, axis=-1)
