"""fp32 matrix products `M x K @ K x N`, operands in memory, one new result per step."""

from __future__ import annotations

import numpy as np


def _operands(shape):
    m, k, n = map(int, shape.split("x"))
    rng = np.random.default_rng(0)
    return rng.random((m, k), np.float32), rng.random((k, n), np.float32)


def weft(threads, shape):
    import weft.tf1 as tf

    a, b = _operands(shape)
    x, y = (tf.Variable(v) for v in (a, b))
    result = tf.Variable(np.zeros((a.shape[0], b.shape[1]), np.float32))
    multiply = tf.assign(result, tf.matmul(x, y))
    session = tf.Session()
    session.run(tf.global_variables_initializer())
    return session.make_callable(multiply.op)


def torch(threads, shape):
    import torch

    torch.set_num_threads(threads)
    x, y = map(torch.from_numpy, _operands(shape))
    out = torch.empty(x.shape[0], y.shape[1])
    return lambda: torch.mm(x, y, out=out)


def jax(threads, shape):
    import jax
    import jax.numpy as jnp

    x, y = map(jnp.asarray, _operands(shape))
    product = jax.jit(jnp.matmul)
    return lambda: product(x, y).block_until_ready()


def numpy(threads, shape):
    x, y = _operands(shape)
    out = np.empty((x.shape[0], y.shape[1]), np.float32)
    return lambda: np.matmul(x, y, out=out)
