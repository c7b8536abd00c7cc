"""What all of `tf.metrics` share: local variables that runs add to, weights, collections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from weft.documentation import arguments_of
from weft.errors import ShapeError
from weft.ir.node import Value
from weft.ops.elementwise.combination import safe_quotient
from weft.ops.metric.mean import weighted_total
from weft.tf1.creation import ones_like, zeros
from weft.tf1.elementwise.arithmetic import cast, multiply
from weft.tf1.framework.collection import GraphKeys
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.dtypes import float32
from weft.tf1.framework.graph import emit, fail, get_default_graph
from weft.tf1.framework.tensor import Tensor
from weft.tf1.reduction import reduce_sum
from weft.tf1.shaping.arrangement import expand_dims, squeeze
from weft.tf1.variable.assignment import assign_add
from weft.tf1.variable.variable import Variable


class _Arguments:
    """What the functions of `tf.metrics` take.

    Args:
        labels: what is true.
        predictions: what was predicted, in the labels' shape.
        values: numbers of any shape.
        num_classes: the number of classes.
        wanted: the other rate, from 0 to 1.
        thresholds: predictions above a threshold count as positive.
        num_thresholds: how many thresholds are tried.
        weights: of rows or of each element; they broadcast. Without them all count once.
        metrics_collections, updates_collections: names of the collections to which the value, and
            the update, are added; none by default.
        name: the scope of the operations and of the local variables.
    """


described = arguments_of(_Arguments)


class Metric(NamedTuple):
    """A metric's value, and the operation that adds a batch and gives the new value."""

    value: Tensor
    update: Tensor


def running_variable(shape: Sequence[Any], name: str, dtype: Any = float32) -> Variable:
    """Zeros that runs add to, in the collections of local and of metrics' variables."""
    keys = [GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES]
    return Variable(zeros(shape, dtype), trainable=False, collections=keys, name=name)


def entered(
    value: Tensor, update: Tensor, metrics_collections: Any, updates_collections: Any
) -> Metric:
    """The metric, once it is in the collections that the caller names."""
    graph = get_default_graph()
    for names, item in ((metrics_collections, value), (updates_collections, update)):
        for name in [names] if isinstance(names, str) else names or ():
            graph.add_to_collection(name, item)
    return Metric(value, update)


def applied(
    formula: Callable[..., Value], totals: Sequence[Metric], metrics_collections: Any,
    updates_collections: Any, **options: Any,
) -> Metric:  # fmt: skip
    """The metric that a formula gives of the totals, those before and those with this batch."""
    value, update = [
        emit("DivNoNan", [t[i] for t in totals], formula, name=name, **options)
        for i, name in enumerate(("value", "update_op"))
    ]
    return entered(value, update, metrics_collections, updates_collections)


def running_mean(values: Tensor, weights: Any, parts: bool = False) -> Metric:
    """The weighted mean of all batches; with `parts`, of each element over the batches."""
    x = values if values.dtype.base_dtype is float32 else cast(values, float32)
    if parts and x.shape.num_elements() is None:
        raise fail(ShapeError, f"mean_tensor: expected a known shape, got {x.shape}")
    shape = x.shape.as_list() if parts else []
    total, count = running_variable(shape, "total"), running_variable(shape, "count")
    w = None if weights is None else weights_for(weights, x)
    if parts:
        spread = ones_like(x) if w is None else multiply(ones_like(x), w)
        added = x if w is None else multiply(x, spread), spread
    else:
        inputs = [x] if w is None else [x, w]
        added = get_default_graph().emit("Sum", inputs, weighted_total, name="Sum").outputs
    sums = [
        Metric(v.value(), assign_add(v, new)) for v, new in zip((total, count), added, strict=True)
    ]
    return applied(safe_quotient, sums, None, None)


def running_sum(values: Tensor, weights: Any, name: str) -> Metric:
    """The weighted sum of all batches."""
    x = cast(values, float32)
    total = running_variable([], name)
    if weights is not None:
        x = multiply(x, weights_for(weights, x))
    return Metric(total.value(), assign_add(total, reduce_sum(x)))


def weights_for(weights: Any, values: Tensor) -> Tensor:
    """Weights as float32 that broadcast against values: a scalar, of rows, or of the same rank.

    Raises:
        ShapeError: they do not fit.
    """
    w = cast(convert_to_tensor(weights), float32)
    have, want = w.shape, values.shape
    if not have.ndims or want.ndims is None:
        return w
    if have.ndims == want.ndims - 1:
        w = expand_dims(w, -1)  # weights of rows
    elif have.ndims == want.ndims + 1 and have.as_list()[-1] == 1:
        w = squeeze(w, [-1])
    have = w.shape
    pairs = zip(have.as_list(), want.as_list(), strict=False)
    if have.ndims != want.ndims or any(a not in (None, 1, b) and b is not None for a, b in pairs):
        text = f"metrics: expected weights that broadcast to shape {want}, got shape {have}"
        raise fail(ShapeError, text)
    return w


def matched(labels: Any, predictions: Any, dtype: Any = None) -> tuple[Tensor, Tensor]:
    """Both as tensors of one rank: a last axis of size 1 that only one of them has is dropped.

    Raises:
        ShapeError: their shapes differ otherwise.
    """
    y, p = convert_to_tensor(labels), convert_to_tensor(predictions)
    if dtype is not None:
        y, p = cast(y, dtype), cast(p, dtype)
    a, b = y.shape, p.shape
    if a.ndims is not None and b.ndims is not None:
        if a.ndims == b.ndims + 1 and a.as_list()[-1] in (1, None):
            y = squeeze(y, [-1])
        elif b.ndims == a.ndims + 1 and b.as_list()[-1] in (1, None):
            p = squeeze(p, [-1])
    if not y.shape.is_compatible_with(p.shape):
        text = f"metrics: expected labels and predictions of one shape, got {a} and {b}"
        raise fail(ShapeError, text)
    return y, p
