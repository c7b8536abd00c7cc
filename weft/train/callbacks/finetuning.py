"""Fine-tuning: layers that are frozen at first, and trained from some epoch on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from weft.errors import ArgumentError
from weft.nn import BatchNorm1d, BatchNorm2d, BatchNorm3d
from weft.nn import Module as NNModule
from weft.train.callbacks.callback import Callback
from weft.train.gradient import parameters_of

__all__ = ["BackboneFinetuning", "BaseFinetuning"]

_NORMS = (BatchNorm1d, BatchNorm2d, BatchNorm3d)


class BaseFinetuning(Callback):
    """Base class: a subclass says what is frozen first, and what is trained from which epoch on."""

    def freeze_before_training(self, pl_module: Any) -> None:
        """Freeze layers, before the optimizers are made."""
        raise NotImplementedError(f"{type(self).__name__}: freeze_before_training is not defined")

    def finetune_function(self, pl_module: Any, epoch: int, optimizer: Any) -> None:
        """At the start of each epoch: unfreeze layers, and add them to the optimizer."""
        raise NotImplementedError(f"{type(self).__name__}: finetune_function is not defined")

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Freeze layers."""
        if stage == "fit":
            self.freeze_before_training(pl_module)

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Unfreeze layers."""
        for optimizer in trainer.optimizers:
            self.finetune_function(pl_module, trainer.current_epoch, optimizer)

    # -- what subclasses use

    @staticmethod
    def flatten_modules(modules: Any) -> list[Any]:
        """All modules that have parameters of their own, in modules or nested lists of them."""
        if isinstance(modules, NNModule):
            return [m for m in modules.modules() if m._parameters]  # pyright: ignore[reportPrivateUsage]
        each: Iterable[Any] = modules.values() if isinstance(modules, Mapping) else modules
        return [m for x in each for m in BaseFinetuning.flatten_modules(x)]

    @staticmethod
    def filter_params(
        modules: Any, train_bn: bool = True, requires_grad: bool = True
    ) -> Iterator[Any]:
        """The parameters with or without gradients; those of batch normalization if `train_bn`."""
        for module in BaseFinetuning.flatten_modules(modules):
            if isinstance(module, _NORMS) and not train_bn:
                continue
            for p in module.parameters(recurse=False):
                if p.requires_grad == requires_grad:
                    yield p

    @staticmethod
    def make_trainable(modules: Any) -> None:
        """Require gradients for all parameters."""
        for module in BaseFinetuning.flatten_modules(modules):
            for p in module.parameters(recurse=False):
                p.requires_grad_(True)

    @staticmethod
    def freeze(modules: Any, train_bn: bool = True) -> None:
        """Require no gradients.

        Args:
            train_bn: whether batch normalization is trained all the same.
        """
        for module in BaseFinetuning.flatten_modules(modules):
            trained = isinstance(module, _NORMS) and train_bn
            for p in module.parameters(recurse=False):
                p.requires_grad_(trained)
            if isinstance(module, _NORMS) and not train_bn:
                module.eval()

    @staticmethod
    def unfreeze_and_add_param_group(
        modules: Any, optimizer: Any, lr: float | None = None, initial_denom_lr: float = 10.0,
        train_bn: bool = True,
    ) -> None:  # fmt: skip
        """Require gradients, and add the parameters to an optimizer as a new group.

        Args:
            lr: the group's learning rate; by default that of the first group, divided by
                `initial_denom_lr`.
        """
        BaseFinetuning.make_trainable(modules)
        rate = optimizer.param_groups[0]["lr"] if lr is None else lr
        divisor = initial_denom_lr if lr is None else 1.0
        known = {id(p) for p in parameters_of(optimizer)}
        found = BaseFinetuning.filter_params(modules, train_bn=train_bn)
        fresh = [p for p in found if id(p) not in known]
        if fresh:
            optimizer.add_param_group({"params": fresh, "lr": rate / divisor})


class BackboneFinetuning(BaseFinetuning):
    """Trains `pl_module.backbone` from some epoch on, at a rate that grows to that of the rest.

    Args:
        unfreeze_backbone_at_epoch: the first epoch with the backbone.
        lambda_func: the factor of the backbone's rate from epoch to epoch, by epoch; 2 by default.
        backbone_initial_ratio_lr: its first rate, relative to that of the rest.
        backbone_initial_lr: its first rate, in place of that.
        should_align: whether its rate stays at that of the rest once it has reached it.
        initial_denom_lr: divides the first rate.
        train_bn: whether its batch normalization is trained.
        verbose: whether to print rates.
        rounding: the digits of printed rates.

    Raises:
        ArgumentError: the module has no `backbone`.
    """

    def __init__(
        self, unfreeze_backbone_at_epoch: int = 10,
        lambda_func: Callable[[int], float] = lambda epoch: 2.0,
        backbone_initial_ratio_lr: float = 0.1, backbone_initial_lr: float | None = None,
        should_align: bool = True, initial_denom_lr: float = 10.0, train_bn: bool = True,
        verbose: bool = False, rounding: int = 12,
    ) -> None:  # fmt: skip
        self.unfreeze_backbone_at_epoch, self.lambda_func = unfreeze_backbone_at_epoch, lambda_func
        self.backbone_initial_ratio_lr = backbone_initial_ratio_lr
        self.backbone_initial_lr, self.should_align = backbone_initial_lr, should_align
        self.initial_denom_lr, self.train_bn = initial_denom_lr, train_bn
        self.verbose, self.rounding = verbose, rounding
        self.previous_backbone_lr: float | None = None

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """Require a backbone."""
        if not isinstance(getattr(pl_module, "backbone", None), NNModule):
            raise ArgumentError.here(
                "BackboneFinetuning: expected a module with an attribute 'backbone', got none"
            )

    def freeze_before_training(self, pl_module: Any) -> None:
        """Freeze the backbone."""
        self.freeze(pl_module.backbone)

    def finetune_function(self, pl_module: Any, epoch: int, optimizer: Any) -> None:
        """Begin to train the backbone, and raise its rate."""
        rate = optimizer.param_groups[0]["lr"]
        before = self.previous_backbone_lr
        if epoch == self.unfreeze_backbone_at_epoch:
            first = self.backbone_initial_lr
            now = rate * self.backbone_initial_ratio_lr if first is None else first
            self.unfreeze_and_add_param_group(
                pl_module.backbone, optimizer, now, self.initial_denom_lr, self.train_bn
            )
        elif epoch > self.unfreeze_backbone_at_epoch and before is not None:
            now = self.lambda_func(epoch + 1) * before
            now = rate if self.should_align and now > rate else now
            optimizer.param_groups[-1]["lr"] = now
        else:
            return
        self.previous_backbone_lr = now
        if self.verbose:
            pl_module.print(f"rate {round(rate, self.rounding)}, of the backbone "
                            f"{round(now, self.rounding)}")  # fmt: skip

    def state_dict(self) -> dict[str, Any]:
        """The backbone's rate."""
        return {"previous_backbone_lr": self.previous_backbone_lr}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore the rate."""
        self.previous_backbone_lr = state_dict["previous_backbone_lr"]
