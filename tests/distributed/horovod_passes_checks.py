"""`backward_passes_per_step` of Horovod's optimizers for graphs, checked on each rank."""

import numpy as np

import weft.horovod.keras as keras_hvd
import weft.horovod.tensorflow as hvd
import weft.tf1 as tf
from weft.errors import ArgumentError, OutOfRangeError
from weft.horovod.adasum import combined

PASSES, RUNS = 3, 7


def slopes(size):
    """A gradient for each run and rank: small whole numbers, whose sums are exact."""
    return np.random.default_rng(7).integers(-4, 5, (RUNS, size, 3)).astype(np.float32)


def started(session):
    session.run(tf.global_variables_initializer())
    session.run(tf.local_variables_initializer())


def values_after_runs(rank, fed, clip=None, dtype=tf.float32, **options):
    """The variable after each run, whose gradient is what is fed; each run is counted."""
    tf.reset_default_graph()
    x = tf.placeholder(dtype, [3])
    w, other = tf.Variable(tf.zeros([3], dtype)), tf.Variable(1.0)
    step = tf.train.get_or_create_global_step()
    sgd = tf.train.GradientDescentOptimizer(1.0)
    optimizer = hvd.DistributedOptimizer(sgd, **{"backward_passes_per_step": PASSES, **options})
    pairs = optimizer.compute_gradients(tf.reduce_sum(x * w), [other, w])
    assert pairs[0][0] is None
    if clip is not None:
        pairs = [(None if g is None else tf.clip_by_value(g, -clip, clip), v) for g, v in pairs]
    train = optimizer.apply_gradients(pairs, global_step=step)
    found = []
    with tf.Session() as session:
        started(session)
        for run in range(RUNS):
            session.run(train, {x: fed[run, rank]})
            found.append(session.run(w).astype(np.float32))
            assert session.run(step) == run + 1
    return np.array(found)


def check_sums_over_runs(rank: int, size: int) -> None:
    """Every third run updates by the sum of three runs, reduced over ranks; others do not."""
    fed = slopes(size)
    totals = fed[: 2 * PASSES].reshape(2, PASSES, size, 3).sum(1)
    alone = hvd.add_process_set([0])
    mean, own = totals.mean(1), totals[:, rank]
    for wanted, options in (
        (np.clip(mean / PASSES, -0.5, 0.5), {"average_aggregated_gradients": True, "clip": 0.5}),
        (mean * size, {"op": hvd.Sum, "compression": hvd.Compression.fp16, "dtype": tf.float64}),
        (mean, {"gradient_predivide_factor": 2.0}),
        (own, {"process_set": alone}),
    ):
        changes = np.zeros((RUNS, 3))
        changes[PASSES - 1 :: PASSES][:2] = -wanted
        found = values_after_runs(rank, fed, **options)
        np.testing.assert_allclose(found, changes.cumsum(0), rtol=1e-5, atol=1e-6)
    hvd.remove_process_set(alone)


def check_adasum_over_runs(rank: int, size: int) -> None:
    """All runs update; every third one combines the changes of three."""
    fed = slopes(size)
    found = values_after_runs(rank, fed, op=hvd.Adasum)
    start = np.zeros(3)
    for run in range(RUNS):
        begin = run - run % PASSES
        changes = list(-fed[begin : run + 1].sum(0).astype(np.float64))
        wanted = start + changes[rank]
        if run - begin == PASSES - 1:
            while len(changes) > 1:
                changes = [combined(a, b) for a, b in zip(changes[::2], changes[1::2], strict=True)]
            wanted = start = start + changes[0]
        np.testing.assert_allclose(found[run], wanted, rtol=1e-5, atol=1e-5)


def check_runs_without_an_update(rank: int, size: int) -> None:
    """They exchange nothing: ranks make them one after another; savers know nothing of them."""
    tf.reset_default_graph()
    x = tf.placeholder(tf.float32, [None, 200])
    w = tf.Variable(tf.ones([200, 1]))
    loss = tf.reduce_mean(tf.matmul(tf.square(x), w))
    shown = hvd.allreduce(loss)
    adam = tf.train.AdamOptimizer(0.1)
    train = hvd.DistributedOptimizer(adam, backward_passes_per_step=PASSES).minimize(loss)
    shown = [shown, hvd.allreduce(tf.reduce_max(x), op=hvd.Max)]
    assert not {v.op.name for v in tf.local_variables()} & {
        v.op.name for v in tf.global_variables()
    }
    with tf.Session() as session:
        started(session)
        before = session.run(tf.global_variables())
        session.run([train, shown], {x: np.ones((1 + 100 * rank, 200), np.float32)})
        for turn in range(size):
            if turn == rank:
                session.run(train, {x: np.full((2, 200), rank, np.float32)})
            hvd.allgather_object(turn)
        after = session.run(tf.global_variables())
        assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
        session.run([train, shown], {x: np.ones((1 + 100 * rank, 200), np.float32)})
        found = session.run(tf.global_variables())
        assert not np.array_equal(found[0], before[0])
        for each in hvd.allgather_object(found):
            assert all(np.array_equal(a, b) for a, b in zip(each, found, strict=True))


def check_refusals_of_passes(rank: int, size: int) -> None:
    tf.reset_default_graph()
    ids = tf.placeholder(tf.int32, [2])
    table = tf.Variable(tf.ones([20, 2]), name="table")
    loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(table, ids)))
    sgd = tf.train.GradientDescentOptimizer(0.1)

    def wrapped(**options):
        return hvd.DistributedOptimizer(sgd, **{"backward_passes_per_step": 2, **options})

    for make, text in (
        (lambda: wrapped(backward_passes_per_step=0), "an integer from 1 as backward_passes"),
        (lambda: wrapped(backward_passes_per_step=2.0), "an integer from 1 as backward_passes"),
        (lambda: wrapped(op=hvd.Adasum, average_aggregated_gradients=True), "with op=hvd.Adasum"),
        (lambda: wrapped().minimize(loss), "got IndexedSlices for table:0; pass sparse_as_dense"),
        (lambda: wrapped().apply_gradients([(tf.ones([20, 2]), table)]), "those of 0 calls"),
    ):
        try:
            make()
            raise AssertionError("expected an error")
        except ArgumentError as error:
            assert text in str(error), error
    train = wrapped(sparse_as_dense=True).minimize(loss)
    with tf.Session() as session:
        started(session)
        session.run(train, {ids: [rank, 19]})
        try:
            session.run(train, {ids: [20, 0]})  # counts for nothing
            raise AssertionError("expected an error")
        except OutOfRangeError:
            session.run(train, {ids: [rank, 19]})
        found = session.run(table)
    wanted = np.ones((20, 2))
    wanted[:size] -= 0.1 * 2 * 2 / size
    wanted[19] -= 0.1 * 2 * 2
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def check_keras_passes(rank: int, size: int) -> None:
    """Three batches of four rows on each rank are as one of all their rows."""
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(6, size, 4, 3)), rng.normal(size=(6, size, 4, 1))
    found, kept = {}, {}
    for passes in (PASSES, 1):
        tf.keras.backend.clear_session()
        model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(3,))])
        model.set_weights([np.ones((3, 1)), np.zeros(1)])
        optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)
        if passes > 1:
            optimizer = keras_hvd.DistributedOptimizer(
                optimizer, backward_passes_per_step=passes, average_aggregated_gradients=True
            )
            inputs, wanted, rows = x[:, rank], y[:, rank], 4
        else:
            inputs, wanted, rows = x, y, 4 * size * PASSES
        model.compile(optimizer, "mse")
        model.fit(
            inputs.reshape(-1, 3), wanted.reshape(-1, 1), rows, epochs=2, shuffle=False, verbose=0
        )
        found[passes], kept[passes] = model.get_weights(), optimizer.get_weights()
    for a, b in zip(found[1], found[PASSES], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert kept[1][0] == 4 and kept[PASSES][0] == 12  # all batches count
