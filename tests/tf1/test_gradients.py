"""`tf.gradients`: values against finite differences, and its arguments."""

# ruff: noqa: E501
import numpy as np
import pytest

import weft.tf1 as tf
from weft import errors

RNG = np.random.default_rng(0)
MATRIX = RNG.uniform(0.3, 2.0, size=(3, 4))
IMAGE = RNG.normal(size=(2, 6, 6, 3))
CASES = {
    "arithmetic": (lambda x: x * x / (x + 1.0) - 2.0 * x + x**3.0, MATRIX),
    "division": (lambda x: 1.0 / x + x / 3.0 + tf.div_no_nan(x, x + 2.0), MATRIX),
    "maths": (lambda x: tf.exp(x) * tf.log(x) + tf.sqrt(x) * tf.tanh(x) + tf.sin(x), MATRIX),
    "matmul": (lambda x: tf.matmul(x, x, transpose_b=True), MATRIX),
    "tensordot": (lambda x: tf.tensordot(x, x, [[0], [0]]), MATRIX),
    "einsum": (lambda x: tf.einsum("ij,kj->ik", x, tf.exp(x)), MATRIX),
    "reductions": (
        lambda x: tf.reduce_mean(x, 1) + tf.reduce_max(x, 1) + tf.reduce_logsumexp(x, 1), MATRIX,
    ),
    "broadcasting": (lambda x: x + tf.reduce_sum(x, 0) * x[:, :1], MATRIX),
    "softmax": (lambda x: tf.nn.softmax(x) * tf.nn.log_softmax(x, axis=0), MATRIX),
    "cross entropy": (
        lambda x: tf.nn.softmax_cross_entropy_with_logits_v2(labels=tf.nn.softmax(-x), logits=x),
        MATRIX,
    ),
    "sparse cross entropy": (
        lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 3, 1], logits=x), MATRIX,
    ),
    "sigmoid cross entropy": (
        lambda x: tf.nn.sigmoid_cross_entropy_with_logits(labels=np.full([3, 4], 0.3), logits=x)
        + tf.nn.weighted_cross_entropy_with_logits(np.full([3, 4], 0.3), x, 2.0),
        MATRIX,
    ),
    "movement": (
        lambda x: tf.concat([tf.transpose(x)[1:], tf.reshape(x, [4, 3])], 0)
        * tf.reverse(tf.tile(x[:1, :3], [7, 1]), [1]), MATRIX,
    ),
    "pieces": (lambda x: tf.add_n(tf.split(x, 2, 1)) * tf.stack(tf.unstack(x, axis=1)[:2], 1), MATRIX),
    "pads": (lambda x: tf.pad(x, [[1, 0], [0, 2]], "REFLECT") * 2.0 + tf.pad(x, [[1, 0], [0, 2]]), MATRIX),
    "gathers": (lambda x: tf.gather(x, [2, 0, 2]) * tf.gather_nd(x, [[0, 1], [2, 2], [0, 1]])[:, None], MATRIX),
    "where": (lambda x: tf.where(x > 1.0, x * x, -x) + tf.clip_by_value(x, 0.5, 1.5), MATRIX),
    "norms": (lambda x: tf.nn.l2_normalize(x, 1) + tf.clip_by_norm(x, 1.0) + tf.norm(x), MATRIX),
    "moments": (lambda x: tf.nn.moments(x, [0])[1] * tf.nn.moments(x, [0])[0], MATRIX),
    "segments": (lambda x: tf.unsorted_segment_sum(x * x, [1, 0, 1], 3), MATRIX),
    "band": (lambda x: tf.matrix_band_part(x * x, 0, 1) + tf.cumsum(x, 1), MATRIX),
    "activations": (
        lambda x: tf.nn.elu(x - 1.0) + tf.nn.selu(1.0 - x) + tf.nn.softplus(x) + tf.nn.softsign(x),
        MATRIX,
    ),
    "convolution": (
        lambda x: tf.nn.conv2d(x, KERNEL, strides=[1, 2, 2, 1], padding="SAME")
        + tf.nn.conv2d(x, KERNEL, strides=2, padding=[[0, 0], [1, 1], [1, 1], [0, 0]]),
        IMAGE,
    ),
    "transposed convolution": (
        lambda x: tf.nn.conv2d_transpose(x, KERNEL[:, :, ::-1], [2, 12, 12, 3], [1, 2, 2, 1])[..., :2],
        IMAGE[..., :2],
    ),
    "depthwise": (lambda x: tf.nn.depthwise_conv2d(x, KERNEL, [1, 1, 1, 1], "VALID"), IMAGE),
    "pooling": (
        lambda x: tf.nn.max_pool(x, 2, 2, "SAME") * tf.nn.avg_pool(x, 3, 2, "SAME"), IMAGE,
    ),
    "batch normalization": (
        lambda x: tf.nn.fused_batch_norm(x, GAIN, GAIN * 2.0)[0] * x, IMAGE,
    ),
    "matrices": (
        lambda x: tf.linalg.inv(tf.matmul(x, x, transpose_b=True))
        + tf.linalg.det(x[:, :3]) + tf.linalg.solve(x[:, :3], x[:, 1:]), MATRIX,
    ),
    "lrn": (lambda x: tf.nn.lrn(x, 1, 1.0, 0.5, 0.75), IMAGE),
}  # fmt: skip
KERNEL = RNG.normal(size=(3, 3, 3, 2))
GAIN = np.array([0.5, 1.0, 2.0])


@pytest.mark.parametrize("name", CASES)
def test_against_finite_differences(session, name):
    build, array = CASES[name]
    x = tf.placeholder(tf.float64, [None, *array.shape[1:]] if name in UNKNOWN else array.shape)
    y = build(x)
    weights = tf.constant(RNG.normal(size=session.run(y, {x: array}).shape))
    total = tf.reduce_sum(y * weights)
    (gradient,) = tf.gradients(total, x)
    found = session.run(gradient, {x: array})
    assert found.shape == array.shape and found.dtype == np.float64
    direction = RNG.normal(size=array.shape)
    step = 1e-6
    up = session.run(total, {x: array + step * direction})
    down = session.run(total, {x: array - step * direction})
    np.testing.assert_allclose(
        np.sum(found * direction), (up - down) / (2 * step), rtol=1e-5, atol=1e-6
    )


UNKNOWN = (
    "arithmetic",
    "matmul",
    "reductions",
    "broadcasting",
    "convolution",
    "pooling",
    "softmax",
)


def test_arguments(session):
    x, y = tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])
    z = x * x * y
    assert [g.tolist() for g in session.run(tf.gradients(z, [x, y]))] == [[6.0, 16.0], [1.0, 4.0]]
    assert session.run(tf.gradients([z, x], x, [[1.0, 0.0], [0.0, 5.0]]))[0].tolist() == [6.0, 5.0]
    middle = x * x
    (stopped,) = tf.gradients(middle * x, x, stop_gradients=[middle])
    assert session.run(stopped).tolist() == [1.0, 4.0]
    assert tf.gradients(z, tf.constant(1.0)) == [None]
    (zero,) = tf.gradients(z, tf.zeros([2, 2]), unconnected_gradients=tf.UnconnectedGradients.ZERO)
    assert session.run(zero).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    (blocked,) = tf.gradients(tf.stop_gradient(x) * x, x)
    assert session.run(blocked).tolist() == [1.0, 2.0]
    assert tf.gradients(tf.constant([1, 2]), x) == [None]


def test_gradients_of_gradients_and_of_variables(session):
    v = tf.Variable(2.0)
    y = v**4.0 + v.read_value() * 3.0
    (first,) = tf.gradients(y, v)
    (second,) = tf.gradients(first, v)
    session.run(v.initializer)
    np.testing.assert_allclose(session.run([first, second]), [35.0, 48.0], rtol=1e-6)
    x = tf.constant([1.0, 2.0])
    (matrix,) = tf.hessians(tf.reduce_prod(x) * x[0], x)
    np.testing.assert_allclose(session.run(matrix), [[4.0, 2.0], [2.0, 0.0]], rtol=1e-6)


def test_names_of_gradients():
    x = tf.constant(2.0)
    (g,) = tf.gradients(x * x, x)
    (h,) = tf.gradients(x * x, x)
    assert g.name.startswith("gradients/") and h.name.startswith("gradients_1/")
    assert g.op in tf.get_default_graph().get_operations() and g.graph is x.graph


def test_negative_numbers_have_no_slope_by_their_exponent(session):
    x, y = tf.constant([-2.0, -2.0, 2.0]), tf.placeholder(tf.float32, [3])
    for z in (tf.pow(x, y), x**y):
        found = session.run(tf.gradients(z, [x, y]), {y: [2.0, 3.0, 1.0]})
        np.testing.assert_allclose(found, [[-4, 12, 1], [0, 0, 2 * np.log(2)]], rtol=1e-6)


def test_no_gradient():
    x = tf.constant([[1.0, 2.0], [2.0, 5.0]])
    assert tf.gradients(tf.py_func(np.sin, [x], tf.float32), x) == [None]
    with pytest.raises(errors.GraphError, match="no gradient of mode 'complete'"):
        tf.gradients(tf.qr(tf.ones([3, 2]) * x[0], full_matrices=True)[1], x)
    with pytest.raises(errors.DTypeError, match="expected 1 grad_ys, got 2"):
        tf.gradients(x, x, [[1.0], [2.0]])
