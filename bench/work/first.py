"""What is done once: a sampler, first steps of networks, batches of ever new sizes.

Each is a function of the framework, written for PyTorch; Weft is given in its place.
"""

from __future__ import annotations

import math

import numpy as np

from bench.work.batches import images


def sampler(torch):
    """Noise becomes points of the plane in 50 steps of a diffusion model."""
    nn, F = torch.nn, torch.nn.functional
    width, half, steps = 128, 32, 50

    class Noise(nn.Module):
        def __init__(self):
            super().__init__()
            self.time1, self.time2 = nn.Linear(2 * half, width), nn.Linear(width, width)
            self.input, self.output = nn.Linear(2, width), nn.Linear(width, 2)
            self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(3)])

        def forward(self, x, t):
            rates = torch.exp(torch.arange(half) * (-math.log(10000.0) / half))
            angles = t[:, None].float() * rates
            angles = torch.cat([torch.sin(angles), torch.cos(angles)], dim=-1)
            when = self.time2(F.silu(self.time1(angles)))
            h = self.input(x)
            for layer in self.layers:
                h = h + F.silu(layer(h + when))
            return self.output(h)

    model = Noise().eval()
    betas = torch.linspace(1e-4, 0.02, steps)
    alphas = 1 - betas
    products = torch.cumprod(alphas, 0)

    @torch.no_grad()
    def run():
        x = torch.randn(64, 2)
        for i in reversed(range(steps)):
            t = torch.full((64,), i)
            noise = model(x, t)
            x = (x - betas[i] / (1 - products[i]).sqrt() * noise) / alphas[i].sqrt()
            if i:
                x = x + betas[i].sqrt() * torch.randn_like(x)
        return x.numpy()

    return run


def matmul(torch):
    def run():
        x, y = torch.ones(1000, 1000), torch.ones(1000, 1000)
        return (x @ y).numpy()

    return run


def _step(model, optimizer, loss_of, inputs, labels):
    """A training step: its first lap ends when the loss is known."""

    def run():
        loss = loss_of(model(*inputs), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        yield loss.item()

    return run


def resnet50_two(torch):
    if torch.__name__ == "weft":
        from weft.models import resnet50
    else:
        from bench.work.networks import resnet50
    model = resnet50()
    inputs, labels = images(2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    cross_entropy = torch.nn.functional.cross_entropy
    inputs = [torch.from_numpy(x) for x in inputs]
    return _step(model, optimizer, cross_entropy, inputs, torch.from_numpy(labels))


def _loss_of_words(torch):
    def loss_of(logits, labels):
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())

    return loss_of


def decoder(torch):
    from bench.work import decoder

    model = decoder._model(torch.nn, torch.nn.functional, torch.zeros, 96)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-4)
    ids, labels = map(torch.from_numpy, decoder._batch(96))
    return _step(model, optimizer, _loss_of_words(torch), [ids], labels)


def bert(torch):
    """BERT-base with its head for words, two texts of 128."""
    nn = torch.nn
    words, width, length = 30522, 768, 128

    class Bert(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(words, width), nn.Embedding(512, width)
            self.norm = nn.LayerNorm(width)
            layer = nn.TransformerEncoderLayer(
                width, 12, 4 * width, activation="gelu", batch_first=True
            )
            self.encoder = nn.TransformerEncoder(layer, 12)
            self.head = nn.Linear(width, words)

        def forward(self, ids):
            x = self.norm(self.words(ids) + self.places(torch.arange(ids.shape[1])))
            return self.head(self.encoder(x))

    model = Bert()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    text = np.random.default_rng(0).integers(0, words, (2, 2, length))
    ids, labels = map(torch.from_numpy, text)
    return _step(model, optimizer, _loss_of_words(torch), [ids], labels)


def _perceptron(nn):
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(),
                         nn.Linear(128, 10))  # fmt: skip


def batches(torch):
    """500 training steps of batches of 1 to 500, in a drawn order, a lap each."""
    model = _perceptron(torch.nn)
    optimizer = torch.optim.Adam(model.parameters())
    rng = np.random.default_rng(0)
    sizes = [int(n) for n in rng.permutation(np.arange(1, 501))]
    data = [
        (torch.from_numpy(rng.standard_normal((n, 64), np.float32)),
         torch.from_numpy(rng.integers(0, 10, n)))
        for n in sizes
    ]  # fmt: skip

    def run():
        for x, labels in data:
            loss = torch.nn.functional.cross_entropy(model(x), labels)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            yield loss.item()

    return run


def examples(torch):
    """The gradient of each of 64 examples, and its norm."""
    func = torch.func
    model = _perceptron(torch.nn)
    parameters = dict(model.named_parameters())
    x, labels = torch.randn(64, 64), torch.randint(0, 10, (64,))

    def loss_of(parameters, x, label):
        logits = func.functional_call(model, parameters, (x[None],))
        return torch.nn.functional.cross_entropy(logits, label[None])

    def run():
        found = func.vmap(func.grad(loss_of), (None, 0, 0))(parameters, x, labels)
        return sum(g.flatten(1).square().sum(1) for g in found.values()).sqrt().tolist()

    return run


def cells(torch):
    """The first step of LBFGS through 1,000 calls of a cell, as in a forecast of sine waves."""
    nn = torch.nn

    class Forecast(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell, self.linear = nn.LSTMCell(1, 51), nn.Linear(51, 1)

        def forward(self, x):
            h, c = torch.zeros(x.shape[0], 51), torch.zeros(x.shape[0], 51)
            outputs = []
            for value in x.split(1, dim=1):
                h, c = self.cell(value, (h, c))
                outputs.append(self.linear(h))
            return torch.cat(outputs, dim=1)

    model = Forecast()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.8)
    phases = np.random.default_rng(0).integers(-80, 80, (16, 1))
    waves = torch.from_numpy(np.sin((np.arange(1001) + phases) / 20).astype(np.float32))

    def closure():
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(waves[:, :-1]), waves[:, 1:])
        loss.backward()
        return loss

    return lambda: optimizer.step(closure).item()
