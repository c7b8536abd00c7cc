"""Perceptron 784-512-512-10, batch 128, ReLU, cross entropy, Adam; the loss is fetched."""

from __future__ import annotations

import itertools

import numpy as np

rng = np.random.default_rng(0)
IMAGES = rng.random((128, 784), np.float32)
LABELS = rng.integers(0, 10, 128).astype(np.int32)
SIZES = (784, 512, 512, 10)
WEIGHTS = [
    (rng.standard_normal((i, o)) * np.sqrt(2 / i)).astype(np.float32)
    for i, o in itertools.pairwise(SIZES)
]


def _session_step(tf, session):
    x = tf.placeholder(tf.float32, [None, 784])
    labels = tf.placeholder(tf.int32, [None])
    y = x
    for number, value in enumerate(WEIGHTS):
        w, b = tf.Variable(value), tf.Variable(tf.zeros([value.shape[1]]))
        y = tf.matmul(y, w) + b
        y = y if number == len(WEIGHTS) - 1 else tf.nn.relu(y)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=y)
    loss = tf.reduce_mean(losses)
    train = tf.train.AdamOptimizer(1e-3).minimize(loss)
    session.run(tf.global_variables_initializer())
    return lambda: float(session.run([loss, train], {x: IMAGES, labels: LABELS})[0])


def weft(threads):
    import weft.tf1 as tf

    return _session_step(tf, tf.Session())


def weft_eager(threads):
    import weft as wf
    from weft import nn

    layers = []
    for value in WEIGHTS:
        layer = nn.Linear(*value.shape)
        layer.weight.data.copy_(wf.from_numpy(value.T.copy()))
        layers += [layer, nn.ReLU()]
    model = nn.Sequential(*layers[:-1])
    optimizer = wf.optim.Adam(model.parameters(), 1e-3)
    labels = wf.from_numpy(LABELS.astype(np.int64))

    def step():
        loss = nn.functional.cross_entropy(model(wf.from_numpy(IMAGES)), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return float(loss.detach())

    return step


def tf1_session(threads):
    import tensorflow.compat.v1 as tf

    tf.disable_eager_execution()
    config = tf.ConfigProto(intra_op_parallelism_threads=threads)
    return _session_step(tf, tf.Session(config=config))


def tf2_function(threads):
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    parameters = [tf.Variable(p) for w in WEIGHTS for p in (w, np.zeros(w.shape[1], np.float32))]
    optimizer = tf.keras.optimizers.Adam(1e-3)

    @tf.function
    def train(x, labels):
        with tf.GradientTape() as tape:
            y = tf.nn.relu(x @ parameters[0] + parameters[1])
            y = tf.nn.relu(y @ parameters[2] + parameters[3])
            y = y @ parameters[4] + parameters[5]
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, y)
            loss = tf.reduce_mean(losses)
        gradients = tape.gradient(loss, parameters)
        optimizer.apply_gradients(zip(gradients, parameters, strict=True))
        return loss

    return lambda: float(train(IMAGES, LABELS))


def _torch_step(threads, compiled):
    import torch

    torch.set_num_threads(threads)
    layers = []
    for value in WEIGHTS:
        layer = torch.nn.Linear(*value.shape)
        layer.weight.data.copy_(torch.from_numpy(value.T.copy()))
        layers += [layer, torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers[:-1])
    optimizer = torch.optim.Adam(model.parameters(), 1e-3, fused=True)
    run = torch.compile(model) if compiled else model
    labels = torch.from_numpy(LABELS.astype(np.int64))

    def step():
        loss = torch.nn.functional.cross_entropy(run(torch.from_numpy(IMAGES)), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return float(loss.detach())

    return step


def torch(threads):
    return _torch_step(threads, False)


def torch_compile(threads):
    return _torch_step(threads, True)


def jax(threads):
    import jax
    import jax.numpy as jnp

    def loss_of(parameters, x, labels):
        y = x
        for number, (w, b) in enumerate(parameters):
            y = y @ w + b
            y = y if number == len(parameters) - 1 else jax.nn.relu(y)
        chosen = jnp.take_along_axis(jax.nn.log_softmax(y), labels[:, None], axis=1)
        return -jnp.mean(chosen)

    def train(state, x, labels):
        parameters, m, v, t = state
        loss, g = jax.value_and_grad(loss_of)(parameters, x, labels)
        t = t + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        rate = 1e-3 * jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        parameters = jax.tree.map(
            lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-8), parameters, m, v
        )
        return (parameters, m, v, t), loss

    compiled = jax.jit(train, donate_argnums=0)
    first = [(jnp.array(w), jnp.zeros(w.shape[1])) for w in WEIGHTS]
    zeros = jax.tree.map(jnp.zeros_like, first)
    state = [(first, zeros, jax.tree.map(jnp.copy, zeros), jnp.float32(0))]

    def step():
        state[0], loss = compiled(state[0], IMAGES, LABELS)
        jax.block_until_ready(state[0])
        return float(loss)

    return step
