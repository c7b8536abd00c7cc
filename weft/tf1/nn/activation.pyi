"""Made by `python -m tools.stubs`."""

from typing import Any
from weft.tf1.framework.tensor import Tensor

def leaky_relu(features: Any, alpha: float = ..., name: str | None = ...) -> Tensor:
    """x where positive, else alpha * x"""

def crelu(features: Any, name: str | None = ..., axis: int = ...) -> Tensor:
    """relu of x and of -x, concatenated"""

def softmax(logits: Any, axis: int | None = ..., name: str | None = ..., dim: int | None = ...) -> Tensor:
    """exp(x) / sum(exp(x)) along `axis`, the last one by default."""

def log_softmax(logits: Any, axis: int | None = ..., name: str | None = ..., dim: int | None = ...) -> Tensor:
    """The logarithm of `softmax`, without overflow."""

def softmax_cross_entropy_with_logits_v2(labels: Any, logits: Any, axis: int | None = ..., name: str | None = ..., dim: int | None = ...) -> Tensor:
    """-sum(labels * log_softmax(logits)) along `axis`; gradients also flow to the labels."""

def softmax_cross_entropy_with_logits(_sentinel: Any = ..., labels: Any = ..., logits: Any = ..., dim: int = ..., name: str | None = ..., axis: int | None = ...) -> Tensor:
    """-sum(labels * log_softmax(logits)) along an axis; labels get no gradient."""

def sparse_softmax_cross_entropy_with_logits(_sentinel: Any = ..., labels: Any = ..., logits: Any = ..., name: str | None = ...) -> Tensor:
    """The cross entropy of each row with its class number in `labels`."""

def sigmoid_cross_entropy_with_logits(_sentinel: Any = ..., labels: Any = ..., logits: Any = ..., name: str | None = ...) -> Tensor:
    """-labels * log(sigmoid(x)) - (1 - labels) * log(1 - sigmoid(x)), without overflow."""

def weighted_cross_entropy_with_logits(labels: Any = ..., logits: Any = ..., pos_weight: Any = ..., name: str | None = ..., targets: Any = ...) -> Tensor:
    """`sigmoid_cross_entropy_with_logits` with the positive term weighted."""

def log_poisson_loss(targets: Any, log_input: Any, compute_full_loss: bool = ..., name: str | None = ...) -> Tensor:
    """exp(log_input) - log_input * targets

    Args:
        compute_full_loss: add Stirling's formula for `log(targets!)`, where targets exceed 1.
    """

def l2_loss(t: Any, name: str | None = ...) -> Tensor:
    """sum(t ** 2) / 2"""

def xw_plus_b(x: Any, weights: Any, biases: Any, name: str | None = ...) -> Tensor:
    """matmul(x, weights) + biases"""

def relu_layer(x: Any, weights: Any, biases: Any, name: str | None = ...) -> Tensor:
    """relu(matmul(x, weights) + biases)"""

def bias_add(value: Any, bias: Any, data_format: str | None = ..., name: str | None = ...) -> Tensor:
    """`value` plus a vector along the channels."""

def zero_fraction(value: Any, name: str | None = ...) -> Tensor:
    """The fraction of elements that are 0."""

def elu(features: Any, name: str | None = ...) -> Tensor:
    """Every element, or `alpha * (exp(x) - 1)` where it is negative."""

def relu(features: Any, name: str | None = ...) -> Tensor:
    """Every element, or 0 where it is negative."""

def relu6(features: Any, name: str | None = ...) -> Tensor:
    """Every element, clipped to [0, 6]."""

def selu(features: Any, name: str | None = ...) -> Tensor:
    """`elu`, scaled so that activations keep their variance (Klambauer et al., 2017)."""

def softplus(features: Any, name: str | None = ...) -> Tensor:
    """`log(1 + exp(x))`, a smooth `relu`."""

def softsign(features: Any, name: str | None = ...) -> Tensor:
    """`x / (1 + |x|)`."""

def swish(features: Any, name: str | None = ...) -> Tensor:
    """`x * sigmoid(x)`."""

__all__ = [
    "bias_add",
    "crelu",
    "elu",
    "l2_loss",
    "leaky_relu",
    "log_poisson_loss",
    "log_softmax",
    "relu",
    "relu6",
    "relu_layer",
    "selu",
    "sigmoid_cross_entropy_with_logits",
    "softmax",
    "softmax_cross_entropy_with_logits",
    "softmax_cross_entropy_with_logits_v2",
    "softplus",
    "softsign",
    "sparse_softmax_cross_entropy_with_logits",
    "swish",
    "weighted_cross_entropy_with_logits",
    "xw_plus_b",
    "zero_fraction",
]
