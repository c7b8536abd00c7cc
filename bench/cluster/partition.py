"""ResNet-50's training step over two local devices, beside the same on one:
`python -m bench.cluster.partition`.

The first blocks are on one device, the last ones and the loss on the other; gradients and updates
follow. Both run in one process, in turns, with the same threads.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from weft import tf1 as tf

BLOCKS: Final = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))
BAR: Final = 1.05


def _unit(x: Any, width: int, kernel: int, stride: int = 1) -> Any:
    x = tf.layers.conv2d(x, width, kernel, stride, "same", use_bias=False)
    return tf.layers.batch_normalization(x, training=True, epsilon=1e-5)


def _block(x: Any, width: int, stride: int, widen: bool) -> Any:
    y = tf.nn.relu(_unit(x, width, 1))
    y = tf.nn.relu(_unit(y, width, 3, stride))
    shortcut = _unit(x, 4 * width, 1, stride) if widen else x
    return tf.nn.relu(_unit(y, 4 * width, 1) + shortcut)


def resnet50(x: Any, last: int, devices: tuple[str, str]) -> Any:
    """Logits; blocks from number `last` of four on are on the second device."""
    with tf.device(devices[0]):
        x = tf.nn.relu(_unit(x, 64, 7, 2))
        x = tf.layers.max_pooling2d(x, 3, 2, "same")
    for number, (width, count, stride) in enumerate(BLOCKS):
        with tf.device(devices[number >= last]):
            for i in range(count):
                x = _block(x, width, stride if i == 0 else 1, i == 0)
    with tf.device(devices[1]):
        return tf.layers.dense(tf.reduce_mean(x, (1, 2)), 1000)


def training_step(
    batch: int, size: int, last: int, config: tf.ConfigProto
) -> tuple[Callable[[], Any], tf.Session]:
    """A function that trains once and gives the loss, and its session."""
    graph = tf.Graph()
    with graph.as_default():
        tf.set_random_seed(0)
        x = tf.placeholder(tf.float32, (batch, size, size, 3))
        labels = tf.placeholder(tf.int32, (batch,))
        logits = resnet50(x, last, ("/cpu:0", "/cpu:1"))
        with tf.device("/cpu:1"):
            loss = tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
            )
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            train = tf.train.MomentumOptimizer(0.01, 0.9).minimize(loss)
        session = tf.Session(config=config)
        session.run(tf.global_variables_initializer())
    random = np.random.default_rng(0)
    feeds = {
        x: random.standard_normal((batch, size, size, 3)).astype(np.float32),
        labels: random.integers(0, 1000, batch).astype(np.int32),
    }
    return lambda: session.run([loss, train], feeds)[0], session


def _options(threads: int, devices: int) -> tf.ConfigProto:
    return tf.ConfigProto(
        intra_op_parallelism_threads=threads, allow_soft_placement=True,
        device_count={"CPU": devices},
    )  # fmt: skip


def measure(
    threads: int, batch: int = 8, size: int = 224, last: int = 3, rounds: int = 10
) -> tuple[float, float]:
    """Seconds of a step on one device and on two, medians of rounds in turns.

    Raises:
        AssertionError: the losses differ.
    """
    one, _ = training_step(batch, size, last, _options(threads, 1))
    two, _ = training_step(batch, size, last, _options(threads, 2))
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds + 1):
        found: list[Any] = []
        for step, kept in zip((one, two), times, strict=True):
            start = time.perf_counter()
            found.append(step())
            if number:  # the first step compiles
                kept.append(time.perf_counter() - start)
        assert found[0] == found[1], found
    return statistics.median(times[0]), statistics.median(times[1])


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the times, and their ratio beside the bar."""
    parser = argparse.ArgumentParser(prog="python -m bench.cluster.partition")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--rounds", type=int, default=10)
    given = parser.parse_args(arguments)
    one, two = measure(given.threads, given.batch, given.size, rounds=given.rounds)
    print(
        f"ResNet-50's step, batch {given.batch}, {given.threads} threads: one device "
        f"{one * 1e3:.0f} ms, two {two * 1e3:.0f} ms, {two / one:.3f} of it (bar: {BAR})"
    )


if __name__ == "__main__":
    main()
