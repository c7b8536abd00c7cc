"""GPT-style decoder, 6 layers of width 384, 6 heads: 256 tokens of one text, with a cache.

The most likely token follows; the prompt is one token. `weft_read` sums an array as large as the
weights as often as there are tokens: what reading them takes.
"""

from __future__ import annotations

import numpy as np

VOCABULARY, CONTEXT, LAYERS, HEADS, WIDTH, TOKENS = 96, 264, 6, 6, 384, 256


def _model(wf):
    from weft import models

    wf.manual_seed(0)
    return models.GPT(VOCABULARY, CONTEXT, LAYERS, HEADS, WIDTH).eval()


def weft(threads):
    import weft as wf

    model, ids = _model(wf), wf.zeros(1, 1, dtype=wf.int64)
    return lambda: model.generate(ids, TOKENS, temperature=0).numpy()


def weft_read(threads):
    """A sum of as many bytes as the weights have, for each token."""
    import weft as wf
    from weft import func

    count = sum([w.numel() for w in _model(wf).parameters()])
    x = wf.tensor(np.ones(count, np.float32))
    total = func.jit(lambda x: x.sum())

    def step():
        for _ in range(TOKENS):
            total(x).item()

    return step


def torch(threads):
    return _torch(threads, False)


def torch_compile(threads):
    return _torch(threads, True)


def _torch(threads, compiled):
    import torch
    from torch import nn
    from torch.nn import functional as F

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    size = WIDTH // HEADS

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x, place, mask, length, keys, values):
            q, k, v = self.qkv(self.norm1(x)).view(1, 3, HEADS, 1, size).unbind(1)
            keys.index_copy_(2, place, k)
            values.index_copy_(2, place, v)
            seen = keys[:, :, :length], values[:, :, :length]
            y = F.scaled_dot_product_attention(q, *seen, attn_mask=mask)
            x = x + self.out(y.reshape(1, 1, WIDTH))
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(VOCABULARY, WIDTH)
            self.positions = nn.Embedding(CONTEXT, WIDTH)
            self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
            self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

        def forward(self, token, place, length, cache):
            x = self.tokens(token) + self.positions(place)
            # Compiled, all shapes stay; else only what is there is read.
            mask = (torch.arange(CONTEXT) <= place)[None, None, None] if compiled else None
            for block, (keys, values) in zip(self.blocks, cache, strict=True):
                x = block(x, place, mask, length, keys, values)
            return self.head(self.norm(x)).argmax(-1)

    model = Decoder().eval()
    run = torch.compile(model) if compiled else model
    cache = [(torch.zeros(1, HEADS, CONTEXT, size), torch.zeros(1, HEADS, CONTEXT, size))
             for _ in range(LAYERS)]  # fmt: skip
    places = [torch.tensor([i]) for i in range(TOKENS)]

    @torch.no_grad()
    def step():
        token = torch.zeros(1, 1, dtype=torch.int64)
        text = []
        for i, place in enumerate(places):
            token = run(token, place, CONTEXT if compiled else i + 1, cache)
            text.append(token)
        return torch.cat(text).tolist()

    return step
