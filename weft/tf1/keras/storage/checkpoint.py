"""Weights of models in TensorFlow checkpoints, with TensorFlow 2's names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

import weft.tf1 as tf
from weft.errors import DataError, StateError
from weft.tf1.framework.graph import fail
from weft.tf1.keras.engine import sessions
from weft.tf1.keras.engine.network import Network

VALUE: Final = "/.ATTRIBUTES/VARIABLE_VALUE"
_BOOKKEEPING: Final = ("_CHECKPOINTABLE_OBJECT_GRAPH", "save_counter", "optimizer/")


def names_of(model: Any) -> dict[str, Any]:
    """The weights by their names in a checkpoint."""
    return {name + VALUE: variable for name, variable in _local(model).items()}


def _local(layer: Any) -> dict[str, Any]:
    if not isinstance(layer, Network):
        return layer.checkpoint_weights()
    found: dict[str, Any] = {}
    number = 0
    for inner in layer.layers:
        own = _local(inner)
        if own:
            found.update({f"layer_with_weights-{number}/{n}": v for n, v in own.items()})
            number += 1
    return found


def save(model: Any, path: str) -> None:
    """Write all weights; the folder is created if needed."""
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    version = tf.train.SaverDef.V2
    saver = tf.train.Saver(names_of(model), write_version=version, max_to_keep=None)
    saver.save(sessions.get_session(), path, write_meta_graph=False)


def load(model: Any, path: str) -> None:
    """Read all weights; on an error none is changed.

    Raises:
        DataError: there is no such checkpoint.
        StateError: it belongs to another model; the message lists the differences.
    """
    if not tf.train.checkpoint_exists(path):
        raise fail(DataError, f"load_weights: expected a checkpoint at {path!r}, there is none")
    reader = tf.train.load_checkpoint(path)
    shapes: Mapping[str, Any] = reader.get_variable_to_shape_map()
    own = names_of(model)
    _compare(own, {k: v for k, v in shapes.items() if not _is_bookkeeping(k)}, model.name, path)
    sessions.assign_values([(v, reader.get_tensor(name)) for name, v in own.items()])


def _is_bookkeeping(name: str) -> bool:
    return name.startswith(_BOOKKEEPING) or "/.OPTIMIZER_SLOT/" in name


def _compare(own: Mapping[str, Any], shapes: Mapping[str, Any], model: str, path: str) -> None:
    missing = sorted(own.keys() - shapes.keys())
    unexpected = sorted(shapes.keys() - own.keys())
    differing = [
        f"{n}: expected {tuple(v.shape.as_list())}, got {tuple(shapes[n])}"
        for n, v in own.items()
        if n in shapes and tuple(v.shape.as_list()) != tuple(shapes[n])
    ]
    lines = [
        f"{what}: {[n.removesuffix(VALUE) for n in found]}"
        for what, found in (("missing", missing), ("unexpected", unexpected))
        if found
    ]
    lines += [f"mismatched: {line.replace(VALUE, '')}" for line in differing]
    if lines:
        told = "\n  ".join(lines)
        raise fail(
            StateError, f"load_weights: expected the weights of {model} in {path}, but\n  {told}\n"
        )
