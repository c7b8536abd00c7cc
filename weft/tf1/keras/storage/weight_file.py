"""Weights of models in HDF5 files, in Keras's layout; needs the package h5py."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from weft.errors import ArgumentError, DataError, StateError
from weft.tf1.framework.graph import fail
from weft.tf1.keras.engine import sessions


def _h5py() -> Any:
    try:
        return importlib.import_module("h5py")
    except ImportError:
        raise fail(
            ArgumentError,
            "save_weights: expected the package h5py for a name that ends in .h5; another name "
            "gives a checkpoint of TensorFlow",
        ) from None


def opened(path: Any, mode: str) -> Any:
    """An open file.

    Raises:
        DataError: it cannot be opened.
    """
    try:
        return _h5py().File(path, mode)
    except OSError as error:
        raise fail(DataError, f"expected a file of HDF5: {path!r}: {error}") from None


def save(model: Any, path: str) -> None:
    """Write all weights, layer by layer."""
    with opened(path, "w") as file:
        write(model, file)


def write(model: Any, file: Any) -> None:
    """Write all weights to a group of a file."""
    layers = model.layers
    file.attrs["layer_names"] = [x.name.encode() for x in layers]
    file.attrs["backend"] = b"tensorflow"
    file.attrs["keras_version"] = b"2.2.4-tf"
    for layer in layers:
        group, own = file.create_group(layer.name), layer.weights
        group.attrs["weight_names"] = [v.name.encode() for v in own]
        for variable, value in zip(own, sessions.values_of(own), strict=True):
            group.create_dataset(variable.name, data=value)


def load(model: Any, file: Any, by_name: bool) -> None:
    """Read weights, in the order of layers or by their names; on an error none is changed.

    Raises:
        DataError: the file is of another kind.
        StateError: the weights belong to another model.
    """
    whole = "layer_names" in file.attrs
    if not whole and "model_weights" not in file:
        raise fail(DataError, f"load_weights: expected Keras 2's layout, got {list(file)}")
    read(model, file if whole else file["model_weights"], by_name)


def read(model: Any, group: Any, by_name: bool) -> None:
    """Read weights from a group of a file.

    Raises:
        StateError: the weights belong to another model.
    """
    names = [text(n) for n in group.attrs["layer_names"]]
    stored = {n: _values(group[n]) for n in names}
    full = [n for n in names if stored[n]]
    own = [x for x in model.layers if x.weights]
    if by_name:
        chosen = [(x, stored[x.name]) for x in own if x.name in stored]
    elif len(full) != len(own):
        raise fail(
            StateError,
            f"load_weights: expected {len(own)} layers with weights {[x.name for x in own]}, got "
            f"{full}",
        )
    else:
        chosen = list(zip(own, [stored[n] for n in full], strict=True))
    faults = [f for layer, values in chosen for f in _faults(layer, values)]
    if faults:
        told = "\n  ".join(faults)
        raise fail(
            StateError, f"load_weights: expected the weights of {model.name}, but\n  {told}\n"
        )
    sessions.assign_values([p for x, values in chosen for p in zip(x.weights, values, strict=True)])


def _values(group: Any) -> list[Any]:
    return [np.array(group[text(n)]) for n in group.attrs["weight_names"]]


def text(name: Any) -> str:
    """A name, which HDF5 may return as bytes."""
    return name.decode() if isinstance(name, bytes) else str(name)


def _faults(layer: Any, values: list[Any]) -> list[str]:
    own = layer.weights
    if len(own) != len(values):
        return [f"{layer.name}: expected {len(own)} weights, got {len(values)}"]
    return [
        f"{v.name}: expected {tuple(v.shape.as_list())}, got {x.shape}"
        for v, x in zip(own, values, strict=True)
        if tuple(v.shape.as_list()) != x.shape
    ]
