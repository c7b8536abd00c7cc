"""Softmax regression, 784 to 10, batch 100, gradient descent; the loss is fetched each step."""

from __future__ import annotations

import numpy as np

rng = np.random.default_rng(0)
IMAGES = rng.random((100, 784), np.float32)
LABELS = np.eye(10, dtype=np.float32)[rng.integers(0, 10, 100)]


def _session_step(tf, session):
    x = tf.placeholder(tf.float32, [None, 784])
    labels = tf.placeholder(tf.float32, [None, 10])
    w, b = tf.Variable(tf.zeros([784, 10])), tf.Variable(tf.zeros([10]))
    logits = tf.matmul(x, w) + b
    losses = tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    loss = tf.reduce_mean(losses)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    session.run(tf.global_variables_initializer())
    return lambda: float(session.run([loss, train], {x: IMAGES, labels: LABELS})[0])


def weft(threads):
    import weft.tf1 as tf

    return _session_step(tf, tf.Session())


def tf1_session(threads):
    import tensorflow.compat.v1 as tf

    tf.disable_eager_execution()
    config = tf.ConfigProto(intra_op_parallelism_threads=threads)
    return _session_step(tf, tf.Session(config=config))


def tf2_function(threads):
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    w, b = tf.Variable(tf.zeros([784, 10])), tf.Variable(tf.zeros([10]))

    @tf.function
    def train(x, labels):
        with tf.GradientTape() as tape:
            losses = tf.nn.softmax_cross_entropy_with_logits(labels, tf.matmul(x, w) + b)
            loss = tf.reduce_mean(losses)
        w_grad, b_grad = tape.gradient(loss, [w, b])
        w.assign_sub(0.1 * w_grad)
        b.assign_sub(0.1 * b_grad)
        return loss

    return lambda: float(train(IMAGES, LABELS))


def torch(threads):
    import torch

    torch.set_num_threads(threads)
    model = torch.nn.Linear(784, 10)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step():
        x, labels = torch.from_numpy(IMAGES), torch.from_numpy(LABELS)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return step


def torch_compile(threads):
    import torch

    torch.set_num_threads(threads)
    w = torch.zeros(784, 10, requires_grad=True)
    b = torch.zeros(10, requires_grad=True)

    @torch.compile
    def loss_of(x, labels):
        return torch.nn.functional.cross_entropy(x @ w + b, labels)

    optimizer = torch.optim.SGD([w, b], 0.1)

    def step():
        optimizer.zero_grad()
        loss = loss_of(torch.from_numpy(IMAGES), torch.from_numpy(LABELS))
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return step


def jax(threads):
    import jax
    import jax.numpy as jnp

    def loss_of(parameters, x, labels):
        w, b = parameters
        return -jnp.mean(jnp.sum(labels * jax.nn.log_softmax(x @ w + b), axis=1))

    @jax.jit
    def train(parameters, x, labels):
        loss, gradients = jax.value_and_grad(loss_of)(parameters, x, labels)
        return [p - 0.1 * g for p, g in zip(parameters, gradients, strict=True)], loss

    state = [[jnp.zeros((784, 10)), jnp.zeros(10)]]

    def step():
        state[0], loss = train(state[0], IMAGES, LABELS)
        state[0][0].block_until_ready()
        return float(loss)

    return step
