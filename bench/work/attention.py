"""Causal attention, 8 heads of 64, forward and backward: `attention:LENGTH`."""

from __future__ import annotations

import numpy as np

HEADS, WIDTH = 8, 64


def _step(framework, length):
    rng = np.random.default_rng(0)
    shape = 1, HEADS, int(length), WIDTH
    arrays = [rng.standard_normal(shape, np.float32) for _ in range(4)]
    q, k, v, g = map(framework.tensor, arrays)
    for x in (q, k, v):
        x.requires_grad_(True)
    attention = framework.nn.functional.scaled_dot_product_attention

    def step():
        y = attention(q, k, v, is_causal=True)
        y.backward(g)
        found = float(q.grad[0, 0, 0, 0]) + float(k.grad[0, 0, 0, 0]) + float(v.grad[0, 0, 0, 0])
        q.grad = k.grad = v.grad = None
        return found

    return step


def weft(threads, length):
    import weft as wf

    return _step(wf, length)


def torch(threads, length):
    import torch

    torch.set_num_threads(threads)
    return _step(torch, length)
