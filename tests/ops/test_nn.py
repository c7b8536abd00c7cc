"""Softmax, losses, normalization and dropout: stability, gradients, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from slope import cotangents, interpreted, slopes

from weft import ops
from weft.errors import DTypeError, OutOfRangeError, ShapeError
from weft.ir.dtype import as_dtype
from weft.ir.graph import Graph
from weft.ops.declaration import REGISTRY, Composite
from weft.runtime.engine import Function, State
from weft.transform.check import check_gradients
from weft.transform.gradient import gradients
from weft.transform.interpreter import evaluate

RNG = np.random.default_rng(0)
LOGITS = RNG.standard_normal((4, 5))


def test_softmax_is_stable() -> None:
    x = np.array([[1e4, 0.0, -1e4], [-1e4, -1e4, -1e4]], np.float32)
    np.testing.assert_allclose(interpreted(ops.softmax, x), [[1, 0, 0], [1 / 3] * 3], rtol=1e-6)
    np.testing.assert_allclose(
        interpreted(ops.log_softmax, x), [[0, -1e4, -2e4], [-np.log(3)] * 3], rtol=1e-6
    )


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_softmax_sums_to_one_along_its_axis(axis: int) -> None:
    found = interpreted(lambda x: ops.softmax(x, axis=axis), LOGITS)
    np.testing.assert_allclose(found.sum(axis=axis), 1.0)


def test_softmax_rows_expand_into_one_fusable_chain() -> None:
    with Graph().as_default() as graph:
        x = ops.placeholder(dtype="float32", shape=(4, 5))
        lower = ops.softmax.lower
        assert isinstance(lower, Composite)
        lower.expand(x, axis=1)
    assert [n.op for n in graph.nodes] == ["placeholder", "max", "subtract", "exp", "sum", "divide"]
    assert all(n.attrs["keepdims"] for n in graph.nodes if n.op in ("max", "sum"))


# Losses
def test_cross_entropies_agree() -> None:
    labels = np.array([4, 0, 2, 2])
    dense = interpreted(ops.softmax_cross_entropy, LOGITS, np.eye(5)[labels])
    sparse = interpreted(ops.sparse_softmax_cross_entropy, LOGITS, labels)
    np.testing.assert_allclose(sparse, dense, rtol=1e-12)
    logp = LOGITS - np.log(np.exp(LOGITS).sum(1, keepdims=True))
    np.testing.assert_allclose(dense, -logp[np.arange(4), labels])


def test_cross_entropy_of_impossible_logits() -> None:
    logits = np.array([[-np.inf, 0.0, 1e4]])
    found = interpreted(ops.softmax_cross_entropy, logits, np.array([[0.0, 0.0, 1.0]]))
    assert found.tolist() == [0.0]


def test_slope_of_cross_entropy_is_the_difference() -> None:
    labels = np.eye(5)[[4, 0, 2, 2]]
    dx, _ = cotangents(ops.softmax_cross_entropy, [LOGITS, labels])
    p = np.exp(LOGITS) / np.exp(LOGITS).sum(1, keepdims=True)
    np.testing.assert_allclose(dx, p - labels, atol=1e-12)


@pytest.mark.parametrize("bad", [5, -1])
def test_a_label_out_of_range(bad: int) -> None:
    text = rf"labels\[1\]: expected 0 <= index < 5, got {bad}"
    with pytest.raises(OutOfRangeError, match=text):
        interpreted(ops.sparse_softmax_cross_entropy, LOGITS, np.array([0, bad, 1, 2]))


@pytest.mark.parametrize("shapes", [((None, 5), (None,)), ((None, None), (None,)), (None, None)])
def test_gradients_of_sparse_loss_with_unknown_sizes(shapes: Any) -> None:
    labels = np.array([4, 0, 2, 2])
    expected = np.exp(LOGITS) / np.exp(LOGITS).sum(1, keepdims=True) - np.eye(5)[labels]
    graph = Graph()
    with graph.as_default():
        x = ops.placeholder(dtype="float64", shape=shapes[0])
        i = ops.placeholder(dtype="int64", shape=shapes[1])
        (dx,) = gradients([ops.sparse_softmax_cross_entropy(x, i)], [x])
    found = evaluate(graph, [dx], {x: LOGITS, i: labels})[0]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_sigmoid_cross_entropy_is_stable() -> None:
    x, z = np.array([1000.0, -1000.0, 0.0]), np.array([1.0, 0.0, 0.5])
    np.testing.assert_allclose(
        interpreted(ops.sigmoid_cross_entropy, x, z), [0.0, 0.0, np.log(2.0)], atol=1e-12
    )
    dx, dz = slopes(ops.sigmoid_cross_entropy, x, z)
    assert dx == [0.0, 0.0, 0.0]
    assert dz == [-1000.0, 1000.0, 0.0]


# Normalization
def test_batch_norm_gives_moments() -> None:
    x = RNG.standard_normal((6, 4, 4, 3)) * 3 + 1
    graph = Graph()
    with graph.as_default():
        v, ones, zeros = (ops.constant(a) for a in (x, np.ones(3), np.zeros(3)))
        y, m, s = evaluate(graph, ops.batch_norm.all(v, ones, zeros))
    np.testing.assert_allclose(m, x.mean((0, 1, 2)))
    np.testing.assert_allclose(s, x.var((0, 1, 2)))
    np.testing.assert_allclose(y.mean((0, 1, 2)), 0, atol=1e-12)
    np.testing.assert_allclose(y.std((0, 1, 2)), 1, atol=1e-4)


@pytest.mark.parametrize("shape", [(3000, 5), (4, 7, 9, 40)])
def test_moments_far_from_zero(shape: tuple[int, ...]) -> None:
    """As from two passes, where the mean is a thousand deviations from zero and rows differ."""
    x = (RNG.standard_normal(shape) + 1000).astype(np.float32)
    x[0] = 990
    graph = Graph()
    with graph.as_default():
        v = ops.placeholder(dtype="float32", shape=shape)
        found = Function(graph, ops.column_moments.all(v), feeds=[v])([x], State())
    axes, wide = tuple(range(len(shape) - 1)), x.astype(np.float64)
    np.testing.assert_allclose(found[0], wide.mean(axes), rtol=3e-7)
    np.testing.assert_allclose(found[1], wide.var(axes), rtol=1e-4)


def test_the_moments_of_batch_norm_are_differentiable() -> None:
    x, scale, offset = RNG.standard_normal((5, 3)), np.array([1.0, 2.0, 0.5]), np.zeros(3)
    check_gradients(lambda *a: ops.batch_norm.all(*a)[1:], [x, scale, offset], order=2)


def test_layer_norm_normalizes_rows() -> None:
    found = interpreted(ops.layer_norm, LOGITS, np.ones(5), np.full(5, 2.0))
    np.testing.assert_allclose(found.mean(1), 2.0)


def test_normalize_uses_given_moments() -> None:
    x = np.array([[3.0], [5.0]])
    one, zero = np.ones(1), np.zeros(1)
    found = interpreted(
        lambda v, m, s, a, b: ops.normalize(v, m, s, a, b, epsilon=0.0), x, one, one * 4, one, zero
    )
    np.testing.assert_allclose(found, [[1.0], [2.0]])


# Dropout
def test_dropout_scales_what_it_keeps() -> None:
    x, mask = np.array([1.0, 2.0, 3.0]), np.array([True, False, True])
    assert interpreted(lambda v, m: ops.dropout(v, m, rate=0.5), x, mask).tolist() == [2, 0, 6]
    assert interpreted(lambda v, m: ops.dropout(v, m, rate=1.0), x, mask).tolist() == [0, 0, 0]


# Errors
@pytest.mark.parametrize(
    ("build", "error", "text"),
    [
        (
            lambda x, i: ops.softmax_cross_entropy(x, ops.reshape(x, shape=(5, 4))), ShapeError,
            r"expected labels of shape \(4, 5\) like the logits, got \(5, 4\)",
        ),
        (
            lambda x, i: ops.sparse_softmax_cross_entropy(x, ops.reshape(i, shape=(2, 2))),
            ShapeError,
            r"labels of shape logits.shape\[:-1\], got logits \(4, 5\) and labels \(2, 2\)",
        ),
        (
            lambda x, i: ops.sparse_softmax_cross_entropy(x, x), DTypeError,
            "labels: expected an integer dtype, got float32",
        ),
        (
            lambda x, i: ops.layer_norm(x, np.ones(4, np.float32), np.ones(5, np.float32)),
            ShapeError, r"expected scale of shape \(5,\), got \(4,\)",
        ),
        (
            lambda x, i: ops.dropout(x, x, rate=0.5), DTypeError,
            "expected a bool mask, got float32",
        ),
        (
            lambda x, i: ops.softmax(x, axis=2), ShapeError,
            "axis: expected -2 <= axis < 2, got 2",
        ),
    ],
)  # fmt: skip
def test_errors_say_what_was_expected(build: Any, error: Any, text: str) -> None:
    with Graph().as_default():
        x = ops.placeholder(dtype="float32", shape=(4, 5))
        i = ops.placeholder(dtype="int32", shape=(4,))
        with pytest.raises(error, match=text):
            build(x, i)


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "layer_norm", "mean", "l2_loss"])
def test_half_precision_composites_round_once(name: str) -> None:
    x = (RNG.standard_normal((3, 64)) * 4).astype(np.float16)
    more = [np.ones(64, np.float16)] * 2 if name == "layer_norm" else []
    op = REGISTRY[name]
    assert isinstance(op.lower, Composite)
    attrs = op.normal(x.shape, *[a.shape for a in more], **op.attrs)
    expanded = interpreted(lambda *a: op.lower.expand(*a, **attrs), x, *more)
    exact = op.reference(*[a.astype(np.float64) for a in (x, *more)], **attrs)
    assert as_dtype(expanded.dtype).name == "float16"
    np.testing.assert_allclose(expanded, exact, rtol=2**-10, atol=1e-7)
