"""GPT-style decoder: 6 layers, width 384, 6 heads, context 256, batch 8, AdamW; loss is fetched.

Every contestant begins with the same weights. `decoder:VOCABULARY`, 96 characters by default.
"""

from __future__ import annotations

import math

import numpy as np

from bench.work.decoder_block import decoder_block

LAYERS, WIDTH, HEADS, CONTEXT, BATCH = 6, 384, 6, 256, 8
RATE, BETAS, DECAY = 3e-4, (0.9, 0.95), 0.1


def _initial(vocabulary):
    rng = np.random.default_rng(0)

    def normal(*shape):
        return (rng.standard_normal(shape) * 0.02).astype(np.float32)

    found = {"tokens.weight": normal(vocabulary, WIDTH), "positions": normal(CONTEXT, WIDTH)}
    for i in range(LAYERS):
        for name, shape in (
            ("norm1", None), ("qkv", (3 * WIDTH, WIDTH)), ("out", (WIDTH, WIDTH)),
            ("norm2", None), ("up", (4 * WIDTH, WIDTH)), ("down", (WIDTH, 4 * WIDTH)),
        ):  # fmt: skip
            weight = np.ones(WIDTH, np.float32) if shape is None else normal(*shape)
            found[f"blocks.{i}.{name}.weight"] = weight
            found[f"blocks.{i}.{name}.bias"] = np.zeros(weight.shape[0], np.float32)
    found["norm.weight"], found["norm.bias"] = np.ones(WIDTH, np.float32), np.zeros(WIDTH, "f")
    found["head.weight"] = normal(vocabulary, WIDTH)
    return found


def _batch(vocabulary):
    text = np.random.default_rng(1).integers(0, vocabulary, (BATCH, CONTEXT + 1))
    return text[:, :-1].copy(), text[:, 1:].copy()


def _model(nn, F, zeros, vocabulary):
    """The same source for both frameworks that have modules."""

    Block = decoder_block(nn, F, WIDTH, HEADS)

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(vocabulary, WIDTH)
            self.positions = nn.Parameter(zeros(CONTEXT, WIDTH))
            self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
            self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, vocabulary, bias=False)

        def forward(self, ids):
            return self.head(self.norm(self.blocks(self.tokens(ids) + self.positions)))

    return Decoder()


def _weft_step(vocabulary, half):
    import contextlib

    import weft as wf
    from weft import nn
    from weft.nn import functional as F

    model = _model(nn, F, wf.zeros, vocabulary)
    model.load_state_dict({k: wf.from_numpy(v) for k, v in _initial(vocabulary).items()})
    optimizer = wf.optim.AdamW(model.parameters(), RATE, BETAS, weight_decay=DECAY)
    ids, labels = map(wf.from_numpy, _batch(vocabulary))

    def step():
        with wf.autocast(wf.bfloat16) if half else contextlib.nullcontext():
            logits = model(ids)
        loss = F.cross_entropy(logits.view(-1, vocabulary), labels.view(-1))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return step


def weft(threads, vocabulary=96):
    return _weft_step(int(vocabulary), False)


def weft_bf16(threads, vocabulary=96):
    return _weft_step(int(vocabulary), True)


def _torch_step(threads, vocabulary, compiled, half=False):
    import contextlib

    import torch
    from torch import nn
    from torch.nn import functional as F

    torch.set_num_threads(threads)
    model = _model(nn, F, torch.zeros, vocabulary)
    model.load_state_dict({k: torch.from_numpy(v) for k, v in _initial(vocabulary).items()})
    optimizer = torch.optim.AdamW(model.parameters(), RATE, BETAS, weight_decay=DECAY, fused=True)
    ids, labels = map(torch.from_numpy, _batch(vocabulary))
    run = torch.compile(model) if compiled else model

    def step():
        with torch.autocast("cpu", torch.bfloat16) if half else contextlib.nullcontext():
            logits = run(ids)
        loss = F.cross_entropy(logits.view(-1, vocabulary).float(), labels.view(-1))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return step


def torch(threads, vocabulary=96):
    return _torch_step(threads, int(vocabulary), False)


def torch_bf16(threads, vocabulary=96):
    return _torch_step(threads, int(vocabulary), False, True)


def torch_compile(threads, vocabulary=96):
    return _torch_step(threads, int(vocabulary), True)


def jax(threads, vocabulary=96):
    import jax
    import jax.numpy as jnp

    mask = np.tril(np.ones((CONTEXT, CONTEXT), bool))

    def normed(x, p, name):
        mean = x.mean(-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        y = (x - mean) * jax.lax.rsqrt(variance + 1e-5)
        return y * p[f"{name}.weight"] + p[f"{name}.bias"]

    def linear(x, p, name):
        return x @ p[f"{name}.weight"].T + p[f"{name}.bias"]

    def attended(x, p, name):
        b, t, c = x.shape
        q, k, v = (
            z.reshape(b, t, HEADS, c // HEADS).transpose(0, 2, 1, 3)
            for z in jnp.split(linear(x, p, f"{name}.qkv"), 3, axis=2)
        )
        scores = q @ k.transpose(0, 1, 3, 2) / math.sqrt(c // HEADS)
        y = jax.nn.softmax(jnp.where(mask, scores, -jnp.inf)) @ v
        return linear(y.transpose(0, 2, 1, 3).reshape(b, t, c), p, f"{name}.out")

    def loss_of(p, ids, labels):
        x = p["tokens.weight"][ids] + p["positions"]
        for i in range(LAYERS):
            name = f"blocks.{i}"
            x = x + attended(normed(x, p, f"{name}.norm1"), p, name)
            h = linear(normed(x, p, f"{name}.norm2"), p, f"{name}.up")
            x = x + linear(jax.nn.gelu(h, approximate=False), p, f"{name}.down")
        logits = normed(x, p, "norm") @ p["head.weight"].T
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], -1).mean()

    def train(state, ids, labels):
        p, m, v, t = state
        loss, g = jax.value_and_grad(loss_of)(p, ids, labels)
        t = t + 1
        one, two = BETAS
        m = jax.tree.map(lambda m, g: one * m + (1 - one) * g, m, g)
        v = jax.tree.map(lambda v, g: two * v + (1 - two) * g * g, v, g)
        first, second = 1 - one**t, 1 - two**t
        p = jax.tree.map(
            lambda p, m, v: (
                p * (1 - RATE * DECAY)
                - RATE / first * m / (jnp.sqrt(v) / jnp.sqrt(second) + 1e-8)
            ),
            p, m, v,
        )  # fmt: skip
        return (p, m, v, t), loss

    compiled = jax.jit(train, donate_argnums=0)
    first = {k: jnp.array(v) for k, v in _initial(int(vocabulary)).items()}
    zeros = jax.tree.map(jnp.zeros_like, first)
    state = [(first, zeros, jax.tree.map(jnp.copy, zeros), jnp.float32(0))]
    ids, labels = _batch(int(vocabulary))

    def step():
        state[0], loss = compiled(state[0], ids, labels)
        jax.block_until_ready(state[0])
        return float(loss)

    return step
