"""Horovod's names in TensorFlow 1 graphs, checked on each rank; called by job_checks.py."""

import tempfile

import numpy as np

import weft.horovod.tensorflow as hvd
import weft.tf1 as tf
from weft.datasets import load_digits
from weft.errors import DistributedError


def check_graph_collectives(rank: int, size: int) -> None:
    tf.reset_default_graph()
    x = tf.constant([float(rank + 1), 2.0])
    total = size * (size + 1) / 2
    rows = tf.fill([rank + 1, 2], rank)
    sent, taken = hvd.alltoall(tf.range(size * 2) + 10 * rank, [2] * size)
    fetches = {
        "sum": hvd.allreduce(x, op=hvd.Sum, prescale_factor=2.0, postscale_factor=0.5),
        "half": hvd.allreduce(x, compression=hvd.Compression.fp16),
        "many": hvd.grouped_allreduce([x, tf.ones([3])], op=hvd.Sum),
        "adasum": hvd.allreduce(tf.constant([3.0]), op=hvd.Adasum),
        "rows": hvd.allgather(rows), "sent": sent, "taken": taken,
        "part": hvd.reducescatter(tf.range(2.0 * size), op=hvd.Sum),
        "slope": tf.gradients(hvd.allreduce(x * x, op=hvd.Sum), x)[0],
        "broadcast": hvd.broadcast(x, 1),
    }  # fmt: skip
    with tf.Session() as session:
        found = session.run(fetches)
    assert found["sum"].tolist() == [total, 2.0 * size]
    assert found["half"].tolist() == [total / size, 2.0] and found["adasum"].tolist() == [3.0]
    assert [y.tolist() for y in found["many"]] == [[total, 2.0 * size], [size] * 3]
    assert found["rows"][:, 0].tolist() == [i for i in range(size) for _ in range(i + 1)]
    assert found["sent"].tolist() == [10 * i + 2 * rank + j for i in range(size) for j in range(2)]
    assert found["taken"].tolist() == [2] * size
    assert found["part"].tolist() == [size * 2.0 * rank, size * (2.0 * rank + 1)]
    assert found["slope"].tolist() == [2.0 * size * (rank + 1), 4.0 * size]
    assert found["broadcast"].tolist() == [2.0, 2.0]
    every = hvd.allgather_object({"rank": rank, "x": np.ones(2)})
    assert [e["rank"] for e in every] == list(range(size)) and isinstance(every[0]["x"], np.ndarray)


def check_graph_optimizers(rank: int, size: int) -> None:
    """One step of the whole batch, however gradients travel; ranks may join."""
    for options in ({}, {"gradient_predivide_factor": 2.0}, {"op": hvd.Sum}, {"op": hvd.Adasum}):
        tf.reset_default_graph()
        x = tf.placeholder(tf.float32, [None, 2])
        w = tf.Variable([[float(rank + 1)], [0.0]])
        step = tf.train.get_or_create_global_step()
        sgd = tf.train.GradientDescentOptimizer(1.0)
        train = hvd.DistributedOptimizer(sgd, **options).minimize(
            tf.reduce_mean(tf.matmul(x, w)), global_step=step
        )
        hook = hvd.BroadcastGlobalVariablesHook(0)
        hook.begin()
        last = hvd.join()
        alike = options.get("op") is hvd.Adasum
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            hook.after_create_session(session, None)
            session.run(train, {x: [[1.0 if alike else rank, 2.0]]})
            mean = 1.0 if alike else (size - 1) / 2
            factor = size if options.get("op") is hvd.Sum else 1
            assert session.run(w).ravel().tolist() == [1 - mean * factor, -2.0 * factor]
            if not alike:
                for _ in range(rank):
                    session.run(train, {x: [[0.0, 0.0]]})
                assert session.run(last) == size - 1 and session.run(step) == 1 + rank


def check_row_sparse_gradients_of_graphs(rank: int, size: int) -> None:
    """Ranks exchange rows, unless told otherwise: with the values of dense gradients."""
    found = {}
    for op in (hvd.Average, hvd.Sum):
        for dense in (False, True):
            tf.reset_default_graph()
            ids = tf.placeholder(tf.int32, [3])
            w = tf.Variable(tf.ones([20, 2]))
            loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(w, ids)))
            sgd = tf.train.GradientDescentOptimizer(0.1)
            optimizer = hvd.DistributedOptimizer(sgd, op=op, sparse_as_dense=dense)
            pairs = optimizer.compute_gradients(loss)
            assert isinstance(pairs[0][0], tf.IndexedSlices) != dense
            train = optimizer.apply_gradients(pairs)
            with tf.Session() as session:
                session.run(tf.global_variables_initializer())
                for step in range(2):
                    session.run(train, {ids: [rank, rank, 5 + step]})
                found[dense] = session.run(w)
        np.testing.assert_allclose(found[False], found[True], rtol=1e-6)
        assert found[True].min() < 1.0 == found[True].max()


def check_the_start_of_graphs(rank: int, size: int) -> None:
    """Ranks that begin with different variables are told, once for each session."""
    tf.reset_default_graph()
    w = tf.Variable([1.0 + (rank == size - 1)], name="w")
    loss = tf.reduce_sum(w * w)
    train = hvd.DistributedOptimizer(tf.train.GradientDescentOptimizer(0.5)).minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(loss) > 0.0  # no update
        try:
            session.run(tf.group(train, name="all"))
            raise AssertionError("expected an error")
        except DistributedError as error:
            assert "variables differ: rank 0 has w " in str(error), error
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(hvd.broadcast_global_variables(0))
        if rank == 0:
            session.run([train, loss])  # others run it alone
        else:
            session.run(train)
        assert session.run(w).tolist() == [0.0]


def check_graph_state(rank: int, size: int) -> None:
    tf.reset_default_graph()
    w = tf.Variable([float(rank)], name="w")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        state = hvd.elastic.TensorFlowState(session=session, batch=rank)
        state.sync()
        assert session.run(w).tolist() == [0.0] and state.batch == 0
        w.load([5.0], session)
        state.batch = 3
        state.commit()
        w.load([6.0], session)
        state.restore()
        assert session.run(w).tolist() == [5.0] and state.batch == 3


def check_graph_mnist(rank: int, size: int) -> None:
    """Horovod's TensorFlow 1 example, on the bundled digits; its import apart.

    Rank 0 alone saves, and all go on from its step where they begin again.
    """
    images, answers = load_digits()
    data = images.reshape(len(images), -1).astype(np.float32)[rank::size]
    labels = answers[rank::size]
    tf.reset_default_graph()
    tf.set_random_seed(1)
    image = tf.placeholder(tf.float32, [None, 64])
    label = tf.placeholder(tf.int32, [None])
    hidden = tf.layers.dense(image, 32, activation=tf.nn.relu)
    logits = tf.layers.dense(hidden, 10)
    loss = tf.losses.sparse_softmax_cross_entropy(label, logits)
    opt = tf.train.RMSPropOptimizer(0.02)
    opt = hvd.DistributedOptimizer(opt)
    global_step = tf.train.get_or_create_global_step()
    train_op = opt.minimize(loss, global_step=global_step)
    right = tf.reduce_mean(
        tf.cast(tf.equal(tf.argmax(logits, 1, output_type=tf.int32), label), tf.float32)
    )
    mean = hvd.allreduce(right)
    steps, accuracy, w = 0, 0.0, tf.trainable_variables()[0]
    with tempfile.TemporaryDirectory() as folder:
        checkpoint_dir = folder if rank == 0 else None
        for last in (30, 60):
            hooks = [
                hvd.BroadcastGlobalVariablesHook(0),
                tf.train.StopAtStepHook(last_step=last),
                tf.train.LoggingTensorHook({"step": global_step, "loss": loss}, every_n_iter=10),
                (final := tf.train.FinalOpsHook([mean, w], {image: data, label: labels})),
            ]
            with tf.train.MonitoredTrainingSession(
                checkpoint_dir=checkpoint_dir, hooks=hooks, config=tf.ConfigProto()
            ) as mon_sess:
                while not mon_sess.should_stop():
                    rows = slice(steps % 10 * 32, steps % 10 * 32 + 32)
                    mon_sess.run(train_op, feed_dict={image: data[rows], label: labels[rows]})
                    steps += 1
            assert steps == last
            accuracy, values = final.final_ops_values
            assert all(np.array_equal(values, each) for each in hvd.allgather_object(values))
        if rank == 0:
            found = tf.train.latest_checkpoint(folder)
            assert found is not None and found.endswith("model.ckpt-60")
    assert accuracy > 0.6


def check_rows_of_a_tensor_of_unknown_size(rank: int, size: int) -> None:
    tf.reset_default_graph()
    rows = tf.IndexedSlices(tf.constant([[1.0 + rank]]), tf.constant([rank]))
    found = hvd.allreduce(rows)
    with tf.Session() as session:
        values, indices = session.run([found.values, found.indices])
    assert values.tolist() == [[(1.0 + i) / size] for i in range(size)]
    assert indices.tolist() == list(range(size)) and found.dense_shape is None
