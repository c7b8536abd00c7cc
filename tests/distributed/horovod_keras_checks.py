"""Horovod's names for Keras, checked on each rank; called by job_checks.py."""

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
