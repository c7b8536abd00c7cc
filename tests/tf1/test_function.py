"""`tf.function`: one trace for each signature, effects in the order of the program."""

import logging

import numpy as np
import pytest

import weft.tf1 as tf
from weft.errors import ArgumentError, StateError
from weft.tf1.version import Behavior

X = np.arange(12, dtype=np.float32).reshape(3, 4) / 10


@pytest.fixture(autouse=True)
def eager():
    tf.reset_default_graph()
    tf.enable_eager_execution()
    yield
    tf.disable_eager_execution()


def test_a_trace_for_each_signature_and_one_for_all_that_fit_the_given_one():
    traced = []

    def scaled(x, by=2.0, *, parts=()):
        traced.append(by)
        return {"y": x * by, "parts": [p + 1.0 for p in parts], "none": None}

    function = tf.function(scaled)
    for x in (X, X + 1, tf.constant(X), X[:2]):
        found = function(x, parts=[x])
        np.testing.assert_allclose(found["y"], np.asarray(x) * 2)
        np.testing.assert_allclose(found["parts"][0], np.asarray(x) + 1)
    assert found["none"] is None and len(traced) == 2
    assert float(function(tf.constant(1.0), 0.0)["y"]) == 0 and len(traced) == 3
    assert np.signbit(float(function(tf.constant(1.0), -0.0)["y"])) and len(traced) == 4
    any_rows = tf.function(input_signature=[tf.TensorSpec([None, 4])])(lambda x: scaled(x)["y"])
    assert [any_rows(x).shape[0] for x in (X, X[:2], X[:1])] == [3, 2, 1]
    assert len(traced) == 5
    with pytest.raises(ArgumentError, match=r"expected a tensor like .*, got one of shape"):
        any_rows(tf.constant([1.0]))


OF_VALUES = {
    "rows": lambda x: tf.boolean_mask(x, x > 0.5),
    "loop": lambda x: tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * x), [0, x])[1],
    "second derivative": lambda x: derivative(lambda x: derivative(tf.exp, x) ** 2, x),
    "own gradient": lambda x: derivative(tf.custom_gradient(lambda v: (v, lambda g: g * v)), x),
    "equality": lambda x: tf.cast(x == tf.reverse(x, [0]), tf.float32) + tf.cast(x != x, "float32"),
}


def derivative(function, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(function(x))
    return tape.gradient(y, x)


@pytest.mark.parametrize("name", OF_VALUES)
def test_a_traced_function_has_the_values_of_python(name, monkeypatch):
    monkeypatch.setattr(Behavior, "is_2", True)
    traced = tf.function(OF_VALUES[name])
    found = [traced(tf.constant(x)).numpy() for x in (X, X + 1)]
    expected = [OF_VALUES[name](tf.constant(x)).numpy() for x in (X, X + 1)]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    assert len(traced._traces) == 1 and not traced._untraced


def test_effects_take_place_in_order_also_in_branches_and_python(capsys):
    w, seen, log = tf.Variable(1.0), [], []

    @tf.function
    def changed(x):
        log.append("traced")
        before = w + 0.0
        w.assign_add(x)
        doubled = w * 2.0
        tf.cond(x > 1.0, lambda: w.assign(10.0), lambda: w.assign_add(0.5))
        tf.py_func(lambda a: seen.append(float(a)) or a, [w.read_value()], tf.float32)
        tf.print("now", w)
        with tf.control_dependencies(None):
            pass
        return before, doubled, w

    found = [[float(y) for y in changed(tf.constant(x))] for x in (1.0, 2.0, 1.0)]
    assert found == [[1.0, 4.0, 2.5], [2.5, 9.0, 10.0], [10.0, 22.0, 11.5]]
    assert seen == [2.5, 10.0, 11.5] and log == ["traced"] and float(w) == 11.5
    assert capsys.readouterr().err.split() == ["now", "2.5", "now", "10.", "now", "11.5"]
    w.assign(0.0)  # what is set outside is read by the next call
    assert float(changed(tf.constant(1.0))[0]) == 0.0


def trained(decorate, compiled):
    """Losses and moving means after steps whose first call makes weights and slots."""
    tf.reset_default_graph()
    keras = tf.keras
    model = keras.Sequential(
        [
            keras.layers.Dense(5, "tanh", kernel_initializer=keras.initializers.Constant(0.1)),
            keras.layers.BatchNormalization(), keras.layers.Dense(1, kernel_initializer="ones"),
        ]
    )  # fmt: skip
    optimizer, mean = keras.optimizers.Adam(0.05), keras.metrics.Mean()

    @decorate
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - 1.0) ** 2)
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables, strict=True))
        mean(loss)
        return loss

    losses = [float(step(tf.constant(X[: 2 + i % 2]))) for i in range(4)]
    optimizer.learning_rate = 0.5
    losses += [float(step(X)), float(mean.result()), *model.layers[1].moving_mean.numpy()]
    assert int(optimizer.iterations) == 5 and bool(model.updates) is True
    if compiled:
        model.compile("sgd", "mse")
        model.fit(X, X[:, :1], verbose=0)
    return losses


def test_a_model_learns_as_without_it_and_fit_goes_on():
    plain = trained(lambda f: f, compiled=False)
    np.testing.assert_allclose(trained(tf.function, compiled=True), plain, rtol=2e-5)


def test_what_python_must_see_runs_in_python_and_says_so(caplog):
    @tf.function
    def positive(x):
        return x if x > 0 else -x

    class Net:
        @tf.function
        def call(self, x):
            return self.w * x

    with caplog.at_level(logging.WARNING, "tensorflow"):
        assert [float(positive(tf.constant(x))) for x in (-2.0, 3.0)] == [2.0, 3.0]
    assert "positive runs in Python at each call" in caplog.text and len(caplog.records) == 1
    net, other = Net(), Net()
    net.w, other.w = tf.Variable(2.0), tf.Variable(3.0)
    assert float(net.call(tf.constant(2.0))) == 4 and float(other.call(tf.constant(2.0))) == 6
    with tf.GradientTape() as tape:
        y = net.call(tf.constant(5.0))
    assert float(tape.gradient(y, net.w)) == 5
    with pytest.raises(ZeroDivisionError):
        tf.function(lambda x: x / (1 // 0))(tf.constant(1.0))
    with tf.Graph().as_default(), tf.GradientTape() as tape, pytest.raises(StateError):
        tape.watched_variables()


def test_equal_calls_have_one_trace_and_arrays_get_the_types_of_the_signature():
    traced = []

    @tf.function
    def chosen(x, flag=True):
        traced.append(flag)
        return x * 2 if flag else x

    one = tf.constant(1.0)
    assert [float(y) for y in (chosen(one, False), chosen(one, flag=False), chosen(one))] == [
        1,
        1,
        2,
    ]
    assert traced == [False, True]
    fixed = chosen.get_concrete_function(tf.TensorSpec([]), flag=False)
    assert float(fixed(tf.constant(4.0))) == 4 and traced == [False, True]
    typed = tf.function(input_signature=[tf.TensorSpec([None]), tf.TensorSpec([], tf.int32)])(
        lambda x, n: x * tf.cast(n, tf.float32)
    )
    assert typed(np.ones(2), 3).numpy().tolist() == [3, 3]
    tf.config.run_functions_eagerly(True)
    try:
        assert tf.config.functions_run_eagerly()
        chosen(one), chosen(one)
    finally:
        tf.config.run_functions_eagerly(False)
    assert traced == [False, True, True, True]


def test_a_module_finds_variables_in_its_parts():
    class Part(tf.Module):
        def __init__(self, *parts):
            super().__init__()
            self.w = tf.Variable(1.0)
            self.count = tf.Variable(0, trainable=False)
            self.parts = {"all": list(parts)}

    dense = tf.keras.layers.Dense(2)
    dense(X)
    part = Part(Part(), dense)
    assert len(part.variables) == 6 and len(part.trainable_variables) == 4
    assert part.variables[1] is part.w and part.name == "part"
    assert len(part.submodules) == 2


def test_a_function_of_tensors_with_values_in_data():
    def read(x):
        assert isinstance(x.numpy(), np.ndarray | np.generic)
        return x * 2.0

    rows = tf.data.Dataset.from_tensor_slices(X).map(lambda r: tf.py_function(read, [r], "float32"))
    np.testing.assert_array_equal(np.stack([np.asarray(r) for r in rows]), X * 2)
    with tf.GradientTape() as tape:
        x = tf.constant(3.0)
        tape.watch(x)
        y = tf.py_function(read, [x], tf.float32)
    assert float(tape.gradient(y, x)) == 2
