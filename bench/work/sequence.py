"""Recurrent layers 512 wide, batch 32, 50 steps: a training step with stochastic gradient descent.

`sequence:lstm` and `sequence:gru` are the layers, `sequence:cell` the LSTM as a user writes it: a
scan of a cell.
"""

from __future__ import annotations

import numpy as np

WIDTH, BATCH, STEPS, RATE = 512, 32, 50, 1e-3
GATES = {"lstm": 4, "cell": 4, "gru": 3}


def _input():
    return np.random.default_rng(0).standard_normal((STEPS, BATCH, WIDTH), np.float32)


def _weights(task):
    rng = np.random.default_rng(1)
    shape = WIDTH, GATES[task] * WIDTH
    return [rng.uniform(-0.04, 0.04, shape).astype(np.float32) for _ in range(2)]


def _training(framework, parameters, run):
    x = framework.tensor(_input())
    optimizer = framework.optim.SGD(parameters, lr=RATE)

    def step():
        loss = run(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return float(loss.detach())

    return step


def _layer(framework, task):
    layer = (framework.nn.GRU if task == "gru" else framework.nn.LSTM)(WIDTH, WIDTH)
    return _training(framework, layer.parameters(), lambda x: layer(x)[0])


def weft(threads, task):
    import weft as wf

    if task != "cell":
        return _layer(wf, task)
    own, recurrent = [wf.tensor(w, requires_grad=True) for w in _weights(task)]
    zeros = wf.zeros(BATCH, WIDTH)

    def cell(state, x):
        h, c = state
        i, f, g, o = (x @ own + h @ recurrent).chunk(4, -1)
        c = wf.sigmoid(f) * c + wf.sigmoid(i) * wf.tanh(g)
        h = wf.sigmoid(o) * wf.tanh(c)
        return (h, c), h

    return _training(wf, [own, recurrent], lambda x: wf.scan(cell, (zeros, zeros), x)[1])


def weft_layer(threads, task):
    """The layer that computes the same as the user's cell."""
    import weft as wf

    return _layer(wf, "lstm")


def torch(threads, task):
    import torch

    torch.set_num_threads(threads)
    return _layer(torch, task)


def jax(threads, task):
    import jax
    import jax.numpy as jnp

    zeros = jnp.zeros((BATCH, WIDTH))

    def lstm(recurrent, state, product):
        h, c = state
        i, f, g, o = jnp.split(product + h @ recurrent, 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    def gru(recurrent, state, product):
        h = state[0]
        (a, b, n), (p, q, m) = (jnp.split(y, 3, axis=-1) for y in (product, h @ recurrent))
        r, z = jax.nn.sigmoid(a + p), jax.nn.sigmoid(b + q)
        h = (1 - z) * jnp.tanh(n + r * m) + z * h
        return (h,), h

    cell, state = (gru, (zeros,)) if task == "gru" else (lstm, (zeros, zeros))

    def loss_of(weights, x):
        own, recurrent = weights
        products = x @ own  # of all steps at once
        hs = jax.lax.scan(lambda s, p: cell(recurrent, s, p), state, products)[1]
        return (hs * hs).mean()

    def train(weights, x):
        loss, g = jax.value_and_grad(loss_of)(weights, x)
        return [w - RATE * d for w, d in zip(weights, g, strict=True)], loss

    compiled = jax.jit(train, donate_argnums=0)
    weights, x = [[jnp.array(w) for w in _weights(task)]], jnp.array(_input())

    def step():
        weights[0], loss = compiled(weights[0], x)
        jax.block_until_ready(weights[0])
        return float(loss)

    return step


def tf2_function(threads, task):
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    kind = tf.keras.layers.GRU if task == "gru" else tf.keras.layers.LSTM
    layer = kind(WIDTH, return_sequences=True)
    x = tf.constant(_input().transpose(1, 0, 2))
    layer.build(x.shape)

    @tf.function
    def train():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(layer(x)))
        slopes = tape.gradient(loss, layer.trainable_variables)
        for w, g in zip(layer.trainable_variables, slopes, strict=True):
            w.assign_sub(RATE * g)
        return loss

    return lambda: float(train())
