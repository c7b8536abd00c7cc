"""The older estimators of `tf.contrib.learn`: those of `tf.estimator`, fed with arrays."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

import weft.tf1 as tf
from weft.errors import ArgumentError
from weft.tf1.estimator import canned, modes
from weft.tf1.estimator.estimator import Estimator as Engine
from weft.tf1.framework.graph import fail

__all__ = [
    "DNNClassifier", "DNNRegressor", "Estimator", "Experiment", "LinearClassifier",
    "LinearRegressor", "MetricSpec", "ModeKeys", "ModelFnOps", "RunConfig", "SKCompat",
    "infer_real_valued_columns_from_input",
]  # fmt: skip

RunConfig = modes.RunConfig


class ModeKeys(modes.ModeKeys):
    """What a model function is called for."""

    INFER = modes.ModeKeys.PREDICT


class ModelFnOps(NamedTuple):
    """What a model function returns; or a tuple of predictions, loss and training operation."""

    mode: str
    predictions: Any = None
    loss: Any = None
    train_op: Any = None
    eval_metric_ops: Mapping[str, Any] | None = None


class MetricSpec(NamedTuple):
    """A metric of predictions and labels.

    Attributes:
        metric_fn: a function of `predictions` and `labels` that returns a value and an update.
        prediction_key, label_key: which of several they are.
    """

    metric_fn: Callable[..., Any]
    prediction_key: str | None = None
    label_key: str | None = None

    def of(self, predictions: Any, labels: Any) -> Any:
        """The value and the update."""
        chosen = predictions if self.prediction_key is None else predictions[self.prediction_key]
        wanted = labels if self.label_key is None else labels[self.label_key]
        return self.metric_fn(predictions=chosen, labels=wanted)


class _OldEngine(Engine):
    """Takes model functions of tensors in any names, which return tuples."""

    labels: Any = None
    """The dtype and shape of an example's label, which a function gets for predictions, too."""
    metrics: Mapping[str, Any] | None = None

    def _model(self, features: Any, labels: Any, mode: str, config: Any = None) -> Any:
        if labels is None and self.labels is not None:
            dtype, shape = self.labels
            labels = tf.placeholder(dtype, [None, *shape])
        given = {"mode": mode, "params": self._params_in(mode), "model_dir": self.model_dir,
                 "config": config or self._config}  # fmt: skip
        known = inspect.signature(self._function).parameters
        chosen = {name: value for name, value in given.items() if name in known}
        found: Any = self._function(features, labels, **chosen)
        if isinstance(found, modes.EstimatorSpec):
            return found
        ops = found if isinstance(found, ModelFnOps) else ModelFnOps(mode, *found)
        named = ops.predictions if isinstance(ops.predictions, dict) else {"": ops.predictions}
        metrics = dict(ops.eval_metric_ops or {})
        for name, spec in (self.metrics or {}).items() if mode == ModeKeys.EVAL else ():
            made = spec if isinstance(spec, MetricSpec) else MetricSpec(spec)
            metrics[name] = made.of(ops.predictions, labels)
        return modes.EstimatorSpec(mode, named, ops.loss, ops.train_op, metrics)


class Estimator:
    """A model function, trained, evaluated and asked for predictions, with arrays or functions.

    Args:
        model_fn: a function of features, labels and, by name, `mode`, `params`, `config` and
            `model_dir`, which returns predictions, loss and training operation, or `ModelFnOps`.
        model_dir: the folder of checkpoints; a temporary one by default.
        config: settings.
        params: for the model function.
    """

    _key: ClassVar[str | None] = None
    """The prediction that `predict` gives, of several."""
    _one_column: ClassVar[bool] = False
    """Whether an array is the feature without a name."""

    def __init__(
        self, model_fn: Any = None, model_dir: str | None = None, config: Any = None,
        params: Any = None,
    ) -> None:  # fmt: skip
        self._engine: Any = _OldEngine(model_fn, model_dir, config, params)

    @property
    def model_dir(self) -> str:
        """The folder of checkpoints."""
        return self._engine.model_dir

    def fit(
        self, x: Any = None, y: Any = None, input_fn: Any = None, steps: int | None = None,
        batch_size: int | None = None, monitors: Any = None, max_steps: int | None = None,
    ) -> Any:  # fmt: skip
        """Train; itself.

        Args:
            x, y: arrays, which are repeated and shuffled; or `input_fn`.
            input_fn: a function that returns features and labels.
            steps, max_steps: the number of steps of this call, or the last one of all.
            batch_size: of arrays; all rows by default.
            monitors: hooks of the session.
        """
        if y is not None:
            labels = np.asarray(y)
            self._engine.labels = labels.dtype, labels.shape[1:]
        data = self._data(x, y, input_fn, batch_size, True)
        self._engine.train(data, hooks=monitors, steps=steps, max_steps=max_steps)
        return self

    def evaluate(
        self, x: Any = None, y: Any = None, input_fn: Any = None, feed_fn: Any = None,
        batch_size: int | None = None, steps: int | None = None, metrics: Any = None,
        name: str | None = None, hooks: Any = None,
    ) -> dict[str, Any]:  # fmt: skip
        """The loss and metrics by name.

        Args:
            x, y, input_fn, batch_size: as of `fit`.
            feed_fn: not supported.
            steps: the number of batches; all by default.
            metrics: a `MetricSpec`, or a function of predictions and labels, by name.
            name: of the folder of summaries.
            hooks: of the session.
        """
        if feed_fn is not None:
            raise fail(ArgumentError, "Estimator.evaluate: expected arrays, or an input_fn")
        self._engine.metrics = metrics
        data = self._data(x, y, input_fn, batch_size, False)
        return self._engine.evaluate(data, steps=steps, hooks=hooks, name=name)

    def predict(
        self, x: Any = None, input_fn: Any = None, batch_size: int | None = None,
        outputs: Any = None, as_iterable: bool = True,
    ) -> Any:  # fmt: skip
        """The predictions of examples: one after another, or as arrays.

        Args:
            x, input_fn, batch_size: as of `fit`.
            outputs: names of predictions; all by default.
            as_iterable: one after another.
        """
        batches = [self._chosen(found, outputs) for found in self._engine.predict(
            self._data(x, None, input_fn, batch_size, False), yield_single_examples=False,
        )]  # fmt: skip
        whole: Any = (
            {k: np.concatenate([b[k] for b in batches]) for k in batches[0]}
            if isinstance(batches[0], dict)
            else np.concatenate(batches)
        )
        return _rows(whole) if as_iterable else whole

    def _chosen(self, found: dict[str, Any], outputs: Any) -> Any:
        if outputs is not None:
            return {name: found[name] for name in outputs}
        if self._key is not None:
            return found[self._key].reshape(-1)
        return found[""] if list(found) == [""] else found

    def _data(self, x: Any, y: Any, input_fn: Any, size: int | None, trains: bool) -> Any:
        if (x is None) == (input_fn is None):
            raise fail(ArgumentError, "Estimator: expected arrays or an input_fn, one of them")
        if input_fn is not None:
            return input_fn
        features = x if isinstance(x, dict) else np.asarray(x)
        rows = len(next(iter(x.values()))) if isinstance(x, dict) else len(features)
        if self._one_column and not isinstance(x, dict):
            features = {"": features}

        def data() -> Any:
            parts = features if y is None else (features, np.asarray(y))
            dataset = tf.data.Dataset.from_tensor_slices(parts)
            dataset = dataset.shuffle(rows).repeat() if trains else dataset
            return dataset.batch(size or rows)

        return data


def _rows(whole: Any) -> Iterator[Any]:
    if isinstance(whole, dict):
        return iter(
            [dict(zip(whole, row, strict=True)) for row in zip(*whole.values(), strict=True)]
        )
    return iter(whole)


class SKCompat:
    """An estimator with scikit-learn's methods.

    Args:
        estimator: of this module.
    """

    def __init__(self, estimator: Estimator) -> None:
        self._estimator = estimator

    def fit(
        self, x: Any, y: Any, batch_size: int = 128, steps: int | None = None,
        max_steps: int | None = None, monitors: Any = None,
    ) -> SKCompat:  # fmt: skip
        """Train; itself."""
        self._estimator.fit(x, y, None, steps, batch_size, monitors, max_steps)
        return self

    def score(
        self, x: Any, y: Any, batch_size: int = 128, steps: int | None = None, metrics: Any = None,
        name: str | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """The loss and metrics by name."""
        return self._estimator.evaluate(x, y, None, None, batch_size, steps, metrics, name)

    def predict(self, x: Any, batch_size: int = 128, outputs: Any = None) -> Any:
        """The predictions, as arrays."""
        return self._estimator.predict(x, None, batch_size, outputs, as_iterable=False)


def infer_real_valued_columns_from_input(x: Any) -> list[Any]:
    """The column of an array's numbers."""
    return [tf.feature_column.numeric_column("", np.shape(x)[1:])]


def real_valued_column(
    column_name: str, dimension: int = 1, default_value: Any = None, dtype: Any = "float32",
    normalizer: Callable[[Any], Any] | None = None,
) -> Any:  # fmt: skip
    """A column of numbers.

    Args:
        column_name: of the feature.
        dimension: the numbers of an example.
        default_value, dtype: as of `tf.feature_column.numeric_column`.
        normalizer: a function of the numbers.
    """
    make = tf.feature_column.numeric_column
    return make(column_name, (dimension,), default_value, dtype, normalizer)


def _canned(name: str, kind: Any, key: str, first: Sequence[str], doc: str) -> Any:
    """A model of `tf.estimator` with the older methods.

    Args:
        first: the names of its positional arguments.
    """

    def __init__(self: Any, *args: Any, **options: Any) -> None:
        self._engine = kind(**dict(zip(first, args, strict=False)), **options)

    members = {"__init__": __init__, "__doc__": doc, "_key": key, "_one_column": True}
    return type(name, (Estimator,), {**members, "__module__": __name__})


_ARGUMENTS = "feature_columns", "model_dir"
DNNClassifier = _canned(
    "DNNClassifier", canned.DNNClassifier, "class_ids", ("hidden_units", *_ARGUMENTS, "n_classes"),
    "A network for classes; arguments are those of `tf.estimator.DNNClassifier`, by name.",
)  # fmt: skip
DNNRegressor = _canned(
    "DNNRegressor", canned.DNNRegressor, "predictions", ("hidden_units", *_ARGUMENTS),
    "A network for numbers; arguments are those of `tf.estimator.DNNRegressor`, by name.",
)  # fmt: skip
LinearClassifier = _canned(
    "LinearClassifier", canned.LinearClassifier, "class_ids", (*_ARGUMENTS, "n_classes"),
    "A linear model for classes; arguments are those of `tf.estimator.LinearClassifier`, by name.",
)  # fmt: skip
LinearRegressor = _canned(
    "LinearRegressor", canned.LinearRegressor, "predictions", _ARGUMENTS,
    "A linear model for numbers; arguments are those of `tf.estimator.LinearRegressor`, by name.",
)  # fmt: skip


class Experiment:
    """An estimator with its data.

    Args:
        estimator: of this module, or of `tf.estimator`.
        train_input_fn, eval_input_fn: functions that return features and labels.
        eval_metrics: as of `Estimator.evaluate`, of this module.
        train_steps, eval_steps: numbers of steps.
    """

    def __init__(
        self, estimator: Any, train_input_fn: Any, eval_input_fn: Any, eval_metrics: Any = None,
        train_steps: int | None = None, eval_steps: int | None = 100,
    ) -> None:  # fmt: skip
        self.estimator, self._train, self._evaluate = estimator, train_input_fn, eval_input_fn
        self._metrics, self._train_steps, self._steps = eval_metrics, train_steps, eval_steps

    def train(self) -> Any:
        """Train."""
        old = isinstance(self.estimator, Estimator)
        run = self.estimator.fit if old else self.estimator.train
        return run(input_fn=self._train, max_steps=self._train_steps)

    def evaluate(self) -> dict[str, Any]:
        """The loss and metrics by name."""
        metrics = {} if self._metrics is None else {"metrics": self._metrics}
        return self.estimator.evaluate(input_fn=self._evaluate, steps=self._steps, **metrics)

    def train_and_evaluate(self) -> dict[str, Any]:
        """Train, then evaluate."""
        self.train()
        return self.evaluate()


class learn_runner:
    """`learn.learn_runner`."""

    @staticmethod
    def run(
        experiment_fn: Callable[..., Experiment], output_dir: str | None = None,
        schedule: str | None = None, run_config: Any = None, hparams: Any = None,
    ) -> Any:  # fmt: skip
        """Run an experiment.

        Args:
            experiment_fn: a function of the folder, or of settings and parameters.
            output_dir, run_config, hparams: its arguments.
            schedule: the experiment's method; `train_and_evaluate` by default.
        """
        given = (output_dir,) if run_config is None else (run_config, hparams)
        return getattr(experiment_fn(*given), schedule or "train_and_evaluate")()
