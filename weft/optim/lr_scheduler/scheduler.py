"""The scheduler base: a learning rate per group as a function of the number of steps."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from weft.documentation import inherit_arguments
from weft.errors import OptimizerError
from weft.ops.refusal import GuardedMaking
from weft.optim.optimizer import Optimizer

__all__ = ["EPOCH_DEPRECATION_WARNING", "LRScheduler"]


def figures(scheduler: object) -> dict[str, Any]:
    """The attributes of a scheduler that are saved."""
    plain = (bool, int, float, str, list)
    return {k: v for k, v in vars(scheduler).items() if isinstance(v, plain)}


EPOCH_DEPRECATION_WARNING: Final = (
    "lr_scheduler: step(epoch) goes to a step of its own choice, which schedulers that act "
    "together cannot follow; call step() without one"
)


class LRScheduler(GuardedMaking):
    """Base class: a subclass says the rate of a group after `t` steps.

    Making a scheduler sets the rates for t = 0. `last_epoch` is t. Where `chains` is set, a step
    multiplies the current rate by a factor, so several schedulers of one optimizer combine.
    A subclass may also define `get_lr`, which returns all rates for `last_epoch`.

    Args:
        optimizer: the one whose rates are set.
        last_epoch: the step to resume from; -1 starts.

    Raises:
        OptimizerError: the argument is not an optimizer.
    """

    chains: ClassVar[bool] = False
    eta_min: float = 0.0  # the rate decays to it; the factor applies to the distance from it
    _get_lr_called_within_step = False  # subclasses in programs read both
    _is_initial = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        inherit_arguments(cls)

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OptimizerError.here(
                f"{type(self).__name__}: expected an optimizer, got {type(optimizer).__name__}"
            )
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            group.setdefault("initial_lr", group["lr"])
        self.base_lrs = [float(g["initial_lr"]) for g in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._step_count = 0
        self._last_lr: list[float] = []
        self._update_now = vars(optimizer).get("step")
        self._is_initial = True
        self._initial_step()
        del self._is_initial

    def _initial_step(self) -> None:
        self.step()

    def rate(self, base: float, t: int) -> float:
        """The rate after `t` steps of a group that began with `base`."""
        raise NotImplementedError

    def rates(self, t: int) -> list[float]:
        """The learning rates of all groups."""
        return [self.rate(base, t) for base in self.base_lrs]

    def get_lr(self) -> list[float]:
        """The rates at `last_epoch`, given those of the previous step."""
        after = self.rates(self.last_epoch)
        if not self.chains:
            return after
        before = self.rates(self.last_epoch - 1) if self.last_epoch > 0 else self.base_lrs
        rates = [group["lr"] for group in self.optimizer.param_groups]
        return [self._moved(*three) for three in zip(rates, before, after, strict=True)]

    def step(self, epoch: int | None = None) -> None:
        """Advance by one step, or to step `epoch`, which is deprecated."""
        if self._step_count == 1:
            self._check_order()
        self._step_count += 1
        self._get_lr_called_within_step = True
        if epoch is None:
            self.last_epoch += 1
            rates = self.get_lr()
        else:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
            self.last_epoch = epoch
            rates = self._rates_at(epoch)
        self._get_lr_called_within_step = False
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        self._last_lr = rates

    def _rates_at(self, t: int) -> list[float]:
        """The rates after `t` steps in closed form, where a subclass has one."""
        closed = getattr(self, "_get_closed_form_lr", None)  # of a program's subclass
        if closed is not None:
            return closed()
        return self.rates(t) if type(self).get_lr is LRScheduler.get_lr else self.get_lr()

    def _check_order(self) -> None:
        """Warn if the scheduler steps before the optimizer, which skips the first rate."""
        advice = "see PyTorch's how-to-adjust-learning-rate, which holds here too"
        if vars(self.optimizer).get("step") is not self._update_now:
            text = (
                "`optimizer.step()` has been overridden after the scheduler was made, so whether "
                f"it comes before `lr_scheduler.step()` is not known; {advice}"
            )
            warnings.warn(text, UserWarning, stacklevel=3)
        elif type(self.optimizer).step is Optimizer.step and not self.optimizer.steps_made:
            text = (
                "`lr_scheduler.step()` was called before `optimizer.step()`, so the first rate was "
                f"never used; {advice}"
            )
            warnings.warn(text, UserWarning, stacklevel=3)

    def _moved(self, rate: float, old: float, new: float) -> float:
        """A rate changed by the factor between `old` and `new`."""
        if rate == old:
            return new
        rest = old - self.eta_min
        if not rest:
            return rate + new - old
        return self.eta_min + (rate - self.eta_min) * (new - self.eta_min) / rest

    def get_last_lr(self) -> list[float]:
        """The rates that this scheduler set last."""
        return self._last_lr

    def state_dict(self) -> dict[str, Any]:
        """The state."""
        return figures(self)

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore the state that `state_dict` returned, and the rates that belong to it."""
        vars(self).update(state_dict)
        groups = self.optimizer.param_groups
        for group, rate in zip(groups, self._rates_at(self.last_epoch), strict=True):
            if group["lr"] == group["initial_lr"]:  # the optimizer's state was not loaded
                group["lr"] = rate


def warn_outside_step(scheduler: LRScheduler) -> None:
    """Warn if a program calls `get_lr`, as subclasses do."""
    if not scheduler._get_lr_called_within_step:  # pyright: ignore[reportPrivateUsage]
        text = "to get the last learning rate, call get_last_lr(), not get_lr()"
        warnings.warn(f"{type(scheduler).__name__}: {text}", UserWarning, stacklevel=3)


def of_each_group(owner: str, name: str, optimizer: Optimizer, given: Any) -> list[float]:
    """One number for each group.

    Raises:
        OptimizerError: the number of entries is wrong.
    """
    count = len(optimizer.param_groups)
    found: list[float] = list(given) if isinstance(given, Sequence) else [given] * count
    if len(found) != count:
        raise OptimizerError.here(
            f"{owner}: expected {name} to be a number, or {count}, one a group; got {len(found)}"
        )
    return found
