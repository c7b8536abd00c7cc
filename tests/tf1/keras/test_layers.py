"""Every layer against its formula, in one program; configurations; Keras' order of weights."""

import json

import numpy as np
import pytest

import weft.tf1 as tf
from tests.tf1.keras import golden
from weft.errors import ArgumentError, ShapeError, StateError
from weft.tf1 import keras
from weft.tf1.keras import layers as L
from weft.tf1.keras.storage.network_config import LAYERS
from weft.tf1.version import Behavior

RNG = np.random.default_rng(0)


def drawn(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def softmax(x):
    return np.exp(x) / np.exp(x).sum(-1, keepdims=True)


def normalized(x, axes, epsilon=1e-3):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


def convolved(x, w, step=1):
    return np.einsum("nijabc,abco->nijo", golden.patches(x, w.shape[:2], step), w)


def pooled(x, how, window=2):
    return how(golden.patches(x, (window, window), window), axis=(3, 4))


def depthwise(x, w):
    found = np.einsum("nijabc,abcm->nijcm", golden.patches(x, w.shape[:2], 1), w)
    return found.reshape(*found.shape[:3], -1)


def transposed(x, w):
    """Stride 2, windows of 2: each position becomes a separate square."""
    found = np.einsum("nijc,aboc->niajbo", x, w)
    n, i, a, j, b, o = found.shape
    return found.reshape(n, i * a, j * b, o)


SEQUENCES, IMAGES, ROWS = drawn(3, 5, 2), drawn(2, 6, 6, 3), drawn(4, 5)
VOLUMES = drawn(2, 4, 4, 2, 2)

CASES = {
    # layer: (its inputs, the formula of inputs and weights)
    L.Dense(3, activation="relu"): (ROWS, lambda x, w, b: np.maximum(x @ w + b, 0)),
    L.Activation("softplus"): (ROWS, lambda x: np.log1p(np.exp(x))),
    L.ActivityRegularization(0.1): (ROWS, lambda x: x),
    L.Lambda(lambda x: x * 2.0): (ROWS, lambda x: 2 * x),
    L.Masking(): (SEQUENCES, lambda x: x),
    L.Flatten(): (IMAGES, lambda x: x.reshape(2, -1)),
    L.Reshape((9, -1)): (IMAGES, lambda x: x.reshape(2, 9, 12)),
    L.Permute((3, 1, 2)): (IMAGES, lambda x: x.transpose(0, 3, 1, 2)),
    L.RepeatVector(2): (ROWS, lambda x: np.stack([x, x], 1)),
    L.Embedding(5, 3): (np.array([[1, 4], [0, 1]]), lambda x, w: w[x]),
    L.Conv1D(4, 2, padding="causal"): (
        SEQUENCES,
        lambda x, w, b: np.stack(
            [sum((x[:, t - 1 + k] @ w[k] for k in (0, 1) if t - 1 + k >= 0), b) for t in range(5)],
            1,
        ),
    ),
    L.Conv2D(4, 3, strides=2): (IMAGES, lambda x, w, b: convolved(x, w, 2) + b),
    L.Conv3D(3, (1, 1, 1)): (VOLUMES, lambda x, w, b: x @ w[0, 0, 0] + b),
    L.Conv2DTranspose(4, 2, strides=2): (IMAGES, lambda x, w, b: transposed(x, w) + b),
    L.Conv3DTranspose(3, 1): (VOLUMES, lambda x, w, b: x @ w[0, 0, 0].T + b),
    L.DepthwiseConv2D(3, depth_multiplier=2): (IMAGES, lambda x, w, b: depthwise(x, w) + b),
    L.SeparableConv2D(4, 3): (
        IMAGES, lambda x, d, p, b: depthwise(x, d) @ p[0, 0] + b,
    ),
    L.SeparableConv1D(4, 1): (SEQUENCES, lambda x, d, p, b: x * d[0, :, 0] @ p[0] + b),
    L.MaxPooling1D(5): (SEQUENCES, lambda x: x.max(1, keepdims=True)),
    L.MaxPooling2D(): (IMAGES, lambda x: pooled(x, np.max)),
    L.MaxPooling3D((4, 4, 2)): (VOLUMES, lambda x: x.max((1, 2, 3), keepdims=True)),
    L.AveragePooling1D(5): (SEQUENCES, lambda x: x.mean(1, keepdims=True)),
    L.AveragePooling2D(3): (IMAGES, lambda x: pooled(x, np.mean, 3)),
    L.AveragePooling3D((4, 4, 2)): (VOLUMES, lambda x: x.mean((1, 2, 3), keepdims=True)),
    L.GlobalMaxPooling1D(): (SEQUENCES, lambda x: x.max(1)),
    L.GlobalMaxPooling2D(): (IMAGES, lambda x: x.max((1, 2))),
    L.GlobalMaxPooling3D(): (VOLUMES, lambda x: x.max((1, 2, 3))),
    L.GlobalAveragePooling1D(): (SEQUENCES, lambda x: x.mean(1)),
    L.GlobalAveragePooling2D(): (IMAGES, lambda x: x.mean((1, 2))),
    L.GlobalAveragePooling3D(): (VOLUMES, lambda x: x.mean((1, 2, 3))),
    L.ZeroPadding1D(2): (SEQUENCES, lambda x: np.pad(x, ((0, 0), (2, 2), (0, 0)))),
    L.ZeroPadding2D(((1, 0), (0, 2))): (
        IMAGES, lambda x: np.pad(x, ((0, 0), (1, 0), (0, 2), (0, 0))),
    ),
    L.ZeroPadding3D(1): (VOLUMES, lambda x: np.pad(x, ((0, 0), *[(1, 1)] * 3, (0, 0)))),
    L.Cropping1D((1, 2)): (SEQUENCES, lambda x: x[:, 1:-2]),
    L.Cropping2D(((1, 0), (0, 2))): (IMAGES, lambda x: x[:, 1:, :-2]),
    L.Cropping3D((1, 1, 0)): (VOLUMES, lambda x: x[:, 1:-1, 1:-1]),
    L.UpSampling1D(2): (SEQUENCES, lambda x: x.repeat(2, 1)),
    L.UpSampling2D((2, 3)): (IMAGES, lambda x: x.repeat(2, 1).repeat(3, 2)),
    L.UpSampling3D(2): (VOLUMES, lambda x: x.repeat(2, 1).repeat(2, 2).repeat(2, 3)),
    L.BatchNormalization(): (
        IMAGES, lambda x, g, b, m, v: (x - m) / np.sqrt(np.abs(v) + 1e-3) * g + b,
    ),
    L.LayerNormalization(axis=[1, 2]): (
        SEQUENCES, lambda x, g, b: normalized(x, (1, 2)) * g + b,
    ),
    L.SimpleRNN(4): (
        SEQUENCES[:, :2], lambda x, w, u, b: np.tanh(
            x[:, 1] @ w + np.tanh(x[:, 0] @ w + b) @ u + b
        ),
    ),
    L.GRU(4): (SEQUENCES, lambda x, w, u, b: golden.gru(x, w, u, b)[:, -1]),
    L.LSTM(4, return_sequences=True): (SEQUENCES, golden.lstm),
    L.LSTM(4, recurrent_activation="sigmoid", go_backwards=True): (
        SEQUENCES, lambda x, w, u, b: golden.lstm(x[:, ::-1], w, u, b, golden.sigmoid)[:, -1],
    ),
    L.RNN([L.LSTMCell(3), L.GRUCell(4)]): (
        SEQUENCES, lambda x, *w: golden.gru(golden.lstm(x, *w[:3]), *w[3:])[:, -1],
    ),
    L.Bidirectional(L.GRU(4, return_sequences=True)): (
        SEQUENCES, lambda x, *w: np.concatenate(
            [golden.gru(x, *w[:3]), golden.gru(x[:, ::-1], *w[3:])[:, ::-1]], -1
        ),
    ),
    L.TimeDistributed(L.Dense(3)): (SEQUENCES, lambda x, w, b: x @ w + b),
    L.LeakyReLU(): (ROWS, lambda x: np.where(x > 0, x, 0.3 * x)),
    L.PReLU(): (ROWS, lambda x, a: np.where(x > 0, x, a * x)),
    L.ELU(0.5): (ROWS, lambda x: np.where(x > 0, x, 0.5 * np.expm1(x))),
    L.ThresholdedReLU(0.5): (ROWS, lambda x: x * (x > 0.5)),
    L.Softmax(): (ROWS, softmax),
    L.ReLU(1.0, 0.1): (ROWS, lambda x: np.minimum(np.where(x > 0, x, 0.1 * x), 1)),
    **{layer: (IMAGES, lambda x: x) for layer in (
        L.Dropout(0.5), L.SpatialDropout2D(0.5), L.GaussianNoise(1.0), L.GaussianDropout(0.5),
        L.AlphaDropout(0.5),
    )},
    L.SpatialDropout1D(0.5): (SEQUENCES, lambda x: x),
    L.SpatialDropout3D(0.5): (VOLUMES, lambda x: x),
}  # fmt: skip

PAIRS = {
    L.Add(): lambda a, b: a + b,
    L.Subtract(): lambda a, b: a - b,
    L.Multiply(): lambda a, b: a * b,
    L.Average(): lambda a, b: (a + b) / 2,
    L.Maximum(): np.maximum,
    L.Minimum(): np.minimum,
    L.Concatenate(1): lambda a, b: np.concatenate([a, b], 1),
    L.Dot(2): lambda a, b: a @ b.transpose(0, 2, 1),
}
OTHERS = {"Model", "Sequential", "Layer", "InputLayer", "Merge", "Convolution", "Pooling",
          "ConvolutionTranspose", "GlobalPooling", "ZeroPadding", "Cropping", "UpSampling", "Cell",
          "Wrapper", "SimpleRNNCell", "StackedRNNCells", "WeightedLayer", "Storage",
          "AbstractRNNCell", "LSTMCell", "GRUCell", "TensorFlowOpLayer"}  # fmt: skip


def test_every_layer_is_here():
    known = {type(layer).__name__ for layer in (*CASES, *PAIRS)}
    assert known | OTHERS == set(LAYERS) | OTHERS


def test_layers_are_their_formulas_and_configurations():
    """All layers in one model, so that there is one program; rebuilt from its JSON."""
    inputs, outputs, expected, weights = [], [], [], []
    for layer, (x, formula) in CASES.items():
        own = type(layer).from_config(json.loads(json.dumps(layer.get_config()))) if not isinstance(
            layer, L.Lambda) else L.Lambda(lambda x: x * 2.0)  # fmt: skip
        inputs.append(keras.Input(x.shape[1:], dtype=str(x.dtype)))
        outputs.append(own(inputs[-1]))
        values = [drawn(*v.shape.as_list()) for v in own.weights]
        values = [np.abs(v) if "variance" in w.name else v
                  for v, w in zip(values, own.weights, strict=True)]  # fmt: skip
        own.set_weights(values)
        weights += values
        expected.append(formula(x, *values))
    for layer, formula in PAIRS.items():
        own = type(layer).from_config(layer.get_config())
        inputs += [keras.Input(SEQUENCES.shape[1:]), keras.Input(SEQUENCES.shape[1:])]
        outputs.append(own(inputs[-2:]))
        expected.append(formula(SEQUENCES, SEQUENCES[::-1]))
    model = keras.Model(inputs, outputs)
    data = [x for x, _ in CASES.values()] + [SEQUENCES, SEQUENCES[::-1]] * len(PAIRS)
    found = model.predict_on_batch(data)
    for layer, y, z in zip((*CASES, *PAIRS), found, expected, strict=True):
        np.testing.assert_allclose(y, z, rtol=1e-4, atol=1e-5, err_msg=type(layer).__name__)
    again = keras.models.model_from_json(model.to_json(), {"<lambda>": lambda x: x * 2.0})
    assert [v.shape.as_list() for v in again.weights] == [v.shape.as_list() for v in model.weights]
    known = [y.shape.as_list()[1:] for y in again.outputs]
    assert known == [list(y.shape[1:]) for y in found]


def test_masks():
    """Steps that do not count change neither states, means nor losses."""
    words = np.array([[1, 2, 0, 0], [3, 4, 1, 0]])
    x = keras.Input((None,), dtype="int32")
    embedded = L.Embedding(5, 3, mask_zero=True)(x)
    states = L.LSTM(4, return_sequences=True)
    sequence = states(embedded)
    model = keras.Model(x, [sequence, L.GlobalAveragePooling1D()(embedded), L.Dense(1)(sequence)])
    table, w, u, b, *_ = model.get_weights()
    found, means, scores = model.predict(words)
    np.testing.assert_allclose(
        found, golden.lstm(table[words], w, u, b, mask=words > 0), rtol=1e-4, atol=1e-6
    )
    np.testing.assert_allclose(means[0], table[[1, 2]].mean(0), rtol=1e-5)
    model.compile("sgd", [None, None, "mse"])
    loss = model.test_on_batch(words, [np.zeros((2, 4, 1))])
    kept = (scores[..., 0] ** 2) * (words > 0)
    assert np.atleast_1d(loss)[0] == pytest.approx(kept.mean(), rel=1e-5)


def test_training_normalizes_by_the_batch_and_moves_the_averages():
    model = keras.Sequential([L.BatchNormalization(momentum=0.9, input_shape=(6, 6, 3))])
    model.compile(keras.optimizers.SGD(0.0), "mse")
    loss = model.train_on_batch(IMAGES, np.zeros_like(IMAGES))
    assert loss == pytest.approx((normalized(IMAGES, (0, 1, 2)) ** 2).mean(), rel=1e-4)
    mean, variance = model.get_weights()[2:]
    np.testing.assert_allclose(mean, 0.1 * IMAGES.mean((0, 1, 2)), rtol=1e-4, atol=1e-6)
    sample = IMAGES.reshape(-1, 3).var(0, ddof=1)
    np.testing.assert_allclose(variance, 0.9 + 0.1 * sample, rtol=1e-4)


@pytest.mark.parametrize("layer", [L.Dropout(0.4), L.GaussianNoise(0.5), L.GaussianDropout(0.4),
                                   L.SpatialDropout1D(0.4), L.AlphaDropout(0.4)])  # fmt: skip
def test_noise_is_of_training_alone(layer):
    x = keras.Input((50, 20))
    y = type(layer).from_config(layer.get_config())(x)
    noisy = keras.backend.function([x, keras.backend.learning_phase()], [y])
    data = np.ones((10, 50, 20), np.float32)
    assert np.array_equal(noisy([data, 0])[0], data)
    found = noisy([data, 1])[0]
    assert not np.array_equal(found, data) and not np.array_equal(found, noisy([data, 1])[0])
    if not isinstance(layer, L.AlphaDropout):
        assert found.mean() == pytest.approx(1, abs=0.1)
    if isinstance(layer, L.SpatialDropout1D):
        assert (found == found[:, :1]).all()


def test_states_continue_from_batch_to_batch():
    layer = L.GRU(3, stateful=True, return_state=True)
    x = keras.Input(batch_shape=(2, 2, 1))
    model = keras.Model(x, layer(x))
    data = drawn(2, 4, 1)
    first, second = (model.predict(data[:, i : i + 2], batch_size=2)[0] for i in (0, 2))
    whole = golden.gru(data, *layer.get_weights())
    np.testing.assert_allclose(np.stack([first, second], 1), whole[:, [1, 3]], rtol=1e-4, atol=1e-6)
    layer.reset_states()
    np.testing.assert_array_equal(model.predict(data[:, :2], batch_size=2)[0], first)


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda x: L.Conv2D(3, 2)(x), ShapeError,
         r"conv2d: expected an input of rank 4, got shape \(None, 5, 2\)"),
        (lambda x: L.Dense(2)(L.Reshape((3, 3))(x)), ShapeError,
         r"reshape: expected inputs whose rows fit \(3, 3\), got \(None, 5, 2\)"),
        (lambda x: L.Add()([x, L.RepeatVector(4)(L.Flatten()(x))]), ShapeError,
         r"add: expected inputs of one shape, got \(None, 5, 2\) and \(None, 4, 10\)"),
        (lambda x: L.LSTM(3, stateful=True)(x), ShapeError, "expected a batch size"),
        (lambda x: L.GRU(3, reset_states=True), ArgumentError, r"got \['reset_states'\]"),
        (lambda x: L.Dropout(1.5), ArgumentError, "Dropout: expected a rate from 0 to 1, got 1.5"),
        (lambda x: L.LSTM(2)(x, initial_state=[x[:, 0]]), ArgumentError, "expected 2 states"),
        (lambda x: L.Dense(3).count_params(), StateError, "dense to be built"),
        (lambda x: keras.Model(x, tf.constant(1.0) + 1), ArgumentError, "follows from the inputs"),
        (lambda x: L.Flatten()(tf.nn.dropout(x, 0.5)), StateError, "without effects and random"),
        (lambda x: keras.Model(keras.Input((2,)), L.Dense(1)(x)), ArgumentError,
         "they need .input_1."),
    ],
)  # fmt: skip
def test_errors(act, error, text):
    with pytest.raises(error, match=text):
        act(keras.Input((5, 2)))


@pytest.mark.parametrize(
    "layer",
    [
        lambda p: tf.keras.layers.Conv2D(2, 3, padding=p),
        lambda p: tf.keras.layers.DepthwiseConv2D(3, padding=p),
        lambda p: tf.keras.layers.SeparableConv2D(2, 3, padding=p),
    ],
)
def test_images_are_padded_by_pairs_of_sizes(layer):
    x = tf.keras.Input([4, 5, 2])
    conv = layer([[0, 0], [1, 2], [0, 1], [0, 0]])
    model = tf.keras.Model(x, conv(x))
    data = np.random.default_rng(0).random((2, 4, 5, 2), np.float32)
    same = type(conv).from_config(conv.get_config() | {"padding": "valid", "name": "same"})
    beside = tf.keras.Model(padded := tf.keras.Input([7, 6, 2]), same(padded))
    same.set_weights(conv.get_weights())
    rows = np.pad(data, [(0, 0), (1, 2), (0, 1), (0, 0)])
    np.testing.assert_allclose(model.predict(data), beside.predict(rows), rtol=1e-5)


def test_inputs_get_the_type_of_the_layer_in_tensorflow_2(monkeypatch):
    monkeypatch.setattr(Behavior, "is_2", True)
    seen = []

    class Seen(tf.keras.layers.Layer):
        def call(self, inputs):
            seen.append([x.dtype.name for x in inputs])
            return inputs[0]

    pair = [tf.constant([[1.0]], tf.float64), tf.constant([[1]])]
    Seen()(pair), Seen(autocast=False)(pair), Seen(dtype="float64")(pair)
    assert seen == [["float32", "int32"], ["float64", "int32"], ["float64", "int32"]]


def test_arguments_by_position_and_networks_inside_of_layers():
    class Noisy(L.Layer):
        def call(self, inputs, training=None, **options):
            return inputs + (1.0 if training else 0.0)

    class Outer(L.Layer):
        def __init__(self):
            super().__init__()
            self.inner = keras.Sequential([Nested(), L.Dense(1)])

        def call(self, inputs, training=None):
            return self.inner(inputs, training=training)

    class Nested(L.Layer):
        def __init__(self):
            super().__init__()
            self.drop = L.Dropout(0.5)

        def call(self, inputs, training=None):
            return self.drop(inputs, training=training)

    with tf.Graph().as_default(), tf.Session() as session:
        y = Noisy()(tf.zeros([1]), True)
        z = Outer()(tf.constant(ROWS), training=False)
        session.run(tf.global_variables_initializer())
        assert session.run(y).tolist() == [1.0] and session.run(z).shape == (len(ROWS), 1)


def test_cells_give_outputs_of_any_type_from_a_first_state_by_position():
    class Best(L.AbstractRNNCell):
        state_size, output_size = 2, 2

        def call(self, inputs, states):
            scores = states[0][:, :, None] + tf.constant([[0.0, 1.0], [2.0, 0.0]])
            return tf.argmax(scores, 1, output_type=tf.int32), inputs + tf.reduce_max(scores, 1)

    with tf.Graph().as_default(), tf.Session() as session:
        layer = L.RNN(Best(), return_sequences=True, return_state=True)
        mask = tf.constant([[True, True], [True, False]])
        found = layer(tf.ones([2, 2, 2]), tf.constant([[0.0, 0.0], [0.0, 9.0]]), mask=mask)
        back, last = session.run(found)
    assert back.dtype == np.int32 and back.tolist() == [[[1, 0], [1, 0]], [[1, 1], [1, 1]]]
    assert last.tolist() == [[5.0, 5.0], [12.0, 10.0]]
