"""Parts of `tf.contrib` beside NumPy, and the defaults of `arg_scope`."""

import itertools

import numpy as np
import pytest

import weft.tf1 as tf
from weft.tf1.contrib.layers.common import end_points

from .initialized import run

slim, crf = tf.contrib.slim, tf.contrib.crf


def test_arg_scope_gives_defaults_that_arguments_override():
    x = tf.ones([2, 8, 8, 3])
    with slim.arg_scope([slim.conv2d, slim.fully_connected], activation_fn=None,
                        weights_regularizer=slim.l2_regularizer(0.1),
                        outputs_collections="ends") as scope:  # fmt: skip
        y = slim.conv2d(x, 4, [3, 3], stride=2, scope="first")
    with slim.arg_scope(scope):
        slim.fully_connected(slim.flatten(y), 5, activation_fn=tf.nn.relu, scope="second")
    assert [v.op.name for v in slim.get_model_variables()] == [
        "first/weights", "first/biases", "second/weights", "second/biases",
    ]  # fmt: skip
    assert y.shape.as_list() == [2, 4, 4, 4] and y.op.type != "Relu"
    assert len(tf.losses.get_regularization_losses()) == 2
    assert sorted(end_points("ends")) == ["first", "second"]
    with pytest.raises(ValueError, match="add_arg_scope"), slim.arg_scope([abs], x=1):
        pass


@pytest.mark.parametrize("in_place", [False, True])
def test_batch_norm_moves_its_averages(in_place):
    data = np.random.default_rng(0).normal(2, 3, (16, 4)).astype(np.float32)
    training = tf.placeholder(tf.bool, [])
    x = tf.placeholder(tf.float32, [None, 4])
    where = None if in_place else tf.GraphKeys.UPDATE_OPS
    y = slim.batch_norm(x, decay=0.9, is_training=training, updates_collections=where)
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    assert len(updates) == (0 if in_place else 2)
    mean, variance = (slim.get_variables_by_name(f"moving_{k}")[0] for k in ("mean", "variance"))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = session.run([y, *updates], {x: data, training: True})[0]
        wanted = (data - data.mean(0)) / np.sqrt(data.var(0) + 1e-3)
        np.testing.assert_allclose(found, wanted, atol=1e-5)
        moved = session.run([mean, variance])
        np.testing.assert_allclose(moved[0], 0.1 * data.mean(0), rtol=1e-4)
        np.testing.assert_allclose(moved[1], 0.9 + 0.1 * data.var(0, ddof=1), rtol=1e-4)
        found = session.run(y, {x: data, training: False})
        np.testing.assert_allclose(found, (data - moved[0]) / np.sqrt(moved[1] + 1e-3), rtol=1e-4)


def test_crf_sums_over_all_sequences_of_tags():
    r = np.random.default_rng(0)
    scores, table = r.normal(size=(3, 2)), r.normal(size=(2, 2))

    def score(tags):
        total = sum(scores[t, k] for t, k in enumerate(tags))
        return total + sum(table[a, b] for a, b in itertools.pairwise(tags))

    every = [(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)]
    best = max(every, key=score)
    inputs = tf.constant(scores[None].astype(np.float32))
    tags = tf.constant([[1, 0, 1]])
    likelihood, used = crf.crf_log_likelihood(inputs, tags, [3], tf.constant(table, tf.float32))
    decoded, top = crf.crf_decode(inputs, used, tf.constant([3]))
    found = run([likelihood, decoded, top])
    norm = np.log(np.sum(np.exp([score(t) for t in every])))
    np.testing.assert_allclose(found[0], [score((1, 0, 1)) - norm], rtol=1e-4)
    assert tuple(found[1][0]) == best
    np.testing.assert_allclose(found[2], [score(best)], rtol=1e-5)


def test_shapes_that_data_decides_have_gradients():
    x, mask = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), tf.placeholder(tf.bool, [3])
    y = tf.boolean_mask(x, mask)
    parts = tf.dynamic_partition(x, tf.cast(mask, tf.int32), 2)
    again = tf.dynamic_stitch([[1], [0, 2]], parts)
    (gradient,) = tf.gradients(tf.reduce_sum(y * y), x)
    values, idx, count = tf.unique_with_counts(tf.constant([5, 2, 5, 5]))
    gradient = tf.convert_to_tensor(gradient)
    found = run([y, gradient, again, values, idx, count, tf.where(mask)],
                {mask: [True, False, True]})  # fmt: skip
    assert found[0].tolist() == [[1, 2], [5, 6]]
    assert found[1].tolist() == [[2, 4], [0, 0], [10, 12]]
    assert found[2].tolist() == [[1, 2], [3, 4], [5, 6]]
    assert [f.tolist() for f in found[3:6]] == [[5, 2], [0, 1, 0, 0], [3, 1]]
    assert found[6].tolist() == [[0], [2]]


def test_a_failing_assertion_says_what_and_where():
    x = tf.placeholder(tf.float32, [], name="x")
    with tf.control_dependencies([tf.assert_less(x, 3.0)]):
        y = tf.identity(x)
    with tf.Session() as session:
        assert session.run(y, {x: 2}) == 2
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run(y, {x: 5})
    told = "assertion failed: [Condition x < y did not hold element-wise:] [x (x:0) = ] [5.0]"
    assert told in str(caught.value)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Inf"), tf.Session() as session:
        session.run(tf.check_numerics(1 / x, "ratio"), {x: 0})


def test_tables_and_tensors_outside_reach_a_datasets_functions():
    table = tf.contrib.lookup.index_table_from_tensor(tf.constant(["a", "b"]), num_oov_buckets=1)
    more = tf.placeholder(tf.int64, [])
    data = tf.data.Dataset.from_tensor_slices(["a c", "b"])
    data = data.map(lambda line: table.lookup(tf.string_split([line]).values) + more)
    iterator = data.make_initializable_iterator()
    element = iterator.get_next()
    with tf.Session() as session:
        session.run(tf.tables_initializer())
        session.run(iterator.initializer, {more: 10})
        assert [session.run(element).tolist() for _ in range(2)] == [[10, 12], [11]]


def test_hparams_keep_their_types():
    settings = tf.contrib.training.HParams(rate=0.1, sizes=[1, 2], name="x", flag=True)
    settings.parse("rate=2,sizes=[3,4],flag=false")
    assert settings.values() == {"rate": 2.0, "sizes": [3, 4], "name": "x", "flag": False}
    assert settings.parse_json('{"rate": 3, "name": "y"}').rate == 3.0
    settings.del_hparam("flag")
    settings.del_hparam("flag")
    assert settings.values() == {"rate": 3.0, "sizes": [3, 4], "name": "y"}
    assert not hasattr(settings, "flag")
    with pytest.raises(ValueError, match="Unknown"):
        settings.parse("other=1")
    with pytest.raises(ValueError, match="rate"):
        settings.parse("rate=fast")
