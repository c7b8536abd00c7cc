"""`tf.layers`: shapes, values and gradients against TensorFlow's numbers."""

import re

import numpy as np
import pytest

import weft.tf1 as tf
from weft.errors import ArgumentError, ShapeError


def pattern(*shape):
    n = np.arange(int(np.prod(shape)))
    return (np.sin(n * 1.3 + len(shape)) * 0.3).astype(np.float32).reshape(shape)


def made(shape, dtype=None, partition_info=None):
    return tf.constant(pattern(*[int(n) for n in shape]))


K = {"kernel_initializer": made}
S = {"depthwise_initializer": made, "pointwise_initializer": made}
INPUTS = {"1": pattern(2, 9, 4), "2": pattern(2, 7, 8, 3), "3": pattern(2, 5, 6, 4, 2)}

# A layer, the output's shape, and the sums of the absolute values of the output, and of the
# gradients of its squares by the input and each variable; written down from TensorFlow 2.21
LAYERS = [
    (
        'conv2d_transpose(x, 5, 3, 2, "valid", **K)',
        (2, 15, 17, 5),
        [231.332, 265.171, 387.583, 0.542158],
    ),
    (
        'conv2d_transpose(x, 5, 3, 2, "same", **K)',
        (2, 14, 16, 5),
        [202.328, 233.135, 366.185, 2.7382],
    ),
    (
        "conv2d_transpose(x, 5, [4, 2], (1, 3), use_bias=False, **K)",
        (2, 10, 24, 5),
        [218.095, 379.988, 499.935],
    ),
    (
        'conv3d_transpose(x, 3, 2, 2, "same", **K)',
        (2, 10, 12, 8, 3),
        [335.143, 216.459, 217.169, 0.0829209],
    ),
    (
        "conv3d_transpose(x, 3, [3, 1, 2], **K)",
        (2, 7, 6, 5, 3),
        [58.8325, 58.2767, 100.449, 0.535431],
    ),
    (
        'separable_conv2d(x, 5, 3, padding="same", depth_multiplier=2, **S)',
        (2, 7, 8, 5),
        [7.43443, 4.04688, 9.30001, 2.34663, 2.8384],
    ),
    (
        "separable_conv2d(x, 5, 3, 2, bias_initializer=tf.ones_initializer(), **S)",
        (2, 3, 3, 5),
        [89.9299, 18.9792, 18.6508, 28.2475, 179.86],
    ),
    (
        "separable_conv2d(x, 5, 3, dilation_rate=2, activation=tf.nn.relu, **S)",
        (2, 3, 4, 5),
        [1.80334, 3.26088, 3.3737, 1.11175, 3.60669],
    ),
    (
        "separable_conv1d(x, 5, 3, 2, **S)",
        (2, 4, 5),
        [2.72241, 2.57083, 2.33991, 2.47009, 0.0914761],
    ),
    (
        'separable_conv1d(x, 5, 3, padding="same", dilation_rate=2, **S)',
        (2, 9, 5),
        [3.61257, 2.07299, 2.27245, 1.90713, 0.107169],
    ),
    ("max_pooling1d(x, 3, 2)", (2, 4, 4), [6.45513, 12.9103]),
    ('max_pooling1d(x, 3, 2, "same")', (2, 5, 4), [7.92465, 15.8493]),
    ("max_pooling2d(x, 3, 2)", (2, 3, 3, 3), [14.5374, 29.0747]),
    ('max_pooling3d(x, 2, (2, 1, 2), "same")', (2, 3, 6, 2, 2), [37.0784, 74.1569]),
    ("average_pooling1d(x, 3, 2)", (2, 4, 4), [4.01879, 5.94876]),
    ('average_pooling1d(x, 3, 2, "same")', (2, 5, 4), [5.67862, 8.96726]),
    ("average_pooling2d(x, 3, 2)", (2, 3, 3, 3), [1.54967, 2.66694]),
    ('average_pooling3d(x, 2, (2, 1, 2), "same")', (2, 3, 6, 2, 2), [4.03872, 5.4014]),
]


@pytest.mark.parametrize("sizes", ["known", "unknown"])
@pytest.mark.parametrize("call, shape, sums", LAYERS, ids=[c[0] for c in LAYERS])
def test_layers_give_tensorflows_numbers(call, shape, sums, sizes):
    value = INPUTS[re.search(r"\dd", call)[0][0]]
    dims = [None] * (value.ndim - 1) if sizes == "unknown" else [None, *value.shape[1:-1]]
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [*dims, value.shape[-1]])
        y = eval(f"tf.layers.{call}", {"tf": tf, "x": x, "K": K, "S": S})
        wanted = [x, *tf.trainable_variables()]
        gradients = tf.gradients(tf.reduce_sum(y * y), wanted)
        session.run(tf.global_variables_initializer())
        found = session.run([y, *gradients], {x: value})
    assert found[0].shape == shape
    assert (
        y.shape.as_list()[1:]
        == [
            None if sizes == "unknown" and 0 < i < len(shape) - 1 else n
            for i, n in enumerate(shape)
        ][1:]
    )
    np.testing.assert_allclose([np.abs(v).sum() for v in found], sums, rtol=1e-4)


@pytest.mark.parametrize("name, rank", [("conv2d_transpose", 4), ("separable_conv1d", 3)])
def test_channels_first_is_the_same_with_axes_moved(name, rank):
    value = INPUTS[str(rank - 2)]
    with tf.Graph().as_default(), tf.Session() as session:
        layer = getattr(tf.layers, name)
        last = layer(tf.constant(value), 5, 3, 2, name="a")
        moved = tf.constant(np.moveaxis(value, -1, 1))
        first = layer(moved, 5, 3, 2, data_format="channels_first", name="a", reuse=True)
        session.run(tf.global_variables_initializer())
        a, b = session.run([last, first])
    np.testing.assert_allclose(a, np.moveaxis(b, 1, -1), rtol=1e-5, atol=1e-6)


def test_what_a_layer_needs_to_know():
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 4, 4, None])
        with pytest.raises(ShapeError, match="known channels"):
            tf.layers.conv2d_transpose(x, 2, 3)
        with pytest.raises(ArgumentError, match="channels_last or channels_first"):
            tf.layers.separable_conv2d(tf.zeros([1, 4, 4, 2]), 2, 3, data_format="NHWC")


def test_a_layer_is_a_keras_layer_with_a_configuration():
    with tf.Graph().as_default():
        layer = tf.layers.Dense(3, tf.nn.relu, bias_initializer=tf.ones_initializer(), name="out")
        assert isinstance(layer, tf.keras.layers.Dense)
        again = tf.layers.Dense.from_config(layer.get_config())
        assert again.get_config() == layer.get_config()
        x = tf.zeros([2, 5])
        assert (layer(x).op.name, layer(x).op.name) == ("out/Relu", "out_1/Relu")
        assert [v.name for v in layer.variables] == ["out/kernel:0", "out/bias:0"]
        again(x)
        assert [v.name for v in again.variables] == ["out_1/kernel:0", "out_1/bias:0"]


def test_a_layer_whose_inputs_were_refused_is_not_built():
    with tf.Graph().as_default():
        layer = tf.layers.Dense(3)
        with pytest.raises(ShapeError, match="known last dimension"):
            layer(tf.placeholder(tf.float32, [None, None]))
        assert layer(tf.zeros([2, 5])).shape.as_list() == [2, 3]


def test_layers_as_objects_train_only_where_a_call_says_so():
    x = np.arange(256, dtype=np.float32).reshape(2, 8, 8, 2) / 256
    with tf.Graph().as_default(), tf.Session() as session:
        conv = tf.layers.Conv2D(3, 3, kernel_initializer=tf.ones_initializer(), name="c")
        norm, drop = tf.layers.BatchNormalization(name="bn"), tf.layers.Dropout(0.5, seed=1)
        y = tf.layers.MaxPooling2D(2, 2)(norm(conv(x), training=True))
        y = tf.layers.Flatten()(drop(y))
        updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        session.run(tf.global_variables_initializer())
        flat, dropped, plain = session.run([y, drop(y, training=True), norm(conv(x))])
        assert [v.name for v in conv.trainable_weights] == ["c/kernel:0", "c/bias:0"]
        assert len(updates) == 2 and flat.shape == (2, 27)
        # TensorFlow's numbers
        np.testing.assert_allclose(
            flat[0, ::3][:4], [-1.3061, -1.2487, -1.1913, -0.8468], atol=1e-4
        )
        zero = dropped == 0
        assert 5 < zero.sum() < 49 and np.allclose(dropped[~zero], 2 * flat[~zero])
        np.testing.assert_allclose(plain, session.run(conv(x)) / np.sqrt(1.001), rtol=1e-5)
