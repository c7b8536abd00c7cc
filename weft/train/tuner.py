"""`Tuner`: searches for a learning rate and a batch size."""

from __future__ import annotations

import copy
import gc
import importlib
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from weft.checkpoint import RandomState
from weft.errors import ArgumentError, StateError
from weft.train.callbacks.callback import Callback
from weft.train.trainer import Trainer


@dataclass
class LRFinder:
    """The results of a learning rate search.

    Attributes:
        lr: the rates that were tried.
        loss: the smoothed losses of steps at these rates.
    """

    lr: list[float] = field(default_factory=list[float])
    loss: list[float] = field(default_factory=list[float])

    @property
    def results(self) -> dict[str, list[float]]:
        """Rates and losses by name."""
        return {"lr": self.lr, "loss": self.loss}

    def plot(self, suggest: bool = False, show: bool = False, ax: Any = None) -> Any:
        """Draw losses over rates, with matplotlib; returns the figure.

        Args:
            suggest: whether the suggested rate is marked.
            show: whether the figure is shown at once.
            ax: where to draw; a new figure by default.
        """
        pyplot = importlib.import_module("matplotlib.pyplot")
        axes = pyplot.subplots()[1] if ax is None else ax
        axes.plot(self.lr, self.loss)
        axes.set(xscale="log", xlabel="Learning rate", ylabel="Loss")
        if suggest and (rate := self.suggestion()) is not None:
            axes.plot(rate, self.loss[self.lr.index(rate)], "o", color="red")
        if show:
            pyplot.show()
        return axes.get_figure()

    def suggestion(self, skip_begin: int = 10, skip_end: int = 1) -> float | None:
        """The rate at which the loss falls most steeply; `None` if too few were tried.

        Args:
            skip_begin: steps to ignore at the beginning.
            skip_end: steps to ignore at the end.
        """
        rates = self.lr[skip_begin : len(self.lr) - skip_end]
        losses = np.array(self.loss[skip_begin : len(self.loss) - skip_end])
        known = np.isfinite(losses)
        if known.sum() < 2:
            return None
        slopes = np.gradient(losses[known], np.log(np.array(rates)[known]))
        return float(np.array(rates)[known][int(slopes.argmin())])


def _check_method(name: str, method: str, loaders: Any) -> None:
    if method != "fit" or loaders is not None:
        raise ArgumentError.here(
            f"{name}: expected method='fit' and loaders of the module or the data module, got "
            f"{method!r} and {type(loaders).__name__}"
        )


def _owner(name: str, *owners: Any) -> Any:
    """The first of modules and their hyperparameters that has an attribute, or `None`."""
    places = [place for owner in owners for place in (owner, getattr(owner, "hparams", None))]
    return next((place for place in places if hasattr(place, name)), None)


class _Sweep(Callback):
    """Raises the rate from step to step, and records the losses."""

    def __init__(self, rates: list[float], threshold: float | None, beta: float = 0.98) -> None:
        self.found = LRFinder()
        self._rates, self._threshold, self._beta = rates, threshold, beta
        self._average, self._best = 0.0, math.inf

    def on_train_batch_start(
        self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int
    ) -> None:
        for group in trainer.optimizers[0].param_groups:
            group["lr"] = self._rates[min(trainer.global_step, len(self._rates) - 1)]

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        loss = outputs["loss"] if isinstance(outputs, dict) else outputs
        count = len(self.found.lr) + 1
        self._average = self._beta * self._average + (1 - self._beta) * float(loss.item())
        smooth = self._average / (1 - self._beta**count)
        self.found.lr.append(self._rates[min(count - 1, len(self._rates) - 1)])
        self.found.loss.append(smooth)
        self._best = min(self._best, smooth)
        limit = self._threshold
        if not math.isfinite(smooth) or (limit and count > 1 and smooth > limit * self._best):
            trainer.should_stop = True


class Tuner:
    """Tries settings in short runs, and restores the module's weights.

    Args:
        trainer: the runs use its precision, accumulation and clipping.
    """

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer

    def lr_find(
        self, model: Any, train_dataloaders: Any = None, val_dataloaders: Any = None,
        dataloaders: Any = None, datamodule: Any = None, method: str = "fit",
        min_lr: float = 1e-8, max_lr: float = 1.0, num_training: int = 100,
        mode: str = "exponential", early_stop_threshold: float | None = 4.0,
        update_attr: bool = True, attr_name: str = "",
    ) -> LRFinder:  # fmt: skip
        """Raise the rate from `min_lr` to `max_lr` in `num_training` steps.

        Args:
            val_dataloaders: taken for programs that give it: the search does not validate.
            dataloaders: none: those of evaluation.
            method: `"fit"`.
            mode: `"exponential"` or `"linear"`.
            early_stop_threshold: stop once the loss is this many times the best one.
            update_attr: whether to set the module's rate to the suggestion.
            attr_name: the rate's attribute; by default `lr` or `learning_rate`.

        Raises:
            ArgumentError: the mode is unknown, or there is no such attribute.

        Source: Smith, "Cyclical Learning Rates for Training Neural Networks", 2015.
        """
        _check_method("lr_find", method, dataloaders)
        if mode not in ("exponential", "linear"):
            raise ArgumentError.here(
                f"lr_find: expected mode 'exponential' or 'linear', got {mode!r}"
            )
        names = (attr_name,) if attr_name else ("lr", "learning_rate")
        name = next((n for n in names if _owner(n, model, datamodule) is not None), "")
        if update_attr and not name:
            raise ArgumentError.here(
                "lr_find: expected a module with an attribute 'lr' or 'learning_rate', or such a "
                "hyperparameter, got none; "
                "give attr_name, or update_attr=False"
            )
        space = np.geomspace if mode == "exponential" else np.linspace
        sweep = _Sweep(space(min_lr, max_lr, num_training).tolist(), early_stop_threshold)
        self._run(model, train_dataloaders, datamodule, num_training, [sweep])
        found = sweep.found.suggestion()
        if update_attr and found is not None:
            setattr(_owner(name, model, datamodule), name, found)
        return sweep.found

    def scale_batch_size(
        self, model: Any, train_dataloaders: Any = None, val_dataloaders: Any = None,
        dataloaders: Any = None, datamodule: Any = None, method: str = "fit", mode: str = "power",
        steps_per_trial: int = 3, init_val: int = 2, max_trials: int = 25,
        batch_arg_name: str = "batch_size", margin: float = 0.05, max_val: int = 8192,
    ) -> int:  # fmt: skip
        """Find the largest batch size that fits into memory and that the data fills.

        The module or the data module must create the loader, with its batch size attribute. The
        result is a power of two times `init_val`; with `mode="binsearch"`, sizes in between are
        tried too.

        Args:
            train_dataloaders: none, as their batches have a size already.
            val_dataloaders: taken for programs that give it: the search does not validate.
            dataloaders: none: those of evaluation.
            method: `"fit"`.
            margin: the part by which the result of `"binsearch"` is reduced.
            max_val: the largest size that is tried.

        Raises:
            ArgumentError: the mode is unknown, or there is no such attribute.
        """
        _check_method("scale_batch_size", method, dataloaders or train_dataloaders)
        owner = _owner(batch_arg_name, model, datamodule)
        if owner is None or mode not in ("power", "binsearch"):
            raise ArgumentError.here(
                f"scale_batch_size: expected mode 'power' or 'binsearch' and an attribute "
                f"{batch_arg_name!r} of module or data module, got {mode!r} and "
                f"{'none' if owner is None else 'one'}"
            )

        def fits(size: int) -> bool:
            setattr(owner, batch_arg_name, size)
            return self._fits(model, datamodule, steps_per_trial)

        low, high = 0, init_val
        for _ in range(max_trials):
            if high > max_val or not fits(high):
                break
            low, high = high, 2 * high
        high = min(high, max_val + 1)
        while mode == "binsearch" and high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        found = low or init_val
        found = max(int(found * (1 - margin)), 1) if mode == "binsearch" else found
        setattr(owner, batch_arg_name, found)
        return found

    def _fits(self, model: Any, datamodule: Any, steps: int) -> bool:
        """Whether a few steps run, and the data fills a batch."""
        try:
            trainer = self._run(model, None, datamodule, steps, [])
        except MemoryError:
            gc.collect()
            return False
        return trainer.num_training_batches > 1

    def _run(
        self, model: Any, loaders: Any, datamodule: Any, steps: int, callbacks: list[Any]
    ) -> Trainer:
        """A short run, after which the module's weights are restored."""
        own = self._trainer
        weights = copy.deepcopy(model.state_dict())
        outer = model.trainer if model._trainer else None  # a run in progress, of a callback
        trainer = Trainer(
            max_steps=steps, max_epochs=-1, limit_val_batches=0, num_sanity_val_steps=0,
            logger=False, enable_checkpointing=False, enable_progress_bar=False,
            precision=own.precision.name, callbacks=callbacks, stop_on_nan=False,
            accumulate_grad_batches=own.accumulate_grad_batches,
            gradient_clip_val=own.gradient_clip_val,
            gradient_clip_algorithm=own.gradient_clip_algorithm,
        )  # fmt: skip
        try:
            trainer.fit(model, loaders, datamodule=datamodule)
        finally:
            model.load_state_dict(weights)
            model.zero_grad()
            model.trainer = outer or trainer
        return trainer


class LearningRateFinder(Callback):
    """Searches for a learning rate when training begins; arguments are those of `Tuner.lr_find`.

    A subclass may call `lr_find` at other events.

    Attributes:
        optimal_lr: the results of the search.

    Raises:
        StateError: the module's `setup` creates new parameters each time it is called.
    """

    def __init__(
        self, min_lr: float = 1e-8, max_lr: float = 1.0, num_training_steps: int = 100,
        mode: str = "exponential", early_stop_threshold: float | None = 4.0,
        update_attr: bool = True, attr_name: str = "",
    ) -> None:  # fmt: skip
        self._search: dict[str, Any] = {
            "min_lr": min_lr, "max_lr": max_lr, "num_training": num_training_steps,
            "mode": mode.lower(), "early_stop_threshold": early_stop_threshold,
            "update_attr": update_attr, "attr_name": attr_name,
        }  # fmt: skip
        self.optimal_lr: LRFinder | None = None

    def lr_find(self, trainer: Any, pl_module: Any) -> None:
        """Search, and give the optimizers the rate that was found."""
        if trainer.fast_dev_run:
            return
        known, random = list(pl_module.parameters()), RandomState().state_dict()
        self.optimal_lr = Tuner(trainer).lr_find(
            pl_module, trainer.train_dataloader, **self._search
        )
        RandomState().load_state_dict(random)
        if any(a is not b for a, b in zip(known, pl_module.parameters(), strict=True)):
            raise StateError.here(
                "LearningRateFinder: expected the same parameters after setup() was called again; "
                "call Tuner(trainer).lr_find(model) before fit"
            )
        rate = self.optimal_lr.suggestion()
        if self._search["update_attr"] and rate is not None:
            for optimizer in trainer.optimizers:
                for group in optimizer.param_groups:
                    group["lr"] = rate

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """Search before the first step."""
        self.lr_find(trainer, pl_module)


class BatchSizeFinder(Callback):
    """Searches for a batch size when training begins; arguments are those of `scale_batch_size`.

    A subclass may call `scale_batch_size` at other events of `fit`. Tests and predictions keep the
    size.

    Attributes:
        optimal_batch_size: the result of the search.

    Raises:
        ArgumentError: loaders were given to `fit`, whose batches have a size already.
    """

    def __init__(
        self, mode: str = "power", steps_per_trial: int = 3, init_val: int = 2,
        max_trials: int = 25, batch_arg_name: str = "batch_size", margin: float = 0.05,
        max_val: int = 8192,
    ) -> None:  # fmt: skip
        self._search: dict[str, Any] = {
            "mode": mode.lower(), "steps_per_trial": steps_per_trial, "init_val": init_val,
            "max_trials": max_trials, "batch_arg_name": batch_arg_name, "margin": margin,
            "max_val": max_val,
        }  # fmt: skip
        self.optimal_batch_size = init_val

    def scale_batch_size(self, trainer: Any, pl_module: Any) -> None:
        """Search, and train on batches of the size that was found."""
        random = RandomState().state_dict()
        self.optimal_batch_size = Tuner(trainer).scale_batch_size(
            pl_module, trainer.given_loaders, datamodule=trainer.datamodule, **self._search
        )
        RandomState().load_state_dict(random)
        trainer.load_anew()

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """Search before the first step."""
        self.scale_batch_size(trainer, pl_module)
