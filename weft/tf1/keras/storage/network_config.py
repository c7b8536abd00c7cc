"""A network's layers and calls as data, and loading."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import weft.tf1 as tf
from weft.errors import DataError, StateError
from weft.tf1.framework.graph import fail
from weft.tf1.keras.engine import nest
from weft.tf1.keras.engine.graph_state import history_of
from weft.tf1.keras.engine.input_layer import InputLayer
from weft.tf1.keras.storage.serialization import deserialized, serialize

LAYERS: dict[str, Any] = {}
"""Layers and models by class name; filled in by the packages that define them."""

_TENSOR = "keras_tensor"
Place = list[Any]  # a layer's name, the call's index, the output's index


def layer_from(config: Mapping[str, Any]) -> Any:
    """A layer from class name and configuration."""
    return deserialized("layer", LAYERS, config)


def config_of(network: Any) -> dict[str, Any]:
    """A network as data, in Keras's form."""
    numbers: dict[int, int] = {}
    calls: dict[str, list[Any]] = {layer.name: [] for layer in network.layers}
    for node in network.graph_nodes:
        numbers[id(node)] = len(calls[node.layer.name])
        calls[node.layer.name].append(_call(node, numbers))
    layers = [
        {
            **serialize(layer), "name": layer.name,
            "inbound_nodes": [c for c in calls[layer.name] if c],
        }
        for layer in network.layers
    ]  # fmt: skip
    return {
        "name": network.name,
        "layers": layers,
        "input_layers": [_place(x, numbers) for x in network.inputs],
        "output_layers": [_place(y, numbers) for y in network.outputs],
    }


def _call(node: Any, numbers: Mapping[int, int]) -> list[Any]:
    """The inputs of a call, the first one with the other arguments."""
    told = {k: v for k, v in node.kwargs.items() if v is not None and k != "mask"}
    kwargs = nest.mapped(lambda x: _told(x, numbers), told)
    places = [_place(x, numbers) for x in nest.tensors_in(node.inputs)]
    return [[*place, kwargs if i == 0 else {}] for i, place in enumerate(places)]


def _told(x: Any, numbers: Mapping[int, int]) -> Any:
    return {_TENSOR: _place(x, numbers)} if tf.is_tensor(x) else x


def _place(x: Any, numbers: Mapping[int, int]) -> Place:
    history = history_of(x)
    if history is None:
        raise fail(
            StateError,
            f"get_config: expected tensors that follow from the model's inputs, got {x!r}; read "
            "variables inside of a layer",
        )
    layer, number, index = history
    return [layer.name, numbers[id(layer.inbound_nodes[number])], index]


def network_from(config: Mapping[str, Any]) -> tuple[list[Any], list[Any]]:
    """Inputs and outputs of the network that a configuration describes.

    Raises:
        DataError: calls of layers depend on each other in a cycle.
    """
    layers = {one["name"]: layer_from(one) for one in config["layers"]}
    made: dict[tuple[str, int], list[Any]] = {}
    waiting: list[tuple[str, int, list[Any]]] = []
    for one in config["layers"]:
        layer = layers[one["name"]]
        if isinstance(layer, InputLayer):
            made[layer.name, 0] = [layer.output]
        waiting += [(one["name"], i, call) for i, call in enumerate(one.get("inbound_nodes", []))]
    while waiting:
        left = [w for w in waiting if not _made(layers, made, *w)]
        if len(left) == len(waiting):
            names = sorted({w[0] for w in left})
            raise fail(DataError, f"from_config: expected layers without a cycle, got one {names}")
        waiting = left
    return [[made[p[0], p[1]][p[2]] for p in config[k]] for k in ("input_layers", "output_layers")]  # pyright: ignore[reportReturnType]


def _made(
    layers: Mapping[str, Any], made: dict[tuple[str, int], list[Any]], name: str, number: int,
    call: list[Any],
) -> bool:  # fmt: skip
    """Make a call if its inputs exist; returns whether it did."""
    kwargs = dict(call[0][3])
    places = [*[c[:3] for c in call], *_places_in(kwargs)]
    if (number and (name, number - 1) not in made) or any((p[0], p[1]) not in made for p in places):
        return False
    inputs = [made[c[0], c[1]][c[2]] for c in call]
    outputs = layers[name](nest.one_or_list(inputs), **_filled(kwargs, made))
    made[name, number] = nest.flatten(outputs)
    return True


def _places_in(kwargs: Any) -> list[Place]:
    if isinstance(kwargs, Mapping):
        if _TENSOR in kwargs:
            return [kwargs[_TENSOR]]
        return [p for v in kwargs.values() for p in _places_in(v)]
    return [p for v in kwargs for p in _places_in(v)] if isinstance(kwargs, list) else []


def _filled(kwargs: Any, made: Mapping[tuple[str, int], list[Any]]) -> Any:
    """Arguments with descriptions of tensors replaced by tensors."""
    if isinstance(kwargs, Mapping):
        if _TENSOR in kwargs:
            name, number, index = kwargs[_TENSOR]
            return made[name, number][index]
        return {k: _filled(v, made) for k, v in kwargs.items()}
    return [_filled(v, made) for v in kwargs] if isinstance(kwargs, list) else kwargs
