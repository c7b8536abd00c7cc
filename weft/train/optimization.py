"""A training step: forward, backward, gradient accumulation, update, counting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.errors import ArgumentError
from weft.optim import LBFGS
from weft.train.batches import size_of
from weft.train.events import defines
from weft.train.gradient import Window, parameters_of, scale_gradients
from weft.train.nan_watch import NanWatch
from weft.train.signature import step_of


class Step:
    """Makes a module's training steps.

    The optimizer itself counts updates, in the section that Ctrl-C does not interrupt; the count is
    decremented if an update is undone.

    Args:
        trainer: its events are emitted, and its progress is counted.
        module: its steps are called.
        base: the class with the default methods of modules.
    """

    def __init__(self, trainer: Any, module: Any, base: type) -> None:
        self._trainer, self._module = trainer, module
        self._progress = trainer.progress
        self._precision = trainer.precision
        self._training_step: Callable[[Any, int], Any] = step_of(module, "training_step")
        self.window = Window()
        self._accumulate: int = trainer.accumulate_grad_batches
        self._batch: Any = None
        self._index = 0
        self._closes = True
        self._output: Any = None
        self._optimizer = trainer.optimizers[0] if trainer.optimizers else None
        self._parameters = [] if self._optimizer is None else parameters_of(self._optimizer)
        self._defined = {
            name: defines(module, name, base)
            for name in (
                "backward", "optimizer_step", "optimizer_zero_grad", "configure_gradient_clipping",
                "clip_gradients",
            )
        }  # fmt: skip
        self._clips = bool(trainer.gradient_clip_val) or any(
            [self._defined[n] for n in ("configure_gradient_clipping", "clip_gradients")]
        )
        self._by_closure = self._defined["optimizer_step"] or isinstance(self._optimizer, LBFGS)
        events = trainer.events
        self._on_zero_grad = events.of("on_before_zero_grad")
        self._on_backward = events.of("on_before_backward")
        self._on_after_backward = events.of("on_after_backward")
        self._on_update = events.of("on_before_optimizer_step")
        self.watch = NanWatch(module, self._again)
        self._check(trainer, module)

    def _check(self, trainer: Any, module: Any) -> None:
        automatic = module.automatic_optimization
        if automatic and len(trainer.optimizers) > 1:
            raise ArgumentError.here(
                f"Trainer.fit: expected one optimizer with automatic optimization, got "
                f"{len(trainer.optimizers)}; set self.automatic_optimization = False and call "
                f"manual_backward() and step() in training_step"
            )
        scaled = self._precision.scaler is not None
        if scaled and (not automatic or self._by_closure):
            raise ArgumentError.here(
                "Trainer.fit: precision '16-mixed' scales the loss of automatic optimization, "
                "without a closure; use 'bf16-mixed'"
            )
        if isinstance(self._optimizer, LBFGS) and self._accumulate > 1:
            raise ArgumentError.here(
                "Trainer.fit: LBFGS computes a batch several times, so accumulate_grad_batches "
                f"must be 1, got {self._accumulate}"
            )
        if not automatic and trainer.gradient_clip_val:
            raise ArgumentError.here(
                "Trainer.fit: gradient_clip_val is of automatic optimization; call "
                "self.clip_gradients(optimizer, value) in training_step"
            )
        if not automatic and self._accumulate > 1:
            raise ArgumentError.here(
                "Trainer.fit: accumulate_grad_batches is of automatic optimization; count batches "
                "in training_step"
            )

    def begin_epoch(self) -> None:
        """Read what callbacks may change between epochs."""
        self._accumulate = self._trainer.accumulate_grad_batches
        self._parameters = [] if self._optimizer is None else parameters_of(self._optimizer)
        if self._trainer.stops_on_nan:
            self.watch.begin()

    def __call__(self, batch: Any, index: int, is_last: bool) -> Any:
        """Train on a batch; returns the result of `training_step`.

        Args:
            is_last: whether the batch completes its accumulation window.
        """
        self._batch, self._index = batch, index
        if not self._module.automatic_optimization or self._optimizer is None:
            return self._manual()
        self._closes = is_last or self._accumulate == 1 or (index + 1) % self._accumulate == 0
        if not self._closes:
            self._closure()
        elif self._by_closure:
            self._module.optimizer_step(self._progress.epoch, index, self._optimizer, self._closure)
            self._forget()
        else:
            self._closure()
            if self._output is not None or not self.window.is_empty:
                self._update()
        output, self._output, self._batch = self._output, None, None
        return output

    def _manual(self) -> Any:
        with self._precision.forward():
            output = self._training_step(self._batch, self._index)
        self._batch = None
        return output

    def _closure(self) -> Any:
        """The step's forward and backward pass, up to gradients that are ready for the update."""
        if self._precision.dtype is None:
            output = self._training_step(self._batch, self._index)
        else:
            with self._precision.forward():
                output = self._training_step(self._batch, self._index)
        self._output = output
        if output is None:
            return None
        loss = output if type(output) is not dict else _loss_of(output)
        if self._trainer.stops_on_nan:
            self.watch.note(loss, self._batch, self._index)
        if self.window.is_empty or self._accumulate == 1:
            for call in self._on_zero_grad:
                call(self._optimizer)
            if self._defined["optimizer_zero_grad"] or self._by_closure:
                self._module.optimizer_zero_grad(self._progress.epoch, self._index, self._optimizer)
        self._backward(loss, output)
        if self._closes and self._precision.scaler is None:
            self._ready()
        return loss

    def _backward(self, loss: Any, output: Any) -> None:
        if self._accumulate > 1:
            items = output.get("items") if isinstance(output, dict) else None
            weight = self.window.weight(float(size_of(self._batch) if items is None else items))
            loss = loss * weight if weight != 1.0 else loss
        for call in self._on_backward:
            call(loss)
        if self._precision.scaler is not None:
            loss = self._precision.scaler.scale(loss)
        if self._defined["backward"]:
            self._module.backward(loss)
        else:
            loss.backward()
        for call in self._on_after_backward:
            call()

    def _ready(self) -> None:
        """Finish the gradients: scale the accumulated sum, and clip."""
        if self._accumulate > 1:
            scale_gradients(self._parameters, self.window.close())
        for call in self._on_update:
            call(self._optimizer)
        if self._clips:
            self._module.configure_gradient_clipping(
                self._optimizer,
                self._trainer.gradient_clip_val,
                self._trainer.gradient_clip_algorithm,
            )

    def _update(self) -> None:
        """The optimizer's step; gradients are dropped at once, which saves their memory."""
        optimizer, scaler = self._optimizer, self._precision.scaler
        if optimizer is None:
            return
        if scaler is None:
            optimizer.step()
        else:
            scaler.unscale_(optimizer)
            self._ready()
            before = self._progress.global_step
            scaler.step(optimizer)
            scaler.update()
            if self._progress.global_step == before:
                self._progress.count(1)  # skipped because of a non-finite gradient
        self._forget()

    def _forget(self) -> None:
        for p in self._parameters:
            p.grad = None

    def finish(self) -> bool:
        """Update with the incomplete window at an epoch's end; returns whether there was one."""
        if self.window.is_empty or self._optimizer is None:
            return False
        if self._precision.scaler is None:
            self._ready()
        self._update()
        return True

    def forward(self, batch: Any, index: int) -> Any:
        """`training_step` alone."""
        return self._training_step(batch, index)

    def _again(self, batch: Any, index: int) -> Any:
        """Recompute the step's loss and gradients, for a report."""
        self._forget()
        with self._precision.forward():
            output = self._training_step(batch, index)
        loss = output if type(output) is not dict else _loss_of(output)
        loss.backward()
        self._forget()
        return loss

    def backward(self, loss: Any, *args: Any, **options: Any) -> None:
        """The backward pass of manual optimization."""
        for call in self._on_backward:
            call(loss)
        loss.backward(*args, **options)
        for call in self._on_after_backward:
            call()


def _loss_of(output: dict[str, Any]) -> Any:
    loss = output.get("loss")
    if loss is None:
        raise ArgumentError.here(
            f"training_step: expected a loss, or a dictionary with 'loss', got {sorted(output)}"
        )
    return loss
