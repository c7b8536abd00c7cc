"""A step of the trainer beside the same loop written out, epoch by epoch in turns."""

from __future__ import annotations

import statistics
import time
from typing import Any

import weft as wf
from weft import nn
from weft.nn import functional as F

STEPS, EPOCHS, SKIPPED = 400, 25, 3
BATCH, WIDTH = 100, 64
Batches = list[tuple[Any, Any]]


class Digits(wf.train.Module):
    """A perceptron that logs its loss."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(784, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 10))

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        images, labels = batch
        loss = F.cross_entropy(self.layers(images), labels)
        self.log("loss", loss, prog_bar=True)
        return loss

    def configure_optimizers(self) -> Any:
        return wf.optim.Adam(self.parameters(), lr=1e-3)


class Turns(wf.train.callbacks.Callback):
    """Before each epoch of the trainer one of the plain loop; times of both."""

    def __init__(self, batches: Batches) -> None:
        self.batches = batches
        self.model = Digits()
        self.optimizer = self.model.configure_optimizers()
        self.plain: list[float] = []
        self.trained: list[float] = []

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self.plain.append(self._plain())
        self.start = time.perf_counter()

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self.trained.append((time.perf_counter() - self.start) / STEPS)

    def _plain(self) -> float:
        layers, optimizer = self.model.layers, self.optimizer
        start = time.perf_counter()
        for images, labels in self.batches:
            loss = F.cross_entropy(layers(images), labels)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()  # behind the update, which keeps gradients out of memory
        wf.synchronize()
        return (time.perf_counter() - start) / STEPS


def measure() -> tuple[float, float]:
    """Seconds of a step of the plain loop and of the trainer."""
    x, y = wf.randn(BATCH, 784), wf.randint(0, 10, (BATCH,))
    turns = Turns([(x, y)] * STEPS)
    trainer = wf.train.Trainer(
        max_epochs=EPOCHS, callbacks=[turns], logger=False, enable_checkpointing=False
    )
    trainer.fit(Digits(), turns.batches)
    plain, trained = turns.plain[SKIPPED:], turns.trained[SKIPPED:]
    more = statistics.median([b - a for a, b in zip(plain, trained, strict=True)])
    return statistics.median(plain), statistics.median(plain) + more


def report() -> None:
    """Print both."""
    plain, trained = measure()
    print(f"\nA training step of 784-{WIDTH}-10, batch {BATCH}, Adam (bar: 20 us more)")
    print(f"  plain loop {plain * 1e6:8.1f} us, trainer {trained * 1e6:8.1f} us", end="")
    print(f": {(trained - plain) * 1e6:.1f} us more")
