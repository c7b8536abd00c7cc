"""Drawn configurations of a trainer, and the module that they train, in Weft and in Lightning."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

RATE, FACTOR = 0.1, 0.5  # of learning rates; a schedule multiplies by the factor
METRICS = {"val": "vl", "train": "tl", "step": "ts"}
QUIET: dict[str, Any] = {
    "logger": False, "enable_progress_bar": False, "num_sanity_val_steps": 0,
}  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """One configuration.

    Attributes:
        batches, val_batches: of the loaders.
        sized: whether the training loader has a length.
        trainer: arguments of the `Trainer`.
        checkpoint: arguments of the `ModelCheckpoint`; its metric is a key of METRICS.
        schedule: `""`, `"step"`, `"epoch"` or `"plateau"`.
        frequency: of the schedule.
        stopping: the metric and patience of an `EarlyStopping`, or `None`.
        leaves: the epoch and the batch at which a hook ends the epoch, or `None`.
        fails: the event and the update in which a callback raises, or `None`.
        values: of the metrics by update; some are NaN.
    """

    batches: int
    val_batches: int
    sized: bool
    trainer: dict[str, Any]
    checkpoint: dict[str, Any]
    schedule: str
    frequency: int
    stopping: tuple[str, int] | None
    leaves: tuple[int, int] | None
    fails: tuple[str, int] | None
    values: tuple[float, ...]


EVENTS = ("on_train_batch_end", "on_validation_end", "on_train_epoch_end", "on_train_end")


def drawn(random: np.random.Generator) -> Plan:
    """A configuration that no argument of which is refused."""

    def pick(*choices: Any) -> Any:
        return choices[int(random.integers(len(choices)))]

    batches, sized = int(random.integers(2, 7)), pick(True, True, False)
    val_batches = pick(0, 1, 2)
    every_epochs = pick(1, 1, 2, None)
    interval = pick(1.0, 0.5, int(random.integers(1, batches + 1))) if sized else 1.0
    if every_epochs is None:
        interval = int(random.integers(1, 2 * batches))
    trainer = {
        "max_epochs": int(random.integers(1, 5)), "val_check_interval": interval,
        "max_steps": pick(-1, -1, int(random.integers(1, 3 * batches))),
        "check_val_every_n_epoch": every_epochs, "accumulate_grad_batches": pick(1, 1, 2, 3),
        "limit_val_batches": pick(None, 1, 0),
    }  # fmt: skip
    metrics = ("val", "train", "step") if val_batches else ("train", "step")
    checkpoint = {
        "monitor": pick(None, *metrics), "mode": pick("min", "max"),
        "every_n_train_steps": pick(None, None, int(random.integers(1, 5))),
    }  # fmt: skip
    if checkpoint["every_n_train_steps"] is None:
        checkpoint["save_on_train_epoch_end"] = pick(None, None, True, False)
        checkpoint["every_n_epochs"] = pick(1, 1, 2)
    once = isinstance(interval, float) and interval == 1.0 and every_epochs == 1
    whole = once or not val_batches  # 1 is a batch, 1.0 an epoch
    watched = pick("train", "step") if whole else "step"
    return Plan(
        batches, val_batches, sized, trainer, checkpoint,
        schedule=pick("", "step", "epoch", "plateau"), frequency=pick(1, 1, 2),
        stopping=pick(None, None, (watched, int(random.integers(1, 3)))),
        leaves=pick(None, None, (int(random.integers(0, 2)), int(random.integers(0, batches)))),
        fails=pick(None, None, None, (pick(*EVENTS), int(random.integers(1, 2 * batches)))),
        values=tuple([
            float("nan") if random.random() < 0.05 else float(x)
            for x in random.permutation(60) + random.random(60)
        ]),
    )  # fmt: skip


class Planted(Exception):
    """The error of a plan that fails."""


@dataclass
class Seen:
    """What happened in a run.

    Attributes:
        validated: updates and the metric's value, of each validation.
        rates: the learning rate after each batch.
        epochs: how each epoch ended: `"whole"`, `"left"` by the hook, or `"stopped"`.
        left: the epoch that the hook ended.
    """

    validated: list[tuple[int, float]] = field(default_factory=list[tuple[int, float]])
    rates: list[float] = field(default_factory=list[float])
    epochs: list[str] = field(default_factory=list[str])
    left: int = -1


class Unsized:
    """A loader without a length."""

    def __init__(self, batches: list[Any]) -> None:
        self._batches = batches

    def __iter__(self) -> Any:
        return iter(self._batches)


def module_of(library: Any, base: type, plan: Plan, seen: Seen) -> Any:
    """A module whose metrics are the plan's values.

    Args:
        library: `weft` or `torch`.
        base: the class of modules of its trainer.
    """

    class Trained(base):  # pyright: ignore[reportUntypedBaseClass]
        def __init__(self) -> None:
            super().__init__()
            self.layer = library.nn.Linear(2, 1)
            with library.no_grad():
                self.layer.weight.copy_(library.tensor([[1.0, -2.0]]))
                self.layer.bias.zero_()

        def now(self, shift: int = 0) -> float:
            return plan.values[(self.trainer.global_step + shift) % len(plan.values)]

        def on_train_batch_start(self, batch: Any, batch_idx: int) -> int | None:
            if plan.leaves != (self.trainer.current_epoch, batch_idx):
                return None
            seen.left = self.trainer.current_epoch
            return -1

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            self.log("ts", self.now(7), on_step=True, on_epoch=False, batch_size=1)
            self.log("tl", self.now(13), on_step=False, on_epoch=True, batch_size=1)
            return (self.layer(batch) ** 2).mean()

        def on_train_batch_end(self, *args: Any) -> None:
            seen.rates.append(self.trainer.optimizers[0].param_groups[0]["lr"])

        def validation_step(self, batch: Any, batch_idx: int) -> None:
            self.log("vl", self.now(), batch_size=1)

        def on_validation_epoch_end(self) -> None:
            seen.validated.append((self.trainer.global_step, self.now()))

        def configure_optimizers(self) -> Any:
            optimizer = library.optim.SGD(self.parameters(), lr=RATE)
            return _with_schedule(library.optim.lr_scheduler, optimizer, plan)

    return Trained()


def _with_schedule(kinds: Any, optimizer: Any, plan: Plan) -> Any:
    if not plan.schedule:
        return optimizer
    if plan.schedule == "plateau":
        made = kinds.ReduceLROnPlateau(optimizer, factor=FACTOR, patience=0, threshold=0.0)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": made, "monitor": "tl"}}
    told = {
        "scheduler": kinds.StepLR(optimizer, 1, FACTOR), "interval": plan.schedule,
        "frequency": plan.frequency,
    }  # fmt: skip
    return {"optimizer": optimizer, "lr_scheduler": told}


def loaders_of(library: Any, plan: Plan) -> tuple[Any, Any]:
    """The training batches, and those of validation or `None`."""
    random = np.random.default_rng(3)
    drawn = [library.tensor(random.normal(size=(2, 2)).astype("f4")) for _ in range(plan.batches)]
    return drawn if plan.sized else Unsized(drawn), drawn[: plan.val_batches] or None
