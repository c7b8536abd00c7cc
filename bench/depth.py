"""Compile time of a deep graph: a chain of dense layers of width 32 with its gradients."""

from __future__ import annotations

import tempfile
import time

import numpy as np

import weft.tf1 as tf
from weft import config

WIDTH = 32


def compile_seconds(layers: int) -> float:
    """Seconds of the first step of a chain of `layers` layers, with an empty code cache."""
    graph = tf.Graph()
    rng = np.random.default_rng(0)
    weights = (rng.standard_normal((WIDTH, WIDTH)) * np.sqrt(2 / WIDTH)).astype(np.float32)
    with graph.as_default():
        x = tf.placeholder(tf.float32, [None, WIDTH])
        y, parameters = x, []
        for _ in range(layers):
            w, b = tf.Variable(weights), tf.Variable(tf.zeros([WIDTH]))
            y = tf.nn.relu(tf.matmul(y, w) + b)
            parameters += [w, b]
        loss = tf.reduce_sum(y)
        train = tf.train.GradientDescentOptimizer(1e-9).minimize(loss, var_list=parameters)
        start = tf.global_variables_initializer()
    with (
        tempfile.TemporaryDirectory() as folder,
        config.override(cache=folder),
        tf.Session(graph=graph) as session,
    ):
        session.run(start)
        begin = time.perf_counter()
        session.run(train, {x: np.ones((16, WIDTH), np.float32)})
        return time.perf_counter() - begin
