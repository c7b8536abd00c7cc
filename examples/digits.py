"""One digit classifier in each of the three front ends; `make demo` runs this.

The same perceptron, 784-128-10, learns the same digits as an eager module, as a pure function, and
as a TensorFlow 1 graph. Prints the test accuracy of each. On 2 cores: 3 s.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
from common import options

import weft as wf
import weft.tf1 as tf
from weft import func, nn
from weft.datasets import get_mnist
from weft.datasets.mnist import Datasets

RATE = 3e-3  # of Adam
BATCH = 100


@cache
def digits() -> Datasets:
    """The digits bundled with Weft, or MNIST from the folder in `WEFT_DATA`."""
    return get_mnist(onehot=False)


def batches(steps: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Images (BATCH, 784) in [0, 1] and their labels; each call yields the same batches."""
    train = digits().train
    draw = np.random.default_rng(0)
    for _ in range(steps):
        rows = draw.choice(len(train.images), BATCH, replace=False)
        yield train.images[rows], train.labels[rows].astype(np.int64)


def accuracy(logits: np.ndarray) -> float:
    """The fraction of test images whose largest logit is that of their label."""
    return float((logits.argmax(1) == digits().test.labels).mean())


def perceptron() -> nn.Module:
    """784 pixels to 10 logits."""
    wf.manual_seed(0)
    return nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))


def eager(steps: int) -> float:
    """As in PyTorch: a module, a loss, an optimizer."""
    model = perceptron()
    optimizer = wf.optim.Adam(model.parameters(), lr=RATE)
    for images, labels in batches(steps):
        logits = model(wf.from_numpy(images))
        nn.functional.cross_entropy(logits, wf.from_numpy(labels)).backward()
        optimizer.step()
        optimizer.zero_grad()
    with wf.no_grad():
        return accuracy(model(wf.from_numpy(digits().test.images)).numpy())


def functional(steps: int) -> float:
    """As in JAX: the gradient of a pure function of the parameters; plain gradient descent."""
    model = perceptron()
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def loss(parameters: dict[str, wf.Tensor], x: wf.Tensor, y: wf.Tensor) -> wf.Tensor:
        return nn.functional.cross_entropy(func.functional_call(model, parameters, x), y)

    gradient = func.jit(func.grad(loss))
    for images, labels in batches(steps):
        g = gradient(parameters, wf.from_numpy(images), wf.from_numpy(labels))
        parameters = {name: p - 0.1 * g[name] for name, p in parameters.items()}
    test = wf.from_numpy(digits().test.images)
    return accuracy(func.functional_call(model, parameters, test).numpy())


def tf1(steps: int) -> float:
    """As in TensorFlow 1: a graph, run by a session."""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(0)
        x = tf.placeholder(tf.float32, [None, 784])
        y = tf.placeholder(tf.int64, [None])
        logits = tf.layers.dense(tf.layers.dense(x, 128, tf.nn.relu), 10)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
        train = tf.train.AdamOptimizer(RATE).minimize(tf.reduce_mean(losses))
        session.run(tf.global_variables_initializer())
        for images, labels in batches(steps):
            session.run(train, {x: images, y: labels})
        return accuracy(session.run(logits, {x: digits().test.images}))


def main(arguments: Sequence[str] | None = None) -> tuple[float, float, float]:
    """Train in each front end; the test accuracies."""
    steps = options(__doc__, steps=300).parse_args(arguments).steps
    found = []
    for train in (eager, functional, tf1):
        found.append(train(steps))
        print(f"{train.__name__:<10} test accuracy {found[-1]:.3f}", flush=True)
    return found[0], found[1], found[2]


if __name__ == "__main__":
    main()
