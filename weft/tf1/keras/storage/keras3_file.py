"""Models in Keras 3's files: `.keras`, and weights in `.weights.h5`; both need `h5py`.

    model.keras    a zip file: metadata.json, config.json, model.weights.h5
    .weights.h5    layers/<class>/vars/<number>, optimizer/vars/<number>

A layer's group is named by its class, `dense`, `dense_1`, in the order of layers.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from weft.errors import DataError, StateError
from weft.formats.atomic_file import write_file
from weft.tf1.framework.graph import fail
from weft.tf1.keras import losses, metrics
from weft.tf1.keras.engine import nest, sessions
from weft.tf1.keras.engine.input_layer import InputLayer
from weft.tf1.keras.engine.network import Network
from weft.tf1.keras.optimizers import Optimizer, get, rules
from weft.tf1.keras.storage import weight_file
from weft.tf1.keras.storage.keras3_config import from_keras3, tensor_record, to_keras3
from weft.tf1.keras.storage.network_config import LAYERS
from weft.tf1.keras.storage.serialization import (
    custom_object_scope,
    deserialized,
    plain,
    serialize,
)

_TOLD: Final = ("loss", "metrics", "loss_weights", "weighted_metrics")
_PARTS: Final = ("metadata.json", "config.json", "model.weights.h5")
_ONE_BY_ONE: Final = ("RMSprop",)
"""Optimizers whose first slots of all variables come before their second ones."""


def snake_case(name: str) -> str:
    """The name of a class as Keras writes it in names.

    >>> snake_case("BatchNormalization"), snake_case("Conv2D"), snake_case("LSTM")
    ('batch_normalization', 'conv2d', 'lstm')
    """
    name = re.sub(r"\W+", "", name)
    name = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub("([a-z])([A-Z])", r"\1_\2", name).lower()


def _groups(layer: Any, path: str = "") -> Iterator[tuple[str, str, list[Any]]]:
    """The groups of weights of a layer or a model: path, name, variables."""
    if not isinstance(layer, Network):
        found: dict[str, list[Any]] = {"": []}
        for name, variable in layer.checkpoint_weights().items():
            found.setdefault(name.rpartition("/")[0], []).append(variable)
        for inner, variables in found.items():
            yield f"{path}{inner}/" if inner else path, layer.name, variables
        return
    counts: Counter[str] = Counter()
    yield path, layer.name, []
    for inner in layer.layers:
        base = snake_case("Functional" if type(inner).__name__ == "Model" else type(inner).__name__)
        number = counts[base]
        counts[base] += 1
        name = f"{base}_{number}" if number else base
        yield from _groups(inner, f"{path}layers/{name}/")


def is_keras3(file: Any) -> bool:
    """Whether an open HDF5 file has Keras 3's layout."""
    return "layer_names" not in file.attrs and "layers" in file


# -- weights


def save_weights(model: Any, path: Any) -> None:
    """Write all weights, and the state of the optimizer.

    Args:
        model: the model.
        path: of the file, or an open one.
    """
    with weight_file.opened(path, "w") as file:
        for place, name, variables in _groups(model):
            values = sessions.values_of(variables)
            _write(file, f"{place}vars", name, values)
        if isinstance(model.optimizer, Optimizer) and _state(model.optimizer):
            found = _state(model.optimizer)
            _write(file, "optimizer/vars", model.optimizer._name, sessions.values_of(found))  # pyright: ignore[reportPrivateUsage]


def _write(file: Any, place: str, name: str, values: Sequence[Any]) -> None:
    group = file.create_group(place)
    group.attrs["name"] = name
    for number, value in enumerate(values):
        group.create_dataset(str(number), data=value)


def _state(optimizer: Any) -> list[Any]:
    """The variables of an optimizer in Keras 3's order; none before the first step."""
    held = sessions.get_session().state
    return _ordered(optimizer) if all([v.key in held for v in optimizer.weights]) else []


def _ordered(optimizer: Any) -> list[Any]:
    weights = optimizer.weights
    slots = [list(optimizer._slots.get(name, {}).values()) for name in optimizer.slots]
    rate = [] if callable(optimizer.learning_rate) else [optimizer.held("learning_rate")]
    head = [weights[0], *rate]
    if type(optimizer).__name__ in _ONE_BY_ONE:
        order = {"rms": 0, "momentum": 1, "mg": 2}
        named = sorted(zip(optimizer.slots, slots, strict=True), key=lambda pair: order[pair[0]])
        return [*head, *[v for _, each in named for v in each]]
    first = [v for each in zip(*slots[:2], strict=True) for v in each]
    rest = [v for each in slots[2:] for v in each]
    product = weights[1:2] if isinstance(optimizer, rules.Nadam) else []
    return [*head, *first, *rest, *product]


def read_weights(model: Any, file: Any) -> None:
    """Read all weights of an open file; on an error none is changed.

    Raises:
        StateError: the weights belong to another model.
    """
    pairs: list[tuple[Any, Any]] = []
    faults: list[str] = []
    for place, name, variables in _groups(model):
        values = _values(file, f"{place}vars")
        shapes = [tuple(v.shape.as_list()) for v in variables]
        if [x.shape for x in values] != shapes:
            faults.append(f"{name} ({place}): expected {shapes}, got {[x.shape for x in values]}")
        pairs += zip(variables, values, strict=False)
    if faults:
        told = "\n  ".join(faults)
        text = f"load_weights: expected the weights of {model.name}, but\n  {told}\n"
        raise fail(StateError, text)
    sessions.assign_values(pairs)


def _values(file: Any, place: str) -> list[Any]:
    group: Any = file.get(place, {})
    return [np.array(group[str(i)]) for i in range(len(group))]


# -- whole models


def save(model: Any, path: str, include_optimizer: bool) -> None:
    """Write a model.

    Raises:
        ArgumentError: it is a subclass, or has what means something else in Keras 3.
    """
    config = to_keras3(serialize(model), tensors=lambda place: _record(model, place))
    optimizer = model.optimizer
    if include_optimizer and isinstance(optimizer, Optimizer):
        told = {n: nest.mapped(serialize, model.told[n]) for n in _TOLD}
        modules = {"loss": "keras.losses", "metrics": "keras.metrics"}
        compiled = {n: to_keras3(v, modules.get(n, "keras.metrics")) for n, v in told.items()}
        compiled["optimizer"] = to_keras3(serialize(optimizer), "keras.optimizers")
        config["compile_config"] = compiled
    raw = io.BytesIO()
    save_weights(model, raw)
    texts = [json.dumps({"keras_version": "3.0.0"}), json.dumps(config, default=plain)]
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        for name, content in zip(_PARTS, [*texts, raw.getvalue()], strict=True):
            archive.writestr(name, content)
    write_file(Path(path), [whole.getvalue()])


def _record(model: Any, place: list[Any]) -> Any:
    """The record of the tensor at a place in a configuration."""
    calls = [n for n in model.graph_nodes if n.layer.name == place[0]]
    for layer in model.layers:
        if isinstance(layer, InputLayer) and layer.name == place[0]:
            calls = layer.inbound_nodes
    tensor = nest.flatten(calls[place[1]].outputs)[place[2]]
    return tensor_record(place, list(nest.shape_of(tensor)), tensor.dtype.base_dtype.name)


def load(path: str, custom_objects: Mapping[str, Any] | None, is_compiled: bool) -> Any:
    """Read a model; no code is run.

    Raises:
        DataError: parts are missing, or have what Weft has not.
        UnknownKeyError: a class or function is unknown.
    """
    with zipfile.ZipFile(path) as archive:
        missing = sorted(set(_PARTS) - set(archive.namelist()))
        if missing:
            text = f"expected {', '.join(_PARTS)} in {path!r}, {missing[0]} is missing"
            raise fail(DataError, f"load_model: {text}")
        told = json.loads(archive.read("config.json"))
        raw = io.BytesIO(archive.read("model.weights.h5"))
    with custom_object_scope(custom_objects or {}), weight_file.opened(raw, "r") as file:
        model: Any = deserialized("model", LAYERS, from_keras3(told))
        with model.graph.as_default():
            read_weights(model, file)
            compiled = told.get("compile_config")
            if is_compiled and compiled:
                compile_as(model, from_keras3(compiled), _values(file, "optimizer/vars"))
    return model


def _made(get_one: Callable[[Any], Any], told: Any) -> Any:
    """The objects of configurations in lists and dicts; names as they are."""
    if isinstance(told, list):
        return [_made(get_one, x) for x in told]
    if not isinstance(told, Mapping):
        return told
    if "class_name" not in told:
        return {k: _made(get_one, v) for k, v in told.items()}
    config = {k: v for k, v in told["config"].items() if k != "dtype"}
    return get_one({"class_name": told["class_name"], "config": config})


def compile_as(model: Any, told: dict[str, Any], values: Sequence[Any]) -> None:
    """Compiles a model.

    Args:
        model: the model.
        told: how, with configurations as Weft has them.
        values: of the optimizer's variables, in Keras 3's order.

    Raises:
        DataError: the optimizer has others.
    """
    told = dict(told)
    if told["optimizer"]["class_name"] == "Nadam":  # whose momentum has another schedule
        told["optimizer"]["config"]["schedule_decay"] = 1.0
    optimizer: Any = get(told["optimizer"])
    for name, get_one in (("loss", losses.get), ("metrics", metrics.get)):
        told[name] = _made(get_one, told.get(name))
    model.compile(optimizer, **{n: told.get(n) for n in _TOLD})
    if values:
        optimizer.build(model.trainable_weights)
        own = _ordered(optimizer)
        if len(own) != len(values):
            text = f"expected {len(own)} arrays of the optimizer, got {len(values)}"
            raise fail(DataError, f"load_model: {text}")
        sessions.assign_values(list(zip(own, values, strict=True)))
