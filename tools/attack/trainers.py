"""Drawn configurations of a trainer: what is saved, which checkpoint is best, rates, resuming.

With Lightning installed, validations, rates and epochs are compared with Lightning's as well.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import weft
from tools.attack.training_plan import (
    FACTOR,
    METRICS,
    QUIET,
    RATE,
    Plan,
    Planted,
    Seen,
    drawn,
    loaders_of,
    module_of,
)
from tools.attack.verdict import PLAIN, WRONG, Case, Verdict
from weft.errors import WeftError
from weft.train import Module, Trainer
from weft.train.callbacks import Callback, EarlyStopping, ModelCheckpoint
from weft.train.saving import read


def begin() -> Case:
    """Loads Lightning, where it is installed."""
    lightning = None
    if importlib.util.find_spec("lightning") is not None:
        lightning = importlib.import_module("tools.attack.lightning_trainer")
    return partial(case, lightning)


def case(lightning: Any, random: np.random.Generator) -> Verdict:
    """One configuration: a run, a resumed run, and Lightning's."""
    plan = drawn(random)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            problem = check(plan, Path(folder), random)
            if not problem and lightning is not None and plan.fails is None:
                problem = lightning.difference(plan, Run(plan, Path(folder) / "ours").seen)
        except WeftError as error:
            return Verdict(PLAIN, f"refused: {type(error).__name__}", f"{error}\n{plan}"[:1500])
    return Verdict(WRONG, problem, f"{plan}"[:1500]) if problem else Verdict()


class Failing(Callback):
    """Raises in an event, once enough updates were made."""

    def __init__(self, event: str, step: int) -> None:
        setattr(self, event, partial(self._fail, step))

    def _fail(self, step: int, trainer: Any, *args: Any) -> None:
        if trainer.global_step >= step and not trainer.sanity_checking:
            raise Planted


class Ends(Callback):
    """Notes how epochs end."""

    def __init__(self, plan: Plan, seen: Seen) -> None:
        self._plan, self._seen = plan, seen

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Note one."""
        whole = trainer.progress.batch == self._plan.batches
        left = trainer.current_epoch == self._seen.left
        self._seen.epochs.append("whole" if whole else "left" if left else "stopped")


class Run:
    """A run of a plan, to its end or its planted error.

    Args:
        folder: of the checkpoints.
        path: of the checkpoint to go on from.
    """

    def __init__(self, plan: Plan, folder: Path, path: str | None = None) -> None:
        self.plan, self.seen = plan, Seen()
        told: dict[str, Any] = plan.checkpoint | {
            "monitor": METRICS.get(plan.checkpoint["monitor"])
        }
        self.saving = ModelCheckpoint(
            folder, "{step}", save_top_k=-1, background=False, enable_version_counter=False, **told
        )
        self.stopping: EarlyStopping | None = None
        callbacks: list[Any] = [Ends(plan, self.seen), self.saving]
        if plan.stopping is not None:
            metric, patience = plan.stopping
            self.stopping = EarlyStopping(METRICS[metric], patience=patience, check_finite=False)
            callbacks.append(self.stopping)
        if plan.fails is not None:
            callbacks.insert(0, Failing(*plan.fails))
        self.trainer = Trainer(callbacks=callbacks, deterministic=True, **QUIET, **plan.trainer)
        self.module = module_of(weft, Module, plan, self.seen)
        self.failed = False
        try:
            self.trainer.fit(self.module, *loaders_of(weft, plan), ckpt_path=path)
        except Planted:
            self.failed = True

    def state(self) -> dict[str, Any]:
        """What a resumed run must end with as well."""
        figures = {k: v.item() for k, v in self.trainer.callback_metrics.items()}
        stopping = self.stopping and (self.stopping.wait_count, self.stopping.best_score)
        return {
            "weights": weights(self.module), "step": self.trainer.global_step,
            "epoch": self.trainer.current_epoch, "metrics": repr(sorted(figures.items())),
            "rate": self.trainer.optimizers[0].param_groups[0]["lr"], "stopping": stopping,
            "score": self.saving.best_model_score,
        }  # fmt: skip


def weights(module: Any) -> bytes:
    """The bits of all parameters."""
    return b"".join([p.detach().numpy().tobytes() for p in module.parameters()])


def check(plan: Plan, folder: Path, random: np.random.Generator) -> str:
    """What is wrong with a run; empty if nothing is."""
    run = Run(plan, folder / "whole")
    checks: list[Callable[[Run], str]] = [last_is_saved, best_is_best, rates_follow]
    for one in checks:
        if problem := one(run):
            return problem
    return "" if run.failed else resumes(run, folder, random)


def last_is_saved(run: Run) -> str:
    """The last checkpoint is the last state, also after an error."""
    step, saved = run.trainer.global_step, run.saving.last_model_path
    if not run.trainer.progress.total_batches:
        return ""
    if not saved:
        return "no state is saved"
    state = read(saved)
    if state["global_step"] != step:
        return f"the last saved step is {state['global_step']}, not {step}"
    module = module_of(weft, Module, run.plan, Seen())
    module.load_state_dict(state["state_dict"])
    return "" if weights(module) == weights(run.module) else "the last saved weights are others"


def saved_by(run: Run) -> list[Path]:
    """The files of all checkpoints that were compared."""
    return sorted(Path(run.saving.dirpath or "").glob("step=*.ckpt"))


def step_of(path: Path) -> int:
    """The step in a file's name."""
    return int(path.stem.partition("=")[2])


def best_is_best(run: Run) -> str:
    """The best checkpoint is that of the best value logged for its weights."""
    metric, mode = run.plan.checkpoint["monitor"], run.plan.checkpoint["mode"]
    if metric != "val":
        return ""
    saved = {step_of(path) for path in saved_by(run)}
    worst = math.inf if mode == "min" else -math.inf
    known = {s: worst if math.isnan(v) else v for s, v in run.seen.validated if s in saved}
    path = step_of(Path(run.saving.best_model_path)) if run.saving.best_model_path else None
    if not known:
        return "" if path is None else f"step {path} is best, but no checkpoint has a metric"
    choose = min if mode == "min" else max
    best = choose(known, key=lambda s: known[s])
    if path != best or run.saving.best_model_score != known[best]:
        return f"step {path} with {run.saving.best_model_score} is best, not step {best}"
    return ""


def rates_follow(run: Run) -> str:
    """The learning rate is that of as many steps of the schedule as there were."""
    plan, every = run.plan, run.plan.frequency
    if run.failed or plan.schedule not in ("step", "epoch"):
        return ""
    count = run.trainer.progress.windows // every
    if plan.schedule == "epoch":
        ended = [i for i, how in enumerate(run.seen.epochs) if how != "stopped"]
        count = sum((i + 1) % every == 0 for i in ended)
    found = run.trainer.optimizers[0].param_groups[0]["lr"]
    expected = RATE * FACTOR**count
    return "" if math.isclose(found, expected) else f"the rate is {found}, not {expected}"


def resumes(run: Run, folder: Path, random: np.random.Generator) -> str:
    """A run that goes on from any checkpoint ends as the whole run."""
    files = saved_by(run)
    if not files:
        return ""
    chosen = files[int(random.integers(len(files)))]
    first, state = step_of(chosen), read(chosen)
    done = state["loops"]["progress"]["total_batches"] == run.trainer.progress.total_batches
    if run.trainer.should_stop and done:
        return ""  # a run that goes on after it was stopped trains on
    again = Run(replace(run.plan), folder / "whole", str(chosen))
    expected, found = run.state(), again.state()
    names = ("weights", "step") if done else found  # after max_steps, an epoch is not ended again
    for name in names:
        value = found[name]
        if repr(value) != repr(expected[name]):
            return f"from step {first}: {name} {value!r:.60}, not {expected[name]!r:.60}"
    return ""
