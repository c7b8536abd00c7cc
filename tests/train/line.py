"""A small model, its data, and trainers that write nothing."""

from __future__ import annotations

import numpy as np

import weft as wf
from weft import nn
from weft.nn import functional as F

QUIET = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}


def quiet(**options):
    """A trainer that writes and prints nothing."""
    return wf.train.Trainer(**{**QUIET, "max_epochs": 1, **options})


def batches(count, size=4, width=3, classes=2, seed=0):
    """Batches of points with classes; equal at each call."""
    rng = np.random.default_rng(seed)
    return [
        (
            wf.tensor(rng.standard_normal((size, width)), dtype=wf.float32),
            wf.tensor(rng.integers(0, classes, size)),
        )
        for _ in range(count)
    ]


class Classifier(wf.train.Module):
    """Two layers with dropout, trained by Adam with a schedule."""

    def __init__(self, lr=0.05, dropout=0.2):
        super().__init__()
        self.save_hyperparameters()
        self.layers = nn.Sequential(
            nn.Linear(3, 8), nn.Tanh(), nn.Dropout(dropout), nn.Linear(8, 2)
        )
        self.lr = lr
        self.accuracy = wf.metrics.Accuracy()
        self.losses = []

    def forward(self, x):
        return self.layers(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("loss", loss, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.accuracy.update(logits, y)
        self.log("val_loss", F.cross_entropy(logits, y))
        self.log("val_accuracy", self.accuracy)

    def configure_optimizers(self):
        optimizer = wf.optim.Adam(self.parameters(), lr=self.lr)
        schedule = wf.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        return [optimizer], [schedule]


def weights(module):
    """All parameters as one array."""
    return np.concatenate([p.detach().numpy().ravel() for p in module.parameters()])
