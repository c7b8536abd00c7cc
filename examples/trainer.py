"""The trainer: learns digits with early stopping, and resumes after an interruption.

Ctrl-C saves to `--folder`; the same command then resumes. `--stop N` stops after N steps, as Ctrl-C
would. Prints the test accuracy of the best checkpoint. On 2 cores: 3 s.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from common import Digits, load_digits, options

import weft as wf
from weft import nn
from weft.nn import functional as F
from weft.train import callbacks


class Classifier(wf.train.Module):
    """Two layers with dropout; the learning rate decays from epoch to epoch."""

    def __init__(self, hidden: int = 64, lr: float = 3e-3) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.lr = lr
        self.layers = nn.Sequential(
            nn.Flatten(), nn.Linear(784, hidden), nn.ReLU(), nn.Dropout(0.1), nn.Linear(hidden, 10)
        )
        self.accuracy = wf.metrics.Accuracy()

    def training_step(self, batch: Any, batch_idx: int) -> wf.Tensor:
        """The loss of a batch."""
        images, labels = batch
        loss = F.cross_entropy(self.layers(images), labels)
        self.log("loss", loss, on_epoch=True)
        return loss

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        """Loss and accuracy of a batch."""
        images, labels = batch
        logits = self.layers(images)
        self.accuracy.update(logits, labels)
        self.log("val_loss", F.cross_entropy(logits, labels), prog_bar=True)
        self.log("val_accuracy", self.accuracy, prog_bar=True)

    def configure_optimizers(self) -> Any:
        """Adam with a decaying learning rate."""
        optimizer = wf.optim.Adam(self.parameters(), lr=self.lr)
        return [optimizer], [wf.optim.lr_scheduler.ExponentialLR(optimizer, 0.8)]


class Batches:
    """Batches of images and labels; if shuffled, in another order in each epoch."""

    def __init__(self, images: wf.Tensor, labels: wf.Tensor, shuffle: bool) -> None:
        self.images, self.labels, self.shuffle = images, labels, shuffle

    def __len__(self) -> int:
        return -(-len(self.labels) // 64)

    def __iter__(self) -> Iterator[Any]:
        count = len(self.labels)
        order = wf.randperm(count) if self.shuffle else wf.arange(count)
        for part in order.split(64):
            yield self.images[part], self.labels[part]


def train(digits: Digits, folder: Path, steps: int) -> wf.train.Trainer:
    """Train up to `steps` steps, from the last checkpoint in the folder if there is one."""
    wf.train.seed_everything(0)
    save = callbacks.ModelCheckpoint(folder, monitor="val_loss")
    trainer = wf.train.Trainer(
        max_steps=steps,
        max_epochs=8,
        callbacks=[save, callbacks.EarlyStopping("val_loss", patience=2)],
        logger=False,
    )
    train_batches = Batches(digits.images, digits.labels, shuffle=True)
    test_batches = Batches(digits.test_images, digits.test_labels, shuffle=False)
    begun = folder.is_dir()
    trainer.fit(Classifier(), train_batches, test_batches, ckpt_path="last" if begun else None)
    return trainer


def main(arguments: Sequence[str] | None = None) -> float:
    """Train, with a stop in between if asked for; returns the accuracy of the best checkpoint."""
    parser = options(__doc__, steps=400)
    parser.add_argument("--folder", type=Path, help="where states are saved; kept")
    parser.add_argument("--stop", type=int, help="stop after so many steps, then go on")
    chosen = parser.parse_args(arguments)
    digits = load_digits()
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.folder or Path(temporary) / "states"
        if chosen.stop:
            trainer = train(digits, folder, chosen.stop)
            print(f"stopped at step {trainer.global_step}")
        trainer = train(digits, folder, chosen.steps)
        test_batches = Batches(digits.test_images, digits.test_labels, shuffle=False)
        (figures,) = trainer.validate(dataloaders=test_batches, ckpt_path="best")
    loss = trainer.checkpoint_callback.best_model_score
    accuracy = figures["val_accuracy"]
    print(f"{trainer.global_step} steps, test accuracy {accuracy:.3f}, loss {loss:.4f}")
    return loss


if __name__ == "__main__":
    main()
