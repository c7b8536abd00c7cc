"""Training in one run or in parts, each in its own process: compared by `test_determinism`.

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


class Sentences(nn.Module):
    """An LSTM over sentences of a few words."""

    def __init__(self):
        super().__init__()
        self.words, self.lstm = nn.Embedding(20, 8), nn.LSTM(8, 12, batch_first=True)
        self.out = nn.Linear(12, 10)

    def forward(self, x):
        return self.out(self.lstm(self.words(x))[0][:, -1])


def linear():
    return nn.Sequential(nn.Linear(16, 24), nn.Tanh(), nn.Linear(24, 10))


def images():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
        nn.Flatten(), nn.Linear(32, 10),
    )  # fmt: skip


def dropping():
    return nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Dropout(0.3), nn.Linear(32, 10))


def _vectors(rng, step):
    return rng.standard_normal((6 if step % 4 == 3 else 8, 16)).astype("f")  # a smaller batch


def _pictures(rng, step):
    return rng.standard_normal((4, 3, 8, 8)).astype("f")


def _words(rng, step):
    return rng.integers(0, 20, (3, LENGTHS[step % len(LENGTHS)]))


def _adam(parameters):
    return wf.optim.AdamW(parameters, lr=0.01)


def _momentum(parameters):
    return wf.optim.SGD(parameters, lr=0.05, momentum=0.9)


# What is trained, on what, by what; when the loss is read; whether gradients are cleared first.
TRAININGS = {
    "linear": (linear, _vectors, _adam, "never", True),
    "linear, loss read early": (linear, _vectors, _momentum, "before", False),
    "images": (images, _pictures, _momentum, "after", False),
    "images, gradients kept": (images, _pictures, _adam, "never", True),
    "dropout": (dropping, _vectors, _adam, "after", False),
    "lengths": (Sentences, _words, _adam, "after", True),
}


class Training:
    """A network with everything that its training resumes from."""

    def __init__(self, name):
        make, self.draw, optimizer, self.reads, self.clears_first = TRAININGS[name]
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
        labels = wf.from_numpy(rng.integers(0, 10, len(x)))
        if self.clears_first:
            self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(x), labels)
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
    """Leaves a history of other programs if asked to, then trains."""
    if not saved and not int(start):
        train(Path(folder), 0, 4, ())
    wf.use_deterministic_algorithms(True)
    found = train(Path(folder), int(start), int(stop), tuple(map(int, saved)))
    wf.save(found, Path(folder) / name)


if __name__ == "__main__":
    main(*sys.argv[1:])
