"""Estimators: trained, evaluated, resumed, asked for predictions."""

from pathlib import Path

import numpy as np
import pytest

import weft.tf1 as tf

X = np.linspace(-1, 1, 32, dtype=np.float32)[:, None]
Y = (X[:, 0] > 0).astype(np.int32)
WORDS = np.where(Y > 0, "up", "down")


def inputs(epochs, shuffle=False):
    return tf.estimator.inputs.numpy_input_fn({"x": X, "w": WORDS}, Y, 8, epochs, shuffle)


def test_a_classifier_learns_and_continues_from_its_folder(tmp_path):
    column = tf.feature_column
    words = column.categorical_column_with_vocabulary_list("w", ["up", "down"])
    columns = [column.numeric_column("x"), column.embedding_column(words, 2)]
    made = lambda: tf.estimator.DNNClassifier([8], columns, str(tmp_path), optimizer="Adam")  # noqa: E731
    made().train(inputs(None), max_steps=30)
    estimator = made()
    spec = tf.estimator.TrainSpec(inputs(None), max_steps=60)
    found, _ = tf.estimator.train_and_evaluate(
        estimator, spec, tf.estimator.EvalSpec(inputs(1), steps=None)
    )
    assert found["global_step"] == 60 and found["accuracy"] > 0.9
    predicted = list(estimator.predict(inputs(1), predict_keys=["class_ids"]))
    assert [int(p["class_ids"][0]) for p in predicted] == Y.tolist()
    assert "dnn/logits/kernel" in estimator.get_variable_names()


def test_a_baseline_learns_shares_and_a_sum_of_models_trains_each_by_its_rule(tmp_path):
    labels = (X[:, 0] > 0.5).astype(np.int32)
    few = tf.estimator.inputs.numpy_input_fn({"x": X, "w": WORDS}, labels, 8, None, False)
    one = tf.estimator.inputs.numpy_input_fn({"x": X, "w": WORDS}, labels, 8, 1, False)
    baseline = tf.estimator.BaselineClassifier(str(tmp_path / "share"))
    baseline.train(few, max_steps=200)
    shares = [p["probabilities"] for p in baseline.predict(one)]
    np.testing.assert_allclose(shares, [[0.75, 0.25]] * 32, atol=0.03)
    column = tf.feature_column
    words = column.categorical_column_with_vocabulary_list("w", ["up", "down"])
    made = tf.estimator.DNNLinearCombinedRegressor(
        str(tmp_path / "both"), [words], tf.train.GradientDescentOptimizer(0.0),
        [column.numeric_column("x")], "Adam", [4], batch_norm=True,
    )  # fmt: skip
    made.train(inputs(None), max_steps=20)
    found = {name: made.get_variable_value(name) for name in made.get_variable_names()}
    assert found["global_step"] == 20
    (linear,) = [v for name, v in found.items() if name.startswith("linear/") and v.size == 2]
    assert not linear.any()  # its rate is 0
    assert abs(found["dnn/logits/bias"]) > 1e-4  # 20 steps of Adam
    assert found["dnn/batch_normalization/moving_mean"].any()
    with pytest.raises(ValueError, match="linear_feature_columns or dnn_feature_columns"):
        tf.estimator.DNNLinearCombinedClassifier()


def test_linear_model_begins_at_zero_and_counts_categories():
    with tf.Graph().as_default(), tf.Session() as session:
        column = tf.feature_column
        buckets = column.bucketized_column(column.numeric_column("x"), [-0.5, 0.5])
        features = {"x": tf.constant(X[::8]), "w": tf.constant(WORDS[::8])}
        words = column.categorical_column_with_vocabulary_list("w", ["up", "down"])
        y = column.linear_model(features, [buckets, words])
        layer = column.input_layer(features, [column.indicator_column(buckets)])
        pair = column.bucketized_column(column.numeric_column("p", (2,)), [0])
        rows = {"p": tf.constant([[-1.0, 1.0], [2.0, -2.0]])}
        both = column.input_layer(rows, {pair: 1}.keys())
        assert session.run(both).tolist() == [[1, 0, 0, 1], [0, 1, 1, 0]]
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        assert session.run(y).tolist() == [[0.0]] * 4
        assert session.run(layer).argmax(1).tolist() == [0, 1, 1, 2]


def test_a_model_function_must_fit_its_mode():
    with pytest.raises(ValueError, match="Missing train_op"):
        tf.estimator.EstimatorSpec("train", loss=1.0)
    with pytest.raises(ValueError, match="shuffle"):
        tf.estimator.inputs.numpy_input_fn(X, Y)


def test_exporters_export_what_predicts_the_same(tmp_path):
    rows = {"x": X[:, 0]}

    def model(features, labels, mode):
        y = tf.layers.dense(tf.reshape(features["x"], [-1, 1]), 1)[:, 0]
        if mode == tf.estimator.ModeKeys.PREDICT:
            outputs = {"scores": tf.estimator.export.PredictOutput({"y": y})}
            return tf.estimator.EstimatorSpec(mode, {"y": y}, export_outputs=outputs)
        loss = tf.losses.mean_squared_error(labels, y)
        train = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)

    def serving():
        with tf.name_scope("like"):
            like = {"x": tf.placeholder(tf.float32, [None], name="x")}
        return tf.estimator.export.build_raw_serving_input_receiver_fn(like)()

    estimator = tf.estimator.Estimator(
        model, str(tmp_path), tf.estimator.RunConfig(save_checkpoints_steps=5)
    )
    note = tmp_path / "note.txt"
    note.write_text("of it")
    given = tf.estimator.inputs.numpy_input_fn(rows, X[:, 0] * 2, 8, None, False)
    exporters = [
        tf.estimator.FinalExporter("final", serving, {"a/note.txt": str(note)}),
        tf.estimator.LatestExporter("latest", serving, exports_to_keep=2),
        tf.estimator.BestExporter(
            serving_input_receiver_fn=serving,
            compare_fn=lambda best_eval_result, current_eval_result: False,
        ),
    ]
    _, paths = tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(given, max_steps=15),
        tf.estimator.EvalSpec(given, steps=1, exporters=exporters),
    )
    kept = {path.name: len(list(path.iterdir())) for path in (tmp_path / "export").iterdir()}
    assert kept == {"final": 1, "latest": 2, "best_exporter": 1} and paths[2] is None
    (folder,) = (tmp_path / "export" / "final").iterdir()
    assert folder == Path(paths[0].decode())
    assert (folder / "assets.extra" / "a" / "note.txt").read_text() == "of it"
    once = tf.estimator.inputs.numpy_input_fn(rows, None, len(X), 1, False)
    wanted = [found["y"] for found in estimator.predict(once)]
    with tf.Graph().as_default(), tf.Session() as session:
        meta = tf.saved_model.loader.load(session, ["serve"], str(folder))
        assert set(meta.signature_def) == {"scores", "serving_default"}
        told = meta.signature_def["serving_default"]
        found = session.run(told.outputs["y"].name, {told.inputs["x"].name: X[:, 0]})
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    with pytest.raises(ValueError, match="exports_to_keep of 1 or more"):
        tf.estimator.LatestExporter("x", serving, exports_to_keep=0)


@pytest.mark.parametrize("reduction", ["sum", "sum_over_batch_size"])
def test_heads_weigh_examples(reduction):
    logits = np.array([[2.0], [-1.0], [0.5], [1.0]], np.float32)
    labels, weights = np.array([[1], [0], [0], [1]]), np.array([1, 2, 0, 3], np.float32)
    losses = np.log1p(np.exp(logits)) - labels * logits
    with tf.Graph().as_default(), tf.Session() as session:
        tf.train.create_global_step()
        head = tf.estimator.BinaryClassHead("w", loss_reduction=reduction)
        x = tf.get_variable("x", initializer=logits)
        optimizer = tf.train.GradientDescentOptimizer(1.0)
        features = {"w": tf.constant(weights)}
        spec = head.create_estimator_spec(features, "train", x, labels, optimizer)
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        session.run([update for _, update in spec.eval_metric_ops.values()])
        found = session.run({name: value for name, (value, _) in spec.eval_metric_ops.items()})
        loss, _ = session.run([spec.loss, spec.train_op])
        after = session.run(x)
        with pytest.raises(ValueError, match="an optimizer or a train_op_fn"):
            head.create_estimator_spec(features, "train", x, labels)
    weighted, count = losses * weights[:, None], 1 if reduction == "sum" else 4
    np.testing.assert_allclose(loss, weighted.sum() / count, rtol=1e-6)
    slope = (1 / (1 + np.exp(-logits)) - labels) * weights[:, None] / count
    np.testing.assert_allclose(after, logits - slope, rtol=1e-5)
    np.testing.assert_allclose(found["average_loss"], weighted.sum() / 6, rtol=1e-6)
    assert (found["accuracy"], found["precision"], found["recall"]) == (1, 1, 1)
    np.testing.assert_allclose([found["label/mean"], found["accuracy_baseline"]], 2 / 3, rtol=1e-6)
