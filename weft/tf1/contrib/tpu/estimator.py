"""`TPUEstimator`, which without a TPU is an `Estimator` whose functions learn the batch size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from weft.errors import ArgumentError
from weft.tf1.estimator.estimator import Estimator
from weft.tf1.estimator.modes import EstimatorSpec, ModeKeys, RunConfig
from weft.tf1.framework.graph import fail

__all__ = ["CrossShardOptimizer", "TPUEstimator", "TPUEstimatorSpec"]


class TPUEstimatorSpec(EstimatorSpec):
    """What a model function returns.

    Args:
        mode, predictions, loss, train_op, export_outputs: as of `EstimatorSpec`.
        eval_metrics: a function of tensors that returns metrics, and the tensors: a list, or a dict
            by the names of its arguments.
        scaffold_fn: a function that returns the operations of the session.
        host_call: accepted: what it would write is left out.
        training_hooks, evaluation_hooks, prediction_hooks: hooks.
    """

    def __init__(
        self, mode: str, predictions: Any = None, loss: Any = None, train_op: Any = None,
        eval_metrics: tuple[Callable[..., Any], Any] | None = None, export_outputs: Any = None,
        scaffold_fn: Callable[[], Any] | None = None, host_call: Any = None,
        training_hooks: Iterable[Any] | None = None,
        evaluation_hooks: Iterable[Any] | None = None,
        prediction_hooks: Iterable[Any] | None = None,
    ) -> None:  # fmt: skip
        del host_call
        metrics = None
        if eval_metrics is not None and mode == ModeKeys.EVAL:
            function, given = eval_metrics
            metrics = function(**given) if isinstance(given, Mapping) else function(*given)
        super().__init__(
            mode, predictions, loss, train_op, metrics, export_outputs,
            training_hooks=training_hooks, evaluation_hooks=evaluation_hooks,
            prediction_hooks=prediction_hooks, scaffold=scaffold_fn and scaffold_fn(),
        )  # fmt: skip


class TPUEstimator(Estimator):
    """An estimator whose `params["batch_size"]` is that of the mode.

    Args:
        model_fn, model_dir, config, params, warm_start_from: as of `Estimator`.
        use_tpu: false.
        train_batch_size, eval_batch_size, predict_batch_size: of examples.
        options: of TensorFlow's further arguments; accepted.

    Raises:
        ArgumentError: a TPU is asked for, or `params` has a `batch_size`.
    """

    def __init__(
        self, model_fn: Callable[..., Any] | None = None, model_dir: str | None = None,
        config: RunConfig | None = None, params: Any = None, use_tpu: bool = True,
        train_batch_size: int | None = None, eval_batch_size: int | None = None,
        predict_batch_size: int | None = None, batch_axis: Any = None,
        eval_on_tpu: bool = True, export_to_tpu: bool = True, warm_start_from: Any = None,
        **options: Any,
    ) -> None:  # fmt: skip
        del batch_axis, eval_on_tpu, export_to_tpu, options
        if use_tpu:
            text = "expected use_tpu=False: there are no TPUs"
            raise fail(ArgumentError, f"TPUEstimator: {text}")
        if model_fn is None:
            raise fail(ArgumentError, "TPUEstimator: expected model_fn, got None")
        if params is not None and "batch_size" in params:
            raise fail(ArgumentError, "TPUEstimator: expected params without batch_size")
        self._sizes = {
            ModeKeys.TRAIN: train_batch_size, ModeKeys.EVAL: eval_batch_size,
            ModeKeys.PREDICT: predict_batch_size,
        }  # fmt: skip
        super().__init__(model_fn, model_dir, config, params, warm_start_from)

    def _params_in(self, mode: str) -> Any:
        size = self._sizes[mode]
        return {**self.params, **({} if size is None else {"batch_size": size})}


class CrossShardOptimizer:
    """An optimizer whose gradients would be averaged over a TPU's cores: there are none.

    Args:
        opt: the optimizer.
        options: of TensorFlow's further arguments; accepted.
    """

    def __new__(cls, opt: Any, **options: Any) -> Any:
        """The optimizer itself."""
        return opt
