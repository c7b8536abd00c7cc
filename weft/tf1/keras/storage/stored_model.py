"""Model serialization: configuration, JSON, weight files; and the summary table."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from weft.errors import ArgumentError
from weft.tf1.framework.graph import fail
from weft.tf1.keras.engine import nest
from weft.tf1.keras.fit.training import Training
from weft.tf1.keras.storage import (
    checkpoint,
    keras3_file,
    model_file,
    model_folder,
    weight_file,
)
from weft.tf1.keras.storage.network_config import config_of, network_from
from weft.tf1.keras.storage.serialization import plain, serialize


class Storage(Training):
    """A trainable network with a configuration and weight files."""

    # -- configuration

    def get_config(self) -> dict[str, Any]:
        """Layers, their configurations and calls, as data.

        Raises:
            ArgumentError: the model is a subclass, whose `call` is code.
        """
        if not self.is_graph_network:
            raise fail(
                ArgumentError,
                f"{self.name}: expected a model of inputs and outputs; a subclass's call is code, "
                "save its weights",
            )
        return config_of(self)

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """A model from `get_config`."""
        inputs, outputs = network_from(config)
        made: Any = cls
        return made(nest.one_or_list(inputs), nest.one_or_list(outputs), name=config["name"])

    def to_json(self, **options: Any) -> str:
        """The configuration as text; options as in `json.dumps`."""
        told = {**serialize(self), "backend": "tensorflow"}
        return json.dumps(told, default=plain, **options)

    # -- weights

    def save_weights(
        self, filepath: Any, overwrite: bool = True, save_format: str | None = None
    ) -> None:
        """Write the weights: a TensorFlow checkpoint, or HDF5 if the name ends in `.h5`.

        A name that ends in `.weights.h5` gives Keras 3's layout, others Keras 2's.

        Args:
            overwrite: if `False`, an existing file is an error.
            save_format: `"tf"` or `"h5"`.

        Raises:
            ArgumentError: a file exists, or the format is unknown.
        """
        path = os.fspath(filepath)
        kind = _format(path, save_format)
        if not overwrite and os.path.exists(path if kind == "h5" else f"{path}.index"):
            raise fail(ArgumentError, f"save_weights: expected no file at {path!r}, there is one")
        with self.graph.as_default():
            if path.endswith(".weights.h5"):
                keras3_file.save_weights(self, path)
            else:
                (weight_file if kind == "h5" else checkpoint).save(self, path)

    def load_weights(self, filepath: Any, by_name: bool = False) -> None:
        """Read weights that `save_weights` wrote, or TensorFlow's for the same layers.

        Raises:
            DataError: there is no such file.
            StateError: the weights belong to another model; the message lists missing and
                unexpected ones and other shapes.
        """
        path = os.fspath(filepath)
        with self.graph.as_default():
            if _format(path, None) == "h5":
                with weight_file.opened(path, "r") as file:
                    if keras3_file.is_keras3(file) and not by_name:
                        keras3_file.read_weights(self, file)
                    else:
                        weight_file.load(self, file, by_name)
            elif by_name:
                raise fail(ArgumentError, "load_weights: by_name needs an HDF5 file (.h5)")
            else:
                checkpoint.load(self, path)

    def save(
        self, filepath: Any, overwrite: bool = True, include_optimizer: bool = True,
        save_format: str | None = None,
    ) -> None:  # fmt: skip
        """Write configuration, weights, and compile arguments.

        To Keras 2's HDF5 file if the name ends in `.h5`, to Keras 3's file if it ends in `.keras`,
        else to a folder.

        Raises:
            ArgumentError: the file exists, the format is unknown, `h5py` is missing, or a subclass.
        """
        path = os.fspath(filepath)
        if _format(path, save_format) != "h5":
            if not overwrite and os.path.exists(path):
                raise fail(ArgumentError, f"save: expected no folder at {path!r}, there is one")
            model_folder.save(self, path)
            return
        with self.graph.as_default():
            if path.endswith(".keras"):
                if not overwrite and os.path.exists(path):
                    raise fail(ArgumentError, f"save: expected no file at {path!r}, there is one")
                keras3_file.save(self, path, include_optimizer)
            else:
                model_file.save(self, path, overwrite, include_optimizer)

    # -- summary

    def summary(
        self, line_length: int | None = None, positions: Any = None,
        print_fn: Callable[[str], Any] | None = None,
    ) -> None:  # fmt: skip
        """Print the layers with their output shapes and numbers of parameters."""
        del positions
        for line in lines_of(self, line_length or 65):
            (print_fn or print)(line)


def _format(path: str, told: str | None) -> str:
    if told in (None, "tf", "tensorflow", "h5", "hdf5", "keras"):
        by_name = "h5" if path.endswith((".h5", ".hdf5", ".keras")) else "tf"
        return by_name if told is None else "h5" if told in ("h5", "hdf5", "keras") else "tf"
    raise fail(ArgumentError, f"save_weights: expected save_format 'tf' or 'h5', got {told!r}")


def lines_of(model: Any, width: int) -> list[str]:
    """Layers, output shapes, parameter counts; for graphs with branches, also inputs."""
    branches = model.is_graph_network and any(
        len(n.input_tensors) > 1 or len(x.inbound_nodes) > 1
        for x in model.layers
        for n in x.inbound_nodes
    )
    head = ["Layer (type)", "Output Shape", "Param #", *(["Connected to"] if branches else [])]
    stops = [0.33, 0.55, 0.67, 1.0] if branches else [0.45, 0.85, 1.0]
    width = max(width, 98) if branches else width
    ends = [int(width * s) for s in stops]
    lines = [f'Model: "{model.name}"', "_" * width, _row(head, ends), "=" * width]
    for layer in model.layers:
        cells = [f"{layer.name} ({type(layer).__name__})", _shape(layer), _count(layer)]
        sources = _sources(layer) if branches else []
        lines.append(_row([*cells, *sources[:1]], ends))
        lines += [_row(["", "", "", s], ends) for s in sources[1:]]
        lines.append("_" * width)
    lines[-1] = "=" * width
    whole = sum(_size(v) for v in model.weights) if model.built else 0
    open_ = sum(_size(v) for v in model.trainable_weights) if model.built else 0
    lines += [
        f"Total params: {whole:,}", f"Trainable params: {open_:,}",
        f"Non-trainable params: {whole - open_:,}", "_" * width,
    ]  # fmt: skip
    return lines


def _row(cells: Sequence[str], ends: Sequence[int]) -> str:
    line = ""
    for cell, end in zip(cells, ends, strict=False):
        line = f"{line}{cell}"[: end - 1].ljust(end)
    return line.rstrip()


def _size(variable: Any) -> int:
    return int(variable.shape.num_elements() or 0)


def _shape(layer: Any) -> str:
    if not layer.inbound_nodes:
        return "multiple"
    shapes = [str(nest.mapped(nest.shape_of, n.outputs)) for n in layer.inbound_nodes]
    return shapes[0] if len(set(shapes)) == 1 else "multiple"


def _count(layer: Any) -> str:
    return f"{layer.count_params():,}" if layer.built else "0 (unbuilt)"


def _sources(layer: Any) -> list[str]:
    """The outputs that a layer was called on."""
    return [f"{h[0].name}[{h[1]}][{h[2]}]" for node in layer.inbound_nodes for h in node.histories]
