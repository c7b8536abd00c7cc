"""`Estimator`: a model function, trained, evaluated and asked for predictions."""

from __future__ import annotations

import inspect
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import weft.tf1 as tf
from weft.documentation import Reads
from weft.errors import ArgumentError
from weft.tf1.estimator.export import signatures
from weft.tf1.estimator.exporter import exported
from weft.tf1.estimator.modes import EstimatorSpec, EvalSpec, ModeKeys, RunConfig, TrainSpec
from weft.tf1.framework.graph import fail
from weft.tf1.framework.option import only

__all__ = ["Estimator", "train_and_evaluate"]


class Estimator:
    """A model function, trained, evaluated and asked for predictions.

    Each call builds a graph of its own, in which variables are restored from the newest checkpoint.

    Args:
        model_fn: a function of `features`, and of `labels`, `mode`, `params` and `config` if it has
            such arguments, which returns an `EstimatorSpec`.
        model_dir: the folder of checkpoints; a temporary one by default.
        config: settings.
        params: a dict, or an object, for the model function.
        warm_start_from: a checkpoint, or its folder, from which variables of the same names begin.

    >>> import weft.tf1 as tf
    >>> def model(features, labels, mode):
    ...     y = tf.layers.dense(features["x"], 1, kernel_initializer=tf.zeros_initializer())[:, 0]
    ...     if mode == tf.estimator.ModeKeys.PREDICT:
    ...         return tf.estimator.EstimatorSpec(mode, predictions={"y": y})
    ...     loss = tf.losses.mean_squared_error(labels, y)
    ...     step = tf.train.get_global_step()
    ...     train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
    ...     return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)
    >>> x = np.arange(4, dtype=np.float32)[:, None] / 4
    >>> data = tf.estimator.inputs.numpy_input_fn({"x": x}, 2 * x[:, 0], 4, None, False)
    >>> once = tf.estimator.inputs.numpy_input_fn({"x": x}, 2 * x[:, 0], 4, 1, False)
    >>> estimator = tf.estimator.Estimator(model).train(data, steps=200)
    >>> bool(estimator.evaluate(once)["loss"] < 0.01)
    True
    """

    def __init__(
        self, model_fn: Callable[..., EstimatorSpec], model_dir: str | None = None,
        config: RunConfig | None = None, params: Any = None, warm_start_from: str | None = None,
    ) -> None:  # fmt: skip
        config = config or RunConfig()
        folder = model_dir or config.model_dir or tempfile.mkdtemp()
        self._config = config.replace(model_dir=os.fspath(folder))
        self._function, self._params = model_fn, params
        self._warm_start = warm_start_from

    @property
    def model_dir(self) -> str:
        """The folder of checkpoints."""
        return str(self._config.model_dir)

    config = Reads[RunConfig]("_config", "The settings.")

    @property
    def params(self) -> Any:
        """What the model function gets."""
        return {} if self._params is None else self._params

    def _params_in(self, mode: str) -> Any:
        """What functions get in a mode."""
        del mode
        return self.params

    model_fn = Reads[Callable[..., Any]](
        "_model", "The model function, of features, labels, mode and config."
    )

    def latest_checkpoint(self) -> str | None:
        """The newest checkpoint."""
        return tf.train.latest_checkpoint(self.model_dir)

    def get_variable_names(self) -> list[str]:
        """The names of the variables in the newest checkpoint."""
        return [name for name, _ in tf.train.list_variables(self.model_dir)]

    def get_variable_value(self, name: str) -> Any:
        """The value of a variable in the newest checkpoint."""
        return tf.train.load_variable(self.model_dir, name)

    def _model(self, features: Any, labels: Any, mode: str, config: Any = None) -> EstimatorSpec:
        known = inspect.signature(self._function).parameters
        given = {"labels": labels, "mode": mode, "params": self._params_in(mode),
                 "config": config or self._config}  # fmt: skip
        chosen = {name: value for name, value in given.items() if name in known}
        if "labels" not in known and labels is not None:
            raise fail(ArgumentError, "Estimator: model_fn does not take labels, but input_fn "
                                      "returns labels.")  # fmt: skip
        spec = self._function(features=features, **chosen)
        if not isinstance(spec, EstimatorSpec):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise fail(ArgumentError, "Estimator: model_fn should return an EstimatorSpec.")
        return spec

    def _inputs(self, input_fn: Callable[..., Any], mode: str) -> tuple[Any, Any]:
        """Features and labels."""
        known = inspect.signature(input_fn).parameters
        given = {"mode": mode, "params": self._params_in(mode), "config": self._config}
        found = input_fn(**{name: v for name, v in given.items() if name in known})
        if isinstance(found, tf.data.Dataset):
            iterator = found.make_initializable_iterator()
            tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
            found = iterator.get_next()
        if isinstance(found, tuple | list) and len(found) == 2:
            return found[0], found[1]
        return found, None

    def _scaffold(self, spec: EstimatorSpec) -> Any:
        if spec.scaffold is not None:
            return spec.scaffold
        hours = self._config.keep_checkpoint_every_n_hours
        return tf.train.Scaffold(saver=tf.train.Saver(
            sharded=True, max_to_keep=self._config.keep_checkpoint_max,
            keep_checkpoint_every_n_hours=hours, allow_empty=True,
        ))  # fmt: skip

    def train(
        self, input_fn: Callable[..., Any], hooks: Sequence[Any] | None = None,
        steps: int | None = None, max_steps: int | None = None,
        saving_listeners: Sequence[Any] | None = None,
    ) -> Estimator:  # fmt: skip
        """Train, from the newest checkpoint on; itself.

        Args:
            input_fn: a function that returns features and labels, or a dataset of them.
            hooks: hooks of the session.
            steps: the number of steps; until the data ends by default.
            max_steps: the last step of all calls.
            saving_listeners: of the checkpoints.

        Raises:
            ArgumentError: both numbers of steps are given.
        """
        if steps is not None and max_steps is not None:
            raise fail(ArgumentError, "Estimator.train: Can not provide both steps and max_steps.")
        done = self._step_of(self.latest_checkpoint())
        if max_steps is not None and done >= max_steps:
            tf.logging.info("Skipping training since max_steps has already saved.")
            return self
        config = self._config
        with tf.Graph().as_default():
            tf.set_random_seed(config.tf_random_seed)
            step = tf.train.create_global_step()
            spec = self._model(*self._inputs(input_fn, ModeKeys.TRAIN), ModeKeys.TRAIN)
            if self._warm_start and not done:
                tf.train.init_from_checkpoint(self._warm_start, {"/": "/"})
            scaffold = self._scaffold(spec)
            every = list(spec.training_hooks)
            if steps is not None or max_steps is not None:
                every.append(tf.train.StopAtStepHook(steps, max_steps))
            every.append(tf.train.NanTensorHook(spec.loss))
            if config.log_step_count_steps:
                shown = {"loss": spec.loss, "step": step}
                every.append(tf.train.LoggingTensorHook(shown, config.log_step_count_steps))
            every.append(tf.train.CheckpointSaverHook(
                self.model_dir, config.save_checkpoints_secs, config.save_checkpoints_steps,
                scaffold=scaffold, listeners=saving_listeners,
            ))  # fmt: skip
            if not tf.get_collection(tf.GraphKeys.SUMMARIES) or "loss" not in _tags():
                tf.summary.scalar("loss", spec.loss)
            loss: Any = None
            with tf.train.MonitoredTrainingSession(
                checkpoint_dir=self.model_dir, scaffold=scaffold, hooks=[*(hooks or ()), *every],
                save_checkpoint_secs=0, save_summaries_steps=config.save_summary_steps or 0,
                config=config.session_config, log_step_count_steps=config.log_step_count_steps,
            ) as session:  # fmt: skip
                while not session.should_stop():
                    _, loss = session.run([spec.train_op, spec.loss])
            if loss is not None:
                tf.logging.info("Loss for final step: %s.", loss)
        return self

    def _step_of(self, checkpoint: str | None) -> int:
        """The step of a checkpoint; 0 if there is none."""
        if checkpoint is None:
            return 0
        reader = tf.train.load_checkpoint(checkpoint)
        return int(reader.get_tensor("global_step")) if reader.has_tensor("global_step") else 0

    def _session(self, spec: EstimatorSpec, path: str | None, hooks: Sequence[Any]) -> Any:
        creator = tf.train.ChiefSessionCreator(
            self._scaffold(spec), config=self._config.session_config,
            checkpoint_filename_with_path=path,
        )  # fmt: skip
        return tf.train.MonitoredSession(creator, list(hooks))

    def evaluate(
        self, input_fn: Callable[..., Any], steps: int | None = None,
        hooks: Sequence[Any] | None = None, checkpoint_path: str | None = None,
        name: str | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Metrics by their names, `loss` and `global_step`; they are also written as summaries.

        Args:
            input_fn: a function that returns features and labels, or a dataset of them.
            steps: the number of batches; until the data ends by default.
            hooks: hooks of the session.
            checkpoint_path: the newest by default.
            name: of the folder of summaries: `eval_NAME`.
        """
        path = checkpoint_path or self.latest_checkpoint()
        with tf.Graph().as_default():
            tf.set_random_seed(self._config.tf_random_seed)
            step = tf.train.create_global_step()
            spec = self._model(*self._inputs(input_fn, ModeKeys.EVAL), ModeKeys.EVAL)
            metrics = {"loss": tf.metrics.mean(spec.loss), **spec.eval_metric_ops}
            values = {key: pair[0] for key, pair in metrics.items()} | {"global_step": step}
            final = tf.train.FinalOpsHook(values)
            update = [pair[1] for pair in metrics.values()]
            count = 0
            with self._session(spec, path, [*(hooks or ()), *spec.evaluation_hooks, final]) as s:
                while not s.should_stop() and (steps is None or count < steps):
                    s.run(update)
                    count += 1
            found = dict(final.final_ops_values)
        folder = os.path.join(self.model_dir, f"eval_{name}" if name else "eval")
        with tf.summary.FileWriter(folder) as writer:
            parts = [tf.Summary.Value(tag=k, simple_value=float(v)) for k, v in found.items()
                     if k != "global_step" and np.ndim(v) == 0]  # fmt: skip
            writer.add_summary(tf.Summary(value=parts), int(found["global_step"]))
        shown = ", ".join(f"{k} = {found[k]}" for k in sorted(found))
        tf.logging.info("Saving dict for global step %d: %s", found["global_step"], shown)
        return found

    def predict(
        self, input_fn: Callable[..., Any], predict_keys: Any = None,
        hooks: Sequence[Any] | None = None, checkpoint_path: str | None = None,
        yield_single_examples: bool = True,
    ) -> Iterator[Any]:  # fmt: skip
        """The predictions of each example, one after another.

        Args:
            input_fn: a function that returns features, or a dataset of them.
            predict_keys: names of predictions, or one; all by default.
            hooks: hooks of the session.
            checkpoint_path: the newest by default.
            yield_single_examples: give examples instead of batches.

        Raises:
            ArgumentError: there is no checkpoint, or no prediction has such a name.
        """
        path = checkpoint_path or self.latest_checkpoint()
        if not path:
            text = f"Could not find trained model in model_dir: {self.model_dir}."
            raise fail(ArgumentError, f"Estimator.predict: {text}")
        with tf.Graph().as_default():
            tf.set_random_seed(self._config.tf_random_seed)
            tf.train.create_global_step()
            features, _ = self._inputs(input_fn, ModeKeys.PREDICT)
            spec = self._model(features, None, ModeKeys.PREDICT)
            chosen = _chosen(spec.predictions, predict_keys)
            with self._session(spec, path, [*(hooks or ()), *spec.prediction_hooks]) as session:
                while not session.should_stop():
                    batch = session.run(chosen)
                    if not yield_single_examples:
                        yield batch
                    elif isinstance(batch, Mapping):
                        for i in range(len(next(iter(batch.values())))):
                            yield {key: value[i] for key, value in batch.items()}
                    else:
                        yield from batch

    def export_saved_model(
        self, export_dir_base: str, serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Mapping[str, str] | None = None, as_text: bool = False,
        checkpoint_path: str | None = None, experimental_mode: str = ModeKeys.PREDICT,
    ) -> bytes:  # fmt: skip
        """Write a folder that `tf.saved_model.loader.load` reads; its path.

        Args:
            export_dir_base: the folder of exports, each named by its time.
            serving_input_receiver_fn: of `tf.estimator.export`.
            assets_extra: files to copy, by their names below `assets.extra`.
            as_text: not supported.
            checkpoint_path: the newest by default.
            experimental_mode: `ModeKeys.PREDICT`.

        Raises:
            ArgumentError: there is no checkpoint, or an argument is not supported.
        """
        told = {"as_text": as_text, "experimental_mode": experimental_mode}
        only("export_saved_model", told, as_text=False, experimental_mode=ModeKeys.PREDICT)
        path = checkpoint_path or self.latest_checkpoint()
        if not path:
            text = f"Couldn't find trained model at {self.model_dir}."
            raise fail(ArgumentError, f"Estimator.export_saved_model: {text}")
        os.makedirs(export_dir_base, exist_ok=True)
        made = tempfile.mkdtemp(prefix="temp-", dir=export_dir_base)
        with tf.Graph().as_default(), tf.Session(config=self._config.session_config) as session:
            tf.set_random_seed(self._config.tf_random_seed)
            tf.train.create_global_step()
            receiver = serving_input_receiver_fn()
            spec = self._model(receiver.features, None, ModeKeys.PREDICT)
            saver = self._scaffold(spec).saver or tf.train.Saver(sharded=True)
            saver.restore(session, path)
            first = tf.group(tf.local_variables_initializer(), tf.tables_initializer())
            builder = tf.saved_model.builder.SavedModelBuilder(made)
            builder.add_meta_graph_and_variables(
                session, [tf.saved_model.tag_constants.SERVING],
                signature_def_map=signatures(spec, receiver), main_op=first,
            )  # fmt: skip
            builder.save()
        for name, source in (assets_extra or {}).items():
            place = os.path.join(made, "assets.extra", name)
            os.makedirs(os.path.dirname(place), exist_ok=True)
            shutil.copy(source, place)
        stamps = [int(name) for name in os.listdir(export_dir_base) if name.isdigit()]
        stamp = max(int(time.time()), max(stamps, default=0) + 1)  # newer than all there are
        found = os.path.join(export_dir_base, str(stamp))
        os.rename(made, found)
        return os.fsencode(found)

    def export_savedmodel(
        self, export_dir_base: str, serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Mapping[str, str] | None = None, as_text: bool = False,
        checkpoint_path: str | None = None, strip_default_attrs: bool = False,
    ) -> bytes:  # fmt: skip
        """`export_saved_model`, by its earlier name.

        Args:
            strip_default_attrs: no effect.
            export_dir_base, serving_input_receiver_fn, assets_extra, as_text, checkpoint_path: as
                there.
        """
        del strip_default_attrs
        return self.export_saved_model(
            export_dir_base, serving_input_receiver_fn, assets_extra, as_text, checkpoint_path
        )


def _tags() -> list[str]:
    return [s.op.name for s in tf.get_collection(tf.GraphKeys.SUMMARIES)]


def _chosen(predictions: Any, keys: Any) -> Any:
    if not keys or not isinstance(predictions, Mapping):
        return predictions
    names = [keys] if isinstance(keys, str) else list(keys)
    found = {name: value for name, value in predictions.items() if name in names}
    if not found:
        text = f"Expected to run at least one output from {list(predictions)}, got {names}"
        raise fail(ArgumentError, f"Estimator.predict: {text}")
    return found


def train_and_evaluate(
    estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec
) -> tuple[Any, Any]:
    """Train, evaluate at the end, and export: the metrics, and the paths of exports.

    With `max_steps`, checkpoints in between are evaluated as well, one of every
    `save_checkpoints_steps`.

    Args:
        estimator: the estimator.
        train_spec: how to train.
        eval_spec: how to evaluate.
    """
    found: Any = None
    exports: list[Any] | None = None
    last, every = train_spec.max_steps, estimator.config.save_checkpoints_steps
    done = -1
    while True:
        before = done
        done = estimator._step_of(estimator.latest_checkpoint())  # pyright: ignore[reportPrivateUsage]
        if (last is not None and done >= last) or done == before:
            break
        part = last if last is None or not every else min(last, done + every)
        estimator.train(train_spec.input_fn, list(train_spec.hooks or ()), max_steps=part)
        found = estimator.evaluate(
            eval_spec.input_fn, eval_spec.steps, list(eval_spec.hooks or ()), name=eval_spec.name
        )
        final = last is None or int(found["global_step"]) >= last
        exports = exported(eval_spec.exporters, estimator, found, final)
        if last is None:
            break
    return found, exports
