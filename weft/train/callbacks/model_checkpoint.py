"""`ModelCheckpoint`: saves checkpoints during a run, in the background."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from weft.checkpoint import Checkpointer
from weft.errors import ArgumentError, DataError, UnknownKeyError
from weft.ops.warning import warn
from weft.train.callbacks.callback import Callback
from weft.train.saving import restored, snapshot


class ModelCheckpoint(Callback):
    """Saves everything needed to resume: the newest checkpoints, and the best ones.

    Saves after each epoch; after each validation instead, if there are several per epoch or not one
    in each; and always the last state of a run, also if a callback or a logger ends it by an error.
    Training continues while files are written (`weft.checkpoint`).

    A checkpoint is compared by a metric only if that was logged for its weights: with
    `every_n_train_steps`, a checkpoint is saved after the validation of its step, and if a step has
    none, the next validation saves one more.

    Args:
        dirpath: the folder; by default `checkpoints` beside the logger's files.
        monitor: a metric; the best checkpoint by it is kept as well.
        mode: whether the metric should fall, `"min"`, or rise, `"max"`.
        keep: the number of newest checkpoints to keep; `None` keeps all.
        every_n_train_steps: save after this many updates instead.
        every_n_epochs: save only in every n-th epoch.
        save_on_train_epoch_end: save after epochs, not after validations.
        save_weights_only: leave out what only resuming needs.
        background: whether training continues meanwhile.
        save_top_k: the number of best checkpoints by the metric to keep, besides the newest; -1
            keeps all.

    Attributes:
        best_model_score: the best value of the metric.
        best_model_path, last_model_path: folders of checkpoints; `""` before there is one.

    Raises:
        UnknownKeyError: the metric was not logged in a whole epoch with validation; the state is
            saved before. Until then, a missing metric is a warning.
    """

    monitors: ClassVar[bool] = True

    def __init__(
        self, dirpath: str | Path | None = None, monitor: str | None = None, mode: str = "min",
        keep: int | None = 3, every_n_train_steps: int | None = None, every_n_epochs: int = 1,
        save_on_train_epoch_end: bool | None = None, save_weights_only: bool = False,
        background: bool = True, save_top_k: int = 1,
    ) -> None:  # fmt: skip
        if save_top_k < -1:
            raise ArgumentError.here(
                f"ModelCheckpoint: expected save_top_k from -1, got {save_top_k}"
            )
        self.save_top_k = save_top_k
        self.best_model_path = self.last_model_path = ""
        self.dirpath = None if dirpath is None else Path(dirpath)
        self.monitor, self.mode, self.keep = monitor, mode, keep
        self.every_n_train_steps, self.every_n_epochs = every_n_train_steps, every_n_epochs
        self.save_on_train_epoch_end = save_on_train_epoch_end
        self.save_weights_only, self.background = save_weights_only, background
        self.best_model_score: float | None = None
        self._checkpointer: Checkpointer | None = None
        self._seen = 0  # updates when it was decided last whether to save
        self._saved = (-1, -1)  # batches and updates before the last save
        self._is_deferred = False  # saves once the validation of this step is over
        self._is_unranked = False  # the last save lacked the metric
        self._was_unranked = False  # in the run that goes on
        self._has_warned = self._is_last = False

    @property
    def state_key(self) -> str:
        """One state per metric."""
        return f"ModelCheckpoint {self.monitor} {self.mode}"

    def folder(self, trainer: Any) -> Path:
        """The folder of this run."""
        if self.dirpath is not None:
            return self.dirpath
        return Path(trainer.log_dir or trainer.default_root_dir) / "checkpoints"

    def _open(self, trainer: Any) -> Checkpointer:
        if self._checkpointer is None:
            self._checkpointer = Checkpointer(
                self.folder(trainer), self.keep, self.monitor, self.mode, self.background,
                trainer.strategy.rank, trainer.strategy.world_size,
                top=None if self.save_top_k < 0 else self.save_top_k,
            )  # fmt: skip
        return self._checkpointer

    # -- when to save

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """Count updates from here on."""
        self._seen, self._saved = trainer.global_step, (-1, -1)
        self._is_deferred = self._has_warned = self._is_last = False
        self._is_unranked, self._was_unranked = self._was_unranked, False

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Save after every n updates; after the validation, if one follows this batch."""
        every, step = self.every_n_train_steps, trainer.global_step
        if not every or step % every or step == self._seen:
            return
        self._seen = step
        if self.monitor is not None and trainer.fit_loop.validates_next:
            self._is_deferred = True
        else:
            self._save(trainer)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Save after validation."""
        if trainer.stage != "fit" or trainer.sanity_checking:
            return
        if self._is_deferred:
            self._save(trainer)
        elif not (self.every_n_train_steps or self._by_epoch(trainer)):
            self._save_in_epoch(trainer)
        else:
            self._rank(trainer)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Save after an epoch."""
        if self._by_epoch(trainer) and not self.every_n_train_steps:
            self._save_in_epoch(trainer)
        else:
            self._rank(trainer)

    def _by_epoch(self, trainer: Any) -> bool:
        if self.save_on_train_epoch_end is not None:
            return self.save_on_train_epoch_end
        return trainer.fit_loop.validates_each_epoch

    def _save_in_epoch(self, trainer: Any) -> None:
        if (trainer.current_epoch + 1) % self.every_n_epochs == 0:
            self._save(trainer)

    def _rank(self, trainer: Any) -> None:
        """Save, if the metric that an earlier save had to do without is known now."""
        if self._is_unranked and trainer.is_fresh(self.monitor):
            self._save(trainer)

    def save_last(self, trainer: Any, tolerant: bool = False) -> None:
        """Save the last state of a run, unless it is saved.

        Args:
            tolerant: whether states of callbacks that cannot be saved are left out.
        """
        self._is_last = True
        if self._saved != _place_of(trainer):
            self._save(trainer, tolerant)
        elif not tolerant:
            self._check_monitor(trainer)

    # -- saving

    def _save(self, trainer: Any, tolerant: bool = False) -> None:
        if trainer.fast_dev_run:
            return
        found = {k: v.item() for k, v in trainer.callback_metrics.items() if v.numel() == 1}
        figures = {k: v for k, v in found.items() if math.isfinite(v)}
        if self.monitor is not None and not trainer.is_fresh(self.monitor):
            figures.pop(self.monitor, None)  # that of earlier weights
            self._is_unranked = True
        else:
            self._is_unranked = False
            self._note_best(figures)
        self._is_deferred = False
        state = snapshot(trainer, self.save_weights_only, tolerant)
        self._open(trainer).save(trainer.global_step, state, figures)
        self._saved = _place_of(trainer)
        if not tolerant:
            self._check_monitor(trainer)

    def _note_best(self, figures: Mapping[str, float]) -> None:
        if self.monitor is None or self.monitor not in figures:
            return
        figure, best = figures[self.monitor], self.best_model_score
        if best is None or (figure < best if self.mode == "min" else figure > best):
            self.best_model_score = figure

    def _check_monitor(self, trainer: Any) -> None:
        """Warn of a missing metric; once the metrics of a whole epoch are known, raise."""
        loop, names = trainer.fit_loop, sorted(trainer.callback_metrics)
        if self.monitor is None or self.monitor in names or trainer.fast_dev_run:
            return
        text = f"ModelCheckpoint: expected the metric {self.monitor!r} to be logged, got {names}"
        if loop.at_epoch_end and loop.validations:
            raise UnknownKeyError.here(text)
        is_early = self.every_n_train_steps and loop.awaits_metrics and not self._is_last
        if not (self._has_warned or is_early):
            self._has_warned = True
            warn(f"{text}; checkpoints are saved, but which one is best is not known")

    def save_now(self, trainer: Any) -> Path:
        """Save a checkpoint, and wait until it is on disk; returns its folder."""
        state = snapshot(trainer, self.save_weights_only, tolerant=True)
        checkpointer = self._open(trainer)
        checkpointer.save(trainer.global_step, state)
        checkpointer.wait()
        return self.folder(trainer)

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Wait until everything is on disk."""
        if self._checkpointer is not None:
            checkpointer, self._checkpointer = self._checkpointer, None
            self._note_paths(checkpointer)
            checkpointer.close()

    def _note_paths(self, checkpointer: Checkpointer) -> None:
        last, best = checkpointer.latest(), checkpointer.best() if self.monitor else None
        for name, step in (("last_model_path", last), ("best_model_path", best)):
            setattr(self, name, "" if step is None else str(checkpointer.path(step) or ""))

    # -- loading

    def read(self, trainer: Any, which: Any) -> dict[str, Any]:
        """The `"last"` or `"best"` checkpoint, or the last one of a folder.

        Raises:
            DataError: there is none.
        """
        folder = self._existing(trainer) if which in ("last", "best") else Path(which)
        if which == "best" and self.monitor is not None:
            checkpointer = Checkpointer(folder, best=self.monitor, mode=self.mode)
            found = checkpointer.restore(step=checkpointer.best())
        else:
            found = restored(folder)
        if found is None:
            raise DataError.here(f"checkpoint: expected saved states in {str(folder)!r}, got none")
        return found.state

    def _existing(self, trainer: Any) -> Path:
        """This run's folder; else that of an earlier run."""
        own = self.folder(trainer)
        if own.is_dir() or self.dirpath is not None:
            return own
        earlier = Path(trainer.default_root_dir).glob("*/version_*/checkpoints")
        return max(earlier, key=lambda path: path.stat().st_mtime, default=own)

    def state_dict(self) -> dict[str, Any]:
        """The best value, and whether the last checkpoint has none."""
        return {"best_model_score": self.best_model_score, "is_unranked": self._is_unranked}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore the state."""
        self.best_model_score = state_dict["best_model_score"]
        self._was_unranked = bool(state_dict.get("is_unranked"))


def _place_of(trainer: Any) -> tuple[int, int]:
    """How many batches and updates there were: an update may follow the last batch."""
    return trainer.progress.total_batches, trainer.progress.global_step
