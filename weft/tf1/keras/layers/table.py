"""All layers by class name, to load configurations."""

from __future__ import annotations

import importlib
import inspect
from types import ModuleType
from typing import Any

from weft.documentation import with_arguments
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
from weft.tf1.keras.layers.weighted import described_weights
from weft.tf1.keras.storage.network_config import LAYERS
from weft.tf1.keras.storage.serialization import constructor_arguments, deserialized, serialize

__all__ = ["deserialize", "serialize"]


def _layers_in(module: ModuleType) -> dict[str, Any]:
    return {
        cls.__name__: cls
        for name, cls in vars(module).items()
        if isinstance(cls, type) and issubclass(cls, Layer) and not name.startswith("_")
    }


for _module in (
    advanced_activations, border, cells, convolution, convolution_transpose, core, dense, embedding,
    input_layer, merge, noise, normalization, op_layer, pooling, recurrent, reshaping,
    wrappers,
):  # fmt: skip
    LAYERS.update(_layers_in(_module))


class _Common:
    """What arguments mean that many layers have.

    Args:
        activation: a function of the outputs, or its name.
        args: the arguments that follow, by position.
        data_format: `"channels_last"` or `"channels_first"`.
        noise_shape: a shape that broadcasts to the inputs'; elements along axes of size 1 share a
            decision.
        options: arguments that all layers have, by name: see `Layer`.
        seed: of the random numbers.
        use_bias: whether there is a bias.
    """


def _document(cls: Any) -> None:
    """Describe a layer's arguments: its own, then those of base classes or of a cell."""
    base = getattr(cls, "cell_class", cls)
    weights = list(getattr(base, "weight_options", ()))
    own = [n for n in inspect.signature(cls).parameters if n != "options"]
    passed = [*constructor_arguments(cls, Layer), *constructor_arguments(base, Layer)]
    unused: Any = getattr(cls, "_unconfigured", ())
    names = [n for n in dict.fromkeys([*own, *passed]) if n in own or n not in unused]
    bases = [c for c in (*cls.__mro__[1:], *base.__mro__) if c is not Layer]
    sources = (described_weights(weights), *bases, _Common, Layer)
    cls.__doc__ = with_arguments(cls.__doc__, [*names, *weights, "options"], *sources)


for _layer in dict.fromkeys(LAYERS.values()):
    if _layer is not Layer:
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
    return deserialized("layer", LAYERS, config, custom_objects)
