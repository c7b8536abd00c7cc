"""Weight averaging over training: EMA and SWA."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from weft.eager.functions.api import no_grad, tensor
from weft.errors import ArgumentError
from weft.optim.ema import ExponentialMovingAverage
from weft.optim.swa_utils import (
    SWALR,
    AveragedModel,
    batch_norms,
    get_ema_avg_fn,
    recomputed_statistics,
)
from weft.train.callbacks.callback import Callback

__all__ = ["EMA", "EMAWeightAveraging", "StochasticWeightAveraging", "WeightAveraging"]


class EMA(Callback):
    """Keeps an exponential moving average of the weights, updated in the step's program.

    Validation and tests use the averages; at the end the module gets them, if `apply_at_end`.

    Args:
        decay: from 0 to 1; 0.999 averages over about a thousand steps.
        update_every_n_steps: how often the averages are updated.
        validate_with_average: whether validation and tests use them, unless they are those of a
            checkpoint, by `ckpt_path`.
        apply_at_end: whether the module gets them at the end of `fit`.
    """

    def __init__(
        self, decay: float = 0.999, update_every_n_steps: int = 1,
        validate_with_average: bool = True, apply_at_end: bool = True,
    ) -> None:  # fmt: skip
        if not 0 <= decay <= 1:
            raise ArgumentError.here(f"EMA: expected decay from 0 to 1, got {decay}")
        self.decay, self.every = decay, update_every_n_steps
        self.validate_with_average = validate_with_average
        self.apply_at_end = apply_at_end
        self._average: ExponentialMovingAverage | None = None
        self._saved: Mapping[str, Any] | None = None
        self._swapped: Any = None
        self._step = -1
        self._is_applied = False  # whether the weights are the averages

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """Start with the current weights, or with restored averages."""
        self._is_applied = False
        self._average = average = ExponentialMovingAverage(pl_module.parameters(), self.decay)
        self._step = trainer.global_step
        if self._saved is not None:
            for own, saved in zip(average.averages, self._saved["averages"], strict=True):
                own.copy_(saved)
            self._saved = None

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Update the averages after a step."""
        if self._average is not None and trainer.global_step != self._step:
            self._step = trainer.global_step
            if self._step % self.every == 0:
                self._average.update()

    def _swap(self, trainer: Any, pl_module: Any) -> None:
        average = self._average
        unused = self._is_applied or not self.validate_with_average
        if average is None or unused or self._swapped is not None:
            return
        own = [id(p) for p in pl_module.parameters()] == [id(p) for p in average.parameters]
        if own and not trainer.evaluates_checkpoint:
            self._swapped = average.average_parameters()
            self._swapped.__enter__()

    def _swap_back(self) -> None:
        if self._swapped is not None:
            swapped, self._swapped = self._swapped, None
            swapped.__exit__(None, None, None)

    def on_validation_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Use the averages in validation."""
        self._swap(trainer, pl_module)

    def on_validation_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Use the weights in training."""
        self._swap_back()

    def on_test_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Use the averages in tests."""
        self._swap(trainer, pl_module)

    def on_test_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Use the module's own weights after tests."""
        self._swap_back()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Restore the module's own weights."""
        self._swap_back()

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        """Give the module the averages."""
        if self._average is not None and self.apply_at_end:
            with no_grad():
                pairs = zip(self._average.parameters, self._average.averages, strict=True)
                for p, average in pairs:
                    p.copy_(average)
            self._is_applied = True

    def state_dict(self) -> dict[str, Any]:
        """The averages."""
        return {} if self._average is None else {"averages": list(self._average.averages)}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore the averages."""
        self._saved = state_dict


class WeightAveraging(Callback):
    """An `AveragedModel` of the module: validation uses it, and the module gets it at the end.

    A subclass may override `should_update`. Checkpoints have the averages as `state_dict`, and the
    weights of training as `current_model_state`.

    Args:
        device: the processor, or `None`.
        use_buffers: whether buffers are averaged as well.
        kwargs: of `AveragedModel`: `avg_fn` or `multi_avg_fn`; by default the mean.
    """

    def __init__(self, device: Any = None, use_buffers: bool = True, **kwargs: Any) -> None:
        self._options: dict[str, Any] = {"device": device, "use_buffers": use_buffers, **kwargs}
        self._average: AveragedModel | None = None
        self._step, self._epoch = 0, -1

    def should_update(self, step_idx: int | None = None, epoch_idx: int | None = None) -> bool:
        """Whether the weights enter the average after this step or epoch, counted from 0."""
        return step_idx is not None

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Begin with the module's weights."""
        if stage == "fit":
            pl_module.configure_model()
            self._average = AveragedModel(pl_module, **self._options)

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Average after a step."""
        step = trainer.global_step
        if self._average is not None and step > self._step and self.should_update(step - 1):
            self._average.update_parameters(pl_module)
            self._step = step

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Average after an epoch."""
        epoch = trainer.current_epoch
        if self._average is not None and epoch > self._epoch and self.should_update(None, epoch):
            self._average.update_parameters(pl_module)
            self._epoch = epoch

    def _pairs(self, pl_module: Any) -> list[tuple[Any, Any]]:
        """The averages, each with what the module has."""
        if self._average is None:
            return []
        owners = (self._average.module, pl_module)
        return list(zip(*[[*x.parameters(), *x.buffers()] for x in owners], strict=True))

    def _swap(self, pl_module: Any) -> None:
        with no_grad():
            for average, own in self._pairs(pl_module):
                kept = own.detach().clone()
                own.copy_(average)
                average.copy_(kept)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Give the module the averages."""
        with no_grad():
            for average, own in self._pairs(pl_module):
                own.copy_(average)

    def on_validation_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Use the averages in validation."""
        self._swap(pl_module)

    def on_validation_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Use the weights in training."""
        self._swap(pl_module)

    def state_dict(self) -> dict[str, Any]:
        """The last step that was averaged."""
        return {"latest_update_step": self._step}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore it."""
        self._step = int(state_dict["latest_update_step"])

    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        """Save the averages as the module's state."""
        if self._average is not None:
            state, inner = self._average.state_dict(), "module."
            checkpoint["current_model_state"] = checkpoint["state_dict"]
            of_model = {k: v for k, v in state.items() if k.startswith(inner)}
            checkpoint["state_dict"] = {k.removeprefix(inner): v for k, v in of_model.items()}
            checkpoint["averaging_state"] = {k: v for k, v in state.items() if k not in of_model}

    def on_load_checkpoint(
        self, trainer: Any, pl_module: Any, checkpoint: Mapping[str, Any]
    ) -> None:
        """Restore the averages, and the weights of training."""
        if self._average is None:
            return
        averages = {f"module.{k}": v for k, v in checkpoint["state_dict"].items()}
        if "current_model_state" in checkpoint:
            pl_module.load_state_dict(checkpoint["current_model_state"])
            averages |= checkpoint["averaging_state"]
        self._average.load_state_dict(averages, strict="current_model_state" in checkpoint)


class EMAWeightAveraging(WeightAveraging):
    """`WeightAveraging` with an exponential moving average.

    Args:
        device: the processor, or `None`.
        use_buffers: whether buffers are averaged as well.
        decay: from 0 to 1; 0.999 averages over about a thousand steps.
        update_every_n_steps: average after each n-th step.
        update_starting_at_step: the first step that is averaged, counted from 0.
        update_starting_at_epoch: average after each epoch from this one on, as well.
    """

    def __init__(
        self, device: Any = None, use_buffers: bool = True, decay: float = 0.999,
        update_every_n_steps: int = 1, update_starting_at_step: int | None = None,
        update_starting_at_epoch: int | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(device, use_buffers, **kwargs, avg_fn=get_ema_avg_fn(decay))
        self.update_every_n_steps = update_every_n_steps
        self.update_starting_at_step = update_starting_at_step
        self.update_starting_at_epoch = update_starting_at_epoch

    def should_update(self, step_idx: int | None = None, epoch_idx: int | None = None) -> bool:
        """Whether this step or epoch is one of those to average."""
        if step_idx is None:
            first = self.update_starting_at_epoch
            return first is not None and epoch_idx is not None and epoch_idx >= first
        every, first = self.update_every_n_steps, self.update_starting_at_step or 0
        return every > 0 and step_idx % every == 0 and step_idx >= first


class StochasticWeightAveraging(Callback):
    """Averages the weights of the last epochs, at a constant learning rate.

    The weights at the start of the epochs from `swa_epoch_start - 1` on are averaged, as in
    Lightning. At the end, the module gets the averages, and batch normalization recomputes its
    statistics by a pass of `training_step` over the training data.

    Args:
        swa_lrs: the learning rate to anneal to, or a list with that of each group.
        swa_epoch_start: the first epoch at that rate, counted from 1 (int), or a fraction of all
            epochs (float).
        annealing_epochs: the number of epochs of annealing.
        annealing_strategy: `"cos"` or `"linear"`.
        avg_fn: gives the new average from the old one, a weight and the number averaged so far; by
            default that of the mean.
        device: taken for programs that give it: averages are where the weights are.

    Raises:
        ArgumentError: a fraction without `max_epochs`; not one optimizer; or batch normalization
            in a module with manual optimization.

    Source: Izmailov et al., "Averaging Weights Leads to Wider Optima and Better Generalization",
    2018.
    """

    def __init__(
        self, swa_lrs: float | list[float], swa_epoch_start: int | float = 0.8,
        annealing_epochs: int = 10, annealing_strategy: Any = "cos",
        avg_fn: Callable[[Any, Any, int], Any] | None = None, device: Any = None,
    ) -> None:  # fmt: skip
        self._lr, self._from = swa_lrs, swa_epoch_start
        self._average = avg_fn or (lambda average, p, count: average + (p - average) / (count + 1))
        self._annealing = annealing_epochs, annealing_strategy
        self.n_averaged = 0
        self._epoch = -1  # of the last averaged weights
        self._averages: list[Any] = []
        self._schedule: SWALR | None = None
        self._saved: Mapping[str, Any] | None = None

    def _first(self, trainer: Any) -> int:
        epoch = self._from
        if not isinstance(epoch, int):
            epoch = int(trainer.max_epochs * epoch)
        return max(epoch - 1, 0)

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """Check the run, and use the restored state."""
        self._check(trainer, pl_module)
        state, self._saved = self._saved, None
        self._schedule = None
        if state is not None:
            self.n_averaged, self._averages = int(state["n_averaged"]), list(state["averages"])
            self._epoch = int(state["epoch"])
            if state["schedule"]:
                self._begin(trainer).load_state_dict(state["schedule"])

    def _check(self, trainer: Any, pl_module: Any) -> None:
        problem = ""
        if not isinstance(self._from, int) and trainer.max_epochs == -1:
            problem = (
                f"swa_epoch_start as an integer, as max_epochs is not limited, got {self._from}"
            )
        elif len(trainer.optimizers) != 1:
            problem = f"one optimizer, got {len(trainer.optimizers)}"
        elif not pl_module.automatic_optimization and batch_norms(pl_module):
            problem = (
                "automatic optimization of a module with batch normalization, whose statistics are "
                "recomputed by training_step"
            )
        if problem:
            raise ArgumentError.here(f"StochasticWeightAveraging: expected {problem}")

    def _begin(self, trainer: Any) -> SWALR:
        """Replace the learning rate schedules from here on."""
        self._schedule = SWALR(trainer.optimizers[0], self._lr, *self._annealing)
        trainer.fit_loop.replace_schedules(self._schedule)
        return self._schedule

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Start annealing where averaging starts, and add the weights to the average."""
        epoch = trainer.current_epoch
        if epoch < self._first(trainer):
            return
        if self._schedule is None:
            self._begin(trainer)
        if epoch > self._epoch:
            self._epoch = epoch
            self._add([p.detach().clone() for p in pl_module.parameters()])

    def _add(self, values: list[Any]) -> None:
        with no_grad():
            if not self._averages:
                self._averages = values
            else:
                pairs = zip(self._averages, values, strict=True)
                self._averages = [self._average(a, p, self.n_averaged) for a, p in pairs]
        self.n_averaged += 1

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Give the module the averages."""
        if not self.n_averaged:
            return
        with no_grad():
            for p, average in zip(pl_module.parameters(), self._averages, strict=True):
                p.copy_(average)
        if batch_norms(pl_module):
            with recomputed_statistics(pl_module):
                trainer.fit_loop.repeat_steps()

    def state_dict(self) -> dict[str, Any]:
        """The averages, their number and last epoch, and the annealing's state."""
        return {
            "n_averaged": self.n_averaged,
            "epoch": self._epoch,
            "averages": [tensor(a.numpy()) for a in self._averages],
            "schedule": None if self._schedule is None else self._schedule.state_dict(),
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore the state."""
        self._saved = state_dict
