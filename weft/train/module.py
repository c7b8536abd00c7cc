"""`Module`: a model with its losses, optimizers and hooks, as in Lightning's `LightningModule`."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Self

from weft.errors import ArgumentError, StateError
from weft.nn import Module as NNModule
from weft.train.gradient import clip, parameters_of
from weft.train.hooks import Hooks
from weft.train.saving import read


class Hyperparameters(dict[str, Any]):
    """A module's arguments, read as items or as attributes.

    >>> found = Hyperparameters(lr=0.1)
    >>> found.lr, found["lr"]
    (0.1, 0.1)
    """

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"hparams: expected one of {list(self)}, got {name!r}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


class Module(Hooks, NNModule):
    """A model that defines how it is trained: steps, losses, optimizers.

    A subclass defines `training_step` and `configure_optimizers`, and optionally `validation_step`,
    `test_step`, `predict_step`, and hooks. Steps may return the loss, or a dictionary with
    `"loss"`, and with `"items"` if the loss is the mean over something other than the batch's rows,
    such as tokens.

    Attributes:
        automatic_optimization: whether the trainer calls `backward`, `step` and `zero_grad`.

    >>> import weft as wf
    >>> class Line(wf.train.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.layer = wf.nn.Linear(1, 1)
    ...     def training_step(self, batch, batch_idx):
    ...         x, y = batch
    ...         loss = ((self.layer(x) - y) ** 2).mean()
    ...         self.log("loss", loss)
    ...         return loss
    ...     def configure_optimizers(self):
    ...         return wf.optim.SGD(self.parameters(), lr=0.1)
    >>> x = wf.linspace(-1, 1, 32).reshape(8, 4, 1)
    >>> quiet = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False)
    >>> trainer = wf.train.Trainer(max_epochs=40, **quiet)
    >>> trainer.fit(Line(), [(a, 3 * a) for a in x])
    >>> trainer.global_step
    320
    """

    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = True
        self._trainer: weakref.ref[Any] | None = None
        self._hparams = Hyperparameters()

    # -- what a subclass defines

    def training_step(self, *args: Any, **kwargs: Any) -> Any:
        """The loss of a batch: `training_step(batch, batch_idx)`."""
        raise NotImplementedError(f"{type(self).__name__}: training_step is not defined")

    def validation_step(self, *args: Any, **kwargs: Any) -> Any:
        """Log the metrics of a batch: `validation_step(batch, batch_idx, dataloader_idx=0)`."""
        raise NotImplementedError(f"{type(self).__name__}: validation_step is not defined")

    def test_step(self, *args: Any, **kwargs: Any) -> Any:
        """Log the metrics of a batch: `test_step(batch, batch_idx, dataloader_idx=0)`."""
        raise NotImplementedError(f"{type(self).__name__}: test_step is not defined")

    def predict_step(self, *args: Any, **kwargs: Any) -> Any:
        """The predictions for a batch: `predict_step(batch, batch_idx, dataloader_idx=0)`."""
        batch = args[0]
        return self(batch[0] if isinstance(batch, list | tuple) else batch)

    # -- the trainer

    @property
    def trainer(self) -> Any:
        """The trainer that runs this module.

        Raises:
            StateError: no trainer does.
        """
        found = None if self._trainer is None else self._trainer()
        if found is None:
            raise StateError.here(
                f"{type(self).__name__}.trainer: expected a trainer that runs the module, got none"
            )
        return found

    @trainer.setter
    def trainer(self, trainer: Any) -> None:
        # weak, so that copying the module does not copy its trainer
        object.__setattr__(self, "_trainer", None if trainer is None else weakref.ref(trainer))

    @property
    def global_step(self) -> int:
        """The number of updates so far."""
        return self.trainer.global_step if self._trainer else 0

    @property
    def current_epoch(self) -> int:
        """The index of the epoch."""
        return self.trainer.current_epoch if self._trainer else 0

    @property
    def global_rank(self) -> int:
        """The rank of this process."""
        return self.trainer.strategy.rank if self._trainer else 0

    @property
    def logger(self) -> Any:
        """The trainer's first logger, or `None`."""
        loggers = self.loggers
        return loggers[0] if loggers else None

    @property
    def loggers(self) -> list[Any]:
        """The trainer's loggers."""
        return self.trainer.loggers if self._trainer else []

    def print(self, *args: Any, **kwargs: Any) -> None:
        """Print, on rank 0 only."""
        if self.global_rank == 0:
            print(*args, **kwargs)

    # -- logging

    def log(
        self, name: str, value: Any, prog_bar: bool = False, logger: bool | None = None,
        on_step: bool | None = None, on_epoch: bool | None = None, reduce_fx: Any = "mean",
        batch_size: int | None = None, add_dataloader_idx: bool = True, sync_dist: bool = False,
    ) -> None:  # fmt: skip
        """Log a value: a number, a tensor of one element, or a metric.

        Without a trainer it does nothing.

        Args:
            prog_bar: whether the progress bar shows it.
            logger: whether loggers get it; true by default.
            on_step: whether each step's value is logged; by default only in training steps.
            on_epoch: whether the epoch's value is logged; by default only outside of training
                steps.
            reduce_fx: `"mean"` (weighted by batch size), `"sum"`, `"min"`, `"max"` or `"last"`.
            batch_size: the weight in the mean; by default that of the batch's first tensor.
            add_dataloader_idx: whether the name includes the loader's index if there are several.
            sync_dist: whether the epoch's value is reduced over all processes; a metric's always
                is.
        """
        trainer = None if self._trainer is None else self._trainer()
        if trainer is not None:
            trainer.log(
                name, value, prog_bar, logger, on_step, on_epoch, reduce_fx, batch_size,
                add_dataloader_idx, sync_dist,
            )  # fmt: skip

    def log_dict(self, dictionary: Mapping[str, Any], **options: Any) -> None:
        """Log several values; see `log`."""
        for name, value in dictionary.items():
            self.log(name, value, **options)

    # -- optimization

    def optimizers(self) -> Any:
        """The optimizers, for manual optimization: one, or a list of several."""
        found = self.trainer.optimizers
        return found[0] if len(found) == 1 else found

    def lr_schedulers(self) -> Any:
        """The schedulers: one, a list of several, or `None`."""
        found = [x.scheduler for x in self.trainer.schedules]
        return None if not found else found[0] if len(found) == 1 else found

    def manual_backward(self, loss: Any, **options: Any) -> None:
        """`loss.backward()`, with the loss scaled if the precision requires it."""
        self.trainer.manual_backward(loss, **options)

    def backward(self, loss: Any) -> None:
        """The backward pass of automatic optimization."""
        loss.backward()

    def optimizer_step(
        self, epoch: int, batch_idx: int, optimizer: Any, optimizer_closure: Any = None
    ) -> None:
        """The update of automatic optimization.

        Args:
            optimizer_closure: computes the step's loss and gradients, and returns the loss.
        """
        optimizer.step(closure=optimizer_closure)

    def optimizer_zero_grad(self, epoch: int, batch_idx: int, optimizer: Any) -> None:
        """Zero gradients before a backward pass.

        They are also dropped right after an update, which saves their memory.
        """
        optimizer.zero_grad()

    def lr_scheduler_step(self, scheduler: Any, metric: Any) -> None:
        """Step a scheduler; `metric` is the value that it monitors, or `None`."""
        if metric is None:
            scheduler.step()
        else:
            scheduler.step(metric)

    def configure_gradient_clipping(
        self,
        optimizer: Any,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """Clip gradients as the trainer's arguments say."""
        self.clip_gradients(optimizer, gradient_clip_val, gradient_clip_algorithm)

    def clip_gradients(
        self,
        optimizer: Any,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """Clip the gradients of an optimizer's parameters."""
        clip(parameters_of(optimizer), gradient_clip_val, gradient_clip_algorithm)

    def toggle_optimizer(self, optimizer: Any) -> None:
        """Require gradients for this optimizer's parameters only."""
        own = {id(p) for p in parameters_of(optimizer)}
        others = [p for x in self.trainer.optimizers for p in parameters_of(x)]
        self._toggled = [p for p in others if id(p) not in own and p.requires_grad]
        for p in self._toggled:
            p.requires_grad_(False)

    def untoggle_optimizer(self, optimizer: Any) -> None:
        """Undo `toggle_optimizer`."""
        for p in self._toggled:
            p.requires_grad_(True)
        self._toggled = []

    def freeze(self) -> None:
        """Disable gradients, and set evaluation mode."""
        self.requires_grad_(False).eval()

    def unfreeze(self) -> None:
        """Enable gradients, and set training mode."""
        self.requires_grad_(True).train()

    # -- hyperparameters

    @property
    def hparams(self) -> Hyperparameters:
        """The hyperparameters that `save_hyperparameters` stored."""
        return self._hparams

    def save_hyperparameters(self, *args: Any, ignore: Sequence[str] | str = ()) -> None:
        """Store the constructor's arguments: they are saved with checkpoints and logged.

        Args:
            args: names of some of them, or one dictionary; all by default.
            ignore: names to leave out.

        Raises:
            ArgumentError: called outside of a constructor.
        """
        if args and isinstance(args[0], Mapping):
            found = dict(args[0])
        else:
            found = _arguments_of_constructor(self, inspect.currentframe())
        left_out = {ignore} if isinstance(ignore, str) else set(ignore)
        names = [x for x in args if isinstance(x, str)] or list(found)
        self._hparams.update({k: found[k] for k in names if k in found and k not in left_out})

    @classmethod
    def load_from_checkpoint(cls, checkpoint_path: Any, strict: bool = True, **kwargs: Any) -> Self:
        """A module from a checkpoint of `Trainer.save_checkpoint` or `ModelCheckpoint`.

        Args:
            checkpoint_path: a file, the folder of a checkpoint, or that of a `ModelCheckpoint`,
                whose last one is loaded.
            strict: whether all keys must match.
            kwargs: constructor arguments that replace the saved ones.
        """
        state = read(checkpoint_path)
        module = cls(**{**state.get("hyper_parameters", {}), **kwargs})
        module.on_load_checkpoint(state)
        module.load_state_dict(state["state_dict"], strict=strict)
        return module


def _arguments_of_constructor(module: Any, frame: Any) -> dict[str, Any]:
    """The arguments of the outermost running `__init__` of `module`."""
    found: Any = None
    while frame is not None:
        values = frame.f_locals
        if frame.f_code.co_name == "__init__" and values.get("self") is module:
            found = frame
        frame = frame.f_back
    if found is None:
        raise ArgumentError.here("save_hyperparameters: expected a call inside of the constructor")
    arguments = inspect.getargvalues(found)
    values = arguments.locals
    rest = dict(values[arguments.keywords]) if arguments.keywords else {}
    return {**{k: values[k] for k in arguments.args if k != "self"}, **rest}
