"""Embeddings that are hash tables, as operations of a graph."""

import numpy as np
import pytest

import weft.tf1 as tf
from weft.table import SGD, Adagrad, Constant, Uniform
from weft.table.embedding_table import TableOptions
from weft.table.home import HomeHere
from weft.table.host import TableHost
from weft.table.sharded import ShardedTables


@pytest.fixture(params=["local", "server"])
def target(request):
    if request.param == "local":
        yield ""
    else:
        server = tf.train.Server.create_local_server()
        yield server.target
        server._server.stop()


def test_a_graph_trains_as_a_table_does(target):
    rng = np.random.default_rng(0)
    own = ShardedTables({"t": TableOptions(3, Adagrad(0.5), seed=4)}, [HomeHere(TableHost())])
    with tf.Graph().as_default():
        ids = tf.placeholder(tf.int64, [None])
        factors = tf.placeholder(tf.float32, [None, 3])
        table = tf.contrib.lookup.EmbeddingTable(3, Adagrad(0.5), seed=4)
        rows = table.lookup(ids)
        again = table.lookup(tf.reshape(ids, [-1, 1]))
        loss = tf.reduce_sum(rows * factors) + tf.reduce_sum(again)
        train = table.minimize(loss)
        exported, size = table.export(), table.size()
        assert again.shape.as_list() == [None, 1, 3]
        with tf.Session(target) as session:
            for count in (4, 9):
                chosen = rng.integers(-5, 5, count)
                weights = rng.standard_normal((count, 3)).astype(np.float32)
                got, _ = session.run([rows, train], {ids: chosen, factors: weights})
                np.testing.assert_array_equal(got, own.lookup({"t": chosen})["t"])
                own.lookup({"t": chosen})
                both = np.concatenate([chosen, chosen])
                g = np.concatenate([weights, np.ones((count, 3), np.float32)])
                own.update({"t": both}, {"t": g})
            state = session.run(exported)
            content, updates = own.export("t")
            assert session.run(size) == len(content.ids) and state[-1] == updates == 2
            for x, y in zip(state[:-1], content, strict=True):
                np.testing.assert_array_equal(x, y)
            other = tf.contrib.lookup.EmbeddingTable(3, Adagrad(0.5), seed=9)
            session.run(other.restore(state))
            for x, y in zip(session.run(other.export()), state, strict=True):
                np.testing.assert_array_equal(x, y)


def test_tables_of_one_name_outlive_sessions_on_a_server():
    server = tf.train.Server.create_local_server()
    try:
        for turn in range(2):
            with tf.Graph().as_default(), tf.Session(server.target) as session:
                table = tf.contrib.lookup.EmbeddingTable(
                    1, SGD(1.0), Constant(0.0), shared_name="shared"
                )
                session.run(table.update([7], [[1.0]], lr=2.0))
                (row,) = session.run(table.lookup([7]))
                assert row == -2.0 * turn  # the first update found no row
        with tf.Graph().as_default(), tf.Session(server.target) as session:
            other = tf.contrib.lookup.EmbeddingTable(2, shared_name="shared")
            with pytest.raises(tf.errors.InvalidArgumentError, match="has table"):
                session.run(other.size())
    finally:
        server._server.stop()


def test_what_is_refused():
    with tf.Graph().as_default(), tf.Session() as session:
        table = tf.contrib.lookup.EmbeddingTable(2, first=Uniform())
        with pytest.raises(ValueError, match="expected a loss that depends on a lookup"):
            table.minimize(tf.constant(1.0))
        with pytest.raises(ValueError, match=r"expected gradients \(1, 2\) of ids \(1,\)"):
            session.run(table.update([1], [[1.0]]))
        assert session.run(table.lookup([1], insert=False)).tolist() == [[0, 0]]
        with pytest.raises(ValueError, match="expected width of at least 1"):
            tf.contrib.lookup.EmbeddingTable(0)


def test_rows_are_made_though_their_gradient_does_not_depend_on_them():
    with tf.Graph().as_default(), tf.Session() as session:
        table = tf.contrib.lookup.EmbeddingTable(2, SGD(1.0), Constant(3.0))
        rows = table.lookup([5, 1 << 40, 5])
        session.run(table.minimize(tf.reduce_sum(rows)))
        assert session.run(rows).tolist() == [[1, 1], [2, 2], [1, 1]]
