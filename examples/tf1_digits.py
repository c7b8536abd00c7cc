"""Two TensorFlow 1 programs on handwritten digits: softmax regression, then a small CNN with Adam.

Prints the test accuracy and the time of a step of each, then the profile of a training step of the
CNN. `--steps` is the number of steps of the CNN; the regression takes three times as many. On 2
cores: 5 s.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

import numpy as np
from common import options
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import weft.tf1 as tf
from weft.datasets import get_mnist, load_digits

console = Console()


def softmax_regression(steps: int) -> float:
    """One matrix maps 784 pixels to 10 classes; gradient descent is written out as assignments."""
    mnist = get_mnist(flatten=True, onehot=True)
    tf.reset_default_graph()
    x = tf.placeholder(tf.float32, [None, 784])
    labels = tf.placeholder(tf.float32, [None, 10])
    w = tf.Variable(tf.zeros([784, 10]))
    b = tf.Variable(tf.zeros([10]))
    y = tf.nn.softmax(tf.matmul(x, w) + b)
    loss = tf.reduce_mean(-tf.reduce_sum(labels * tf.log(y + 1e-9), reduction_indices=[1]))
    w_grad, b_grad = tf.gradients(loss, [w, b])
    train = tf.group(tf.assign(w, w - 0.1 * w_grad), tf.assign(b, b - 0.1 * b_grad))
    hits = tf.equal(tf.argmax(y, 1), tf.argmax(labels, 1))
    accuracy = tf.reduce_mean(tf.cast(hits, tf.float32))

    with tf.Session() as session:
        session.run(tf.global_variables_initializer())

        def step() -> float:
            images, answers = mnist.train.next_batch(100)
            return session.run([loss, train], {x: images, labels: answers})[0]

        def score() -> float:
            test = {x: mnist.test.images, labels: mnist.test.labels}
            return float(session.run(accuracy, test))

        return run("softmax regression", steps, step, score)


def convolutional_network(steps: int) -> float:
    """Two convolutions, two poolings, a hidden layer with dropout; Adam; 8x8 images."""
    images, answers = load_digits()
    order = np.random.default_rng(0).permutation(len(images))
    images, answers = images[order, :, :, None], answers[order].astype(np.int32)
    train_x, test_x = images[:1437], images[1437:]
    train_y, test_y = answers[:1437], answers[1437:]
    batches = np.random.default_rng(1)

    tf.reset_default_graph()
    tf.set_random_seed(7)
    x = tf.placeholder(tf.float32, [None, 8, 8, 1], name="images")
    labels = tf.placeholder(tf.int32, [None], name="labels")
    keep = tf.placeholder(tf.float32, [], name="keep")
    y = x
    for name, channels in (("conv1", 32), ("conv2", 64)):
        with tf.variable_scope(name):
            kernel = tf.get_variable("kernel", [3, 3, y.shape[-1], channels])
            bias = tf.get_variable("bias", [channels], initializer=tf.zeros_initializer())
            y = tf.nn.relu(tf.nn.conv2d(y, kernel, [1, 1, 1, 1], "SAME") + bias)
            y = tf.nn.max_pool(y, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    y = tf.reshape(y, [-1, 2 * 2 * 64])
    y = tf.nn.dropout(dense("hidden", y, 128, tf.nn.relu), keep_prob=keep)
    logits = dense("logits", y, 10)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    loss = tf.reduce_mean(losses)
    train = tf.train.AdamOptimizer(1e-3).minimize(loss)
    hits = tf.equal(tf.argmax(logits, 1, output_type=tf.int32), labels)
    accuracy = tf.reduce_mean(tf.cast(hits, tf.float32))

    with tf.Session() as session:
        session.run(tf.global_variables_initializer())

        def step() -> float:
            picked = batches.choice(len(train_x), 64, replace=False)
            feeds = {x: train_x[picked], labels: train_y[picked], keep: 0.7}
            return session.run([loss, train], feeds)[0]

        def score() -> float:
            return float(session.run(accuracy, {x: test_x, labels: test_y, keep: 1.0}))

        result = run("convolutional network", steps, step, score)
        picked = {x: train_x[:64], labels: train_y[:64], keep: 0.7}
        print(session.profile([loss, train], picked))
        return result


def dense(
    name: str, x: tf.Tensor, units: int, activation: Callable[[tf.Tensor], tf.Tensor] = tf.identity
) -> tf.Tensor:
    """A fully connected layer."""
    with tf.variable_scope(name):
        weights = tf.get_variable("weights", [x.shape[-1], units])
        bias = tf.get_variable("bias", [units], initializer=tf.zeros_initializer())
        return activation(tf.matmul(x, weights) + bias)


def run(title: str, steps: int, step: Callable[[], float], score: Callable[[], float]) -> float:
    """Train with a progress bar; returns the test accuracy."""
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    show = TextColumn("loss {task.fields[loss]:.3f}  accuracy {task.fields[accuracy]:.3f}")
    start = time.perf_counter()
    first = step()
    compiled = time.perf_counter() - start
    times: list[float] = []
    with Progress(*columns, show, console=console) as progress:
        task = progress.add_task(title, total=steps, loss=first, accuracy=score())
        for number in range(1, steps):
            begin = time.perf_counter()
            loss = step()
            times.append(time.perf_counter() - begin)
            if number % 100 == 0 or number == steps - 1:
                progress.update(task, completed=number + 1, loss=loss, accuracy=score())
    accuracy = score()
    console.print(
        f"{title}: test accuracy [bold]{accuracy:.4f}[/], first step {compiled * 1e3:.0f} ms "
        f"(compiling), then {statistics.median(times) * 1e6:.1f} us a step, batch included\n"
    )
    return accuracy


def main(arguments: Sequence[str] | None = None) -> tuple[float, float]:
    """Train both; returns their test accuracies."""
    steps = options(__doc__, steps=1000).parse_args(arguments).steps
    return softmax_regression(3 * steps), convolutional_network(steps)


if __name__ == "__main__":
    main()
