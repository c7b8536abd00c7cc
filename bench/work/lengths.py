"""A loop whose shapes change at every iteration: sentences of 1 to 200 words, one length a step.

Embedding of 64, self-attention with 4 heads, perceptron of 256, mean over words, 10 classes, batch
8, Adam. A call is a whole pass over all 200 lengths in a drawn order; the first pass counts, with
whatever is compiled in it.
"""

from __future__ import annotations

import numpy as np

WORDS, WIDTH, HEADS, CLASSES, BATCH = 1000, 64, 4, 10, 8
LENGTHS = [int(n) for n in np.random.default_rng(0).permutation(np.arange(1, 201))]


def _batches():
    rng = np.random.default_rng(1)
    return [(rng.integers(0, WORDS, (BATCH, n)), rng.integers(0, CLASSES, BATCH)) for n in LENGTHS]


def _model(nn, F):
    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(WORDS, WIDTH)
            self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.up, self.down = nn.Linear(WIDTH, 256), nn.Linear(256, WIDTH)
            self.classes = nn.Linear(WIDTH, CLASSES)

        def forward(self, ids):
            x = self.words(ids)
            b, t, c = x.shape
            q, k, v = (
                z.reshape(b, t, HEADS, c // HEADS).transpose(1, 2)
                for z in self.qkv(self.norm1(x)).split(c, dim=2)
            )
            y = F.scaled_dot_product_attention(q, k, v)
            x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
            x = x + self.down(F.relu(self.up(self.norm2(x))))
            return self.classes(x.mean(1))

    return Classifier()


def lengths(torch):
    """A pass over all lengths, a lap each."""
    F = torch.nn.functional
    model = _model(torch.nn, F)
    optimizer = torch.optim.Adam(model.parameters())
    batches = [(torch.from_numpy(x), torch.from_numpy(y)) for x, y in _batches()]

    def run():
        for ids, labels in batches:
            loss = F.cross_entropy(model(ids), labels)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            yield loss.item()

    return run
