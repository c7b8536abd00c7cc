"""`Module`: a model with its losses, optimizers and hooks, as in Lightning's `LightningModule`."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from typing import Any, Self

from weft.eager.functions.api import as_tensor, device, stack
from weft.errors import ArgumentError, StateError
from weft.host.nested import NESTED
from weft.ir.dtype import DType, float32
from weft.nn import Module as NNModule
from weft.train.gradient import clip, parameters_of
from weft.train.hooks import Hooks
from weft.train.hyperparameters import NAME, HasHyperparameters, constructed, read_file
from weft.train.saving import read


class Module(HasHyperparameters, Hooks, NNModule):
    """A model that defines how it is trained: steps, losses, optimizers.

    A subclass defines `training_step` and `configure_optimizers`, and optionally `validation_step`,
    `test_step`, `predict_step`, and hooks. Steps may return the loss, or a dictionary with
    `"loss"`, and with `"items"` if the loss is the mean over something other than the batch's rows,
    such as tokens.

    Steps take (batch, batch_idx, dataloader_idx), or fewer of these. Lightning's name of the class
    is `LightningModule`.

    Attributes:
        automatic_optimization: whether the trainer calls `backward`, `step` and `zero_grad`.
        strict_loading: whether checkpoints must have all keys of the module, and no others.
        example_input_array: an input, or a tuple of arguments, for the graph in loggers.

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

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.automatic_optimization = True
        self.strict_loading = True
        self.example_input_array: Any = None
        self._trainer: weakref.ref[Any] | None = None
        self._toggled: list[Any] = []

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
    def device(self) -> Any:
        """Where the first parameter or buffer is; the processor without any."""
        first = next((x for owned in (self.parameters(), self.buffers()) for x in owned), None)
        return device("cpu") if first is None else first.device

    @property
    def dtype(self) -> DType:
        """The type of the first floating parameter; float32 without any."""
        return next((p.dtype for p in self.parameters() if p.dtype.is_floating), float32)

    @property
    def on_gpu(self) -> bool:
        """Whether the module is on a GPU: never."""
        return False

    @property
    def local_rank(self) -> int:
        """The rank of this process on its machine."""
        return self.trainer.local_rank if self._trainer else 0

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

    def all_gather(self, data: Any, group: Any = None, sync_grads: bool = False) -> Any:
        """Tensors of all processes, with a first dimension for processes; `data` if there is one.

        Args:
            data: a tensor or number, or nested containers of them.
            group: all processes: `None`.
            sync_grads: whether gradients flow back to the other processes.

        Raises:
            ArgumentError: a group, or gradients among several processes.
        """
        strategy = self.trainer.strategy
        if group is not None or (sync_grads and strategy.world_size > 1):
            raise ArgumentError.here(
                "all_gather: expected group=None and, with several processes, sync_grads=False; "
                "weft.collectives has groups and gradients"
            )
        if strategy.world_size == 1:
            return data
        return NESTED.mapped(lambda x: stack([as_tensor(y) for y in strategy.gather(x)]), data)

    # -- logging

    def log(
        self, name: str, value: Any, prog_bar: bool = False, logger: bool | None = None,
        on_step: bool | None = None, on_epoch: bool | None = None, reduce_fx: Any = "mean",
        enable_graph: bool = False, sync_dist: bool = False, sync_dist_group: Any = None,
        add_dataloader_idx: bool = True, batch_size: int | None = None,
        metric_attribute: str | None = None, rank_zero_only: bool = False,
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
            enable_graph: taken for programs that give it: logged values have no gradients.
            sync_dist: whether the epoch's value is reduced over all processes; a metric's always
                is.
            sync_dist_group: all processes: `None`.
            metric_attribute: taken for programs that give it: a metric is found without its name.
            rank_zero_only: whether the other processes do not log it.

        Raises:
            ArgumentError: the value is not one number, or a group of processes.
        """
        if sync_dist_group is not None:
            raise ArgumentError.here(
                f"log: expected sync_dist_group=None, all processes, got {sync_dist_group!r}"
            )
        trainer = None if self._trainer is None else self._trainer()
        if trainer is not None and (trainer.is_global_zero or not rank_zero_only):
            trainer.log(
                name, value, prog_bar, logger, on_step, on_epoch, reduce_fx, batch_size,
                add_dataloader_idx, sync_dist,
            )  # fmt: skip

    def log_dict(self, dictionary: Any, *options: Any, **named: Any) -> None:
        """Log the values of a dictionary, or the metrics of a collection; see `log`."""
        for name, value in dictionary.items():
            self.log(name, value, *options, **named)

    # -- optimization

    def optimizers(self, use_pl_optimizer: bool = True) -> Any:
        """The optimizers, for manual optimization: one, or a list of several.

        Args:
            use_pl_optimizer: the same either way: the optimizers themselves count their updates.
        """
        found = self.trainer.optimizers
        return found[0] if len(found) == 1 else found

    def lr_schedulers(self) -> Any:
        """The schedulers: one, a list of several, or `None`."""
        found = [x.scheduler for x in self.trainer.schedules]
        return None if not found else found[0] if len(found) == 1 else found

    def manual_backward(self, loss: Any, *args: Any, **options: Any) -> None:
        """`loss.backward()`, with the events of a backward pass."""
        self.trainer.manual_backward(loss, *args, **options)

    def backward(self, loss: Any, *args: Any, **options: Any) -> None:
        """The backward pass of automatic optimization."""
        loss.backward(*args, **options)

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

    @contextlib.contextmanager
    def toggled_optimizer(self, optimizer: Any) -> Iterator[None]:
        """A block in which only this optimizer's parameters require gradients."""
        self.toggle_optimizer(optimizer)
        try:
            yield
        finally:
            self.untoggle_optimizer(optimizer)

    def freeze(self) -> None:
        """Disable gradients, and set evaluation mode."""
        self.requires_grad_(False).eval()

    def unfreeze(self) -> None:
        """Enable gradients, and set training mode."""
        self.requires_grad_(True).train()

    # -- checkpoints

    @classmethod
    def load_from_checkpoint(
        cls, checkpoint_path: Any, map_location: Any = None, hparams_file: Any = None,
        strict: bool | None = None, weights_only: bool | None = None, **kwargs: Any,
    ) -> Self:  # fmt: skip
        """A module from a checkpoint of `Trainer.save_checkpoint` or `ModelCheckpoint`.

        Args:
            checkpoint_path: a file, the folder of a checkpoint, or that of a `ModelCheckpoint`,
                whose last one is loaded.
            map_location: taken for programs that give one: there is one device.
            hparams_file: a file `hparams.yaml`, whose entries are used in place of the saved ones.
            strict: whether all keys must match; by default the module's `strict_loading`.
            weights_only: false imports the classes of objects that hooks put in the checkpoint.
            kwargs: constructor arguments that replace the saved ones.
        """
        state = read(checkpoint_path, weights_only)
        saved = read_file(hparams_file) or state.get("hyper_parameters", {})
        module = constructed(cls, saved, state.get(NAME), kwargs)
        module.configure_model()
        module.on_load_checkpoint(state)
        strict = module.strict_loading if strict is None else strict
        module.load_state_dict(state["state_dict"], strict=strict)
        return module
