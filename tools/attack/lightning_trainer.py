"""The same configurations with Lightning: validations and learning rates are compared."""

# pyright: basic, reportMissingImports=false
# Lightning is an optional dependency.

from __future__ import annotations

import logging
import math
import tempfile
from collections.abc import Iterator
from typing import Any

import lightning.pytorch as lightning
import torch
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from torch.utils.data import DataLoader, IterableDataset

from tools.attack.training_plan import METRICS, QUIET, Plan, Seen, loaders_of, module_of

for name in ("lightning.pytorch", "lightning.fabric"):
    logging.getLogger(name).setLevel(logging.ERROR)


class Stream(IterableDataset[Any]):
    """Batches without a length."""

    def __init__(self, batches: Any) -> None:
        self._batches = batches

    def __iter__(self) -> Iterator[Any]:
        return iter(self._batches)


def difference(plan: Plan, ours: Seen) -> str:
    """How Lightning's run differs; empty if it does not, or is known to."""
    if known_to_differ(plan):
        return ""
    seen = Seen()
    with tempfile.TemporaryDirectory() as folder:
        told = plan.checkpoint | {"monitor": METRICS.get(plan.checkpoint["monitor"])}
        saving = ModelCheckpoint(folder, save_top_k=-1, **told)
        callbacks: list[Any] = [saving]
        if plan.stopping is not None:
            metric, patience = plan.stopping
            callbacks.append(EarlyStopping(METRICS[metric], patience=patience, check_finite=False))
        quiet = {**QUIET, "enable_model_summary": False, "accelerator": "cpu", "logger": False}
        trainer = lightning.Trainer(callbacks=callbacks, **quiet, **plan.trainer)
        module = module_of(torch, lightning.LightningModule, plan, seen)
        train, val = loaders_of(torch, plan)
        data = train if plan.sized else Stream(train)
        loaders = [DataLoader(data, batch_size=None)]
        loaders += [DataLoader(val, batch_size=None)] if val else []
        try:
            trainer.fit(module, *loaders)
        except (MisconfigurationException, RuntimeError):
            return ""  # a metric that it has not seen yet; a warning in Weft
    return compared(plan, ours, seen)


def known_to_differ(plan: Plan) -> bool:
    """Differences that docs/TRAINING.md tells."""
    windows = plan.schedule == "step" and plan.trainer["accumulate_grad_batches"] > 1
    late = not plan.sized and (windows or plan.schedule == "epoch")  # no batch is known to be last
    steps = plan.schedule == "step" and (plan.frequency > 1 or plan.leaves is not None)
    once = plan.trainer["val_check_interval"] == 1.0
    once = once and plan.trainer["check_val_every_n_epoch"] == 1
    none = not plan.val_batches or plan.trainer["limit_val_batches"] == 0
    return late or steps or (plan.stopping is not None and none and not once)


def compared(plan: Plan, ours: Seen, other: Seen) -> str:
    """The first difference."""
    pairs = (("validations", ours.validated, other.validated), ("rates", ours.rates, other.rates))
    for what, found, expected in pairs:
        if repr(rounded(found)) != repr(rounded(expected)):
            return f"{what} are {found!r:.150}, in Lightning {expected!r:.150}"
    return ""


def rounded(values: list[Any]) -> list[Any]:
    """Numbers without the last digits."""
    return [
        tuple(rounded(list(x))) if isinstance(x, tuple) else x if math.isnan(x) else round(x, 9)
        for x in values
    ]
