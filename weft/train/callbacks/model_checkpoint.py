"""`ModelCheckpoint`: saves checkpoints during a run, in the background."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from weft.eager.functions.api import tensor
from weft.errors import ArgumentError, DataError, UnknownKeyError
from weft.ops.warning import warn
from weft.train.callbacks.callback import Callback
from weft.train.callbacks.checkpoint_files import CheckpointFiles, free, name_of, newest
from weft.train.progress import seconds_of
from weft.train.saving import read, snapshot

_STATE: Final = ("best_model_path", "kth_best_model_path", "last_model_path")


def _written(name: str) -> Any:
    """The path of a file, which is on disk when it is read."""

    def get(callback: ModelCheckpoint) -> str:
        callback._files.wait()  # pyright: ignore[reportPrivateUsage]
        return vars(callback)[name]

    def change(callback: ModelCheckpoint, path: str) -> None:
        vars(callback)[name] = path

    return property(get, change, doc='The path of a file; `""` before there is one.')


class Checkpoint(Callback):
    """Base class of callbacks that save checkpoints, which are called last."""

    monitors: ClassVar[bool] = True


class ModelCheckpoint(Checkpoint):
    """Saves all that resuming needs in files `*.ckpt`: the best ones by a metric, or the newest.

    Saves after each epoch; after each validation instead, if there are several per epoch or not one
    in each; and always the last state of a run, as `last.ckpt` if no other file has it, also if a
    callback or a logger ends the run by an error. Training continues while files are written. They
    are read by `weft.load`.

    A checkpoint is compared by a metric only if that was logged for its weights: with
    `every_n_train_steps`, a checkpoint is saved after the validation of its step, and if a step has
    none, its state is `last.ckpt`, and the next validation saves one more.

    Args:
        dirpath: the folder; by default `checkpoints` beside the logger's files.
        filename: a template: `"{epoch}-{val_loss:.2f}"` gives `epoch=1-val_loss=0.25.ckpt`; by
            default `"{epoch}-{step}"`.
        monitor: a metric, `"epoch"` or `"step"`; without it, the newest checkpoint is kept.
        verbose: whether to print what is saved.
        save_last: whether each checkpoint is `last.ckpt` as well; `"link"`: as a symbolic link;
            false: not even the last state of a run that ends well.
        save_top_k: the number of best checkpoints to keep; -1 keeps all.
        save_weights_only: leave out what only resuming needs.
        mode: whether the metric should fall, `"min"`, or rise, `"max"`.
        auto_insert_metric_name: whether names in the template are in the file's name.
        every_n_train_steps: save after this many updates instead.
        train_time_interval: save after this time instead: a `timedelta`, or as for `Timer`.
        every_n_epochs: save only in every n-th epoch; 0 is never.
        save_on_train_epoch_end: save after epochs, not after validations.
        enable_version_counter: whether files of other runs are kept: a name becomes `name-v1`.
        save_on_exception: whether the last state is saved when the run raises.
        background: whether training continues meanwhile.

    Attributes:
        best_model_path, last_model_path: the best and the newest file; `""` before there is one.
        best_model_score: the best value of the metric.
        best_k_models: the values of the metric by file.

    Raises:
        ArgumentError: arguments contradict each other.
        UnknownKeyError: the metric was not logged in a whole epoch with validation; the state is
            saved before. Until then, a missing metric is a warning.
    """

    CHECKPOINT_JOIN_CHAR = "-"
    CHECKPOINT_EQUALS_CHAR = "="
    CHECKPOINT_NAME_LAST = "last"
    FILE_EXTENSION = ".ckpt"
    STARTING_VERSION = 1
    best_model_path = _written("best_model_path")
    kth_best_model_path = _written("kth_best_model_path")
    last_model_path = _written("last_model_path")

    def __init__(
        self, dirpath: str | Path | None = None, filename: str | None = None,
        monitor: str | None = None, verbose: bool = False, save_last: bool | str | None = None,
        save_top_k: int = 1, save_weights_only: bool = False, mode: str = "min",
        auto_insert_metric_name: bool = True, every_n_train_steps: int | None = None,
        train_time_interval: Any = None, every_n_epochs: int | None = None,
        save_on_train_epoch_end: bool | None = None, enable_version_counter: bool = True,
        save_on_exception: bool = True, background: bool = True,
    ) -> None:  # fmt: skip
        _check(save_top_k, monitor, mode, save_last)
        given = bool(every_n_train_steps) + bool(every_n_epochs) + (train_time_interval is not None)
        if given > 1:
            raise ArgumentError.here(
                "ModelCheckpoint: expected one of every_n_train_steps, every_n_epochs and "
                f"train_time_interval, got {given}"
            )
        self.dirpath = None if dirpath is None else str(dirpath)
        self.filename, self.monitor, self.verbose = filename, monitor, verbose
        self.save_last, self.save_top_k, self.mode = save_last, save_top_k, mode
        self.save_weights_only = save_weights_only
        self.auto_insert_metric_name = auto_insert_metric_name
        self.every_n_train_steps = every_n_train_steps
        self.train_time_interval = train_time_interval
        self._seconds = None if train_time_interval is None else seconds_of(train_time_interval)
        self.every_n_epochs = int(given == 0) if every_n_epochs is None else every_n_epochs
        self.save_on_train_epoch_end = save_on_train_epoch_end
        self.enable_version_counter = enable_version_counter
        self.save_on_exception = save_on_exception
        self._files = CheckpointFiles(background)
        self.best_model_path = self.kth_best_model_path = self.last_model_path = ""
        self.best_model_score: Any = None
        self.current_score: Any = None
        self.best_k_models: dict[str, Any] = {}
        self._own_last = ""  # the file `last.ckpt` of this run
        self._seen = 0  # updates when it was decided last whether to save
        self._saved = (-1, -1)  # batches and updates of the state in the newest file
        self._clock = 0.0
        self._is_deferred = False  # saves once the validation of this step is over
        self._is_unranked = False  # the last save lacked the metric
        self._was_unranked = False  # in the run that goes on
        self._has_warned = self._is_last = False

    @property
    def state_key(self) -> str:
        """One state per metric."""
        return f"ModelCheckpoint {self.monitor} {self.mode}"

    @property
    def kth_value(self) -> Any:
        """The value of the worst of the kept checkpoints, or `None`."""
        return self.best_k_models.get(self.kth_best_model_path)

    def folder(self, trainer: Any) -> Path:
        """The folder of this run."""
        if self.dirpath is not None:
            return Path(self.dirpath)
        return Path(trainer.log_dir or trainer.default_root_dir) / "checkpoints"

    # -- when to save

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Set `dirpath`."""
        if stage == "fit" and not trainer.fast_dev_run:
            self.dirpath = str(self.folder(trainer))

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """Count updates and time from here on."""
        self._seen, self._saved = trainer.global_step, (-1, -1)
        self._clock = time.monotonic()
        self._is_deferred = self._has_warned = self._is_last = False
        self._is_unranked, self._was_unranked = self._was_unranked, False

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Save after every n updates or seconds; after the validation, if one follows."""
        step = trainer.global_step
        if step == self._seen or not self._is_due(step):
            return
        self._seen, self._clock = step, time.monotonic()
        if self.monitor is not None and trainer.fit_loop.validates_next:
            self._is_deferred = True
        else:
            self._save(trainer)

    def _is_due(self, step: int) -> bool:
        if self._seconds is not None:
            return time.monotonic() - self._clock >= self._seconds
        every = self.every_n_train_steps
        return bool(every) and step % (every or 1) == 0

    @property
    def _within_epochs(self) -> bool:
        return bool(self.every_n_train_steps) or self._seconds is not None

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Save after validation."""
        if trainer.stage != "fit" or trainer.sanity_checking:
            return
        if self._is_deferred:
            self._save(trainer)
        elif not (self._within_epochs or self._by_epoch(trainer)):
            self._save_in_epoch(trainer)
        else:
            self._rank(trainer)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Save after an epoch."""
        if self._by_epoch(trainer) and not self._within_epochs:
            self._save_in_epoch(trainer)
        else:
            self._rank(trainer)

    def _by_epoch(self, trainer: Any) -> bool:
        if self.save_on_train_epoch_end is not None:
            return self.save_on_train_epoch_end
        return trainer.fit_loop.validates_each_epoch

    def _save_in_epoch(self, trainer: Any) -> None:
        every = self.every_n_epochs
        if every and (trainer.current_epoch + 1) % every == 0:
            self._save(trainer)

    def _rank(self, trainer: Any) -> None:
        """Save, if the metric that an earlier save had to do without is known now."""
        if self._is_unranked and trainer.is_fresh(self.monitor):
            self._save(trainer)

    def keep_last(self, trainer: Any, tolerant: bool = False) -> None:
        """Save the last state of a run, unless a file has it.

        Args:
            tolerant: whether the run has failed: states of callbacks that cannot be saved are left
                out.
        """
        self._is_last = True
        wanted = self.save_on_exception if tolerant else self.save_last is not False
        if wanted and not trainer.fast_dev_run and self._saved != _place_of(trainer):
            figures = self._figures(trainer)
            self._is_unranked |= self._is_stale(trainer)
            self._write(trainer, self._path_of_last(figures), tolerant)
        if not tolerant:
            self._check_monitor(trainer)

    # -- saving

    def _figures(self, trainer: Any) -> dict[str, Any]:
        found = {k: v.item() for k, v in trainer.callback_metrics.items() if v.numel() == 1}
        for name, number in (("epoch", trainer.current_epoch), ("step", trainer.global_step)):
            found[name] = int(found.get(name, number))
        return found

    def _is_stale(self, trainer: Any) -> bool:
        """Whether the metric is not known, or that of earlier weights."""
        named = self.monitor in (None, "epoch", "step")
        return not (named or trainer.is_fresh(self.monitor))

    def _save(self, trainer: Any) -> None:
        if trainer.fast_dev_run:
            return
        figures = self._figures(trainer)
        self._is_deferred, self._is_unranked = False, self._is_stale(trainer)
        if self._is_unranked:
            if self.save_last is not False:
                self._write(trainer, self._path_of_last(figures))
        elif self.save_top_k == 0:
            if self.save_last:
                self._write(trainer, self._path_of_last(figures))
        elif self.monitor is None:
            self._save_newest(trainer, figures)
        else:
            self._save_best(trainer, figures, figures[self.monitor])
        self._check_monitor(trainer)

    def _save_newest(self, trainer: Any, figures: Mapping[str, Any]) -> None:
        before = self.best_model_path
        path = self._path(trainer, figures, before)
        self.best_model_path = str(path)
        self._write(trainer, path, old=[before] if before and self.save_top_k == 1 else [])

    def _save_best(self, trainer: Any, figures: Mapping[str, Any], figure: float) -> None:
        sign = 1 if self.mode == "min" else -1
        rank = sign * math.inf if math.isnan(figure) else figure
        kept, most = self.best_k_models, self.save_top_k
        self.current_score = tensor(rank)
        full = most != -1 and len(kept) >= most
        if full and sign * rank >= sign * float(kept[self.kth_best_model_path].item()):
            if self.save_last:
                self._write(trainer, self._path_of_last(figures))
            elif self.verbose:
                self._tell(trainer, f"was not in top {most}")
            return
        old = [self.kth_best_model_path] if full else []
        path = self._path(trainer, figures, old[0] if old else "")
        for one in old:
            kept.pop(one)
        kept[str(path)] = tensor(rank)
        order = sorted(kept, key=lambda name: sign * float(kept[name].item()))
        self.best_model_path, self.kth_best_model_path = order[0], order[-1]
        self.best_model_score = kept[order[0]]
        self._write(trainer, path, old=old)
        if self.verbose:
            self._tell(trainer, f"reached {rank:.5f}, saving model to {str(path)!r} as top {most}")

    def _tell(self, trainer: Any, text: str) -> None:
        trainer.print(f"Epoch {trainer.current_epoch}, global step {trainer.global_step}: "
                      f"{self.monitor!r} {text}")  # fmt: skip

    def _write(
        self, trainer: Any, path: Path, tolerant: bool = False, old: list[str] | None = None
    ) -> None:
        """Write the state to a file, and to `last.ckpt` if that is wanted as well."""
        last = path
        if self.save_last and str(path) != self._own_last:
            last = self._path_of_last(self._figures(trainer))
        if last.name.startswith(self.CHECKPOINT_NAME_LAST):
            old = [*(old or []), *([self._own_last] if self._own_last != str(last) else [])]
            self._own_last = str(last)
        elif self._own_last and not self.save_last:
            old, self._own_last = [*(old or []), self._own_last], ""  # this file is newer
        self.last_model_path = str(last)
        state = snapshot(trainer, self.save_weights_only, tolerant)
        if trainer.is_global_zero:
            link = self.save_last == "link"
            self._files.save(state, path, last, link, [x for x in old or [] if x])
        self._saved = _place_of(trainer)
        for logger in trainer.loggers if trainer.is_global_zero else ():
            logger.after_save_checkpoint(self)

    # -- names

    def format_checkpoint_name(
        self, metrics: Mapping[str, Any], filename: str | None = None, ver: int | None = None,
        prefix: str | None = None,
    ) -> str:  # fmt: skip
        """The path of a file.

        Args:
            metrics: with `"epoch"` and `"step"`.
            filename: a template in place of the callback's.
            ver: the number of a version, at the end of the name.
            prefix: at the beginning of the name.
        """
        template = filename or self.filename or "{epoch}-{step}"
        name = name_of(template, metrics, self.auto_insert_metric_name)
        each = [prefix, name, None if ver is None else f"v{ver}"]
        name = self.CHECKPOINT_JOIN_CHAR.join([x for x in each if x is not None])
        return str(Path(self.dirpath or "") / f"{name}{self.FILE_EXTENSION}")

    def _path(self, trainer: Any, figures: Mapping[str, Any], own: str) -> Path:
        def with_version(version: int | None) -> Path:
            return Path(self.format_checkpoint_name(figures, ver=version))

        self._files.wait()
        return free(with_version, own) if self.enable_version_counter else with_version(None)

    def _path_of_last(self, figures: Mapping[str, Any]) -> Path:
        template = self.CHECKPOINT_NAME_LAST

        def with_version(version: int | None) -> Path:
            return Path(self.format_checkpoint_name(figures, template, version))

        if self.enable_version_counter and self.save_last:
            return free(with_version, self._own_last)
        return with_version(None)

    # -- the metric

    def _check_monitor(self, trainer: Any) -> None:
        """Warn of a missing metric; once the metrics of a whole epoch are known, raise."""
        loop, names = trainer.fit_loop, sorted(trainer.callback_metrics)
        known = (None, "epoch", "step", *names)
        if self.monitor in known or trainer.fast_dev_run:
            return
        text = f"ModelCheckpoint: expected the metric {self.monitor!r} to be logged, got {names}"
        if loop.at_epoch_end and loop.validations:
            raise UnknownKeyError.here(text)
        is_early = self._within_epochs and loop.awaits_metrics and not self._is_last
        if not (self._has_warned or is_early):
            self._has_warned = True
            warn(f"{text}; checkpoints are saved, but which one is best is not known")

    def save_now(self, trainer: Any) -> Path:
        """Save a checkpoint, and wait until it is on disk; returns its path."""
        self._write(trainer, self._path_of_last(self._figures(trainer)), tolerant=True)
        self._files.wait()
        return Path(self.last_model_path)

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Wait until everything is on disk."""
        self._files.wait()

    # -- loading

    def find(self, trainer: Any, which: str) -> Path:
        """The `"last"` or `"best"` checkpoint.

        Raises:
            DataError: there is none.
        """
        own = self.last_model_path if which == "last" else self.best_model_path
        if own and Path(own).exists():
            return Path(own)
        folder = self.folder(trainer)
        found = newest(folder)
        if found is None and not (self.dirpath and Path(self.dirpath) != folder):
            earlier = Path(trainer.default_root_dir).glob("*/version_*/checkpoints")
            found = max(map(newest, earlier), key=_age, default=None)
        if found is not None and which == "best":
            saved = read(found).get("callbacks", {}).get(self.state_key, {})
            found = Path(saved.get("best_model_path") or found)
        if found is None or not found.exists():
            raise DataError.here(f"checkpoint: expected saved states in {str(folder)!r}, got none")
        return found

    def to_yaml(self, filepath: str | Path | None = None) -> None:
        """Write the files that are kept, with their metrics, to `best_k_models.yaml`."""
        path = Path(filepath or Path(self.dirpath or "") / "best_k_models.yaml")
        lines = [f"{json.dumps(k)}: {v.item()}\n" for k, v in self.best_k_models.items()]
        path.write_text("".join(lines), encoding="utf-8")

    def state_dict(self) -> dict[str, Any]:
        """The files that are kept, and their metrics."""
        score = self.best_model_score
        return {
            **{name: getattr(self, name) for name in _STATE},
            "best_model_score": None if score is None else score.item(),
            "best_k_models": {k: v.item() for k, v in self.best_k_models.items()},
            "dirpath": self.dirpath,
            "is_unranked": self._is_unranked,
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore the state; of files in another folder than this run's, only the best is known."""
        self._was_unranked = bool(state_dict.get("is_unranked"))
        self.best_model_path = state_dict.get("best_model_path", "")
        if state_dict.get("dirpath", self.dirpath) != self.dirpath:
            return
        for name in _STATE:
            setattr(self, name, state_dict.get(name, ""))
        last, score = Path(self.last_model_path).name, state_dict.get("best_model_score")
        self._own_last = self.last_model_path if last.startswith("last") else ""
        self.best_model_score = None if score is None else tensor(float(score))
        kept = state_dict.get("best_k_models", {})
        self.best_k_models = {k: tensor(float(v)) for k, v in kept.items()}


def _age(path: Path | None) -> int:
    return -1 if path is None else path.stat().st_mtime_ns


def _check(top: int, monitor: str | None, mode: str, last: Any) -> None:
    if top < -1 or (monitor is None and top not in (-1, 0, 1)):
        raise ArgumentError.here(
            f"ModelCheckpoint: expected save_top_k of -1, 0 or 1, or with a monitor any from -1, "
            f"got {top}"
        )
    if mode not in ("min", "max"):
        raise ArgumentError.here(f"ModelCheckpoint: expected mode 'min' or 'max', got {mode!r}")
    if last not in (None, True, False, "link"):
        raise ArgumentError.here(
            f"ModelCheckpoint: expected save_last of True, False, None or 'link', got {last!r}"
        )


def _place_of(trainer: Any) -> tuple[int, int]:
    """How many batches and updates there were: an update may follow the last batch."""
    return trainer.progress.total_batches, trainer.progress.global_step
