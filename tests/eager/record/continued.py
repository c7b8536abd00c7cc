"""Ten networks, trained in one run or in parts, each in its own process: see `test_same_bits`.

`python continued.py FOLDER NAME START STOP SAVED...` trains each network from step START on, from
what an earlier process has written to FOLDER unless that is 0, to STOP. It writes what there is
after the steps SAVED, and at the end under NAME.
"""

import sys
from pathlib import Path

import numpy as np

import weft as wf
from weft import nn
from weft.nn import functional as F

LENGTHS = 5, 9, 5, 7, 3, 11, 9, 4, 8, 6
CLASSES = 10


class Last(nn.Module):
    """The last step of a sequence."""

    def forward(self, x):
        return x[:, -1]


class Recurrent(nn.Module):
    """An LSTM or GRU over sentences of a few words."""

    def __init__(self, kind):
        super().__init__()
        self.words, self.inner = nn.Embedding(20, 8), kind(8, 12, batch_first=True)
        self.out = nn.Linear(12, CLASSES)

    def forward(self, x):
        return self.out(self.inner(self.words(x))[0][:, -1])


class Residual(nn.Module):
    """A block of a ResNet, whose sum is normalized."""

    def __init__(self):
        super().__init__()
        self.start = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.first, self.second = nn.Conv2d(16, 24, 3, 2, 1), nn.Conv2d(24, 24, 3, padding=1)
        self.beside = nn.Conv2d(16, 24, 1, 2)
        self.norms = nn.ModuleList([nn.BatchNorm2d(n) for n in (16, 24, 24, 24)])
        self.out = nn.Linear(24, CLASSES)

    def forward(self, x):
        x = F.relu(self.norms[0](self.start(x)))
        y = F.relu(self.norms[1](self.first(x)))
        x = F.relu(self.norms[2](self.second(y)) + self.norms[3](self.beside(x)))
        return self.out(x.mean((2, 3)))


class Decoder(nn.Module):
    """A GPT of one block, whose output has the weights of its embedding."""

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(33, 24), nn.Embedding(16, 24)
        self.block = nn.TransformerEncoderLayer(
            24, 3, 40, dropout=0.1, activation="gelu", batch_first=True, norm_first=True
        )
        self.norm = nn.LayerNorm(24)

    def forward(self, x):
        n = x.shape[1]
        h = self.words(x) + self.places(wf.arange(n))
        mask = nn.Transformer.generate_square_subsequent_mask(n)
        return self.norm(self.block(h, src_mask=mask, is_causal=True)) @ self.words.weight.mT


class Variational(nn.Module):
    """A VAE, which draws numbers in every step."""

    def __init__(self):
        super().__init__()
        self.inner, self.both, self.out = nn.Linear(20, 32), nn.Linear(32, 14), nn.Linear(7, 20)

    def forward(self, x):
        mean, scale = self.both(F.gelu(self.inner(x))).chunk(2, 1)
        z = mean + wf.randn_like(scale) * (scale / 2).exp()
        far = (mean.square() + scale.exp() - 1 - scale).sum() / 2
        return self.out(z), far


def perceptron():
    return nn.Sequential(nn.Linear(16, 24), nn.Tanh(), nn.Dropout(0.3), nn.Linear(24, CLASSES))


def convolutional():
    return nn.Sequential(
        nn.Conv2d(3, 8, 5, padding=2), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 17, 3), nn.BatchNorm2d(17), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
        nn.Linear(68, CLASSES),
    )  # fmt: skip


def mobile():
    """A block of a MobileNet between convolutions of single pixels."""
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU6(),
        nn.Conv2d(32, 32, 3, 1, 1, groups=32, bias=False), nn.BatchNorm2d(32), nn.ReLU6(),
        nn.Conv2d(32, 24, 1, bias=False), nn.BatchNorm2d(24), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(24, CLASSES),
    )  # fmt: skip


def encoder():
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0.0)
    return nn.Sequential(nn.Embedding(20, 16), layer, Last(), nn.Linear(16, CLASSES))


def autoencoder():
    return nn.Sequential(
        nn.Conv2d(3, 12, 3, 2, 1), nn.LeakyReLU(0.1), nn.Conv2d(12, 6, 3, 2, 1), nn.Sigmoid(),
        nn.ConvTranspose2d(6, 12, 4, 2, 1), nn.GroupNorm(3, 12), nn.SiLU(),
        nn.ConvTranspose2d(12, 3, 4, 2, 1),
    )  # fmt: skip


def _vectors(rng, step):
    return rng.standard_normal((6 if step % 4 == 3 else 37, 16)).astype("f")  # a smaller batch


def _rows(rng, step):
    return rng.standard_normal((19, 20)).astype("f")


def _pictures(rng, step):
    return rng.standard_normal((5, 3, 20, 20)).astype("f")


def _words(rng, step):
    return rng.integers(0, 20, (3, LENGTHS[step % len(LENGTHS)]))


def _text(rng, step):
    return rng.integers(0, 33, (4, 13))


def _classes(model, x, rng):
    return F.cross_entropy(model(x), wf.from_numpy(rng.integers(0, CLASSES, len(x))))


def _next(model, x, rng):
    return F.cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())


def _itself(model, x, rng):
    return F.mse_loss(model(x), x)


def _bound(model, x, rng):
    y, far = model(x)
    return F.mse_loss(y, x, reduction="sum") + far


def _adam(parameters):
    return wf.optim.Adam(parameters, lr=0.01)


def _adamw(parameters):
    return wf.optim.AdamW(parameters, lr=0.01)


def _momentum(parameters):
    return wf.optim.SGD(parameters, lr=0.05, momentum=0.9)


# What is trained, on what, for what, by what; when the loss is read; are gradients cleared first?
TRAININGS = {
    "perceptron": (perceptron, _vectors, _classes, _adam, "never", True),
    "convolutions": (convolutional, _pictures, _classes, _momentum, "after", False),
    "residual": (Residual, _pictures, _classes, _momentum, "never", True),
    "mobile": (mobile, _pictures, _classes, _momentum, "before", False),
    "lstm": (lambda: Recurrent(nn.LSTM), _words, _classes, _adam, "after", True),
    "gru": (lambda: Recurrent(nn.GRU), _words, _classes, _adam, "never", False),
    "encoder": (encoder, _words, _classes, _adamw, "before", True),
    "decoder": (Decoder, _text, _next, _adamw, "after", False),
    "autoencoder": (autoencoder, _pictures, _itself, _adam, "never", False),
    "variational": (Variational, _rows, _bound, _adam, "after", True),
}


class Training:
    """A network with everything that its training resumes from."""

    def __init__(self, name):
        make, self.draw, self.loss, optimizer, self.reads, self.clears_first = TRAININGS[name]
        wf.manual_seed(len(name))
        self.model = make()
        self.optimizer = optimizer(self.model.parameters())

    def state(self):
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "random": wf.get_rng_state(),
        }

    def go_on(self, state):
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        wf.set_rng_state(state["random"])

    def step(self, number):
        rng = np.random.default_rng(number)
        x = wf.from_numpy(self.draw(rng, number))
        if self.clears_first:
            self.optimizer.zero_grad()
        loss = self.loss(self.model, x, rng)
        if self.reads == "before":
            loss.item()
        loss.backward()
        self.optimizer.step()
        if not self.clears_first:
            self.optimizer.zero_grad()
        if self.reads == "after":
            loss.item()
        return loss.detach()


def train(folder, start, stop, saved):
    """How all trainings end, with the losses; what there is after steps `saved` goes to files."""
    found = {}
    for name in TRAININGS:
        training = Training(name)
        if start:
            training.go_on(wf.load(folder / f"{name} {start}"))
        losses = []
        for number in range(start, stop):
            losses.append(training.step(number))
            if number + 1 in saved:
                wf.save(training.state(), folder / f"{name} {number + 1}")
        found[name] = {**training.state(), "losses": wf.stack(losses)}
    return found


def main(folder, name, start, stop, *saved):
    found = train(Path(folder), int(start), int(stop), tuple(map(int, saved)))
    wf.save(found, Path(folder) / name)


if __name__ == "__main__":
    main(*sys.argv[1:])
