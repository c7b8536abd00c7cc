"""A loop of 1 M iterations that ends by itself, each of one update of a scalar."""

from __future__ import annotations

COUNT = 1_000_000


def weft(threads):
    import weft as wf

    start, x = wf.tensor(0), wf.tensor(0.5)

    def run():
        turn = lambda s: (s[0] + 1, s[1] * 0.999 + 0.25)  # noqa: E731
        return wf.while_loop(lambda s: s[0] < COUNT, turn, (start, x))[1].item()

    return run


def jax(threads):
    import jax
    import jax.numpy as jnp

    @jax.jit
    def run(x):
        turn = lambda s: (s[0] + 1, s[1] * 0.999 + 0.25)  # noqa: E731
        return jax.lax.while_loop(lambda s: s[0] < COUNT, turn, (0, x))[1]

    x = jnp.float32(0.5)
    return lambda: float(run(x))


def torch(threads):
    """Python's loop over scalars: a thousandth of the iterations, each as long."""
    import torch

    torch.set_num_threads(1)

    def run():
        x = torch.tensor(0.5)
        for _ in range(COUNT // 1000):
            x = x * 0.999 + 0.25
        return x.item()

    return run
