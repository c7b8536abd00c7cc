"""Stop and resume: model, optimizer and random state in a folder of checkpoints.

Trains a digit classifier in one run, then in two: half of the steps up to a checkpoint, and the
other half in new objects. Prints both test accuracies and the largest difference of any weight,
which is 0: results do not depend on what ran before. On 2 cores: 2 s.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence

from common import Digits, load_digits, options

import weft as wf
from weft import nn
from weft.checkpoint import Checkpointer, RandomState
from weft.nn import functional as F


class Trainer:
    """A model with its optimizer."""

    def __init__(self, digits: Digits) -> None:
        self.digits = digits
        self.model = nn.Sequential(
            nn.Flatten(), nn.Linear(784, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 10)
        )
        self.optimizer = wf.optim.Adam(self.model.parameters())

    def train(self, steps: int) -> None:
        """`steps` steps on random batches."""
        self.model.train()
        for _ in range(steps):
            picked = wf.randint(0, len(self.digits.images), (64,))
            logits = self.model(self.digits.images[picked])
            F.cross_entropy(logits, self.digits.labels[picked]).backward()
            self.optimizer.step()
            self.optimizer.zero_grad()

    def accuracy(self) -> float:
        """The test accuracy."""
        self.model.eval()
        with wf.no_grad():
            found = self.model(self.digits.test_images).argmax(1)
        return (found == self.digits.test_labels).float().mean().item()

    def state(self) -> dict[str, object]:
        """Everything that a resumed run needs."""
        return {"model": self.model, "optimizer": self.optimizer, "random": RandomState()}


def main(arguments: Sequence[str] | None = None) -> tuple[float, float]:
    """Train in one run and in two; returns the accuracy and the largest difference."""
    chosen = options(__doc__, steps=400).parse_args(arguments)
    digits = load_digits()
    half = chosen.steps // 2

    wf.manual_seed(0)
    whole = Trainer(digits)
    whole.train(2 * half)

    with tempfile.TemporaryDirectory() as folder:
        wf.manual_seed(0)
        first = Trainer(digits)
        with Checkpointer(folder) as checkpoints:
            first.train(half)
            checkpoints.save(half, first.state())
        wf.manual_seed(1)
        second = Trainer(digits)
        Checkpointer(folder).restore(into=second.state())
    second.train(half)

    weights = zip(whole.model.parameters(), second.model.parameters(), strict=True)
    difference = max((a - b).abs().max().item() for a, b in weights)
    print(f"test accuracy {whole.accuracy():.3f} at once, {second.accuracy():.3f} in two parts")
    print(f"largest difference of a weight {difference}")
    return second.accuracy(), difference


if __name__ == "__main__":
    main()
