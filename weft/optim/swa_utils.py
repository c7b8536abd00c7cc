"""Averages of a model's weights over training: SWA and EMA.

Izmailov et al., "Averaging Weights Leads to Wider Optima and Better Generalization", 2018.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

from weft.eager.functions.api import Tensor, no_grad
from weft.eager.functions.creation.constructor import tensor
from weft.eager.tensor.device import check_device
from weft.errors import OptimizerError
from weft.ir.dtype import int64
from weft.nn.layer.normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d
from weft.nn.module.module import Module
from weft.optim.lr_scheduler.decay import cosine
from weft.optim.lr_scheduler.scheduler import LRScheduler
from weft.optim.optimizer import Optimizer

__all__ = [
    "SWALR", "AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn",
    "get_swa_multi_avg_fn", "update_bn",
]  # fmt: skip

Average = Callable[[Tensor, Tensor, Any], Any]
Averages = Callable[[Sequence[Tensor], Sequence[Tensor], Any], None]


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """An `avg_fn` for exponential averages: `decay * average + (1 - decay) * current`.

    Args:
        decay: the part of the average that stays, from 0 to 1.

    Raises:
        OptimizerError: a decay outside 0 to 1.
    """
    _check_decay(decay)
    return lambda average, current, _: decay * average + (1 - decay) * current


def get_swa_avg_fn() -> Average:
    """An `avg_fn` for the mean of all models so far."""
    return _mean


def _mean(average: Tensor, current: Tensor, count: Any) -> Any:
    return average + (current - average) / (count + 1)


def get_ema_multi_avg_fn(decay: float = 0.999) -> Averages:
    """A `multi_avg_fn` for exponential averages.

    Args:
        decay: the part of the average that stays, from 0 to 1.

    Raises:
        OptimizerError: a decay outside 0 to 1.
    """
    return _one_by_one(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> Averages:
    """A `multi_avg_fn` for the mean of all models so far."""
    return _one_by_one(_mean)


def _one_by_one(average: Average) -> Averages:
    def change(averages: Sequence[Tensor], currents: Sequence[Tensor], count: Any) -> None:
        with no_grad():
            for own, current in zip(averages, currents, strict=True):
                own.copy_(average(own, current, count))

    return change


def _check_decay(decay: float) -> None:
    if not 0 <= decay <= 1:
        raise OptimizerError.here(f"EMA: expected decay from 0 to 1, got {decay}")


class AveragedModel(Module):
    """A copy of a model that holds the average of the model's weights over training.

    Call `update_parameters(model)` whenever the current weights should enter the average.

    Args:
        model: the one to average.
        device: the CPU, which is the only one.
        avg_fn: `avg_fn(average, current, count)` gives a weight's next average; the mean if `None`.
        multi_avg_fn: changes the averages of all weights in place, given lists of both.
        use_buffers: whether buffers are averaged too; otherwise they are copied from the model.

    Raises:
        OptimizerError: both functions are given.

    >>> import weft as wf
    >>> model = wf.nn.Linear(1, 1, bias=False)
    >>> average = AveragedModel(model)
    >>> for weight in (1.0, 2.0, 6.0):
    ...     _ = wf.nn.init.constant_(model.weight, weight)
    ...     average.update_parameters(model)
    >>> average.module.weight.item()
    3.0
    """

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Average | None = None,
        multi_avg_fn: Averages | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        check_device(device)
        if avg_fn is not None and multi_avg_fn is not None:
            raise OptimizerError.here("AveragedModel: expected avg_fn or multi_avg_fn, got both")
        self.module = copy.deepcopy(model)
        self.register_buffer("n_averaged", tensor(0, dtype=int64))
        self.avg_fn, self.multi_avg_fn = avg_fn, multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The averaged model's output."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Add the model's current weights to the average."""
        own, given = self._averaged(self.module), self._averaged(model)
        with no_grad():
            if not self.n_averaged.item():
                _copy(own, given)
            elif self.multi_avg_fn is not None:
                self.multi_avg_fn(own, given, self.n_averaged)
            else:
                _one_by_one(self.avg_fn or _mean)(own, given, self.n_averaged)
            if not self.use_buffers:
                _copy(list(self.module.buffers()), list(model.buffers()))
            self.n_averaged.add_(1)

    def _averaged(self, model: Module) -> list[Tensor]:
        buffers = model.buffers() if self.use_buffers else ()
        return list(itertools.chain(model.parameters(), buffers))


def _copy(to: Sequence[Tensor], source: Sequence[Tensor]) -> None:
    for own, given in zip(to, source, strict=True):
        own.copy_(given)


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Recompute the running statistics of batch normalization over all batches of a loader.

    Args:
        loader: yields batches, or lists whose first element is one.
        model: the one with the batch normalizations.
        device: the CPU, which is the only one.
    """
    check_device(device)
    if batch_norms(model):
        with recomputed_statistics(model):
            for batch in loader:
                model(batch[0] if isinstance(batch, list | tuple) else batch)


def batch_norms(model: Module) -> list[BatchNorm1d | BatchNorm2d | BatchNorm3d]:
    """The layers with running statistics of batches."""
    return [m for m in model.modules() if isinstance(m, BatchNorm1d | BatchNorm2d | BatchNorm3d)]


@contextlib.contextmanager
def recomputed_statistics(model: Module) -> Iterator[None]:
    """Makes the running statistics the means over the batches that the model gets inside."""
    norms = batch_norms(model)
    training, momenta = model.training, [m.momentum for m in norms]
    model.train()
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None
    try:
        with no_grad():
            yield
    finally:
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum
        model.train(training)


class SWALR(LRScheduler):
    """From the current rate to `swa_lr` in `anneal_epochs` steps, then constant.

    Args:
        swa_lr: the rate to go to, of all groups or one each.
        anneal_epochs: the steps that it takes.
        anneal_strategy: along half a cosine ("cos"), or linearly ("linear").

    Raises:
        OptimizerError: an option out of its range.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | Sequence[float],
        anneal_epochs: int = 10,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        last_epoch: int = -1,
    ) -> None:
        groups = optimizer.param_groups
        rates = list(swa_lr) if isinstance(swa_lr, Sequence) else [swa_lr] * len(groups)
        if len(rates) != len(groups):
            raise OptimizerError.here(
                f"SWALR: swa_lr must be a number, or {len(groups)}, one a group; got {len(rates)}"
            )
        if anneal_strategy not in ("cos", "linear"):
            raise OptimizerError.here(
                f"SWALR: anneal_strategy must be 'cos' or 'linear', got {anneal_strategy!r}"
            )
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OptimizerError.here(
                f"SWALR: anneal_epochs must be an integer from 0 on, got {anneal_epochs}"
            )
        for group, rate in zip(groups, rates, strict=True):
            group["swa_lr"] = rate
        self.anneal_epochs, self.anneal_strategy = anneal_epochs, anneal_strategy
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates at `last_epoch`, given those of the previous step."""
        before = self._left(self.last_epoch - 1)
        now = self._left(self.last_epoch)
        groups = self.optimizer.param_groups
        return [
            group["swa_lr"] + (group["lr"] - group["swa_lr"]) * (now / before if before else 0.0)
            for group in groups
        ]

    def _left(self, t: int) -> float:
        """The remaining part of the way after `t` steps."""
        part = min(max(t, 0) / max(self.anneal_epochs, 1), 1.0) if self.anneal_epochs else 1.0
        return cosine(1.0, 0.0, part) if self.anneal_strategy == "cos" else 1.0 - part
