"""`AdaptiveLogSoftmaxWithLoss`: a softmax over many classes, most of them rare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import InitVar
from typing import Any, NamedTuple

from weft.eager.functions.shape.joining import cat
from weft.eager.tensor.argument import dims_of
from weft.errors import ArgumentError, ShapeError
from weft.ir.shape import show
from weft.nn.functional.softmax import log_softmax
from weft.nn.layer.base import Layer, options
from weft.nn.layer.linear import Linear
from weft.nn.module.container import ModuleList, Sequential


class AdaptiveResult(NamedTuple):
    """The log probability of each example's target, and the loss: their negated mean."""

    output: Any
    loss: Any


@options
class AdaptiveLogSoftmaxWithLoss(Layer):
    """A softmax over classes sorted by frequency, with less computation for rare ones.

    The head is a softmax over the most frequent classes and one entry per cluster of rarer ones;
    each cluster is a softmax over fewer features.

    Args:
        in_features: size of the input's last dimension.
        n_classes: the number of classes.
        cutoffs: where the clusters start, in ascending order.
        div_value: each cluster has this many times fewer features than the one before it.
        head_bias: whether the head has a bias.

    Raises:
        ArgumentError: the cutoffs do not ascend within 1 to `n_classes` - 1.

    Source: Grave et al., "Efficient softmax approximation for GPUs" (2017).

    >>> import weft as wf
    >>> layer = AdaptiveLogSoftmaxWithLoss(16, 20, cutoffs=[5, 10])
    >>> tuple(layer(wf.randn(3, 16), wf.tensor([1, 7, 19])).output.shape)
    (3,)
    >>> tuple(layer.log_prob(wf.ones(1, 16)).shape)
    (1, 20)
    """

    in_features: int
    n_classes: int
    cutoffs: Sequence[int]
    div_value: float = 4.0
    head_bias: bool = False
    device: InitVar[Any] = None
    dtype: InitVar[Any] = None
    _shown = ""

    def __post_init__(self, device: Any, dtype: Any) -> None:
        cutoffs = self.cutoffs
        self.cutoffs = ends = [*cutoffs, self.n_classes]
        ascending = all(a < b for a, b in zip([0, *ends], ends, strict=False))
        if len(ends) < 2 or not ascending or any(int(c) != c for c in ends):
            raise ArgumentError.here(
                f"AdaptiveLogSoftmaxWithLoss: expected cutoffs that ascend from 1 to "
                f"{self.n_classes - 1}, got {list(cutoffs)}"
            )
        self.shortlist_size = ends[0]
        self.n_clusters = len(ends) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        options = {"device": device, "dtype": dtype}
        self.head = Linear(self.in_features, self.head_size, self.head_bias, **options)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            width = int(self.in_features // self.div_value ** (i + 1))
            narrow = Linear(self.in_features, width, bias=False, **options)
            wide = Linear(width, ends[i + 1] - ends[i], bias=False, **options)
            self.tail.append(Sequential(narrow, wide))

    def reset_parameters(self) -> None:
        """Initialize the parameters."""
        self.head.reset_parameters()
        for narrow, wide in self.tail:
            narrow.reset_parameters()
            wide.reset_parameters()

    def forward(self, input_: Any, target_: Any) -> AdaptiveResult:
        """Inputs (N, in_features) and targets (N), or one example without N.

        Raises:
            ShapeError: the shapes differ from that.
            ArgumentError: a target is not a class.
        """
        x, t = dims_of(input_), dims_of(target_)
        if (len(x), len(t)) not in ((2, 1), (1, 0)) or x[:-1] != t:
            raise ShapeError.here(
                f"AdaptiveLogSoftmaxWithLoss: expected inputs (N, {self.in_features}) and targets "
                f"(N), or without N, got {show(x)} and {show(t)}"
            )
        if not t:
            result = self.forward(input_.unsqueeze(0), target_.unsqueeze(0))
            return AdaptiveResult(result.output.squeeze(0), result.loss)
        if ((target_ < 0) | (target_ >= self.n_classes)).any():
            raise ArgumentError.here(
                f"AdaptiveLogSoftmaxWithLoss: expected targets from 0 to {self.n_classes - 1}, got "
                f"{target_.min().item()} to {target_.max().item()}"
            )
        entry = target_  # of the head
        within = input_.new_zeros(t)  # a target's log probability within its cluster
        for i, (low, high) in enumerate(zip(self.cutoffs, self.cutoffs[1:], strict=False)):
            here = (target_ >= low) & (target_ < high)
            rows = here.nonzero().reshape(-1)
            entry = entry.masked_fill(here, self.shortlist_size + i)
            if rows.numel():
                scores = log_softmax(self.tail[i](input_[rows]), dim=1)
                chosen = scores.gather(1, (target_[rows] - low).unsqueeze(1)).squeeze(1)
                within = within.index_copy(0, rows, chosen.to(within.dtype))
        head = log_softmax(self.head(input_), dim=1)
        output = within + head.gather(1, entry.unsqueeze(1)).squeeze(1)
        return AdaptiveResult(output, (-output).mean())

    def log_prob(self, input: Any) -> Any:
        """The log probabilities (N, n_classes) of all classes."""
        head = log_softmax(self.head(input), dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            place = self.shortlist_size + i
            parts.append(log_softmax(cluster(input), dim=1) + head[:, place : place + 1])
        return cat(parts, 1)

    def predict(self, input: Any) -> Any:
        """The most probable class (N) of each example."""
        return self.log_prob(input).argmax(1)
