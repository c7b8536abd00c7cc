"""Programs of Keras' guides: several inputs and outputs, subclasses, data sources, callbacks."""

import json
import sys

import numpy as np
import pytest

import weft.tf1 as tf
from weft.errors import ArgumentError, DataError, StateError
from weft.tf1 import keras
from weft.tf1.keras import backend as K
from weft.tf1.keras import layers as L

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 3)).astype(np.float32)
Y = (X.sum(1, keepdims=True) > 0).astype(np.float32)


def tickets():
    """Two inputs, a shared layer, a model inside, two outputs."""
    words, tags = keras.Input((4,), name="words"), keras.Input((3,), name="tags")
    shared = L.Dense(3, activation="relu", name="shared")
    inner = keras.Sequential([L.Dense(2, input_shape=(3,)), L.Activation("tanh")], name="inner")
    x = L.concatenate([shared(L.Dense(3)(words)), shared(tags), inner(tags)])
    outputs = [L.Dense(1, name="urgent")(x), L.Dense(2, activation="softmax", name="group")(x)]
    return keras.Model([words, tags], outputs, name="tickets")


DATA = {"words": RNG.standard_normal((20, 4)).astype(np.float32), "tags": X[:20]}
TARGETS = {"urgent": Y[:20], "group": RNG.integers(0, 2, 20)}


def test_several_inputs_and_outputs(tmp_path, capsys):
    model = tickets()
    losses = {"urgent": "mse", "group": "sparse_categorical_crossentropy"}
    model.compile("adam", losses, {"group": "acc", "urgent": ["mae"]}, loss_weights=[1.0, 0.25])
    history = model.fit(DATA, TARGETS, epochs=2, batch_size=8, verbose=0).history
    names = ["loss", "urgent_loss", "group_loss", "urgent_mean_absolute_error", "group_acc"]
    assert list(history) == names == model.metrics_names
    found = model.evaluate(list(DATA.values()), list(TARGETS.values()), verbose=0)
    assert found[0] == pytest.approx(found[1] + 0.25 * found[2], rel=1e-5)
    a, b = model.predict(DATA)
    assert found[1] == pytest.approx(((a - TARGETS["urgent"]) ** 2).mean(), rel=1e-5)
    assert found[4] == pytest.approx((b.argmax(1) == TARGETS["group"]).mean(), rel=1e-5)
    again = keras.models.model_from_json(model.to_json())
    assert [x.name for x in again.layers] == [x.name for x in model.layers]
    path = tmp_path / "weights"
    model.save_weights(path)
    again.load_weights(path)
    for y, z in zip(again.predict(DATA), (a, b), strict=True):
        np.testing.assert_allclose(y, z, rtol=1e-5)
    assert {n for n, _ in tf.train.list_variables(str(path))} >= {
        "layer_with_weights-0/kernel/.ATTRIBUTES/VARIABLE_VALUE"
    }
    with pytest.raises(StateError, match=r"(?s)missing: .*unexpected: .*mismatched: .*kernel: exp"):
        keras.Sequential(
            [L.Dense(9, input_shape=(2,)), L.BatchNormalization()]
        ).load_weights(path)  # fmt: skip
    with pytest.raises(DataError, match="expected a checkpoint at"):
        model.load_weights(tmp_path / "none")
    model.summary()
    text = capsys.readouterr().out
    assert 'Model: "tickets"' in text and "Total params: 62" in text and "words[0][0]" in text


class Own(keras.Model):
    """A custom model with a loss and a metric beside those of compile."""

    def __init__(self):
        super().__init__()
        self.first, self.parts = L.Dense(4, activation="relu"), [L.Dropout(0.5), L.Dense(1)]

    def call(self, x, training=None):
        h = self.first(x)
        self.add_loss(0.5 * tf.reduce_mean(tf.square(h)))
        self.add_metric(tf.reduce_max(h), name="greatest", aggregation="mean")
        for layer in self.parts:
            h = layer(h, **({"training": training} if isinstance(layer, L.Dropout) else {}))
        return h


def test_a_subclass():
    model = Own()
    with pytest.raises(StateError, match="expected data first"):
        model.compile("sgd", "mse") or model.steps
    history = model.fit(X, Y, epochs=1, verbose=0).history
    assert list(history) == ["loss", "greatest"] and len(model.weights) == 4
    w, b = model.first.get_weights()
    h = np.maximum(X @ w + b, 0)
    loss, greatest = model.evaluate(X, Y, batch_size=40, verbose=0)
    outputs = model.predict(X)
    assert loss == pytest.approx(((outputs - Y) ** 2).mean() + 0.5 * (h**2).mean(), rel=1e-4)
    assert greatest == pytest.approx(h.max(), rel=1e-5)
    model.first.trainable = False
    model.compile("sgd", "mse")
    model.train_on_batch(X, Y)
    np.testing.assert_array_equal(model.first.get_weights()[0], w)


def test_adversaries():
    """What is trainable when a model is compiled is trained, also inside of another model."""
    critic = keras.Sequential(
        [L.Dense(4, input_shape=(3,)), L.BatchNormalization(), L.Dense(1, activation="sigmoid")]
    )
    critic.compile("sgd", "binary_crossentropy")
    critic.trainable = False
    forger = keras.Sequential([L.Dense(3, input_shape=(2,))])
    z = keras.Input((2,))
    both = keras.Model(z, critic(forger(z)))
    both.compile("sgd", "binary_crossentropy")
    for model, data, changed, kept in (
        (both, X[:, :2], forger, critic), (critic, X, critic, forger),
    ):  # fmt: skip
        before, same = changed.get_weights(), kept.get_weights()
        model.train_on_batch(data, Y)
        assert not any(map(np.array_equal, changed.get_weights(), before))
        assert all(map(np.array_equal, kept.get_weights(), same))


def test_an_autoencoder_whose_loss_is_of_tensors():
    x = keras.Input((3,))
    mean, spread = L.Dense(2)(x), L.Dense(2)(x)
    z = L.Lambda(lambda p: p[0] + K.exp(p[1]) * K.random_normal(K.shape(p[0])))([mean, spread])
    model = keras.Model(x, keras.Sequential([L.Dense(3, input_shape=(2,))])(z))
    model.add_loss(K.mean(K.square(mean) + K.square(spread)))
    model.compile("sgd")
    loss = model.evaluate(X, verbose=0, batch_size=40)
    found = K.function([x], [mean, spread])([X])
    assert loss == pytest.approx(sum((f**2).mean() for f in found), rel=1e-4)
    assert np.isfinite(model.fit(X, epochs=1, verbose=0).history["loss"][0])


class Numbered(keras.utils.Sequence):
    passes = 0

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return X[index * 10 : index * 10 + 10], Y[index * 10 : index * 10 + 10]

    def on_epoch_end(self):
        type(self).passes += 1


def forever():
    while True:
        yield from (Numbered()[i] for i in range(4))


@pytest.fixture
def line():
    model = keras.Sequential([L.Dense(1, input_shape=(3,), kernel_initializer="zeros")])
    model.compile(keras.optimizers.SGD(0.05), "mse")
    return model


def test_data_of_all_kinds_trains_the_same(line):
    first = line.get_weights()
    dataset = tf.data.Dataset.from_tensor_slices((X, Y)).batch(10)
    found = []
    for data, options in [
        ((X, Y), {"batch_size": 10}), (([X], [Y]), {"batch_size": 10}),
        ((X.tolist(), Y.tolist()), {"batch_size": 10}), ((dataset,), {}),
        ((dataset.repeat(),), {"steps_per_epoch": 4}), ((forever(),), {"steps_per_epoch": 4}),
        ((Numbered(),), {"workers": 4}),
    ]:  # fmt: skip
        line.set_weights(first)
        history = line.fit(*data, epochs=2, shuffle=False, verbose=0, **options)
        found.append([*history.history["loss"], *line.get_weights()[0].ravel()])
    np.testing.assert_allclose(found, [found[0]] * len(found), rtol=1e-5)
    assert Numbered.passes == 2
    np.testing.assert_allclose(line.predict(Numbered()), line.predict(X), rtol=1e-5)


def test_weights_of_classes_are_weights_of_rows(line):
    first, weights = line.get_weights(), np.where(Y[:, 0] == 1, 3.0, 0.5)
    found = []
    for options in ({"class_weight": {0: 0.5, 1: 3.0}}, {"sample_weight": weights}):
        line.set_weights(first)
        loss = line.fit(X, Y, batch_size=40, verbose=0, **options).history["loss"][0]
        found.append([loss, *line.get_weights()[0].ravel()])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5)
    assert found[0][0] == pytest.approx((weights * Y[:, 0] ** 2).mean(), rel=1e-5)


def test_callbacks(line, tmp_path):
    seen, c = [], keras.callbacks
    rates = c.LearningRateScheduler(lambda epoch, rate: 0.02 if epoch < 2 else 0.0)
    table = tmp_path / "log.csv"
    told = c.LambdaCallback(
        on_epoch_end=lambda epoch, logs: seen.append(sorted(logs)),
        on_batch_end=lambda batch, logs: seen.append(logs["size"]) if not seen else None,
    )
    history = line.fit(
        X, Y, batch_size=10, epochs=9, validation_split=0.25, verbose=0,
        callbacks=[
            rates, c.EarlyStopping(patience=2, min_delta=1e-9, restore_best_weights=True), told,
            c.ModelCheckpoint(str(tmp_path / "best"), save_best_only=True), c.CSVLogger(table),
            c.TerminateOnNaN(), c.TensorBoard(tmp_path / "logs"),
        ],
    )  # fmt: skip
    assert history.epoch == [0, 1, 2, 3] and seen[0] == 10 and seen[1] == ["loss", "lr", "val_loss"]
    np.testing.assert_allclose(history.history["lr"], [0.02, 0.02, 0, 0])
    assert table.read_text().splitlines()[0] == "epoch,loss,lr,val_loss"
    weights = line.get_weights()
    line.set_weights([w + 1 for w in weights])
    line.load_weights(tmp_path / "best")
    for v, w in zip(line.get_weights(), weights, strict=True):
        np.testing.assert_array_equal(v, w)
    (events,) = (tmp_path / "logs" / "train").iterdir()
    written = list(tf.train.summary_iterator(str(events)))
    assert [e.step for e in written if e.summary and e.summary.value][-1] == 3


def test_a_plateau_lowers_the_rate(line):
    plateau = keras.callbacks.ReduceLROnPlateau("loss", 0.5, patience=1, min_delta=100.0)
    history = line.fit(X, Y, epochs=4, verbose=0, callbacks=[plateau])
    np.testing.assert_allclose(history.history["lr"], [0.05, 0.05, 0.025, 0.0125])
    with pytest.warns(UserWarning, match="expected the metric 'val_acc', there are loss"):
        line.fit(X, Y, verbose=0, callbacks=[keras.callbacks.EarlyStopping("val_acc")])


def test_a_configuration_runs_no_code():
    model = keras.Sequential([L.Lambda(lambda x: x * 3.0, input_shape=(2,))])
    with pytest.raises(KeyError, match="function of a Lambda layer: expected one of"):
        keras.models.model_from_json(model.to_json())
    known = {"<lambda>": lambda x: x * 3.0}
    again = keras.models.model_from_json(model.to_json(), known)
    np.testing.assert_array_equal(again.predict(np.ones((1, 2))), [[3, 3]])
    assert json.loads(model.to_json())["class_name"] == "Sequential"


def test_files_of_whole_models(line, tmp_path, monkeypatch):
    line.compile(keras.optimizers.Adam(0.01), keras.losses.Huber(0.5), metrics=["mae"])
    line.fit(X, Y, epochs=2, verbose=0)
    path = tmp_path / "model.h5"
    line.save(path)
    again = keras.models.load_model(path)
    both = [line.train_on_batch(X, Y), again.train_on_batch(X, Y)]
    np.testing.assert_allclose(*both, rtol=1e-5)
    for v, w in zip(line.optimizer.get_weights(), again.optimizer.get_weights(), strict=True):
        np.testing.assert_allclose(v, w, rtol=1e-4, atol=1e-7)
    again.load_weights(path)  # a whole model's file has weights, too
    wide = keras.Sequential([L.Dense(2, input_shape=(3,))])
    with pytest.raises(StateError, match=r"kernel:0: expected \(3, 2\), got \(3, 1\)"):
        wide.load_weights(path)
    with pytest.raises(ArgumentError, match="expected no file at"):
        line.save(path, overwrite=False)
    line.save(tmp_path / "model")
    kept = keras.models.load_model(tmp_path / "model")
    np.testing.assert_array_equal(kept.predict(X), line.predict(X))
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ArgumentError, match="expected the package h5py"):
        line.save_weights(tmp_path / "w.h5")


def test_shapes_and_calls():
    layer = L.Conv2D(4, 3, strides=2, padding="same")
    assert layer.compute_output_shape((None, 9, 8, 3)).as_list() == [None, 5, 4, 4]
    x, y = keras.Input((8, 8, 1)), keras.Input((6, 6, 1))
    first, second = layer(x), layer(y)
    assert layer.get_output_at(1) is second and layer.get_input_at(0) is x
    with pytest.raises(StateError, match="expected one call of the layer, there were 2"):
        _ = layer.output
    with pytest.raises(StateError, match="expected one call of the layer, there were 2"):
        _ = layer.output_shape  # of two different shapes
    dense = L.Dense(3)
    dense(keras.Input((4,))), dense(keras.Input((4,)))
    assert dense.output_shape == (None, 3) and dense.input_shape == (None, 4)
    model = keras.Model(x, first)
    assert model.output is first and model.output_shape == (None, 4, 4, 4)
    assert keras.models.clone_model(model).count_params() == model.count_params() == 40


def test_words_and_labels():
    tokenizer = keras.preprocessing.text.Tokenizer(num_words=3, oov_token="?")
    tokenizer.fit_on_texts(["a b a", "a, c!"])
    assert tokenizer.texts_to_sequences(["c a"]) == [[1, 2]]
    assert tokenizer.sequences_to_texts([[1, 2], [2, 9]]) == ["? a", "a"]
    assert tokenizer.texts_to_matrix(["a a"], "count").tolist() == [[0, 0, 2]]
    pad = keras.preprocessing.sequence.pad_sequences
    assert pad([[1, 2, 3], [4]], 2, truncating="post", padding="post").tolist() == [[1, 2], [4, 0]]
    assert keras.utils.to_categorical([[1], [0]]).tolist() == [[0, 1], [1, 0]]
    np.testing.assert_allclose(keras.utils.normalize(np.array([[3.0, 4.0]])), [[0.6, 0.8]])


def test_generators_have_arguments_in_their_own_order():
    x = np.arange(24, dtype=np.float32).reshape(12, 2)
    y = x.sum(1, keepdims=True)

    def batches():
        while True:
            yield from ((x[i : i + 4], y[i : i + 4]) for i in range(0, 12, 4))

    model = keras.Sequential([keras.layers.Dense(1, input_shape=(2,))])
    model.compile("sgd", "mse")
    model.set_weights([np.ones((2, 1)), np.zeros(1)])
    history = model.fit_generator(batches(), 3, 2, 0, validation_data=(x, y))
    assert isinstance(history, keras.callbacks.History)
    assert history.epoch == [0, 1] and max(history.history["val_loss"]) < 1e-9
    assert model.evaluate_generator(batches(), 3) < 1e-9
    np.testing.assert_allclose(model.predict_generator(generator=batches(), steps=3), y, rtol=1e-5)


def test_an_optimizer_of_a_program_adds_its_own_updates():
    class Following(keras.optimizers.Optimizer):
        def __init__(self, inner, pairs):
            super().__init__(name="Following")
            self.inner, self.pairs = inner, pairs

        def get_updates(self, params, loss):
            return [*self.inner.get_updates(params=params, loss=loss), *self.pairs]

    model = keras.Sequential([keras.layers.Dense(1, use_bias=False, input_shape=(1,))])
    (w,) = model.weights
    kept = tf.Variable([[0.0]])
    keras.backend.get_session().run([kept.initializer])
    model.compile(Following(keras.optimizers.SGD(0.5), [(kept, w * 2.0)]), "mse")
    model.set_weights([np.ones((1, 1))])
    model.train_on_batch(np.ones((1, 1)), np.zeros((1, 1)))
    assert model.get_weights()[0].item() == 0.0 and keras.backend.get_value(kept).item() in (0.0, 2)


def test_a_loop_of_a_program_tells_callbacks_and_shows_progress(capsys):
    seen = []
    told = keras.callbacks.LambdaCallback(on_epoch_end=lambda n, logs: seen.append((n, logs)))
    history = keras.callbacks.History()
    each = keras.callbacks.CallbackList([told])
    each.append(history)
    each.set_model("model")
    each.on_train_begin()
    each.on_epoch_end(3, logs={"loss": 0.5})
    each.on_batch_begin(1)
    assert seen == [(3, {"loss": 0.5})] and history.history == {"loss": [0.5]}
    assert [c.model for c in each] == ["model", "model"]
    with pytest.raises(AttributeError):
        each.on_nothing()
    bar = keras.utils.Progbar(2, width=4)
    bar.add(1, [("loss", 1.0)])
    bar.add(1, [("loss", 3.0)])
    assert "2/2 [====]" in (out := capsys.readouterr().out) and "loss: 2.0000" in out


def test_states_updates_and_losses_of_a_model():
    x = keras.Input(batch_shape=(2, 3, 1))
    h = keras.layers.BatchNormalization()(keras.layers.SimpleRNN(2, stateful=True)(x))
    y = keras.layers.Dense(1, kernel_regularizer="l2", activity_regularizer="l1")(h)
    model = keras.Model(x, y)
    model.compile("sgd", loss="mse")
    first = model.predict(np.ones((2, 3, 1)), batch_size=2)
    assert not np.array_equal(model.predict(np.ones((2, 3, 1)), batch_size=2), first)
    model.reset_states()
    np.testing.assert_array_equal(model.predict(np.ones((2, 3, 1)), batch_size=2), first)
    assert model.loss == "mse" and not model.get_updates_for(None)
    assert len(model.get_updates_for(x)) == len(model.updates) > 0
    assert len(model.get_losses_for(None)) == 1 and len(model.losses) >= 1
