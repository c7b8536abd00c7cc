"""Checkpoints of a run: contents and loading."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from weft.checkpoint import Checkpointer, RandomState, Restored
from weft.errors import DataError, StateError
from weft.formats.checkpoint_folder.layout import MANIFEST, step_of
from weft.metrics import Metric
from weft.ops.warning import warn
from weft.serialization import load
from weft.train.hyperparameters import NAME, plain
from weft.version import __version__

Guard = Callable[[], contextlib.AbstractContextManager[Any]]


def snapshot(trainer: Any, weights_only: bool = False, tolerant: bool = False) -> dict[str, Any]:
    """Everything needed to resume a run, with Lightning's keys.

    Args:
        weights_only: only parameters, buffers and arguments of the module.
        tolerant: whether what raises in callbacks and hooks is left out, with a warning.
    """
    guard: Guard = _warned if tolerant else contextlib.nullcontext
    module = trainer.module
    found: dict[str, Any] = {
        "weft_version": __version__,
        "epoch": trainer.current_epoch,
        "global_step": trainer.global_step,
        "state_dict": module.state_dict(),
        **_hyperparameters(module, ""),
    }
    if trainer.datamodule is not None:
        found.update(_hyperparameters(trainer.datamodule, "datamodule_"))
    if not weights_only:
        found.update(trainer.optimization.state_dict())
        found["loops"] = trainer.fit_loop.state_dict()
        states: dict[str, Any] = {}
        found["callbacks"] = states
        for callback in trainer.callbacks:
            with guard():
                states[callback.state_key] = callback.state_dict()
        found["precision"] = trainer.precision.state_dict()
        found["metrics"] = {name: m.state_dict() for name, m in _metrics(module)}
        found["gradients"] = _gradients(module)
        found["random"] = RandomState().state_dict()
        if trainer.datamodule is not None:
            with guard():
                found["datamodule"] = trainer.datamodule.state_dict()
    for callback in trainer.callbacks:
        with guard():
            callback.on_save_checkpoint(trainer, module, found)
    with guard():
        module.on_save_checkpoint(found)
    return found


def _hyperparameters(owner: Any, prefix: str) -> dict[str, Any]:
    """The entries of a module's hyperparameters, or of a data module's."""
    told = plain(getattr(owner, "hparams", {}))
    found: dict[str, Any] = {f"{prefix}hyper_parameters": told} if told else {}
    if getattr(owner, NAME, None):
        found[f"{prefix}{NAME}"] = owner.hparams_name
    return found


@contextlib.contextmanager
def _warned() -> Iterator[None]:
    """Turns an exception into a warning that a state is left out."""
    try:
        yield
    except Exception as error:
        warn(f"checkpoint: a part is left out, as its state raised {error!r}")


def restore(trainer: Any, state: Mapping[str, Any]) -> None:
    """Restore a run to a `snapshot`.

    Raises:
        StateError: the state has only weights, or belongs to another module.
    """
    module = trainer.module
    if "loops" not in state:
        raise StateError.here(
            "Trainer.fit: expected the state of a run, got weights alone; load them into the "
            "module by load_from_checkpoint, and begin anew"
        )
    if trainer.datamodule is not None and "datamodule" in state:
        trainer.datamodule.load_state_dict(state["datamodule"])
    restore_weights(trainer, state)
    for callback in trainer.callbacks:
        callback.on_load_checkpoint(trainer, module, state)
        if state["callbacks"].get(callback.state_key):
            callback.load_state_dict(state["callbacks"][callback.state_key])
    trainer.precision.load_state_dict(state["precision"])
    trainer.optimization.load_state_dict(state)
    for name, metric in _metrics(module):
        if name in state["metrics"]:
            metric.load_state_dict(state["metrics"][name])
    parameters = dict(module.named_parameters())
    for name, gradient in state["gradients"].items():
        parameters[name].grad = gradient
    trainer.fit_loop.load_state_dict(state["loops"])
    RandomState().load_state_dict(state["random"])


def restore_weights(trainer: Any, state: Mapping[str, Any]) -> None:
    """Load the module's weights from a checkpoint."""
    trainer.module.on_load_checkpoint(state)
    trainer.module.load_state_dict(state["state_dict"])


def read(path: Any, weights_only: bool | None = None) -> dict[str, Any]:
    """The state in a file, in the folder of a checkpoint, or the last of a `ModelCheckpoint`.

    Args:
        weights_only: false imports the classes of objects that hooks added, as `load` does.

    Raises:
        DataError: there is no such file, or it is not a trainer's checkpoint.
    """
    where = Path(path)
    if not where.exists():
        raise DataError.here(f"checkpoint: expected a file, got {str(path)!r}")
    if where.is_dir():
        files = sorted(where.glob("*.ckpt"), key=lambda p: p.stat().st_mtime_ns)
        where = files[-1] if files else where
    found = restored(where) if where.is_dir() else None
    trusts = weights_only is False
    state: Any = load(where, weights_only=not trusts) if found is None else found.state
    if not isinstance(state, dict) or "state_dict" not in state:
        raise DataError.here(
            f"checkpoint: expected a state that a trainer saved, got {str(path)!r}"
        )
    return state


def restored(folder: Path) -> Restored | None:
    """The contents of a checkpoint's folder, or of the last one in a folder of several."""
    if (folder / MANIFEST).exists():
        return Checkpointer(folder.parent).restore(step=step_of(folder))
    return Checkpointer(folder).restore()


def _metrics(module: Any) -> list[tuple[str, Metric]]:
    """The metrics among the attributes of a module and its submodules."""
    return [
        found
        for prefix, inner in module.named_modules()
        for name, value in vars(inner).items()
        for found in _inside(f"{prefix}.{name}" if prefix else name, value)
    ]


def _inside(name: str, value: Any) -> list[tuple[str, Metric]]:
    """The metrics that a value is or contains."""
    if isinstance(value, Metric):
        return [(name, value)]
    if type(value) is not dict or name.rpartition(".")[2].startswith("_"):
        return []
    return [found for key, x in value.items() for found in _inside(f"{name}.{key}", x)]


def _gradients(module: Any) -> dict[str, Any]:
    """Accumulated gradients."""
    return {name: p.grad for name, p in module.named_parameters() if p.grad is not None}
