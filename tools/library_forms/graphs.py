"""Programs of TensorFlow 1: initializers, layers, losses, optimizers, metrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import weft.tf1 as tf

Layer = Callable[[Any, int], Any]

INITIALIZERS: tuple[Callable[[list[int]], Any], ...] = (
    lambda shape: tf.random_normal(shape, stddev=0.1),
    lambda shape: tf.truncated_normal(shape, stddev=0.1),
    lambda shape: tf.random_uniform(shape, -1.0, 1.0),
    lambda shape: tf.random_normal(shape),
    lambda shape: tf.random_uniform(shape),
    lambda shape: tf.cast(tf.random_uniform(shape, maxval=2, dtype=tf.int32), tf.float32),
    lambda shape: tf.zeros(shape),
)
OPTIMIZERS: tuple[Callable[[], Any], ...] = (
    lambda: tf.train.GradientDescentOptimizer(0.05),
    lambda: tf.train.AdamOptimizer(0.001),
    lambda: tf.train.RMSPropOptimizer(0.001, 0.9),
    lambda: tf.train.MomentumOptimizer(0.01, 0.9),
    lambda: tf.train.AdagradOptimizer(0.01),
)
ACTIVATIONS = (tf.nn.relu, tf.nn.sigmoid, tf.nn.tanh)
NETWORKS = (
    (128, 784, (625, 625), 10), (100, 784, (256, 256), 10), (50, 784, (256, 64), 784),
    (32, 20, (50,), 2), (6, 2, (10,), 3), (4, 2, (2,), 1), (100, 1, (), 1), (64, 100, (128,), 1),
    (1, 2, (2,), 1), (1, 2, (1,), 1), (1, 4, (10,), 3), (1, 784, (256,), 10),
)  # fmt: skip
"""Rows of a batch, inputs, widths of hidden layers, outputs."""


def networks() -> None:
    """Networks of dense layers, each with every optimizer, trained and evaluated."""
    for place, (rows, width, hidden, classes) in enumerate(NETWORKS):
        for number, optimizer in enumerate(OPTIMIZERS):
            initial = INITIALIZERS[(place + number) % len(INITIALIZERS)]
            activation = ACTIVATIONS[(place + number) % len(ACTIVATIONS)]
            with tf.Graph().as_default(), tf.Session() as session:
                x = tf.placeholder(tf.float32, [None, width])
                y = tf.placeholder(tf.float32, [None, classes])
                keep = tf.placeholder(tf.float32)
                h = tf.concat([x, x], 1)[:, :width]
                for size in hidden:
                    w = tf.Variable(initial([int(h.shape[1]), size]))
                    b = tf.Variable(tf.zeros([size]))
                    h = tf.nn.dropout(activation(tf.matmul(h, w) + b), keep)
                w = tf.Variable(initial([int(h.shape[1]), classes]))
                b = tf.Variable(tf.zeros([classes]))
                logits = tf.add(tf.matmul(h, w), b)
                losses = _losses(logits, y)
                loss = losses[number % len(losses)]
                train = optimizer().minimize(loss)
                right = tf.equal(tf.argmax(logits, 1), tf.argmax(y, 1))
                accuracy = tf.reduce_mean(tf.cast(right, tf.float32))
                session.run(tf.global_variables_initializer())
                feed = {x: _numbers(rows, width), y: _numbers(rows, classes), keep: 0.8}
                session.run([train, loss], feed)
                session.run(train, feed)
                for each in losses:
                    session.run(each, feed)
                session.run([accuracy, tf.argmax(logits, 1)], feed | {keep: 1.0})


def _losses(logits: Any, y: Any) -> tuple[Any, ...]:
    entropy = tf.nn.softmax_cross_entropy_with_logits(logits=logits, labels=y)
    output = tf.nn.sigmoid(logits)
    return (
        tf.reduce_mean(entropy),
        tf.reduce_mean(tf.square(logits - y)),
        tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(logits=logits, labels=y)),
        tf.reduce_mean(-tf.reduce_sum(y * tf.log(tf.nn.softmax(logits)), axis=1)),
        tf.reduce_sum(tf.pow(output - y, 2)) / (2 * tf.cast(tf.shape(y)[0], tf.float32)),
        tf.sqrt(tf.reduce_sum(tf.square(output - y))),
    )


def _numbers(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).random(shape, np.float32)


def images() -> None:
    """Networks of convolutions."""
    for rows, side, channels, optimizer in ((128, 28, (32, 64), 1), (32, 28, (16, 32), 0)):
        with tf.Graph().as_default(), tf.Session() as session:
            x = tf.placeholder(tf.float32, [None, side * side])
            y = tf.placeholder(tf.int64, [None])
            h = tf.reshape(x, [-1, side, side, 1])
            for size in channels:
                w = tf.Variable(tf.truncated_normal([5, 5, int(h.shape[3]), size], stddev=0.1))
                b = tf.Variable(tf.constant(0.1, shape=[size]))
                h = tf.nn.conv2d(h, w, strides=[1, 1, 1, 1], padding="SAME")
                h = tf.nn.max_pool(tf.nn.relu(h + b), [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
            h = tf.layers.dense(tf.layers.flatten(h), 128, activation=tf.nn.relu)
            logits = tf.layers.dense(h, 10)
            loss = tf.losses.sparse_softmax_cross_entropy(labels=y, logits=logits)
            train = OPTIMIZERS[optimizer]().minimize(loss)
            session.run(tf.global_variables_initializer())
            feed = {x: _numbers(rows, side * side), y: np.arange(rows) % 10}
            session.run([train, loss], feed)
            session.run(tf.argmax(logits, 1), feed)


PROGRAMS = (networks, images)
