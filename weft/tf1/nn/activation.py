"""Activations, losses and biases: most of `tf.nn`."""

from __future__ import annotations

from typing import Any

from weft import ops
from weft.errors import GraphError, ShapeError
from weft.ir.node import Value
from weft.ops.loss.classification import binary_cross_entropy_with_logits
from weft.ops.loss.regression import poisson_nll_loss
from weft.tf1.control.dependency import stop_gradient
from weft.tf1.elementwise import arithmetic
from weft.tf1.elementwise.declared import elu, relu, relu6, selu, softplus, softsign, swish
from weft.tf1.framework import dtypes
from weft.tf1.framework.convert import (
    convert_to_tensor,
    require_kind,
    require_type,
    same_type,
    static_value,
    unary,
)  # fmt: skip
from weft.tf1.framework.graph import emit, fail, name_scope
from weft.tf1.framework.tensor import Tensor
from weft.tf1.shaping import arrangement

__all__ = [
    "bias_add", "crelu", "elu", "l2_loss", "leaky_relu", "log_poisson_loss", "log_softmax", "relu",
    "relu6", "relu_layer", "selu", "sigmoid_cross_entropy_with_logits", "softmax",
    "softmax_cross_entropy_with_logits", "softmax_cross_entropy_with_logits_v2", "softplus",
    "softsign", "sparse_softmax_cross_entropy_with_logits", "swish",
    "weighted_cross_entropy_with_logits", "xw_plus_b", "zero_fraction",
]  # fmt: skip


def leaky_relu(features: Any, alpha: float = 0.2, name: str | None = None) -> Tensor:
    """x where positive, else alpha * x"""
    slope = static_value(alpha)
    if slope is None:
        raise fail(GraphError, "leaky_relu: expected an alpha that is known now")
    tensor = convert_to_tensor(features)
    if tensor.dtype.is_integer:
        tensor = arithmetic.to_float(tensor)
    return unary("LeakyRelu", "leaky_relu", tensor, name, alpha=float(slope))


def crelu(features: Any, name: str | None = None, axis: int = -1) -> Tensor:
    """relu of x and of -x, concatenated"""
    with name_scope(name, "CRelu", [features]):
        x = convert_to_tensor(features)
        return relu(arrangement.concat([x, -x], axis))


def softmax(
    logits: Any, axis: int | None = None, name: str | None = None, dim: int | None = None
) -> Tensor:
    """exp(x) / sum(exp(x)) along `axis`, the last one by default."""
    return _softmax("Softmax", "softmax", logits, axis, name, dim)


def log_softmax(
    logits: Any, axis: int | None = None, name: str | None = None, dim: int | None = None
) -> Tensor:
    """The logarithm of `softmax`, without overflow."""
    return _softmax("LogSoftmax", "log_softmax", logits, axis, name, dim)


def _softmax(kind: str, op: str, logits: Any, axis: Any, name: str | None, dim: Any) -> Tensor:
    along = axis if axis is not None else -1 if dim is None else dim
    return unary(kind, op, logits, name, axis=int(along))


# losses
def _pair(labels: Any, logits: Any, sentinel: Any, kind: str) -> None:
    if sentinel is not None or labels is None or logits is None:
        raise fail(GraphError, f"{kind}: expected labels=..., logits=... by name")


def softmax_cross_entropy_with_logits_v2(
    labels: Any, logits: Any, axis: int | None = None, name: str | None = None,
    dim: int | None = None,
) -> Tensor:  # fmt: skip
    """-sum(labels * log_softmax(logits)) along `axis`; gradients also flow to the labels."""
    return _cross_entropy(labels, logits, axis if axis is not None else dim, name,
                          "softmax_cross_entropy_with_logits")  # fmt: skip


def softmax_cross_entropy_with_logits(
    _sentinel: Any = None, labels: Any = None, logits: Any = None, dim: int = -1,
    name: str | None = None, axis: int | None = None,
) -> Tensor:  # fmt: skip
    """-sum(labels * log_softmax(logits)) along an axis; labels get no gradient."""
    _pair(labels, logits, _sentinel, "softmax_cross_entropy_with_logits")
    along = dim if axis is None else axis
    with name_scope(name, "softmax_cross_entropy_with_logits_sg", [logits, labels]) as scope:
        fixed = stop_gradient(convert_to_tensor(labels), name="labels_stop_gradient")
        return _cross_entropy(fixed, logits, along, scope, "")


def _cross_entropy(labels: Any, logits: Any, axis: int | None, name: str | None, default: str):
    with name_scope(name, default, [logits, labels]):
        x = convert_to_tensor(logits, name="logits")
        target = convert_to_tensor(labels, name="labels", preferred_dtype=x.dtype)
        if target.dtype.base_dtype is not x.dtype.base_dtype:
            target = arithmetic.cast(target, x.dtype)
        along = -1 if axis is None else axis
        _require_fitting("softmax_cross_entropy_with_logits", target, x)

        def build(v: Value, t: Value) -> Value:
            rank = v.rank
            if rank is not None and along % rank != rank - 1:
                order = [i for i in range(rank) if i != along % rank] + [along % rank]
                v, t = (ops.transpose(a, perm=tuple(order)) for a in (v, t))
            return ops.softmax_cross_entropy(v, t)

        # TensorFlow reshapes three times here; programs see the last one's name
        return emit("Reshape", [x, target], build, name="Reshape_2")


def _require_fitting(kind: str, labels: Tensor, logits: Tensor) -> None:
    if not labels.shape.is_compatible_with(logits.shape):
        raise fail(
            ShapeError,
            f"{kind}: expected labels of the shape of logits, {logits.shape}, got {labels.shape}",
        )


def sparse_softmax_cross_entropy_with_logits(
    _sentinel: Any = None, labels: Any = None, logits: Any = None, name: str | None = None
) -> Tensor:
    """The cross entropy of each row with its class number in `labels`."""
    kind = "SparseSoftmaxCrossEntropyWithLogits"
    _pair(labels, logits, _sentinel, "sparse_softmax_cross_entropy_with_logits")
    with name_scope(name, kind, [labels, logits]):
        target = convert_to_tensor(labels)
        x = convert_to_tensor(logits)
        require_kind("sparse_softmax_cross_entropy_with_logits", target,
                     lambda d: d.is_integer, "integer labels")  # fmt: skip
        return emit(kind, [x, target], "sparse_softmax_cross_entropy", name=kind)


def sigmoid_cross_entropy_with_logits(
    _sentinel: Any = None, labels: Any = None, logits: Any = None, name: str | None = None
) -> Tensor:
    """-labels * log(sigmoid(x)) - (1 - labels) * log(1 - sigmoid(x)), without overflow."""
    _pair(labels, logits, _sentinel, "sigmoid_cross_entropy_with_logits")
    with name_scope(name, "logistic_loss", [logits, labels]) as scope:
        x = convert_to_tensor(logits, name="logits")
        target = convert_to_tensor(labels, name="labels", preferred_dtype=x.dtype)
        require_type("sigmoid_cross_entropy_with_logits", "labels", target, x.dtype)
        _require_fitting("sigmoid_cross_entropy_with_logits", target, x)
        return emit("AddV2", [x, target], "sigmoid_cross_entropy", name=scope)


def weighted_cross_entropy_with_logits(
    labels: Any = None, logits: Any = None, pos_weight: Any = None, name: str | None = None,
    targets: Any = None,
) -> Tensor:  # fmt: skip
    """`sigmoid_cross_entropy_with_logits` with the positive term weighted."""
    given = labels if targets is None else targets
    with name_scope(name, "logistic_loss", [logits, given]) as scope:
        x = convert_to_tensor(logits, name="logits")
        target = convert_to_tensor(given, name="targets", preferred_dtype=x.dtype)
        _require_fitting("weighted_cross_entropy_with_logits", target, x)
        weight = convert_to_tensor(pos_weight, x.dtype.base_dtype)

        def build(v: Value, t: Value, q: Value) -> Value:
            return binary_cross_entropy_with_logits(v, t, None, q, reduction="none")

        return emit("AddV2", [x, target, weight], build, name=scope)


def log_poisson_loss(
    targets: Any, log_input: Any, compute_full_loss: bool = False, name: str | None = None
) -> Tensor:
    """exp(log_input) - log_input * targets

    Args:
        compute_full_loss: add Stirling's formula for `log(targets!)`, where targets exceed 1.
    """
    with name_scope(name, "log_poisson_loss", [targets, log_input]):
        x, t = same_type("log_poisson_loss", log_input, targets)

        def build(v: Value, target: Value) -> Value:
            return poisson_nll_loss(
                v, target, log_input=True, full=compute_full_loss, eps=0.0, reduction="none"
            )

        return emit("Sub", [x, t], build, name="sub")


def l2_loss(t: Any, name: str | None = None) -> Tensor:
    """sum(t ** 2) / 2"""
    return unary("L2Loss", "l2_loss", t, name)


def xw_plus_b(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """matmul(x, weights) + biases"""
    with name_scope(name, "xw_plus_b", [x, weights, biases]) as scope:
        return bias_add(arithmetic.matmul(x, weights), biases, name=scope)


def relu_layer(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """relu(matmul(x, weights) + biases)"""
    with name_scope(name, "relu_layer", [x, weights, biases]) as scope:
        return relu(bias_add(arithmetic.matmul(x, weights), biases), name=scope)


def bias_add(
    value: Any, bias: Any, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """`value` plus a vector along the channels."""
    with name_scope(name, "BiasAdd", [value, bias]) as scope:
        x = convert_to_tensor(value, name="input")
        b = convert_to_tensor(bias, x.dtype.base_dtype, name="bias")
        if b.shape.ndims not in (None, 1):
            raise fail(ShapeError, f"bias_add: expected a vector as bias, got shape {b.shape}")
        first = data_format is not None and data_format.startswith("NC")
        channels = x.shape.as_list()[1 if first else -1] if x.shape.ndims else None
        if not b.shape.is_compatible_with([channels]):
            raise fail(
                ShapeError,
                f"bias_add: expected {channels} biases for shape {x.shape}, got {b.shape}",
            )

        def build(v: Value, w: Value) -> Value:
            if first and (v.rank or 2) > 2:
                for _ in range((v.rank or 2) - 2):
                    w = ops.expand_dims(w, axis=-1)
            return v + w

        return emit("BiasAdd", [x, b], build, name=scope)


def zero_fraction(value: Any, name: str | None = None) -> Tensor:
    """The fraction of elements that are 0."""
    with name_scope(name, "zero_fraction", [value]):
        x = convert_to_tensor(value, name="value")

        def build(v: Value) -> Value:
            return ops.mean(ops.cast(ops.equal(v, 0), dtype=dtypes.float32.ir))

        return emit("Identity", [x], build, name="fraction")
