"""Horovod's names for Keras, checked on each rank; called by job_checks.py."""

import tempfile

import numpy as np

import weft.horovod.keras as hvd
import weft.tf1 as tf
from weft.datasets import load_digits


def check_keras(rank: int, size: int) -> None:
    """Horovod's Keras example, on the bundled digits; its import apart."""
    tf.keras.backend.clear_session()
    images, answers = load_digits()
    data, labels = images.reshape(len(images), -1)[rank::size], answers[rank::size]
    rows = len(data) // 64 * 64
    tf.set_random_seed(rank)  # rank 0's beginning is taken
    model = tf.keras.Sequential([
        tf.keras.layers.Dense(32, activation="relu", input_shape=(64,)),
        tf.keras.layers.Dense(10, activation="softmax"),
    ])  # fmt: skip
    opt = hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.1 * size, momentum=0.5))
    model.compile(opt, "sparse_categorical_crossentropy", metrics=["accuracy"])
    told = {}
    rates = []
    callbacks = [
        hvd.callbacks.BroadcastGlobalVariablesCallback(0),
        hvd.callbacks.MetricAverageCallback(),
        hvd.callbacks.LearningRateWarmupCallback(
            0.1 * size, warmup_epochs=2, steps_per_epoch=rows // 64
        ),
        hvd.callbacks.LearningRateScheduleCallback(0.1 * size, 0.5, start_epoch=3),
        tf.keras.callbacks.LambdaCallback(
            on_epoch_end=lambda epoch, logs: (told.update(logs), rates.append(logs["lr"]))
        ),
    ]
    model.fit(data[:rows], labels[:rows], 64, epochs=4, verbose=0, callbacks=callbacks)
    kernel = model.get_weights()[0]
    every = hvd.allgather_object({"weights": kernel, "acc": told["acc"]})
    for each in every:  # the update after the broadcast is the same on all ranks
        np.testing.assert_array_equal(each["weights"], every[0]["weights"])
        assert each["acc"] == every[0]["acc"] > 0.3
    half = 0.1 * (1 + (size - 1) / 2)
    np.testing.assert_allclose(rates, [half, 0.1 * size, 0.1 * size, 0.05 * size], rtol=1e-5)


def check_keras_values(rank: int, size: int) -> None:
    """Collectives on values run in Keras's session."""
    tf.keras.backend.clear_session()
    v = tf.Variable(float(rank + 1))
    session = tf.keras.backend.get_session()
    session.run(tf.global_variables_initializer())
    hvd.broadcast_global_variables(1)
    assert session.run(v) == 2.0
    total = size * (size + 1) / 2
    assert hvd.allreduce(rank + 1.0, op=hvd.Sum, prescale_factor=2.0) == 2 * total
    assert hvd.allreduce([rank + 1.0], name="mean").tolist() == [total / size]
    assert hvd.allgather([rank] * (rank + 1)).tolist() == [
        i for i in range(size) for _ in range(i + 1)
    ]
    assert hvd.broadcast(rank, 1) == 1
    assert hvd.reducescatter(np.arange(2.0 * size), op=hvd.Sum).tolist() == [
        size * 2.0 * rank, size * (2.0 * rank + 1)
    ]  # fmt: skip


def elastic_model(rank: int) -> tf.keras.Model:
    tf.keras.backend.clear_session()
    tf.set_random_seed(rank)  # rank 0's beginning is taken
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(2,))])
    optimizer = tf.keras.optimizers.SGD(0.01, momentum=0.9)
    model.compile(hvd.DistributedOptimizer(optimizer), "mse")
    return model


def check_keras_elastic(rank: int, size: int) -> None:
    """Training that ends within its second epoch goes on there, as if it had not."""
    data = np.arange(16.0).reshape(8, 2) + rank, np.ones((8, 1))

    def trained(folder: str, fails_at: tuple[int, int] | None) -> tuple[list, list]:
        state = hvd.elastic.KerasState(elastic_model(rank), folder=folder, batch=0, epoch=0)
        seen = []

        def note(batch: int, _: dict) -> None:
            seen.append((state.epoch, batch))
            if seen[-1] == fails_at:
                raise RuntimeError("a failure")

        @hvd.elastic.run
        def train(state: hvd.elastic.KerasState) -> None:
            callbacks = [
                hvd.elastic.UpdateEpochStateCallback(state),
                hvd.elastic.UpdateBatchStateCallback(state),
                hvd.elastic.CommitStateCallback(state),
                tf.keras.callbacks.LambdaCallback(on_batch_begin=note),
            ]
            options = {"epochs": 3 - state.epoch, "verbose": 0, "callbacks": callbacks}
            state.model.fit(*data, batch_size=2, shuffle=False, **options)

        try:
            train(state)
        except RuntimeError as error:
            assert "a failure" in str(error) and fails_at is not None
        assert (state.epoch, state.batch) == ((1, 1) if fails_at else (3, 0))
        return seen, [*state.model.get_weights(), *state.optimizer.get_weights()]

    with tempfile.TemporaryDirectory() as folder:
        first, _ = trained(folder, (1, 2))
        rest, weights = trained(folder, None)
    every = [(epoch, batch) for epoch in range(3) for batch in range(4)]
    assert first == every[:7] and rest == every[5:]  # the batch of the last commit again
    assert weights[2] == 13  # updates
    for mine in hvd.allgather_object(weights):
        for one, another in zip(mine, weights, strict=True):
            np.testing.assert_array_equal(one, another)
