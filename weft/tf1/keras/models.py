"""`tf.keras.models`: models, and loading of models."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
from typing import Any

import weft.tf1 as tf
from weft.errors import ArgumentError
from weft.tf1.framework.graph import fail
from weft.tf1.keras.engine.model import Model, Sequential
from weft.tf1.keras.storage import keras3_file, model_file, model_folder
from weft.tf1.keras.storage.network_config import LAYERS
from weft.tf1.keras.storage.serialization import custom_object_scope, deserialized

__all__ = [
    "Model", "Sequential", "clone_model", "load_model", "model_from_config", "model_from_json",
]  # fmt: skip


def model_from_config(
    config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None
) -> Any:
    """A model from class name and configuration.

    Args:
        config: both, as `get_config` of a model's class gives them.
        custom_objects: custom classes and functions by name.

    Raises:
        UnknownKeyError: the class is unknown.
    """
    with custom_object_scope(custom_objects or {}):
        return deserialized("model", LAYERS, config)


def model_from_json(json_string: str, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """A model from the result of `to_json`, without weights; no code is run.

    Args:
        json_string: the text.
        custom_objects: custom classes and functions by name.
    """
    return model_from_config(json.loads(json_string), custom_objects)


def load_model(
    filepath: Any, custom_objects: Mapping[str, Any] | None = None, compile: bool = True
) -> Any:
    """A model that `Model.save`, here or in Keras, wrote; no code is run.

    Args:
        filepath: the file, or the folder.
        custom_objects: custom classes and functions by name.
        compile: whether to compile it as it was.

    Raises:
        DataError: there is no such file, or no model in it.
        UnknownKeyError: a class or function is unknown.
    """
    if os.path.isdir(filepath):
        return model_folder.load(filepath, custom_objects=custom_objects, compile=compile)
    if zipfile.is_zipfile(filepath):
        return keras3_file.load(os.fspath(filepath), custom_objects, compile)
    return model_file.load(os.fspath(filepath), custom_objects, compile)


def clone_model(model: Any, input_tensors: Any = None) -> Any:
    """A model with the same layers and new weights.

    Args:
        model: of which inputs and outputs are known.
        input_tensors: inputs to call it on.
    """
    if not isinstance(model, Model):
        raise fail(ArgumentError, f"clone_model: expected a model, got {model!r}")
    with model.graph.as_default():
        made = type(model).from_config(json.loads(model.to_json())["config"])
        if input_tensors is None:
            return made
        given = [
            x if tf.is_tensor(x) else tf.constant(x)
            for x in (input_tensors if isinstance(input_tensors, list) else [input_tensors])
        ]
        return Model(given, made(given[0] if len(given) == 1 else given), name=model.name)
