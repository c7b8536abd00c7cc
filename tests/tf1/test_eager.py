"""Eager execution: a session's values, gradients of tapes, models shared with fit, checkpoints."""

import numpy as np
import pytest

import weft.tf1 as tf
from weft.errors import GraphError, StateError

X = np.arange(12, dtype=np.float32).reshape(3, 4) / 10


@pytest.fixture
def eager():
    tf.reset_default_graph()
    tf.enable_eager_execution()
    yield
    tf.disable_eager_execution()


def test_operations_before_it_are_refused():
    with tf.Graph().as_default():
        tf.constant(1.0)
        with pytest.raises(GraphError, match="make it the first line"):
            tf.enable_eager_execution()


FUNCTIONS = {
    "arithmetic": lambda x: tf.reduce_sum(x * 2.0 - tf.exp(x), axis=1),
    "computed shape": lambda x: tf.reshape(x, [tf.shape(x)[0] * 2, -1]),
    "computed size": lambda x: tf.boolean_mask(x, x > 0.5),
    "texts": lambda x: tf.string_join([tf.as_string(x), "!"]),
    "branch": lambda x: tf.cond(tf.reduce_sum(x) > 3, lambda: x + 1, lambda: x),
    "loop": lambda x: tf.while_loop(lambda i, a: i < 5, lambda i, a: (i + 1, a * 2.0), [0, x])[1],
    "slices": lambda x: tf.scan(lambda a, r: a + r, x, reverse=True),
    "Python": lambda x: tf.py_func(lambda a: a.T, [x], tf.float32),
    "window": lambda x: tf.nn.conv2d(
        tf.reshape(x, [1, 3, 4, 1]), tf.ones([2, 2, 1, 2]), [1, 1, 1, 1], "SAME"
    ),
    "elements": lambda x: tf.data.Dataset.from_tensor_slices(x).map(lambda r: r * 2.0).batch(3),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_are_those_of_a_session(name, eager):
    function = FUNCTIONS[name]
    now = function(tf.constant(X))
    now = next(iter(now)) if isinstance(now, tf.data.Dataset) else now
    with tf.Graph().as_default(), tf.Session() as session:
        later = function(tf.constant(X))
        if isinstance(later, tf.data.Dataset):
            later = later.make_one_shot_iterator().get_next()
        expected = session.run(later)
    assert now.numpy().dtype == expected.dtype
    if now.dtype == tf.string:
        assert now.numpy().tolist() == expected.tolist()
    else:
        np.testing.assert_allclose(now.numpy(), expected, rtol=1e-6)


def test_a_tape_gives_gradients_of_any_order(eager):
    w, unused = tf.Variable(3.0), tf.Variable(1.0)
    with tf.GradientTape(persistent=True) as outer:
        with tf.GradientTape() as inner:
            y = w * w * w
            w.assign(5.0)  # the gradient is that of the value that was used
        (slope, none) = inner.gradient(y, [w, unused])
    assert (float(slope), none, float(w)) == (27.0, None, 5.0)
    assert float(outer.gradient(slope, w)) == 18.0
    zero = outer.gradient(slope, unused, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    assert float(zero) == 0.0
    with pytest.raises(StateError, match="persistent=True"):
        inner.gradient(y, w)
    with tf.GradientTape() as first, tf.GradientTape() as second:
        y = w * w
    assert float(first.gradient(y, w)) == float(second.gradient(y, w)) == 10.0
    x = tf.constant(X)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.boolean_mask(x, x > 0.5) ** 2) * w
    by_x, by_w = tape.gradient(y, [x, w])
    assert by_w is None
    np.testing.assert_allclose(by_x.numpy(), np.where(X > 0.5, 10 * X, 0), rtol=1e-6)


def test_a_tape_pauses(eager):
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        with tape.stop_recording():
            z = y * y
        last = y + z * x
    assert float(tape.gradient(last, x)) == 6.0 + 81.0 and tape.gradient(z, x) is None


def test_a_custom_gradient_is_used(eager):
    @tf.custom_gradient
    def f(a):
        return a * a, lambda g: g * a * 100.0

    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), X * 100, rtol=1e-6)


OPTIMIZERS = {
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "adam": lambda: tf.train.AdamOptimizer(0.1),
    "keras adam": lambda: tf.keras.optimizers.Adam(0.1, decay=0.1),
    "schedule": lambda: tf.keras.optimizers.SGD(
        tf.keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5), momentum=0.5
    ),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_step_as_in_a_session(name, eager):
    def loss(w):
        return tf.reduce_sum(tf.square(tf.matmul(X, w) - 1.0))

    w, optimizer = tf.Variable(np.ones((4, 1), np.float32)), OPTIMIZERS[name]()
    for _ in range(4):
        optimizer.minimize(lambda: loss(w), var_list=[w])
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable(np.ones((4, 1), np.float32))
        step = OPTIMIZERS[name]().minimize(loss(v), var_list=[v])
        session.run(tf.global_variables_initializer())
        for _ in range(4):
            session.run(step)
        np.testing.assert_allclose(w.numpy(), session.run(v), rtol=1e-5)


def test_a_model_is_trained_by_a_tape_and_by_fit(eager):
    keras = tf.keras
    x = np.random.default_rng(0).normal(size=(64, 6)).astype(np.float32)
    y = (x.sum(1) > 0).astype(np.int64)
    model = keras.Sequential(
        [
            keras.layers.Dense(8, "tanh", input_shape=(6,)),
            keras.layers.BatchNormalization(),
            keras.layers.Dropout(0.5),
            keras.layers.Dense(2, kernel_regularizer=keras.regularizers.l2(0.01)),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer, accuracy = keras.optimizers.Adam(0.05), keras.metrics.SparseCategoricalAccuracy()
    kept = len(model.updates)
    for _ in range(20):
        with tf.GradientTape() as tape:
            logits = model(x, training=True)
            value = loss(y, logits) + tf.add_n(model.losses)
        grads = tape.gradient(value, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables, strict=True))
        accuracy.update_state(y, logits)
    assert int(optimizer.iterations) == 20 and 0.5 < float(accuracy.result()) < 1
    assert len(model.updates) == kept and len(tape._tapes) == 0
    means = model.layers[1].moving_mean.numpy()
    assert np.abs(means).max() > 0
    np.testing.assert_allclose(model(x).numpy(), model.predict(x, verbose=0), rtol=1e-5)
    model.compile(optimizer, loss, metrics=["accuracy"])
    model.fit(x, y, batch_size=16, epochs=2, verbose=0)
    assert int(optimizer.iterations) == 28
    assert np.abs(model.layers[1].moving_mean.numpy() - means).max() > 0
    np.testing.assert_allclose(model(x).numpy(), model.predict(x, verbose=0), rtol=1e-5)
    found = np.mean(np.argmax(model(x), 1) == y)
    assert model.evaluate(x, y, verbose=0)[1] == pytest.approx(found)


def test_a_recurrent_subclass_learns(eager):
    class Net(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.embed = tf.keras.layers.Embedding(10, 4, mask_zero=True)
            self.lstm = tf.keras.layers.LSTM(5)
            self.dense = tf.keras.layers.Dense(1)

        @tf.function
        def call(self, inputs):
            return self.dense(self.lstm(self.embed(inputs)))

    net, ids = Net(), np.array([[1, 2, 3], [4, 5, 0]])
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((net(ids) - 1.0) ** 2)
    grads = tape.gradient(loss, net.trainable_variables)
    assert [g.shape for g in grads] == [v.shape for v in net.trainable_variables]
    tf.keras.optimizers.SGD(0.1).apply_gradients(zip(grads, net.trainable_variables, strict=True))
    assert float(tf.reduce_mean((net(ids) - 1.0) ** 2)) < float(loss)


def test_a_checkpoint_waits_for_variables_that_do_not_exist_yet(eager, tmp_path):
    def stepped(net, optimizer):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(net(X) ** 2)
        grads = tape.gradient(loss, net.trainable_variables)
        optimizer.apply_gradients(zip(grads, net.trainable_variables, strict=True))
        return net(X).numpy()

    def parts():
        layers = [tf.keras.layers.Dense(3, "tanh"), tf.keras.layers.Dense(1)]
        return tf.keras.Sequential(layers), tf.keras.optimizers.Adam(0.1)

    net, optimizer = parts()
    stepped(net, optimizer)
    checkpoint = tf.train.Checkpoint(model=net, optimizer=optimizer)
    manager = tf.train.CheckpointManager(checkpoint, tmp_path, max_to_keep=2)
    paths = [manager.save() for _ in range(3)]
    assert manager.checkpoints == paths[1:] and manager.latest_checkpoint == paths[2]
    other, its = parts()
    restored = tf.train.Checkpoint(model=other, optimizer=its).restore(paths[2])
    with pytest.raises(StateError, match="model/layer_with_weights-0/kernel"):
        restored.assert_consumed()
    np.testing.assert_array_equal(other(X).numpy(), net(X).numpy())
    np.testing.assert_array_equal(stepped(other, its), stepped(net, optimizer))
    assert restored.expect_partial() is restored.assert_existing_objects_matched() is restored
    restored.assert_consumed()


def test_a_model_is_saved_in_a_folder(eager, tmp_path):
    model = tf.keras.Sequential([tf.keras.layers.Dense(2, "relu", input_shape=(4,))])
    model.compile("adam", "mse", metrics=["mae"])
    tf.saved_model.save(model, tmp_path)
    for found in (tf.saved_model.load(tmp_path), tf.keras.models.load_model(tmp_path)):
        np.testing.assert_array_equal(found(X).numpy(), model(X).numpy())
        assert found.evaluate(X, X[:, :2], verbose=0) == model.evaluate(X, X[:, :2], verbose=0)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_a_recurrent_layer_is_one_scan_with_the_gradients_of_its_steps(kind, eager):
    layers = tf.keras.layers
    layer = getattr(layers, kind)(3, return_sequences=True)

    class Own(getattr(layers, f"{kind}Cell")):
        """A cell of a program's, which may read values, so it runs turn by turn."""

    cell = Own(3)
    x, flags = tf.constant(np.stack([X, X[::-1]])), tf.constant([[True, True, False], [True] * 3])
    own = layers.RNN(cell, return_sequences=True)
    found = []
    for each in (layer, own):
        each.build(x.shape)
        each.set_weights(layer.get_weights())
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(each(x, mask=flags) ** 2)
        found.append([loss, *tape.gradient(loss, [x, *each.trainable_variables])])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5, atol=1e-6)
    assert "While" in found_kinds(lambda: layer(x)) and "While" not in found_kinds(lambda: own(x))


def found_kinds(compute):
    """The kinds of the operations that are computed at once."""
    graph, kinds = tf.get_default_graph(), []
    emit = graph.emit
    graph.emit = lambda kind, *args, **options: kinds.append(kind) or emit(kind, *args, **options)
    try:
        compute()
    finally:
        del graph.emit
    return kinds


@pytest.mark.parametrize(
    "make",
    [
        lambda: tf.train.AdamOptimizer(0.1), lambda: tf.train.MomentumOptimizer(0.1, 0.9),
        lambda: tf.train.RMSPropOptimizer(0.1), lambda: tf.keras.optimizers.Adam(0.1),
        lambda: tf.keras.optimizers.RMSprop(0.1), lambda: tf.keras.optimizers.Nadam(0.1),
    ],
)  # fmt: skip
def test_a_repeated_step_traces_nothing_anew(make, eager, monkeypatch):
    w, optimizer, graph = tf.Variable(X), make(), tf.get_default_graph()
    traced, count = graph._traced, []
    monkeypatch.setattr(graph, "_traced", lambda *args: count.append(args) or traced(*args))

    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(w))
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])
        return float(loss)

    first, second, before = step(), step(), len(count)
    assert step() < second < first and len(count) == before


def test_a_failed_check_tells_the_values(eager):
    x = tf.constant([1.5, -2.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[x =\] \[1.5 -2.0\]"):
        tf.Assert(tf.reduce_all(x > 0), ["x =", x])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[1.5 -2.0\]"):
        tf.assert_positive(x)
    with tf.Graph().as_default(), pytest.raises(tf.errors.InvalidArgumentError, match=r"\[x:0\]"):
        tf.Assert(False, [tf.placeholder(tf.float32, [2], "x")])
