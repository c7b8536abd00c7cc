"""Modules that are computed again in backward passes, by class."""

from __future__ import annotations

import functools
from collections.abc import Callable
from enum import Enum, auto
from typing import Any

from weft.nn.module.module import Module
from weft.utils.checkpoint import checkpoint

__all__ = [
    "CheckpointImpl", "CheckpointWrapper", "apply_activation_checkpointing", "checkpoint_wrapper",
]  # fmt: skip


class CheckpointImpl(Enum):
    """PyTorch's two ways; Weft has one."""

    REENTRANT = auto()
    NO_REENTRANT = auto()


class CheckpointWrapper(Module):
    """A module that keeps its inputs alone, and computes again what its gradient needs."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module."""
        return checkpoint(super().__call__, *args, use_reentrant=False, **kwargs)


@functools.cache
def _class_of(original: type[Module]) -> type[Module]:
    fields = {"__module__": original.__module__, "__doc__": original.__doc__}
    return type(original.__name__, (CheckpointWrapper, original), fields)


def checkpoint_wrapper(
    module: Module, checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
    checkpoint_fn: None = None, **checkpoint_fn_kwargs: Any,
) -> Module:  # fmt: skip
    """The module, which is computed again in backward passes from now on.

    Args:
        module: stays of its own class; its parameters keep their names.
        checkpoint_impl, checkpoint_fn, checkpoint_fn_kwargs: have no effect.
    """
    del checkpoint_impl, checkpoint_fn, checkpoint_fn_kwargs
    if not isinstance(module, CheckpointWrapper):
        module.__class__ = _class_of(type(module))
    return module


def apply_activation_checkpointing(
    model: Module, checkpoint_wrapper_fn: Callable[[Module], Module] = checkpoint_wrapper,
    check_fn: Callable[[Module], bool] = lambda _: True, auto_wrap_policy: Any = None,
) -> None:  # fmt: skip
    """Wrap the modules inside a model that a function chooses.

    Args:
        model: the model, which is not wrapped itself.
        checkpoint_wrapper_fn: wraps a module in place.
        check_fn: whether to wrap a module.
        auto_wrap_policy: must be `None`.
    """
    if auto_wrap_policy is not None:
        raise NotImplementedError("apply_activation_checkpointing: expected auto_wrap_policy=None")
    for module in [m for m in model.modules() if m is not model and check_fn(m)]:
        checkpoint_wrapper_fn(module)
