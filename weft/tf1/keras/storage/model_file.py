"""Models in Keras's HDF5 files: configuration, weights, compile arguments; needs `h5py`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from weft.errors import ArgumentError, DataError
from weft.tf1.framework.graph import fail
from weft.tf1.keras.engine import nest, sessions
from weft.tf1.keras.optimizers import Optimizer, get
from weft.tf1.keras.storage import keras3_file, weight_file
from weft.tf1.keras.storage.keras3_config import from_keras3
from weft.tf1.keras.storage.network_config import LAYERS
from weft.tf1.keras.storage.serialization import custom_object_scope, deserialized, plain, serialize

_TOLD: Final = ("loss", "metrics", "loss_weights", "weighted_metrics")


def save(model: Any, path: str, overwrite: bool, include_optimizer: bool) -> None:
    """Write a model.

    Raises:
        ArgumentError: the file exists, or the model is a subclass, whose `call` is code.
    """
    config = json.dumps(serialize(model), default=plain)
    if not overwrite and os.path.exists(path):
        raise fail(ArgumentError, f"save: expected no file at {path!r}, there is one")
    with weight_file.opened(path, "w") as file:
        file.attrs["backend"], file.attrs["keras_version"] = b"tensorflow", b"2.2.4-tf"
        file.attrs["model_config"] = config.encode()
        weight_file.write(model, file.create_group("model_weights"))
        optimizer = model.optimizer
        if not include_optimizer or not isinstance(optimizer, Optimizer):
            return
        told = {n: nest.mapped(serialize, model.told[n]) for n in _TOLD}
        told["optimizer_config"] = serialize(optimizer)
        file.attrs["training_config"] = json.dumps(told, default=plain).encode()
        group = file.create_group("optimizer_weights")
        held = [v for v in optimizer.weights if v.key in sessions.get_session().state]
        group.attrs["weight_names"] = [v.name.encode() for v in held]
        for variable, value in zip(held, sessions.values_of(held), strict=True):
            group.create_dataset(variable.name, data=value)


def load(path: str, custom_objects: Mapping[str, Any] | None, is_compiled: bool) -> Any:
    """Read a model; no code is run.

    Raises:
        DataError: there is no such file, or no model configuration in it.
        UnknownKeyError: a class or function is unknown.
    """
    with custom_object_scope(custom_objects or {}), weight_file.opened(path, "r") as file:
        if "model_config" not in file.attrs:
            raise fail(
                DataError,
                f"load_model: expected a model's configuration in {path!r}, there is none; "
                "load_weights reads weights alone",
            )
        config = _json(file.attrs["model_config"])
        is_3 = "registered_name" in weight_file.text(file.attrs["model_config"])
        model = deserialized("model", LAYERS, from_keras3(config) if is_3 else config)
        with model.graph.as_default():
            weight_file.read(model, file["model_weights"], False)
            if is_compiled and "training_config" in file.attrs:
                told = _json(file.attrs["training_config"])
                (_compile_as_3 if is_3 else _compile)(model, told, file)
    return model


def _compile(model: Any, told: Mapping[str, Any], file: Any) -> None:
    optimizer = get(told["optimizer_config"])
    model.compile(optimizer, **{n: told.get(n) for n in _TOLD})
    group = file.get("optimizer_weights")
    if group is None:
        return
    names = [weight_file.text(n) for n in group.attrs["weight_names"]]
    if len(names) > 1:
        optimizer.build(model.trainable_weights)
        optimizer.set_weights([np.array(group[n]) for n in names])


def _compile_as_3(model: Any, told: Mapping[str, Any], file: Any) -> None:
    """From a file of Keras 3, whose optimizers have their variables in another order."""
    found = from_keras3({**told, "optimizer": told["optimizer_config"]})
    group = file.get("optimizer_weights")
    names = [] if group is None else map(weight_file.text, group.attrs["weight_names"])
    values = [np.array(file["optimizer_weights"][name]) for name in names]
    keras3_file.compile_as(model, found, values)


def _json(told: Any) -> Any:
    return json.loads(weight_file.text(told))
