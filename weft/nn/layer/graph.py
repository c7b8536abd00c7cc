"""Graph convolution layers, with the names and arguments of PyTorch Geometric.

Edges are (2, edges), integers: edge `e` goes from node `edge_index[0, e]` to `edge_index[1, e]`.
Each node's messages are added in the order of its edges, by one thread.
"""

from __future__ import annotations

from dataclasses import InitVar
from typing import Any

from weft import ops
from weft.eager.functions.creation.constructor import empty, ones
from weft.eager.tensor.argument import dims_of
from weft.eager.tensor.dispatch import recorded
from weft.errors import ArgumentError, ShapeError
from weft.ir.shape import show
from weft.nn import init
from weft.nn.functional.activation import relu
from weft.nn.functional.distance import normalize
from weft.nn.functional.dropout import dropout
from weft.nn.layer.base import Layer, options
from weft.nn.layer.linear import Linear
from weft.nn.parameter import Parameter
from weft.ops.declaration.fact import Autocast

__all__ = ["GATConv", "GCNConv", "SAGEConv"]

_convolve = recorded(ops.convolve, autocast=Autocast.WIDEST)
_gathered = recorded(ops.gathered_edges, autocast=Autocast.WIDEST)
_attend = recorded(ops.attend, autocast=Autocast.FLOAT32)


def _bias(size: int, bias: bool) -> Parameter | None:
    return Parameter(empty(size)) if bias else None


def _check_nodes(name: str, x: Any, features: int) -> None:
    dims = dims_of(x)
    if len(dims) != 2 or dims[1] != features:
        raise ShapeError.here(f"{name}: expected x of shape (nodes, {features}), got {show(dims)}")


class GCNConv(Layer):
    """Graph convolution: `D^-1/2 (A + I) D^-1/2 x @ weight.T + bias` (Kipf and Welling, 2017).

    Args:
        in_channels: features of an input node.
        out_channels: features of an output node.
        improved: whether added self loops have weight 2, not 1.
        add_self_loops: whether nodes without a self loop get one.
        normalize: whether to divide by the square roots of degrees.
        bias: whether there is a bias.

    Example:
        >>> import weft as wf
        >>> edges = wf.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> wf.nn.GCNConv(4, 2)(wf.ones(3, 4), edges).shape
        (3, 2)
    """

    _shown = "in_channels, out_channels"

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        improved: bool = False,
        *,
        add_self_loops: bool = True,
        normalize: bool = True,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.improved = improved
        self.add_self_loops = add_self_loops
        self.normalize = normalize
        self.lin = Linear(in_channels, out_channels, bias=False)
        self.bias = _bias(out_channels, bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Glorot uniform weights, zero bias."""
        init.xavier_uniform_(self.lin.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, x: Any, edge_index: Any, edge_weight: Any = None) -> Any:
        """(nodes, in_channels) to (nodes, out_channels).

        Args:
            edge_index: (2, edges).
            edge_weight: (edges); all 1 if left out.

        Raises:
            OutOfRangeError: at execution, an edge has a node that does not exist.
        """
        _check_nodes("GCNConv", x, self.in_channels)
        own = (2.0 if self.improved else 1.0) if self.add_self_loops else None
        y = _convolve(
            self.lin(x), edge_index, edge_weight, self_weight=own, normalize=self.normalize
        )
        return y if self.bias is None else y + self.bias


@options
class SAGEConv(Layer):
    """GraphSAGE: `lin_l(aggr of neighbors) + lin_r(x)` (Hamilton, Ying and Leskovec, 2017).

    Args:
        in_channels: features of an input node; two numbers if edges lead from one kind of nodes to
            another.
        out_channels: features of an output node.
        aggr: how a node's messages are aggregated: `mean`, `sum` or `add`, `max`.
        normalize: whether output rows are normalized to length 1.
        root_weight: whether a node's own features are used too.
        project: whether neighbors send `relu(lin(x))`.
        bias: whether there is a bias.
    """

    in_channels: int | tuple[int, int]
    out_channels: int
    aggr: str = "mean"
    normalize: bool = False
    root_weight: InitVar[bool] = True
    project: InitVar[bool] = False
    bias: InitVar[bool] = True
    _shown = "in_channels, out_channels, aggr=None"

    def __post_init__(self, root_weight: bool, project: bool, bias: bool) -> None:
        given = self.in_channels
        source, target = (given, given) if isinstance(given, int) else given
        self.lin = Linear(source, source) if project else None
        self.lin_l = Linear(source, self.out_channels, bias=bias)
        self.lin_r = Linear(target, self.out_channels, bias=False) if root_weight else None

    def forward(self, x: Any, edge_index: Any) -> Any:
        """(nodes, in_channels) to (nodes, out_channels).

        Args:
            x: a tensor, or two: the source nodes' and the target nodes'.
            edge_index: (2, edges).

        Raises:
            ArgumentError: `aggr` is unknown.
            OutOfRangeError: at execution, an edge has a node that does not exist.
        """
        source, target = x if isinstance(x, tuple) else (x, x)
        _check_nodes("SAGEConv", source, self.lin_l.in_features)
        if self.lin is not None:
            source = relu(self.lin(source))
        messages = _gathered(source, edge_index, nodes=dims_of(target)[0], aggr=self.aggr)
        y = self.lin_l(messages)
        if self.lin_r is not None:
            y = y + self.lin_r(target)
        return normalize(y, dim=-1) if self.normalize else y


class GATConv(Layer):
    """Graph attention: neighbors are weighted by a softmax over a node's edges (Velickovic, 2018).

    Args:
        in_channels: features of an input node.
        out_channels: features per head in the output.
        heads: the number of attention heads.
        concat: whether the output concatenates the heads, or averages them.
        negative_slope: of the leaky ReLU of attention.
        dropout: probability of dropping an edge in training.
        add_self_loops: whether each node gets exactly one self loop.
        bias: whether there is a bias.
    """

    _shown = "in_channels, out_channels, heads="

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        heads: int = 1,
        concat: bool = True,
        negative_slope: float = 0.2,
        dropout: float = 0.0,
        add_self_loops: bool = True,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if heads < 1:
            raise ArgumentError.here(f"GATConv: expected heads >= 1, got {heads}")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.heads = heads
        self.concat = concat
        self.negative_slope = negative_slope
        self.dropout = dropout
        self.add_self_loops = add_self_loops
        self.lin = Linear(in_channels, heads * out_channels, bias=False)
        self.att_src = Parameter(empty(1, heads, out_channels))
        self.att_dst = Parameter(empty(1, heads, out_channels))
        self.bias = _bias(heads * out_channels if concat else out_channels, bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Glorot uniform weights, zero bias."""
        for weight in (self.lin.weight, self.att_src, self.att_dst):
            init.xavier_uniform_(weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, x: Any, edge_index: Any) -> Any:
        """(nodes, in_channels) to (nodes, heads * out_channels), or out_channels if averaged.

        Args:
            edge_index: (2, edges).

        Raises:
            OutOfRangeError: at execution, an edge has a node that does not exist.
        """
        _check_nodes("GATConv", x, self.in_channels)
        nodes, edges = dims_of(x)[0], dims_of(edge_index)[-1:]
        h = self.lin(x).reshape(nodes, self.heads, self.out_channels)
        keep, keep_own = (self._kept(count) for count in (*edges, nodes))
        y = _attend(
            h, (h * self.att_src).sum(-1), (h * self.att_dst).sum(-1), edge_index, keep, keep_own,
            slope=self.negative_slope, self_loops=self.add_self_loops,
        )  # fmt: skip
        y = y.flatten(1) if self.concat else y.mean(1)
        return y if self.bias is None else y + self.bias

    def _kept(self, count: int) -> Any:
        if not (self.training and self.dropout):
            return None
        return dropout(ones(count, self.heads), self.dropout)
