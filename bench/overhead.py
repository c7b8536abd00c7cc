"""What a run costs above its arithmetic: Python, the foreign call, results handed out."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

import weft.tf1 as tf
from bench.work.softmax import IMAGES, LABELS


def measure(threads: int, rounds: int = 40, steps: int = 200) -> tuple[float, float]:
    """Median seconds of a softmax-regression run, and of its native calls alone, in turns."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 784])
        labels = tf.placeholder(tf.float32, [None, 10])
        w, b = tf.Variable(tf.zeros([784, 10])), tf.Variable(tf.zeros([10]))
        logits = tf.matmul(x, w) + b
        losses = tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        loss = tf.reduce_mean(losses)
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        config = tf.ConfigProto(intra_op_parallelism_threads=threads)
        session = tf.Session(config=config)
        session.run(tf.global_variables_initializer())
    feeds = {x: IMAGES, labels: LABELS}

    def run() -> None:
        session.run([loss, train], feeds)

    run()
    program = session.program([loss, train], feeds)

    def native() -> None:
        program.program.run()

    found: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for step, seconds in ((run, found[0]), (native, found[1])):
            seconds.append(_per_step(step, steps))
    return statistics.median(found[0]), statistics.median(found[1])


def _per_step(step: Callable[[], None], steps: int) -> float:
    start = time.perf_counter()
    for _ in range(steps):
        step()
    return (time.perf_counter() - start) / steps


if __name__ == "__main__":
    print(np.array(measure(2)) * 1e6)
