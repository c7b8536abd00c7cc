"""All layers by class name, to load configurations."""

from __future__ import annotations

import importlib
import inspect
from types import ModuleType
from typing import Any

from weft.tf1.framework.documentation import (
    COMMON,
    WEIGHTS,
    arguments_known,
    complete,
)
from weft.tf1.keras.engine import input_layer, op_layer
from weft.tf1.keras.engine.layer import Layer
from weft.tf1.keras.layers import (
    advanced_activations,
    border,
    cells,
    convolution,
    convolution_transpose,
    core,
    dense,
    embedding,
    merge,
    noise,
    normalization,
    pooling,
    recurrent,
    reshaping,
    wrappers,
)  # fmt: skip
from weft.tf1.keras.storage.network_config import LAYERS
from weft.tf1.keras.storage.serialization import arguments_of, found, serialize

__all__ = ["deserialize", "serialize"]


def _layers_in(module: ModuleType) -> dict[str, Any]:
    return {
        kind.__name__: kind
        for name, kind in vars(module).items()
        if isinstance(kind, type) and issubclass(kind, Layer) and not name.startswith("_")
    }


for _module in (
    advanced_activations, border, cells, convolution, convolution_transpose, core, dense, embedding,
    input_layer, merge, noise, normalization, op_layer, pooling, recurrent, reshaping,
    wrappers,
):  # fmt: skip
    LAYERS.update(_layers_in(_module))


def _document(kind: type[Any]) -> None:
    """Name a layer's arguments: its own, then those that it passes to base classes or a cell."""
    own = list(inspect.signature(kind).parameters)
    base = getattr(kind, "cell_class", kind)
    weights: Any = getattr(base, "weight_options", ())
    passed = [*arguments_of(kind, Layer), *arguments_of(base, Layer)]
    passed += [n for part in WEIGHTS for n in weights if n.endswith(part)]
    unused = {"options", *getattr(kind, "_unconfigured", ())}.difference(own[:-1])
    names = [n for n in dict.fromkeys([*own, *passed]) if n not in unused]
    known = arguments_known(base) | {"options": COMMON["options"]}
    complete(kind, [*names, "options"], known)


for _layer in {*LAYERS.values()} - {Layer}:
    _document(_layer)


def deserialize(config: Any, custom_objects: Any = None) -> Any:
    """A layer from class name and configuration.

    Args:
        config: both, as `serialize` gives them.
        custom_objects: further classes and functions by name.

    Raises:
        UnknownKeyError: the class is unknown.
    """
    importlib.import_module("weft.tf1.keras.engine.model")  # models are layers, too
    return found("layer", LAYERS, config, custom_objects)
