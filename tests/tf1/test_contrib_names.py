"""Older forms of `tf.contrib`: orders of arguments, TPUs that are not there, the projector."""

import pathlib

import numpy as np
import pytest

import weft.tf1 as tf
from weft.tf1.contrib import losses, metrics, projector
from weft.tf1.train.moving_averages import assign_moving_average

from .initialized import run


def test_losses_and_metrics_take_predictions_first():
    logits, labels = tf.constant([[1.0, 2.0], [0.0, 3.0]]), tf.constant([1, 0])
    ours = losses.sparse_softmax_cross_entropy(logits, labels, weights=0.5)
    theirs = tf.losses.sparse_softmax_cross_entropy(labels, logits, weights=0.5)
    found = run([ours, theirs])
    assert found[0] == found[1] > 0
    _, precision = metrics.streaming_precision(tf.constant([1, 1, 1]), tf.constant([1, 0, 0]))
    _, recall = metrics.streaming_recall(labels=tf.constant([1, 0, 0]), predictions=[1, 1, 1])
    assert run([precision, recall]) == [pytest.approx(1 / 3), 1.0]
    right = metrics.accuracy(
        tf.constant([1, 2, 3]), tf.constant([1, 0, 3]), weights=[1.0, 2.0, 0.0]
    )
    assert run(right) == pytest.approx(1 / 3)
    with pytest.raises(TypeError, match="one value for labels"):
        losses.log_loss(logits, logits, labels=logits)


def test_a_tpu_estimator_tells_functions_the_batch_size(tmp_path):
    tpu = tf.contrib.tpu

    def data(params):
        x = np.arange(8, dtype=np.float32)[:, None] / 8
        return tf.data.Dataset.from_tensor_slices((x, x)).repeat(2).batch(params["batch_size"])

    def model(features, labels, mode, params):
        assert params["rate"] == 0.1
        y = tf.layers.dense(features, 1)
        loss = tf.losses.mean_squared_error(labels, y)
        optimizer = tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(params["rate"]))
        step = optimizer.minimize(loss, tf.train.get_global_step())
        mean = (lambda value: {"mean": tf.metrics.mean(value)}, [y])
        return tpu.TPUEstimatorSpec(mode, {"y": y}, loss, step, eval_metrics=mean)

    config = tpu.RunConfig(tpu_config=tpu.TPUConfig(8, num_shards=8), model_dir=str(tmp_path))
    options = {"config": config, "params": {"rate": 0.1}, "eval_batch_size": 8}
    estimator = tpu.TPUEstimator(model, use_tpu=False, train_batch_size=4, **options)
    estimator.train(data)
    found = estimator.evaluate(data)
    assert found["global_step"] == 4 and np.isfinite(found["mean"])
    with pytest.raises(ValueError, match="there are no TPUs"):
        tpu.TPUEstimator(model, train_batch_size=4)


def test_the_projector_is_told_by_a_file(tmp_path):
    config = projector.ProjectorConfig()
    shown = config.embeddings.add()
    shown.tensor_name, shown.metadata_path = "table", 'a "b".tsv'
    shown.sprite.image_path = "s.png"
    shown.sprite.single_image_dim.extend([2, 3])
    projector.visualize_embeddings(tf.summary.FileWriter(str(tmp_path)), config)
    text = pathlib.Path(tmp_path, "projector_config.pbtxt").read_text()
    assert 'tensor_name: "table"\nmetadata_path: "a \\"b\\".tsv"\nsprite {' in text
    assert text.count("single_image_dim") == 2


def test_sparse_tensors_have_operators():
    x = tf.SparseTensor([[0, 0], [0, 2], [2, 1]], [1.0, 2.0, 3.0], [3, 3])
    column, row = tf.placeholder(tf.float32, [3, 1]), tf.placeholder(tf.float32, [None, 3])
    total = tf.sparse_add(x * column, row * x)
    shares = tf.sparse_softmax(total / 2.0)
    (by_row,) = tf.gradients(tf.reduce_sum(shares.values * [1.0, 2.0, 3.0]), [row])
    feeds = {column: [[1], [2], [3]], row: [[4, 5, 6]]}
    a, b, g = run([total, shares, by_row], feeds)
    assert a.values.tolist() == [5, 14, 24] and a.indices.tolist() == [[0, 0], [0, 2], [2, 1]]
    part = 1 / (1 + np.exp(4.5))
    np.testing.assert_allclose(b.values, [part, 1 - part, 1], rtol=1e-5)
    slope = part * (1 - part) / 2
    np.testing.assert_allclose(g, [[-slope, 0, 2 * slope]], rtol=1e-3, atol=1e-8)


def test_subscripts_of_unknown_rank():
    x = tf.placeholder(tf.float32)
    y = tf.matmul(x[0], tf.ones([3, 2])) + tf.reduce_sum(x[-1])
    assert run(y, {x: np.ones((2, 4, 3))}).tolist() == [[15, 15]] * 4
    shaped = tf.sparse_placeholder(tf.float32, shape=tf.constant([3, 4], tf.int64))
    assert shaped.indices.shape.as_list() == [None, 2]


def test_one_device_is_a_strategy():
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        x = strategy.run(lambda a, b: a + b, (tf.constant([1.0, 2.0]), 1.0))
    mean = strategy.reduce(tf.distribute.ReduceOp.MEAN, x, axis=0)
    assert run([mean, strategy.reduce("sum", x)])[1].tolist() == [2, 3]
    assert run(mean) == 2.5 and strategy.num_replicas_in_sync == 1
    with pytest.raises(ValueError, match="weft launch"):
        tf.distribute.MirroredStrategy(["/gpu:0", "/gpu:1"])


def test_the_mean_intersection_over_union_of_all_batches():
    metric = tf.keras.metrics.MeanIoU(3)
    update = metric.update_state([0, 1, 2, 2], [0, 1.9, 1, 2.0])
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        for _ in range(2):
            session.run(update)
        assert session.run(metric.result()) == pytest.approx((1 + 1 / 2 + 1 / 2) / 3)


def test_a_file_is_told_where_it_belongs(tmp_path):
    (tmp_path / "datasets").mkdir()
    (tmp_path / "datasets" / "x.npz").touch()
    get = tf.keras.utils.get_file
    assert get("x.npz", "http://there/x", cache_dir=str(tmp_path)).endswith("datasets/x.npz")
    with pytest.raises(ValueError, match="put it at"):
        get("y", "http://there/y", cache_dir=str(tmp_path))


def test_names_that_programs_take_from_inside_tensorflow():
    mean, plain = tf.Variable([0.0, 0.0]), tf.Variable([1.0, 1.0])
    moved = assign_moving_average(mean, tf.constant([1.0, 2.0]), 0.9)
    other = assign_moving_average(plain, tf.constant([1.0, 3.0]), 0.9, zero_debias=False)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run([moved, other])
        found = session.run([moved, other])
        np.testing.assert_allclose(found, [[1, 2], [1, 1.38]], rtol=1e-6)
        rows = tf.scalar_mul(2.0, tf.IndexedSlices(tf.constant([[3.0]]), tf.constant([1])))
        image = tf.reshape(tf.range(16.0), [1, 4, 4, 1])
        wide = tf.nn.atrous_conv2d(image, tf.ones([2, 2, 1, 1]), 2, "VALID")
        found = session.run([rows.values, wide, tf.lgamma(3.5), tf.digamma(3.5)])
    assert found[0] == 6 and found[1].ravel().tolist() == [20, 24, 36, 40]
    assert found[2:] == [pytest.approx(1.2009736), pytest.approx(1.1031567)]
    steps = [tf.ones([2, 3])] * 4
    cells = [[tf.nn.rnn_cell.GRUCell(5) for _ in range(2)] for _ in range(2)]
    outputs, *last = tf.contrib.rnn.stack_bidirectional_rnn(*cells, steps, dtype=tf.float32)
    assert [y.shape.as_list() for y in outputs] == [[2, 10]] * 4 and [len(x) for x in last] == [
        2,
        2,
    ]


def test_older_estimators_take_arrays_and_functions_that_return_tuples(tmp_path):
    learn = tf.contrib.learn
    x = np.linspace(-1, 1, 32, dtype=np.float32)[:, None]

    def model(numbers, wanted, mode):
        w = tf.get_variable("w", [1, 1], initializer=tf.zeros_initializer())
        y = tf.matmul(numbers, w)[:, 0]
        loss = tf.losses.mean_squared_error(wanted, y)
        step = tf.contrib.framework.get_global_step()
        return y, loss, tf.contrib.layers.optimize_loss(loss, step, 0.5, "SGD")

    fitted = learn.SKCompat(learn.Estimator(model)).fit(x, 3 * x[:, 0], steps=30)
    np.testing.assert_allclose(fitted.predict(x), 3 * x[:, 0], atol=1e-3)
    error = learn.MetricSpec(tf.contrib.metrics.streaming_mean_absolute_error)
    assert fitted.score(x, 3 * x[:, 0], metrics={"error": error})["error"] < 1e-3
    columns = learn.infer_real_valued_columns_from_input(x)
    network = learn.DNNClassifier([8], columns, optimizer=tf.train.AdamOptimizer(0.05))
    network.fit(x, (x[:, 0] > 0).astype(np.int64), steps=60, batch_size=16)
    assert sum(a == (b > 0) for a, b in zip(network.predict(x), x[:, 0], strict=True)) > 24

    def data():
        return tf.constant(x), tf.constant(3 * x[:, 0])

    def experiment(folder):
        return learn.Experiment(learn.Estimator(model, folder), data, data, None, 30, 1)

    assert learn.learn_runner.run(experiment, str(tmp_path))["loss"] < 1e-4
