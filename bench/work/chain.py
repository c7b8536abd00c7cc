"""Ten elementwise operations on 64 M floats, and a plain copy of as many bytes for comparison."""

from __future__ import annotations

import numpy as np

COUNT = 64 * 1024 * 1024


def weft(threads):
    import weft.tf1 as tf

    x = tf.Variable(np.ones(COUNT, np.float32))
    y = tf.Variable(np.ones(COUNT, np.float32))
    value = x
    for number in range(5):
        value = tf.maximum(value * 1.01, 0.5 + number)
    session = tf.Session()
    session.run(tf.global_variables_initializer())
    return session.make_callable(tf.assign(y, value).op)


def weft_copy(threads):
    import weft.tf1 as tf

    x = tf.Variable(np.ones(COUNT, np.float32))
    y = tf.Variable(np.ones(COUNT, np.float32))
    session = tf.Session()
    session.run(tf.global_variables_initializer())
    return session.make_callable(tf.assign(y, x).op)


def numpy_copy(threads):
    """NumPy's copy between warm buffers, one thread per half."""
    from concurrent.futures import ThreadPoolExecutor

    x, y = np.ones(COUNT, np.float32), np.ones(COUNT, np.float32)
    cuts = np.linspace(0, COUNT, threads + 1).astype(int)
    pool = ThreadPoolExecutor(threads)

    def part(i):
        np.copyto(y[cuts[i] : cuts[i + 1]], x[cuts[i] : cuts[i + 1]])

    return lambda: list(pool.map(part, range(threads)))


def torch(threads):
    import torch

    torch.set_num_threads(threads)
    x = torch.ones(COUNT)

    @torch.compile
    def chain(x):
        for number in range(5):
            x = torch.clamp(x * 1.01, min=0.5 + number)
        return x

    return lambda: chain(x)


def jax(threads):
    import jax
    import jax.numpy as jnp

    x = jnp.ones(COUNT)

    @jax.jit
    def chain(x):
        for number in range(5):
            x = jnp.maximum(x * 1.01, 0.5 + number)
        return x

    return lambda: chain(x).block_until_ready()
