"""Methods that few programs call: settings of scopes, questions about graphs, older names."""

import numpy as np
import pytest

import weft.tf1 as tf
from weft.tf1.framework.tensor_shape import dimension_value
from weft.tf1.variable.slice_info import PartitionInfo


def test_a_scope_is_changed_inside_itself(session):
    half = tf.constant_initializer(0.5)
    with tf.variable_scope("a") as scope:
        scope.set_initializer(half)
        scope.set_regularizer(tf.reduce_sum)
        scope.set_partitioner(tf.fixed_size_partitioner(2))
        scope.set_caching_device("/cpu:0")
        scope.set_use_resource(True)
        parts = tf.get_variable("v", [3, 2])
        with tf.variable_scope("b") as inner:
            assert inner.initializer is half
            inner.set_partitioner(None)
            inner.set_custom_getter(lambda getter, *args, **by: getter(*args, **by) * 4.0)
            times = tf.get_variable("v", [])
    assert [list(part.shape) for part in parts] == [[2, 2], [1, 2]]
    assert parts._get_partitions() == [2, 1] and parts._get_variable_list() == list(parts)
    assert [part._get_save_slice_info().var_offset for part in parts] == [[0, 0], [2, 0]]
    assert parts._get_variable_list()[1]._shared_name == "a/v/part_1"
    session.run(tf.global_variables_initializer())
    assert session.run(times) == 2.0 and session.run(tf.losses.get_regularization_loss()) == 3.5
    assert session.run(tf.losses.get_regularization_loss("a/b")) == 0.5
    assert session.run(tf.losses.get_regularization_loss("z")) == 0.0


def test_questions_about_graphs_and_types():
    graph = tf.get_default_graph()
    with tf.name_scope("one"), tf.name_scope("two"):
        assert graph.get_name_scope() == "one/two"
        a = tf.constant(1.0)
    b = tf.constant(2.0)
    assert graph.get_name_scope() == "" and graph.is_feedable(a) and graph.is_fetchable(a.op)
    a.op._add_control_inputs([b.op])
    assert a.op.control_inputs == [b.op]
    assert graph.as_graph_def().ByteSize() == len(graph.as_graph_def().SerializeToString())
    with tf.Graph().as_default() as other:
        assert not other.is_feedable(a) and not other.is_fetchable(a)
    unsigned = [t for t in (tf.uint8, tf.int8, tf.bool, tf.float32, tf.uint64) if t.is_unsigned]
    assert unsigned == [tf.uint8, tf.uint64] and tf.float32.is_numpy_compatible
    shape = tf.TensorShape([None, 3])
    assert shape.with_rank(2) == shape and tf.TensorShape(None).with_rank(2).as_list() == [None] * 2
    with pytest.raises(ValueError, match="rank"):
        shape.with_rank(3)
    with pytest.raises(ValueError, match="fully defined"):
        shape.assert_is_fully_defined()
    tf.TensorShape([2, 3]).assert_is_fully_defined()
    assert [dimension_value(d) for d in (tf.Dimension(4), 4, tf.Dimension(None))] == [4, 4, None]
    part = PartitionInfo([6, 4], [3, 0])
    assert (part.single_offset([3, 4]), PartitionInfo([6, 4], [0, 2]).single_offset([6, 2])) == (
        3,
        2,
    )


def test_states_of_cells_and_optimizers(session):
    cell = tf.nn.rnn_cell.GRUCell(3)
    zeros = cell.get_initial_state(batch_size=2, dtype=tf.float32)
    assert session.run(zeros).tolist() == [[0.0] * 3] * 2
    optimizer = tf.train.AdamOptimizer(beta1=0.5, beta2=0.25)
    assert optimizer._get_beta_accumulators() == (None, None)
    step = optimizer.minimize(tf.Variable(1.0) ** 2)
    session.run(tf.global_variables_initializer())
    session.run(step)
    assert session.run(list(optimizer._get_beta_accumulators())) == [0.25, 0.0625]
    strategy = tf.distribute.get_strategy()
    data = tf.data.Dataset.range(3)
    assert strategy.experimental_distribute_dataset(data) is data.with_options(tf.data.Options())
    assert strategy.experimental_local_results(step) == (step,)


def test_sessions_are_recovered(tmp_path, session):
    v = tf.Variable(1.0, name="v")
    local = tf.Variable(3.0, collections=[tf.GraphKeys.LOCAL_VARIABLES])
    ready = tf.report_uninitialized_variables(tf.global_variables())
    saver = tf.train.Saver()

    def recovered(folder):
        manager = tf.train.SessionManager(
            local_init_op=tf.train.Scaffold.default_local_init_op(), ready_op=ready
        )
        return manager.recover_session("", saver, str(folder))

    again, found = recovered(tmp_path)
    with again, pytest.raises(tf.errors.FailedPreconditionError):
        again.run(v)
    session.run(v.initializer)
    session.run(v.assign(7.0))
    saver.save(session, str(tmp_path / "m"))
    again, more = recovered(tmp_path)
    with again:
        assert (found, more) == (False, True) and again.run([v, local]) == [7.0, 3.0]


def test_a_saved_model_has_several_graphs(tmp_path, session):
    builder = tf.saved_model.Builder(str(tmp_path / "model"))
    v = tf.Variable(2.0, name="v")
    y = tf.multiply(v, 3.0, name="y")
    with pytest.raises(Exception, match="add_meta_graph_and_variables"):
        builder.add_meta_graph(["serve"])
    session.run(v.initializer)
    builder.add_meta_graph_and_variables(session, ["train"])
    tf.negative(y, name="z")
    builder.add_meta_graph(["serve"])
    builder.save()
    for tag, name, value in (("train", "y:0", 6.0), ("serve", "z:0", -6.0)):
        with tf.Graph().as_default() as graph, tf.Session() as other:
            tf.saved_model.loader.load(other, [tag], str(tmp_path / "model"))
            assert other.run(name) == value
            names = [op.name for op in graph.get_operations()]
            assert ("z" in names) is (tag == "serve")


def test_models_and_estimators(tmp_path):
    keras = tf.keras
    begun = []

    class Told(keras.callbacks.Callback):
        def on_batch_begin(self, batch, logs=None):
            begun.append(batch)

    x = np.random.default_rng(0).normal(size=(8, 2)).astype(np.float32)
    model = keras.Sequential([keras.layers.BatchNormalization(input_shape=(2,)),
                              keras.layers.Dense(3, activation="softmax")])  # fmt: skip
    model.compile("sgd", "sparse_categorical_crossentropy")
    model.fit(x, np.arange(8) % 3, 4, verbose=0, callbacks=[Told()])
    assert begun == [0, 1]
    found = model.predict(x)
    assert np.array_equal(model.predict_proba(x), found)
    assert model.predict_classes(x).tolist() == found.argmax(1).tolist()
    assert len(model.non_trainable_variables) == 2
    one = keras.Sequential([keras.layers.Dense(1, activation="sigmoid", input_shape=(2,))])
    assert one.predict_classes(x).tolist() == (one.predict(x) > 0.5).astype(int).tolist()

    def fitted(features, labels, mode):
        w = tf.get_variable("w", initializer=3.0)
        loss = tf.reduce_sum(w * features["x"])
        train = tf.train.GradientDescentOptimizer(0.5).minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)

    estimator = tf.estimator.Estimator(fitted, str(tmp_path))
    data = {"x": np.ones((2, 1), np.float32)}
    estimator.train(tf.estimator.inputs.numpy_input_fn(data, None, 2, shuffle=False), steps=1)
    assert estimator.get_variable_value("w") == 2.0
