"""Steps that take fewer arguments than a loop has: `training_step(batch)` without the number."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from weft.errors import ArgumentError

Call = Callable[..., Any]


def positions(call: Call) -> float:
    """How many positional arguments a function takes; infinite with `*args`."""
    try:
        parameters = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):  # a builtin without a signature
        return float("inf")
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return float("inf")
    return sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)


def step_of(module: Any, name: str, several: bool = False) -> Call:
    """A step of a module as a function of (batch, batch_idx, dataloader_idx).

    Args:
        several: whether there are several loaders, so that the last argument is needed.

    Raises:
        ArgumentError: the step takes the loader itself; or it lacks `dataloader_idx`.
    """
    step: Call = getattr(module, name)
    taken = positions(step)
    if taken == 1 and "dataloader_iter" in inspect.signature(step).parameters:
        raise ArgumentError.here(
            f"{name}: expected {name}(batch, batch_idx), got {name}(dataloader_iter): steps get "
            f"batches, not the loader"
        )
    if several and taken < 3:
        raise ArgumentError.here(
            f"{name}: expected {name}(batch, batch_idx, dataloader_idx), as there are several "
            f"loaders, got {int(taken)} arguments"
        )
    found: Call = step if taken >= 2 else (lambda batch, *_: step(batch))
    profiler = module.trainer.profiler
    if not profiler.is_active:
        return found
    return profiler.measured(found, f"[LightningModule]{type(module).__qualname__}.{name}")
