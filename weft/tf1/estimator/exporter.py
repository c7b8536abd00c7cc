"""Exporters: when `train_and_evaluate` exports a model."""

from __future__ import annotations

import glob
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from weft.errors import ArgumentError
from weft.tf1.framework.graph import fail
from weft.tf1.summary.proto import summary_iterator

__all__ = ["BestExporter", "Exporter", "FinalExporter", "LatestExporter"]


class Exporter(ABC):
    """Base class: `export` is called after each evaluation."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The folder of its exports, below `export` in the model's."""

    @abstractmethod
    def export(
        self, estimator: Any, export_path: str, checkpoint_path: str | None, eval_result: Any,
        is_the_final_export: bool,
    ) -> Any:  # fmt: skip
        """Export the model, or do not: the path, or `None`.

        Args:
            estimator: what has the model.
            export_path: the folder of this exporter's exports.
            checkpoint_path: what was evaluated.
            eval_result: its metrics.
            is_the_final_export: whether training is over.
        """


class FinalExporter(Exporter):
    """Exports once, when training is over.

    Args:
        name: of the folder.
        serving_input_receiver_fn: of `tf.estimator.export`.
        assets_extra: files to copy, by their names in the export.
        as_text: not supported.
    """

    def __init__(
        self, name: str, serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Mapping[str, str] | None = None, as_text: bool = False,
    ) -> None:  # fmt: skip
        self._name = name
        self._options = serving_input_receiver_fn, assets_extra, as_text

    @property
    def name(self) -> str:
        """The folder of its exports, below `export` in the model's."""
        return self._name

    def export(
        self, estimator: Any, export_path: str, checkpoint_path: str | None, eval_result: Any,
        is_the_final_export: bool,
    ) -> Any:  # fmt: skip
        """Export the model, if training is over."""
        if not is_the_final_export:
            return None
        return estimator.export_saved_model(export_path, *self._options, checkpoint_path)


class LatestExporter(FinalExporter):
    """Exports after each evaluation, and keeps the newest exports.

    Args:
        exports_to_keep: how many; all for `None`.
        name, serving_input_receiver_fn, assets_extra, as_text: as in `FinalExporter`.
    """

    def __init__(
        self, name: str, serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Mapping[str, str] | None = None, as_text: bool = False,
        exports_to_keep: int | None = 5,
    ) -> None:  # fmt: skip
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text)
        if exports_to_keep is not None and exports_to_keep <= 0:
            text = f"expected exports_to_keep of 1 or more, or None, got {exports_to_keep}"
            raise fail(ArgumentError, f"{type(self).__name__}: {text}")
        self._kept = exports_to_keep

    def export(
        self, estimator: Any, export_path: str, checkpoint_path: str | None, eval_result: Any,
        is_the_final_export: bool,
    ) -> Any:  # fmt: skip
        """Export the model."""
        made = super().export(estimator, export_path, checkpoint_path, eval_result, True)
        stamps = sorted([int(n) for n in os.listdir(export_path) if n.isdigit()])
        for old in stamps[: -self._kept] if self._kept else ():
            shutil.rmtree(os.path.join(export_path, str(old)))
        return made


def _loss_smaller(
    best_eval_result: Mapping[str, Any], current_eval_result: Mapping[str, Any]
) -> bool:
    """Whether the current loss is the smaller one."""
    for found in (best_eval_result, current_eval_result):
        if "loss" not in found:
            raise fail(ArgumentError, "BestExporter: expected a loss in eval_result, got none")
    return bool(best_eval_result["loss"] > current_eval_result["loss"])


class BestExporter(LatestExporter):
    """Exports after each evaluation that is better than all before, and keeps the newest exports.

    Args:
        event_file_pattern: below the model's folder, of summaries of earlier evaluations, of which
            the best counts; `None` for none.
        compare_fn: whether `current_eval_result` is better than `best_eval_result`; whether its
            loss is smaller by default.
        name, serving_input_receiver_fn, assets_extra, as_text, exports_to_keep: as in
            `LatestExporter`.
    """

    def __init__(
        self, name: str = "best_exporter",
        serving_input_receiver_fn: Callable[[], Any] | None = None,
        event_file_pattern: str | None = "eval/*.tfevents.*",
        compare_fn: Callable[..., Any] = _loss_smaller,
        assets_extra: Mapping[str, str] | None = None, as_text: bool = False,
        exports_to_keep: int | None = 5,
    ) -> None:  # fmt: skip
        if serving_input_receiver_fn is None:
            raise fail(
                ArgumentError, "BestExporter: expected a serving_input_receiver_fn, got None"
            )
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text, exports_to_keep)
        self._pattern, self._is_better = event_file_pattern, compare_fn
        self._folder: str | None = None
        self._best: Mapping[str, Any] | None = None

    def export(
        self, estimator: Any, export_path: str, checkpoint_path: str | None, eval_result: Any,
        is_the_final_export: bool,
    ) -> Any:  # fmt: skip
        """Export the model, if it is better than those before."""
        if self._pattern and self._folder != estimator.model_dir:
            self._folder = estimator.model_dir
            self._best = self._best_of(os.path.join(estimator.model_dir, self._pattern))
        if self._best is not None and not self._better(self._best, eval_result):
            return None
        self._best = eval_result
        return super().export(estimator, export_path, checkpoint_path, eval_result, True)

    def _better(self, best: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
        return bool(self._is_better(best_eval_result=best, current_eval_result=now))

    def _best_of(self, pattern: str) -> Mapping[str, Any] | None:
        """The best of earlier evaluations; `None` if only one was better than those before it."""
        best: Mapping[str, Any] | None = None
        count = 0
        for path in sorted(glob.glob(pattern)):
            for event in summary_iterator(path):
                found = {v.tag: v.simple_value for v in event.summary.value}
                if found and (best is None or self._better(best, found)):
                    best, count = found, count + 1
        return best if count > 1 else None


def exported(exporters: Any, estimator: Any, found: Any, final: bool) -> list[Any]:
    """What exporters export after an evaluation."""
    path = estimator.latest_checkpoint()
    each: Sequence[Any] = exporters if isinstance(exporters, list | tuple) else [exporters]
    folder = os.path.join(estimator.model_dir, "export")
    return [
        one.export(estimator, os.path.join(folder, one.name), path, found, final)
        for one in each
        if one is not None
    ]
