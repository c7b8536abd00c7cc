"""Models in a folder: configuration as JSON, weights as a TensorFlow checkpoint.

The layout is that of a SavedModel without its graph, which only TensorFlow could run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from weft.errors import ArgumentError, DataError
from weft.tf1.framework.graph import fail
from weft.tf1.keras.engine import nest
from weft.tf1.keras.engine.network import Network
from weft.tf1.keras.optimizers import Optimizer, get
from weft.tf1.keras.storage import checkpoint
from weft.tf1.keras.storage.network_config import LAYERS
from weft.tf1.keras.storage.serialization import custom_object_scope, deserialized, plain, serialize
from weft.tf1.saved_model import loader

__all__ = ["load", "save"]

_MODEL: Final = "keras_model.json"
_WEIGHTS: Final = os.path.join("variables", "variables")
_TOLD: Final = ("loss", "metrics", "loss_weights", "weighted_metrics")


def save(obj: Any, export_dir: Any, signatures: Any = None, options: Any = None) -> None:
    """Write a Keras model: its layers, its weights, and how it was compiled.

    Args:
        obj: a model of inputs and outputs.
        export_dir: the folder, made if needed.
        signatures, options: accepted; functions are not written.

    Raises:
        ArgumentError: it is no such model.
    """
    del signatures, options
    if not isinstance(obj, Network):
        text = f"expected a Keras model, got {type(obj).__name__}; tf.train.Checkpoint takes others"
        raise fail(ArgumentError, f"saved_model.save: {text}")
    model: Any = obj
    told: dict[str, Any] = {"model": serialize(model)}
    if isinstance(model.optimizer, Optimizer):
        told["training"] = {n: nest.mapped(serialize, model.told[n]) for n in _TOLD}
        told["training"]["optimizer"] = serialize(model.optimizer)
    folder = Path(export_dir)
    with model.graph.as_default():
        text = json.dumps(told, default=plain)
        checkpoint.save(model, str(folder / _WEIGHTS))
    (folder / _MODEL).write_text(text)


def load(
    sess: Any = None, tags: Any = None, export_dir: Any = None, import_scope: str | None = None,
    custom_objects: Mapping[str, Any] | None = None, compile: bool = True, options: Any = None,
) -> Any:  # fmt: skip
    """The model that `save` wrote; no code is run. With a session, a graph, by `loader.load`.

    Args:
        sess: a session; or the folder of a Keras model.
        tags: those of the graph.
        export_dir: the folder.
        import_scope: what names of the graph begin with.
        custom_objects: custom classes and functions by name.
        compile: whether to compile the model as it was, with a fresh optimizer.
        options: accepted.

    Raises:
        DataError: the folder has no model that Weft wrote.
    """
    if sess is not None and not isinstance(sess, str | os.PathLike):
        return loader.load(sess, tags, export_dir, import_scope)
    del options
    export_dir = export_dir if sess is None else sess
    file = Path(export_dir) / _MODEL
    if not file.is_file():
        text = f"expected a model that Weft saved in {export_dir}; build other models in Python"
        raise fail(DataError, f"saved_model.load: {text}")
    told = json.loads(file.read_text())
    with custom_object_scope(custom_objects or {}):
        model: Any = deserialized("model", LAYERS, told["model"])
        with model.graph.as_default():
            checkpoint.load(model, str(Path(export_dir) / _WEIGHTS))
        if compile and "training" in told:
            model.compile(get(told["training"].pop("optimizer")), **told["training"])
    return model
