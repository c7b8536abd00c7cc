"""What estimators are told: modes, what a model function returns, settings."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from weft.errors import ArgumentError
from weft.tf1.framework.graph import fail

__all__ = ["EstimatorSpec", "EvalSpec", "ModeKeys", "RunConfig", "TrainSpec"]


class ModeKeys:
    """What a model function builds a graph for.

    >>> import weft.tf1 as tf
    >>> tf.estimator.ModeKeys.TRAIN
    'train'
    """

    TRAIN: Final = "train"
    EVAL: Final = "eval"
    PREDICT: Final = "infer"


class EstimatorSpec:
    """What a model function returns.

    Args:
        mode: of `ModeKeys`.
        predictions: a tensor, or a dict of tensors.
        loss: a scalar, for training and evaluation.
        train_op: a step, for training.
        eval_metric_ops: a dict from names to (value, update), as `tf.metrics` gives.
        export_outputs: what is exported, by name, of `tf.estimator.export`.
        training_chief_hooks, training_hooks, evaluation_hooks, prediction_hooks: hooks.
        scaffold: the operations of the session.

    Raises:
        ArgumentError: what the mode needs is missing.
    """

    def __init__(
        self, mode: str, predictions: Any = None, loss: Any = None, train_op: Any = None,
        eval_metric_ops: Mapping[str, Any] | None = None, export_outputs: Any = None,
        training_chief_hooks: Iterable[Any] | None = None,
        training_hooks: Iterable[Any] | None = None, scaffold: Any = None,
        evaluation_hooks: Iterable[Any] | None = None,
        prediction_hooks: Iterable[Any] | None = None,
    ) -> None:  # fmt: skip
        if mode == ModeKeys.TRAIN and train_op is None:
            raise fail(ArgumentError, "EstimatorSpec: Missing train_op.")
        if mode != ModeKeys.PREDICT and loss is None:
            raise fail(ArgumentError, "EstimatorSpec: Missing loss.")
        if mode == ModeKeys.PREDICT and predictions is None:
            raise fail(ArgumentError, "EstimatorSpec: Missing predictions.")
        self.mode, self.predictions, self.loss, self.train_op = mode, predictions, loss, train_op
        self.eval_metric_ops = dict(eval_metric_ops or {})
        self.export_outputs, self.scaffold = export_outputs, scaffold
        self.training_hooks = [*(training_chief_hooks or ()), *(training_hooks or ())]
        self.evaluation_hooks = list(evaluation_hooks or ())
        self.prediction_hooks = list(prediction_hooks or ())


class RunConfig:
    """How an estimator runs.

    Args:
        model_dir: the folder of checkpoints and summaries.
        tf_random_seed: the seed of its graphs.
        save_summary_steps: how often to write summaries.
        save_checkpoints_steps, save_checkpoints_secs: how often to save; 600 seconds by default.
        session_config: options of sessions.
        keep_checkpoint_max, keep_checkpoint_every_n_hours: as in `tf.train.Saver`.
        log_step_count_steps: how often to log the speed and the loss.
        train_distribute, device_fn, others: accepted, if they are `None`.
    """

    def __init__(
        self, model_dir: str | None = None, tf_random_seed: int | None = None,
        save_summary_steps: int | None = 100, save_checkpoints_steps: int | None = None,
        save_checkpoints_secs: int | None = None, session_config: Any = None,
        keep_checkpoint_max: int = 5, keep_checkpoint_every_n_hours: float = 10000,
        log_step_count_steps: int | None = 100, train_distribute: Any = None,
        device_fn: Any = None, **others: Any,
    ) -> None:  # fmt: skip
        if train_distribute is not None or any(v is not None for v in others.values()):
            text = f"expected no train_distribute and others, got {train_distribute} and {others}"
            raise fail(ArgumentError, f"RunConfig: {text}")
        if save_checkpoints_steps is None and save_checkpoints_secs is None:
            save_checkpoints_secs = 600
        self.model_dir, self.tf_random_seed = model_dir, tf_random_seed
        self.save_summary_steps = save_summary_steps
        self.save_checkpoints_steps = save_checkpoints_steps
        self.save_checkpoints_secs = save_checkpoints_secs
        self.session_config, self.keep_checkpoint_max = session_config, keep_checkpoint_max
        self.keep_checkpoint_every_n_hours = keep_checkpoint_every_n_hours
        self.log_step_count_steps, self.device_fn = log_step_count_steps, device_fn
        self.task_type, self.task_id, self.is_chief, self.master = "worker", 0, True, ""
        self.num_worker_replicas, self.num_ps_replicas = 1, 0

    def replace(self, **changes: Any) -> RunConfig:
        """A copy with some settings changed."""
        found = copy.copy(self)
        for name, value in changes.items():
            if not hasattr(found, name):
                raise fail(ArgumentError, f"RunConfig.replace: there is no setting {name!r}")
            setattr(found, name, value)
        if "save_checkpoints_steps" in changes and "save_checkpoints_secs" not in changes:
            found.save_checkpoints_secs = None
        return found

    @property
    def service(self) -> Any:
        """`TF_CONFIG`'s service: none."""
        return os.environ.get("TF_CONFIG_SERVICE")


class TrainSpec(NamedTuple):
    """How to train.

    Args:
        input_fn: a function that returns features and labels, or a dataset of them.
        max_steps: the last step; until the data ends by default.
        hooks: of the session.
    """

    input_fn: Callable[[], Any]
    max_steps: int | None = None
    hooks: Iterable[Any] = ()


class EvalSpec(NamedTuple):
    """How to evaluate.

    Args:
        input_fn: a function that returns features and labels, or a dataset of them.
        steps: the number of batches; until the data ends for `None`.
        name: of the folder of summaries.
        hooks: of the session.
        exporters: one, or several, that export after evaluations; none for `None`.
        start_delay_secs, throttle_secs: accepted; evaluation follows training.
    """

    input_fn: Callable[[], Any]
    steps: int | None = 100
    name: str | None = None
    hooks: Iterable[Any] = ()
    exporters: Any = None
    start_delay_secs: int = 120
    throttle_secs: int = 600
