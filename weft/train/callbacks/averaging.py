"""Weight averaging over training: EMA and SWA."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from weft.eager.functions.api import no_grad, tensor
from weft.errors import ArgumentError
from weft.optim.ema import ExponentialMovingAverage
from weft.optim.swa_utils import SWALR, batch_norms, recomputed_statistics
from weft.train.callbacks.callback import Callback

__all__ = ["EMA", "EMAWeightAveraging", "StochasticWeightAveraging"]


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
        self.restart(pl_module)
        self._step = trainer.global_step
        if self._saved is not None and self._average is not None:
            for own, saved in zip(self._average.averages, self._saved["averages"], strict=True):
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

    def restart(self, pl_module: Any) -> None:
        """Average from the weights as they are now on."""
        self._average = ExponentialMovingAverage(pl_module.parameters(), self.decay)

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


class EMAWeightAveraging(EMA):
    """`EMA` by Lightning's name.

    Args:
        device: taken for programs that give it: averages are where the weights are.
        use_buffers: taken for programs that give it: buffers are not averaged.
        decay: as for `EMA`.
        update_every_n_steps: as for `EMA`.
        update_starting_at_step: the first update that is averaged.
        update_starting_at_epoch: the first epoch whose updates are averaged.
    """

    def __init__(
        self, device: Any = None, use_buffers: bool = True, decay: float = 0.999,
        update_every_n_steps: int = 1, update_starting_at_step: int | None = None,
        update_starting_at_epoch: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(decay, update_every_n_steps)
        self._from = update_starting_at_step or 0, update_starting_at_epoch or 0

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Update the averages after a step, if averaging has begun."""
        step, epoch = self._from
        if trainer.global_step > step and trainer.current_epoch >= epoch:
            super().on_train_batch_end(trainer, pl_module, outputs, batch, batch_idx)
        else:
            self.restart(pl_module)


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
