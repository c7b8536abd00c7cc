"""An LSTM of width 128, batch 32, unrolled by Python's loop, with gradients: `unrolled:STEPS`."""

from __future__ import annotations

import numpy as np

WIDTH, BATCH = 128, 32


def _input(steps):
    return np.random.default_rng(0).standard_normal((steps, BATCH, WIDTH), np.float32)


def _eager(framework, steps):
    cell = framework.nn.LSTMCell(WIDTH, WIDTH)
    xs = framework.tensor(_input(steps))

    def step():
        h = c = framework.zeros(BATCH, WIDTH)
        for t in range(steps):
            h, c = cell(xs[t], (h, c))
        loss = h.square().sum()
        loss.backward()
        slopes = [float(w.grad.sum()) for w in cell.parameters()]
        cell.zero_grad()
        return float(loss.detach()), slopes

    return step


def weft(threads, steps):
    """Compiled before its first run, as the peers below are."""
    import weft as wf
    from weft import config

    step = _eager(wf, int(steps))

    def compiled():
        with config.override(compile=True):
            return step()

    return compiled


def weft_eager(threads, steps):
    import weft as wf

    return _eager(wf, int(steps))


def torch(threads, steps):
    import torch

    torch.set_num_threads(threads)
    return _eager(torch, int(steps))


def jax(threads, steps):
    import jax
    import jax.numpy as jnp

    def loss_of(weights, xs):
        own, recurrent, bias = weights
        h = c = jnp.zeros((BATCH, WIDTH))
        for t in range(int(steps)):
            i, f, g, o = jnp.split(xs[t] @ own + h @ recurrent + bias, 4, axis=-1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h * h).sum()

    compiled = jax.jit(jax.value_and_grad(loss_of))
    rng = np.random.default_rng(1)
    shapes = (WIDTH, 4 * WIDTH), (WIDTH, 4 * WIDTH), (4 * WIDTH,)
    weights = [jnp.array(rng.uniform(-0.1, 0.1, s).astype(np.float32)) for s in shapes]
    xs = jnp.array(_input(int(steps)))
    return lambda: jax.block_until_ready(compiled(weights, xs))


def tf1_session(threads, steps):
    import tensorflow.compat.v1 as tf

    return _session(tf, tf.disable_eager_execution, int(steps))


def weft_session(threads, steps):
    import weft.tf1 as tf

    return _session(tf, lambda: None, int(steps))


def _session(tf, begin, steps):
    """Cell and graph as TensorFlow 1 writes them; building the graph is part of the first step."""
    begin()
    held = []

    def build():
        x = tf.placeholder(tf.float32, [steps, BATCH, WIDTH])
        w = tf.Variable(np.full((2 * WIDTH, 4 * WIDTH), 0.01, np.float32))
        b = tf.Variable(np.zeros(4 * WIDTH, np.float32))
        h = c = tf.zeros([BATCH, WIDTH])
        for t in range(steps):
            gates = tf.matmul(tf.concat([x[t], h], 1), w) + b
            i, f, g, o = tf.split(gates, 4, 1)
            c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
            h = tf.sigmoid(o) * tf.tanh(c)
        loss = tf.reduce_sum(tf.square(h))
        wanted = [loss, *tf.gradients(loss, [w, b])]
        session = tf.Session()
        session.run(tf.global_variables_initializer())
        held.append((session, wanted, {x: _input(steps)}))

    def step():
        if not held:
            build()
        session, wanted, feed = held[0]
        return session.run(wanted, feed)

    return step
