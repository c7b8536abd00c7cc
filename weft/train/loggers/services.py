"""Loggers of services: they write by the service's own package."""

from __future__ import annotations

import importlib
import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from weft.errors import ArgumentError, ConfigError
from weft.host.nested import NESTED
from weft.train.loggers.logger import Logger

__all__ = ["CometLogger", "MLFlowLogger", "WandbLogger"]

LogModel = Literal["all"] | bool


class ServiceLogger(Logger):
    """Base class: a logger that begins an experiment of a service when it first writes.

    Args:
        prefix: before each name of a metric, with a `-`.
        log_model: whether checkpoints are uploaded at the end of a run; `"all"`: as they are
            saved.

    Attributes:
        package: the service's package.

    Raises:
        ConfigError: the package is not installed.
    """

    package: ClassVar[str]

    def __init__(self, prefix: str | None, log_model: LogModel = False) -> None:
        try:
            self.service: Any = importlib.import_module(self.package)
        except ImportError:
            raise ConfigError.here(
                f"{type(self).__name__}: expected the package {self.package}, got none; install: "
                f"pip install {self.package.replace('_', '-')}"
            ) from None
        self._prefix = f"{prefix}-" if prefix else ""
        self._log_model = log_model
        self._experiment: Any = None
        self._uploaded: dict[str, float] = {}
        self._checkpoints: dict[int, Any] = {}

    def begin(self) -> Any:
        """Begin an experiment, or continue one."""
        raise NotImplementedError

    @property
    def experiment(self) -> Any:
        """The service's own object, which is made on first use."""
        if self._experiment is None:
            self._experiment = self.begin()
        return self._experiment

    def prefixed(self, metrics: Mapping[str, Any]) -> dict[str, Any]:
        """Metrics by the names that are written."""
        return {f"{self._prefix}{name}": value for name, value in metrics.items()}

    def upload(self, path: str, callback: Any, aliases: list[str], about: dict[str, Any]) -> None:
        """Upload a checkpoint.

        Args:
            path: its file.
            callback: the `ModelCheckpoint` that saved it.
            aliases: `"latest"`, and `"best"` if it is.
            about: its score, its file's name and the callback's settings.
        """

    def after_save_checkpoint(self, checkpoint_callback: Any) -> None:
        """Upload the checkpoint, or remember to do so at the end."""
        keeps_all = getattr(checkpoint_callback, "save_top_k", 1) == -1
        if self._log_model == "all" or (self._log_model and keeps_all):
            self._upload_new(checkpoint_callback)
        elif self._log_model:
            self._checkpoints[id(checkpoint_callback)] = checkpoint_callback

    def finalize(self, status: str) -> None:
        """At the end of a run: upload its checkpoints, if it ended well."""
        if status == "success":
            for callback in self._checkpoints.values():
                self._upload_new(callback)

    def _upload_new(self, callback: Any) -> None:
        """Upload files that are newer than what was uploaded."""
        best = callback.best_model_path
        scores = {callback.last_model_path: callback.current_score, best: callback.best_model_score}
        scores |= callback.best_k_models
        files = [(Path(p).stat().st_mtime, p) for p in scores if p and Path(p).is_file()]
        for when, path in sorted(files):
            if self._uploaded.get(path, -1.0) >= when:
                continue
            score = scores[path]
            settings = ("monitor", "mode", "save_last", "save_top_k", "save_weights_only")
            about = {
                "score": score if score is None else float(score),
                "original_filename": Path(path).name,
                type(callback).__name__: {n: getattr(callback, n, None) for n in settings},
            }
            self.upload(path, callback, ["latest", *(["best"] if path == best else [])], about)
            self._uploaded[path] = when


def _plain(params: Any) -> Any:
    """Hyperparameters as nested dictionaries of plain values; functions by their names."""
    params = params if isinstance(params, Mapping) else vars(params)
    kinds = (bool, int, float, str, type(None))
    return NESTED.mapped(
        lambda x: x if isinstance(x, kinds) else getattr(x, "__name__", str(x)), dict(params)
    )


def _flat(params: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """The entries of nested dictionaries, by names with slashes."""
    found: dict[str, Any] = {}
    for name, value in params.items():
        inner: Any = value
        if isinstance(value, Mapping):
            found |= _flat(inner, f"{before}{name}/")
        else:
            found[f"{before}{name}"] = value
    return found


def _media(kind: str) -> Any:
    """A method that writes images, sounds or videos."""
    plural = f"{kind.lower()}s"

    def log(
        logger: WandbLogger, key: str, items: Any = None, step: int | None = None, **each: Any
    ) -> None:
        items = each.pop(plural) if items is None else items
        if odd := [n for n, values in each.items() if len(values) != len(items)]:
            raise ArgumentError.here(f"WandbLogger: expected {len(items)} entries of {odd}")
        make: Any = getattr(logger.service, kind)
        made: Any = [make(x, **{n: v[i] for n, v in each.items()}) for i, x in enumerate(items)]
        logger.log_metrics({key: made}, step)

    log.__doc__ = (
        f"Write `{plural}`: arrays, tensors or files; other arguments of `wandb.{kind}` are lists "
        f"with an entry for each."
    )
    return log


class WandbLogger(ServiceLogger):
    """Writes to Weights & Biases, by the package `wandb`.

    Args:
        name: the run's name.
        save_dir: where files are.
        version: the run's id, to continue one.
        offline: whether nothing is sent.
        dir: another name of `save_dir`.
        id: another name of `version`.
        anonymous: whether no account is needed.
        project: by default the environment variable `WANDB_PROJECT`, or `lightning_logs`.
        log_model: whether checkpoints are uploaded, at the end; `"all"`: as they are saved.
        experiment: a run that `wandb.init` returned.
        prefix: before each name of a metric, with a `-`.
        checkpoint_name: the name of uploaded checkpoints.
        add_file_policy: `"mutable"` copies a checkpoint before it is uploaded.
        options: of `wandb.init`.

    Raises:
        ConfigError: the package is not installed.
        ArgumentError: checkpoints cannot be uploaded by a run that is offline.
    """

    package = "wandb"

    def __init__(
        self, name: str | None = None, save_dir: Any = ".", version: str | None = None,
        offline: bool = False, dir: Any = None, id: str | None = None,
        anonymous: bool | None = None, project: str | None = None, log_model: LogModel = False,
        experiment: Any = None, prefix: str = "", checkpoint_name: str | None = None,
        add_file_policy: str = "mutable", **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(prefix, log_model)
        if offline and log_model:
            raise ArgumentError.here(
                f"WandbLogger: expected log_model=False with offline=True, got {log_model!r}"
            )
        self._experiment, self._offline = experiment, offline
        self._checkpoint_name, self._policy = checkpoint_name, add_file_policy
        where = save_dir if save_dir is not None else dir
        self._init = {
            "name": name, "project": project or os.environ.get("WANDB_PROJECT", "lightning_logs"),
            "dir": None if where is None else os.fspath(where), "id": version or id,
            "resume": "allow", "anonymous": "allow" if anonymous else None,
        } | options  # fmt: skip

    def begin(self) -> Any:
        """The run in progress, or a new one."""
        if self._offline:
            os.environ["WANDB_MODE"] = "dryrun"
        if self.service.run is not None:
            return self.service.run
        run = self.service.init(**self._init)
        if not self._init.get("sync_tensorboard") and hasattr(run, "define_metric"):
            run.define_metric("trainer/global_step")
            run.define_metric("*", step_metric="trainer/global_step", step_sync=True)
        return run

    @property
    def name(self) -> Any:
        """The project's name."""
        return self._init["project"]

    @property
    def version(self) -> Any:
        """The run's id; the given one before it begins."""
        return self._init["id"] if self._experiment is None else self._experiment.id

    @property
    def save_dir(self) -> str | None:
        """Where files are."""
        return self._init["dir"]

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Write the metrics of a step."""
        place = {} if step is None else {"trainer/global_step": step}
        self.experiment.log({**self.prefixed(metrics), **place})

    def log_hyperparams(self, params: Any, *args: Any, **kwargs: Any) -> None:
        """Write hyperparameters to the run's configuration."""
        self.experiment.config.update(_plain(params), allow_val_change=True)

    def watch(
        self, model: Any, log: str | None = "gradients", log_freq: int = 100, log_graph: bool = True
    ) -> None:
        """Let `wandb` record gradients and parameters of a model."""
        self.experiment.watch(model, log=log, log_freq=log_freq, log_graph=log_graph)

    def log_table(
        self, key: str, columns: Any = None, data: Any = None, dataframe: Any = None,
        step: int | None = None,
    ) -> None:  # fmt: skip
        """Write a table of `columns` and `data`, or a data frame."""
        table = self.service.Table(columns=columns, data=data, dataframe=dataframe)
        self.log_metrics({key: table}, step)

    log_text = log_table

    log_image = _media("Image")
    log_audio = _media("Audio")
    log_video = _media("Video")

    def upload(self, path: str, callback: Any, aliases: list[str], about: dict[str, Any]) -> None:
        """Upload a checkpoint as an artifact."""
        name = self._checkpoint_name or f"model-{self.experiment.id}"
        artifact = self.service.Artifact(name=name, type="model", metadata=about)
        artifact.add_file(path, name="model.ckpt", policy=self._policy)
        self.experiment.log_artifact(artifact, aliases=aliases)


class MLFlowLogger(ServiceLogger):
    """Writes to MLflow, by the package `mlflow`.

    Args:
        experiment_name: the experiment, which is created if there is none.
        run_name: the run's name.
        tracking_uri: the server; by default `MLFLOW_TRACKING_URI`, or the folder `save_dir`.
        tags: of the run.
        save_dir: where files are, without a server.
        log_model: whether checkpoints are uploaded, at the end; `"all"`: as they are saved.
        prefix: before each name of a metric, with a `-`.
        artifact_location: where a new experiment keeps files.
        run_id: a run to continue.
        synchronous: whether writing waits for the server; by default MLflow decides.

    Raises:
        ConfigError: the package is not installed.
    """

    package = "mlflow"

    def __init__(
        self, experiment_name: str = "lightning_logs", run_name: str | None = None,
        tracking_uri: str | None = None, tags: dict[str, Any] | None = None,
        save_dir: str | None = "./mlruns", log_model: LogModel = False, prefix: str = "",
        artifact_location: str | None = None, run_id: str | None = None,
        synchronous: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(prefix, log_model)
        told = tracking_uri or os.environ.get("MLFLOW_TRACKING_URI")
        self._uri = told or f"file:{save_dir}"
        self._experiment_name, self._location = experiment_name, artifact_location
        self._tags = dict(tags or {}) | ({"mlflow.runName": run_name} if run_name else {})
        self._run_id, self._experiment_id = run_id, None
        self._options = {} if synchronous is None else {"synchronous": synchronous}

    def begin(self) -> Any:
        """The client, after its experiment and run are there."""
        client = importlib.import_module("mlflow.tracking").MlflowClient(self._uri)
        if self._run_id is not None:
            self._experiment_id = client.get_run(self._run_id).info.experiment_id
            return client
        found = client.get_experiment_by_name(self._experiment_name)
        if found is not None and found.lifecycle_stage != "deleted":
            self._experiment_id = found.experiment_id
        else:
            self._experiment_id = client.create_experiment(
                name=self._experiment_name, artifact_location=self._location
            )
        run = client.create_run(experiment_id=self._experiment_id, tags=self._tags)
        self._run_id = run.info.run_id
        return client

    @property
    def experiment_id(self) -> Any:
        """The experiment's id."""
        _ = self.experiment
        return self._experiment_id

    @property
    def run_id(self) -> Any:
        """The run's id."""
        _ = self.experiment
        return self._run_id

    name = experiment_id
    version = run_id

    @property
    def save_dir(self) -> str | None:
        """The folder, if there is no server."""
        return self._uri.removeprefix("file:") if self._uri.startswith("file:") else None

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Write the metrics of a step; characters that MLflow refuses are left out of names."""
        now, metric = int(time.time() * 1000), self.service.entities.Metric
        rows = [
            metric(re.sub(r"[^\w/. -]+", "", name), float(value), now, step or 0)
            for name, value in self.prefixed(metrics).items()
        ]
        self.experiment.log_batch(run_id=self.run_id, metrics=rows, **self._options)

    def log_hyperparams(self, params: Any, *args: Any, **kwargs: Any) -> None:
        """Write hyperparameters, 100 at a time, of which MLflow keeps 250 characters each."""
        param = self.service.entities.Param
        rows = [param(k, str(v)[:250]) for k, v in _flat(_plain(params)).items()]
        for i in range(0, len(rows), 100):
            self.experiment.log_batch(run_id=self.run_id, params=rows[i : i + 100], **self._options)

    def upload(self, path: str, callback: Any, aliases: list[str], about: dict[str, Any]) -> None:
        """Upload a checkpoint, with what is known of it."""
        place = Path(path).stem
        self.experiment.log_artifact(self.run_id, path, place)
        told = {**about, "aliases": aliases}
        self.experiment.log_dict(self.run_id, told, f"{place}/metadata.yaml")

    def finalize(self, status: str) -> None:
        """At the end of a run: upload its checkpoints, and end it."""
        if self._experiment is not None:
            super().finalize(status)
            ended = "FAILED" if status == "failed" else "FINISHED"
            self.experiment.set_terminated(self.run_id, ended)


class CometLogger(ServiceLogger):
    """Writes to Comet, by the package `comet_ml`.

    Args:
        api_key: the key of the account.
        workspace: the workspace.
        project: the project.
        experiment_key: an experiment to continue, or the key of a new one.
        mode: `"get_or_create"`, `"get"` or `"create"`.
        online: whether it is sent; by default Comet decides.
        prefix: before each name of a metric.
        options: of `comet_ml.ExperimentConfig`.

    Raises:
        ConfigError: the package is not installed.
    """

    package = "comet_ml"

    def __init__(
        self, *, api_key: str | None = None, workspace: str | None = None,
        project: str | None = None, experiment_key: str | None = None, mode: str | None = None,
        online: bool | None = None, prefix: str | None = None, **options: Any,
    ) -> None:  # fmt: skip
        os.environ["COMET_DISABLE_AUTO_LOGGING"] = "1"
        super().__init__(prefix)
        self._start = {
            "api_key": api_key, "workspace": workspace, "project": project,
            "experiment_key": experiment_key, "mode": mode, "online": online,
        }  # fmt: skip
        self._options = options

    def begin(self) -> Any:
        """The experiment."""
        config = self.service.ExperimentConfig(**self._options)
        return self.service.start(**self._start, experiment_config=config)

    @property
    def name(self) -> Any:
        """The project's name."""
        return self._start["project"]

    @property
    def version(self) -> Any:
        """The experiment's key; the given one before it begins."""
        begun = self._experiment
        return self._start["experiment_key"] if begun is None else begun.get_key()

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Write the metrics of a step."""
        told = self.prefixed(metrics)
        epoch: Any = told.pop(f"{self._prefix}epoch", None)
        self.experiment.log_metrics(told, step=step, epoch=epoch)

    def log_hyperparams(self, params: Any, *args: Any, **kwargs: Any) -> None:
        """Write hyperparameters."""
        self.experiment.log_parameters(_flat(_plain(params)))

    def finalize(self, status: str) -> None:
        """At the end of a run: send what waits."""
        if self._experiment is not None:
            self._experiment.flush()
