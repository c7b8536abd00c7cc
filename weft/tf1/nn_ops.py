"""Activations, losses, dropout, normalisation and lookups: most of `tf.nn`."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft import ops
from weft.errors import GraphError, ShapeError
from weft.ir.node import Value
from weft.tf1 import array_ops, dtypes, math_ops, random_ops, reduction_ops
from weft.tf1.control_ops import stop_gradient
from weft.tf1.convert import (
    convert_to_tensor,
    require_kind,
    require_type,
    same_type,
    static_value,
    unary,
)  # fmt: skip
from weft.tf1.graph import fail, get_default_graph, name_scope
from weft.tf1.reduction_ops import static_axes
from weft.tf1.tensor import Tensor


def relu(features: Any, name: str | None = None) -> Tensor:
    """max(x, 0)"""
    return unary("Relu", "relu", features, name)


def relu6(features: Any, name: str | None = None) -> Tensor:
    """min(max(x, 0), 6)"""
    return unary("Relu6", "relu6", features, name)


def elu(features: Any, name: str | None = None) -> Tensor:
    """x where positive, else exp(x) - 1"""
    return unary("Elu", "elu", features, name)


def selu(features: Any, name: str | None = None) -> Tensor:
    """The self-normalising exponential unit (Klambauer et al., 2017)."""
    return unary("Selu", "selu", features, name)


def leaky_relu(features: Any, alpha: float = 0.2, name: str | None = None) -> Tensor:
    """x where positive, else alpha * x"""
    slope = static_value(alpha)
    if slope is None:
        raise fail(GraphError, "leaky_relu: expected an alpha that is known now")
    tensor = convert_to_tensor(features)
    if tensor.dtype.is_integer:
        tensor = math_ops.to_float(tensor)
    return unary("LeakyRelu", "leaky_relu", tensor, name, alpha=float(slope))


def crelu(features: Any, name: str | None = None, axis: int = -1) -> Tensor:
    """relu of x and of -x, side by side"""
    with name_scope(name, "CRelu", [features]):
        x = convert_to_tensor(features)
        return relu(array_ops.concat([x, -x], axis))


def swish(features: Any, name: str | None = None) -> Tensor:
    """x * sigmoid(x)"""
    return unary("swish", "silu", features, name, "swish")


def softplus(features: Any, name: str | None = None) -> Tensor:
    """log(1 + exp(x))"""
    return unary("Softplus", "softplus", features, name)


def softsign(features: Any, name: str | None = None) -> Tensor:
    """x / (1 + abs(x))"""
    return unary("Softsign", lambda x: x / (ops.abs(x) + 1.0), features, name)


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


# Losses
def _pair(labels: Any, logits: Any, sentinel: Any, kind: str) -> None:
    if sentinel is not None or labels is None or logits is None:
        raise fail(GraphError, f"{kind}: expected labels=..., logits=... by name")


def softmax_cross_entropy_with_logits_v2(
    labels: Any, logits: Any, axis: int | None = None, name: str | None = None, dim: int | None = None
) -> Tensor:
    """-sum(labels * log_softmax(logits)) along `axis`; gradients flow to the labels too."""
    return _cross_entropy(labels, logits, axis if axis is not None else dim, name,
                          "softmax_cross_entropy_with_logits")  # fmt: skip


def softmax_cross_entropy_with_logits(
    _sentinel: Any = None,
    labels: Any = None,
    logits: Any = None,
    dim: int = -1,
    name: str | None = None,
    axis: int | None = None,
) -> Tensor:
    """-sum(labels * log_softmax(logits)) along an axis; labels are taken as constants."""
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
            target = math_ops.cast(target, x.dtype)
        along = -1 if axis is None else axis
        _require_fitting("softmax_cross_entropy_with_logits", target, x)

        def build(v: Value, t: Value) -> Value:
            rank = v.rank
            if rank is not None and along % rank != rank - 1:
                order = [i for i in range(rank) if i != along % rank] + [along % rank]
                v, t = (ops.transpose(a, perm=tuple(order)) for a in (v, t))
            return ops.softmax_cross_entropy(v, t)

        # TensorFlow reshapes three times here; what programs see is the last one's name
        return get_default_graph().emit("Reshape", [x, target], build, name="Reshape_2").outputs[0]


def _require_fitting(kind: str, labels: Tensor, logits: Tensor) -> None:
    if not labels.shape.is_compatible_with(logits.shape):
        raise fail(
            ShapeError,
            f"{kind}: expected labels of the shape of logits, {logits.shape}, got {labels.shape}",
        )


def sparse_softmax_cross_entropy_with_logits(
    _sentinel: Any = None, labels: Any = None, logits: Any = None, name: str | None = None
) -> Tensor:
    """The negative logarithm of the probability of each row's class number in `labels`."""
    kind = "SparseSoftmaxCrossEntropyWithLogits"
    _pair(labels, logits, _sentinel, "sparse_softmax_cross_entropy_with_logits")
    with name_scope(name, kind, [labels, logits]):
        target = convert_to_tensor(labels)
        x = convert_to_tensor(logits)
        require_kind("sparse_softmax_cross_entropy_with_logits", target,
                     lambda d: d.is_integer, "integer labels")  # fmt: skip
        graph = get_default_graph()
        return graph.emit(kind, [x, target], "sparse_softmax_cross_entropy", name=kind).outputs[0]


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
        graph = get_default_graph()
        return graph.emit("AddV2", [x, target], "sigmoid_cross_entropy", name=scope).outputs[0]


def weighted_cross_entropy_with_logits(
    labels: Any = None,
    logits: Any = None,
    pos_weight: Any = None,
    name: str | None = None,
    targets: Any = None,
) -> Tensor:
    """`sigmoid_cross_entropy_with_logits` with the positive term weighted."""
    given = labels if targets is None else targets
    with name_scope(name, "logistic_loss", [logits, given]) as scope:
        x = convert_to_tensor(logits, name="logits")
        target = convert_to_tensor(given, name="targets", preferred_dtype=x.dtype)
        _require_fitting("weighted_cross_entropy_with_logits", target, x)
        weight = convert_to_tensor(pos_weight, x.dtype.base_dtype)

        def build(v: Value, t: Value, q: Value) -> Value:
            factor = 1.0 + (q - 1.0) * t
            return (1.0 - t) * v + factor * ops.softplus(-v)

        graph = get_default_graph()
        return graph.emit("AddV2", [x, target, weight], build, name=scope).outputs[0]


def log_poisson_loss(
    targets: Any, log_input: Any, compute_full_loss: bool = False, name: str | None = None
) -> Tensor:
    """exp(log_input) - log_input * targets"""
    if compute_full_loss:
        raise fail(GraphError, "log_poisson_loss: compute_full_loss is not supported")
    with name_scope(name, "log_poisson_loss", [targets, log_input]):
        x, t = same_type("log_poisson_loss", log_input, targets)
        return math_ops.exp(x) - x * t


def l2_loss(t: Any, name: str | None = None) -> Tensor:
    """sum(t ** 2) / 2"""
    return unary("L2Loss", "l2_loss", t, name)


# Normalisation
def l2_normalize(
    x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None, dim: Any = None
) -> Tensor:
    """x / sqrt(max(sum(x ** 2), epsilon)) along `axis`."""
    axes = static_axes(dim if axis is None else axis, "l2_normalize")

    def build(v: Value) -> Value:
        total = ops.sum(ops.square(v), axes=axes, keepdims=True)
        return v * ops.rsqrt(ops.maximum(total, epsilon))

    return unary("Mul", build, x, name, "l2_normalize")


def moments(
    x: Any,
    axes: Any,
    shift: Any = None,
    name: str | None = None,
    keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor]:
    """Mean and variance over `axes`."""
    del shift
    keep = bool(keep_dims or keepdims)
    with name_scope(name, "moments", [x]):
        tensor = convert_to_tensor(x, name="x")
        along = static_axes(axes, "moments")
        graph = get_default_graph()
        first, second = (
            graph.emit("Squeeze", [tensor], op, axes=along, keepdims=keep, name="Squeeze").outputs[0]
            for op in ("mean", "variance")
        )
    return first, second


def batch_normalization(
    x: Any,
    mean: Any,
    variance: Any,
    offset: Any,
    scale: Any,
    variance_epsilon: Any,
    name: str | None = None,
) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) * scale + offset; scale and offset may be `None`."""
    with name_scope(name, "batchnorm", [x, mean, variance, scale, offset]):
        tensor = convert_to_tensor(x)
        inverse = math_ops.rsqrt(convert_to_tensor(variance) + variance_epsilon)
        if scale is not None:
            inverse = inverse * scale
        scaled = tensor * inverse
        center = convert_to_tensor(mean) * inverse
        return scaled + (-center if offset is None else offset - center)


def fused_batch_norm(
    x: Any,
    scale: Any,
    offset: Any,
    mean: Any = None,
    variance: Any = None,
    epsilon: float = 0.001,
    data_format: str = "NHWC",
    is_training: bool = True,
    name: str | None = None,
    exponential_avg_factor: float = 1.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """Batch normalisation of images, with the mean and the (unbiased) variance that it used.

    Raises:
        GraphError: outside of training mean and variance must be given.
    """
    if not is_training and (mean is None or variance is None):
        raise fail(GraphError, "fused_batch_norm: expected mean and variance outside of training")
    if exponential_avg_factor != 1.0:
        raise fail(GraphError, "fused_batch_norm: exponential_avg_factor is not supported")
    least = max(float(epsilon), 1.001e-5)  # TensorFlow's lower bound, which cuDNN wants
    with name_scope(name, "FusedBatchNormV3", [x, scale, offset]) as scope:
        tensor = convert_to_tensor(x, name="input")
        gain = convert_to_tensor(scale, name="scale")
        shift = convert_to_tensor(offset, name="offset")
        inputs = [tensor, gain, shift]
        if not is_training:
            inputs += [convert_to_tensor(mean), convert_to_tensor(variance)]
        op = get_default_graph().emit(
            "FusedBatchNormV3", inputs, _fused_batch_norm, epsilon=least,
            first=data_format.startswith("NC"), name=scope,
        )  # fmt: skip
    return op.outputs[0], op.outputs[1], op.outputs[2]


def _fused_batch_norm(
    x: Value, scale: Value, offset: Value, *given: Value, epsilon: float, first: bool
) -> tuple[Value, Value, Value]:
    rank = x.rank or 4
    if first:
        x = ops.transpose(x, perm=(0, *range(2, rank), 1))
    if given:
        mean, variance = given
        y = ops.normalize(x, mean, variance, scale, offset, epsilon)
        used = ops.identity(mean), ops.identity(variance)
    else:
        y, mean, variance = ops.batch_norm.all(x, scale, offset, epsilon=epsilon)
        used = mean, variance * _unbiased(x)
    if first:
        y = ops.transpose(y, perm=(0, rank - 1, *range(1, rank - 1)))
    return y, *used


def _unbiased(x: Value) -> Any:
    """n / (n - 1), for the variance of n samples."""
    dims = (x.shape or (None,))[:-1]
    if None not in dims:
        count = int(np.prod(dims))  # pyright: ignore[reportArgumentType, reportCallIssue]
        return count / max(count - 1, 1)
    total = ops.cast(ops.size_of(x) // ops.shape_of(x)[-1], dtype=x.dtype)  # pyright: ignore
    return total / ops.maximum(total - 1.0, 1.0)


def lrn(
    input: Any,
    depth_radius: int = 5,
    bias: float = 1.0,
    alpha: float = 1.0,
    beta: float = 0.5,
    name: str | None = None,
) -> Tensor:
    """Local response normalisation over neighbouring channels (Krizhevsky et al., 2012)."""

    def build(x: Value) -> Value:
        r = depth_radius
        squares = ops.pad(ops.square(x), paddings=((0, 0),) * ((x.rank or 4) - 1) + ((r, r),))
        channels = (x.shape or (None,))[-1]
        if channels is None:
            raise fail(ShapeError, "lrn: expected a known number of channels")
        windows = [ops.subscript(squares, (..., slice(i, i + channels))) for i in range(2 * r + 1)]
        return x / ops.power(bias + alpha * ops.add_n(*windows), beta)

    return unary("LRN", build, input, name)


local_response_normalization = lrn


# Dropout
def dropout(
    x: Any,
    keep_prob: Any = None,
    noise_shape: Any = None,
    seed: int | None = None,
    name: str | None = None,
    rate: Any = None,
) -> Tensor:
    """Zero a share `rate` (1 - keep_prob) of the elements; the rest grows to keep the mean.

    Args:
        keep_prob: how much to keep: a number or a tensor, as programs feed it.
        noise_shape: a shape that broadcasts to that of x; elements along 1 share their fate.
        rate: how much to drop.
    """
    if (keep_prob is None) == (rate is None):
        raise fail(GraphError, "dropout: expected one of keep_prob and rate")
    with name_scope(name, "dropout", [x]):
        tensor = convert_to_tensor(x, name="x")
        require_kind("dropout", tensor, lambda d: d.is_floating, "a floating type")
        keep = _keep(keep_prob, rate, tensor)
        if keep is None:
            return tensor
        dims = array_ops.shape(tensor) if noise_shape is None else _noise_shape(tensor, noise_shape)
        uniform = random_ops.random_uniform(dims, dtype=_drawn(tensor), seed=seed)

        def build(v: Value, u: Value, k: Value) -> Value:
            kept = ops.less(u, ops.cast(k, dtype=u.dtype) if k.dtype is not u.dtype else k)
            return ops.select(kept, v / k, 0)

        graph = get_default_graph()
        return graph.emit("SelectV2", [tensor, uniform, keep], build, name="SelectV2").outputs[0]


def _drawn(tensor: Tensor) -> Any:
    """The type to draw in: half precision has too few steps for small rates."""
    return tensor.dtype if tensor.dtype.size >= 4 else dtypes.float32


def _keep(keep_prob: Any, rate: Any, tensor: Tensor) -> Tensor | None:
    """The share to keep, as a tensor; `None` where that is everything."""
    given = keep_prob if rate is None else rate
    if isinstance(given, int | float):
        share = float(given) if rate is None else 1.0 - given
        if not 0 < share <= 1:
            what = "keep_prob in (0, 1]" if rate is None else "rate in [0, 1)"
            raise fail(GraphError, f"dropout: expected {what}, got {given}")
        return None if share == 1 else convert_to_tensor(share, tensor.dtype.base_dtype, "keep_prob")
    share = convert_to_tensor(given, tensor.dtype.base_dtype, name="rate")
    return share if rate is None else 1.0 - share


def _noise_shape(tensor: Tensor, noise_shape: Any) -> Any:
    known = static_value(noise_shape) if not isinstance(noise_shape, list | tuple) else None
    dims = list(noise_shape) if isinstance(noise_shape, list | tuple) else known
    if dims is None:
        return noise_shape
    full = array_ops.shape(tensor)
    return [full[i] if d is None else d for i, d in enumerate(list(dims))]


# Lookups and choices
def embedding_lookup(
    params: Any,
    ids: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    validate_indices: bool = True,
    max_norm: float | None = None,
) -> Tensor:
    """The rows of `params` at `ids`; the gradient stays row-sparse."""
    del partition_strategy, validate_indices
    tables = list(params) if isinstance(params, list | tuple) else [params]
    if len(tables) != 1:
        raise fail(GraphError, f"embedding_lookup: expected one table, got {len(tables)}")
    with name_scope(name, "embedding_lookup", [tables[0], ids]):
        table = convert_to_tensor(tables[0], name="params")
        where = convert_to_tensor(ids, name="ids")
        require_kind("embedding_lookup", where, lambda d: d.is_integer, "integer ids")
        graph = get_default_graph()
        found = graph.emit("Identity", [table, where], "gather", name="Identity").outputs[0]
        if max_norm is None:
            return found
        axes = list(range(where.shape.ndims or 0, table.shape.ndims or 1))
        norms = math_ops.sqrt(reduction_ops.reduce_sum(found * found, axes, keepdims=True))
        return found * (max_norm / math_ops.maximum(norms, max_norm))


def top_k(input: Any, k: Any = 1, sorted: bool = True, name: str | None = None) -> Any:
    """The k greatest elements of the last axis, greatest first, and where they are."""
    del sorted
    known = static_value(k)
    if known is None:
        raise fail(GraphError, "top_k: expected a k that is known now")
    with name_scope(name, "TopKV2", [input]) as scope:
        tensor = convert_to_tensor(input, name="input")
        last = tensor.shape[-1].value if tensor.shape.ndims else None
        if last is not None and int(known) > last:
            raise fail(ShapeError, f"top_k: expected k <= {last}, got {int(known)}")

        def build(x: Value) -> tuple[Value, Value]:
            values, indices = ops.top_k.all(x, k=int(known))
            kind = dtypes.int32.ir
            return values, indices if indices.dtype is kind else ops.cast(indices, dtype=kind)

        op = get_default_graph().emit("TopKV2", [tensor], build, name=scope)
    return TopK(op.outputs[0], op.outputs[1])


class TopK(tuple[Tensor, Tensor]):
    """The result of `top_k`: values and indices."""

    __slots__ = ()

    def __new__(cls, values: Tensor, indices: Tensor) -> TopK:
        return super().__new__(cls, (values, indices))

    @property
    def values(self) -> Tensor:
        """The greatest elements."""
        return self[0]

    @property
    def indices(self) -> Tensor:
        """Where they are."""
        return self[1]


def in_top_k(predictions: Any, targets: Any, k: int, name: str | None = None) -> Tensor:
    """Whether each row's class number in `targets` is among its k greatest predictions."""
    with name_scope(name, "in_top_k", [predictions, targets]):
        scores = convert_to_tensor(predictions, dtypes.float32)
        where = convert_to_tensor(targets)

        def build(x: Value, t: Value) -> Value:
            chosen = ops.gather(x, t, axis=-1, batch_dims=1)
            above = ops.greater(x, ops.expand_dims(chosen, axis=-1))
            better = ops.sum(ops.cast(above, dtype=dtypes.int32.ir), axes=(-1,))
            return ops.logical_and(ops.less(better, k), ops.isfinite(chosen))

        graph = get_default_graph()
        return graph.emit("InTopKV2", [scores, where], build, name="InTopKV2").outputs[0]


def xw_plus_b(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """matmul(x, weights) + biases"""
    with name_scope(name, "xw_plus_b", [x, weights, biases]) as scope:
        return bias_add(math_ops.matmul(x, weights), biases, name=scope)


def relu_layer(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """relu(matmul(x, weights) + biases)"""
    with name_scope(name, "relu_layer", [x, weights, biases]) as scope:
        return relu(bias_add(math_ops.matmul(x, weights), biases), name=scope)


def bias_add(value: Any, bias: Any, data_format: str | None = None, name: str | None = None) -> Tensor:
    """`value` with a vector added along the channels."""
    with name_scope(name, "BiasAdd", [value, bias]) as scope:
        x = convert_to_tensor(value, name="input")
        b = convert_to_tensor(bias, x.dtype.base_dtype, name="bias")
        if b.shape.ndims not in (None, 1):
            raise fail(ShapeError, f"bias_add: expected a vector as bias, got shape {b.shape}")
        first = data_format is not None and data_format.startswith("NC")
        channels = x.shape[1 if first else -1].value if x.shape.ndims else None
        if not b.shape.is_compatible_with([channels]):
            raise fail(
                ShapeError, f"bias_add: expected {channels} biases for shape {x.shape}, got {b.shape}"
            )

        def build(v: Value, w: Value) -> Value:
            if first and (v.rank or 2) > 2:
                for _ in range((v.rank or 2) - 2):
                    w = ops.expand_dims(w, axis=-1)
            return v + w

        return get_default_graph().emit("BiasAdd", [x, b], build, name=scope).outputs[0]


def zero_fraction(value: Any, name: str | None = None) -> Tensor:
    """The share of elements that are 0."""
    with name_scope(name, "zero_fraction", [value]):
        x = convert_to_tensor(value, name="value")

        def build(v: Value) -> Value:
            return ops.mean(ops.cast(ops.equal(v, 0), dtype=dtypes.float32.ir))

        return get_default_graph().emit("Identity", [x], build, name="fraction").outputs[0]
