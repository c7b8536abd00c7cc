"""Language model: 2 LSTM layers of 650, 35 words, batch 20, vocabulary 10,000, SGD.

The medium model of Zaremba et al., "Recurrent Neural Network Regularization", 2014, without
dropout; the loss is fetched.
"""

from __future__ import annotations

import numpy as np

WORDS, WIDTH, LAYERS, LENGTH, BATCH, RATE = 10_000, 650, 2, 35, 20, 1.0


def _batch():
    text = np.random.default_rng(0).integers(0, WORDS, (BATCH, LENGTH + 1))
    return text[:, :-1].copy(), text[:, 1:].copy()


def _model(nn):
    """The same source for both frameworks that have modules."""

    class Language(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(WORDS, WIDTH)
            self.lstm = nn.LSTM(WIDTH, WIDTH, LAYERS, batch_first=True)
            self.out = nn.Linear(WIDTH, WORDS)

        def forward(self, ids):
            return self.out(self.lstm(self.words(ids))[0])

    return Language()


def _step(model, run, optimizer, cross_entropy, ids, labels):
    def step():
        loss = cross_entropy(run(ids).flatten(0, 1), labels.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return float(loss.detach())

    return step


def weft(threads):
    import weft as wf
    from weft import nn
    from weft.nn import functional as F

    wf.manual_seed(0)
    model = _model(nn)
    optimizer = wf.optim.SGD(model.parameters(), lr=RATE)
    return _step(model, model, optimizer, F.cross_entropy, *map(wf.from_numpy, _batch()))


def _torch_step(threads, compiled):
    import torch
    from torch import nn
    from torch.nn import functional as F

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model = _model(nn)
    run = torch.compile(model) if compiled else model
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    return _step(model, run, optimizer, F.cross_entropy, *map(torch.from_numpy, _batch()))


def torch(threads):
    return _torch_step(threads, False)


def torch_compile(threads):
    return _torch_step(threads, True)


def _weights():
    rng = np.random.default_rng(0)

    def uniform(*shape):
        return rng.uniform(-0.04, 0.04, shape).astype(np.float32)

    layers = [(uniform(WIDTH, 4 * WIDTH), uniform(WIDTH, 4 * WIDTH), uniform(4 * WIDTH))] * LAYERS
    return uniform(WORDS, WIDTH), layers, uniform(WIDTH, WORDS), np.zeros(WORDS, np.float32)


def jax(threads):
    import jax
    import jax.numpy as jnp

    def layer(x, weights):
        own, recurrent, bias = weights
        products = x @ own + bias  # of all words at once

        def cell(state, product):
            h, c = state
            i, f, g, o = jnp.split(product + h @ recurrent, 4, axis=-1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zeros = jnp.zeros((BATCH, WIDTH))
        return jax.lax.scan(cell, (zeros, zeros), products)[1]

    def loss_of(parameters, ids, labels):
        words, layers, w, b = parameters
        x = words[ids].swapaxes(0, 1)
        for weights in layers:
            x = layer(x, weights)
        logits = jax.nn.log_softmax(x.swapaxes(0, 1) @ w + b)
        return -jnp.take_along_axis(logits, labels[..., None], -1).mean()

    def train(parameters, ids, labels):
        loss, g = jax.value_and_grad(loss_of)(parameters, ids, labels)
        return jax.tree.map(lambda p, g: p - RATE * g, parameters, g), loss

    compiled = jax.jit(train, donate_argnums=0)
    state = [jax.tree.map(jnp.array, _weights())]
    ids, labels = _batch()

    def step():
        state[0], loss = compiled(state[0], ids, labels)
        jax.block_until_ready(state[0])
        return float(loss)

    return step


def tf2_function(threads):
    import tensorflow as tf

    from bench.work.keras_step import compiled_step

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [layers.Embedding(WORDS, WIDTH)]
        + [layers.LSTM(WIDTH, return_sequences=True) for _ in range(LAYERS)]
        + [layers.Dense(WORDS)]
    )
    optimizer = tf.keras.optimizers.SGD(RATE)
    return compiled_step(model, optimizer, *map(tf.constant, _batch()))
