"""Configurations of models in Keras 3's form: from Weft's, which is Keras 2's, and back.

An object is `{"module", "class_name", "config", "registered_name"}`, a call of a layer
`{"args", "kwargs"}` with tensors as `{"class_name": "__keras_tensor__", "config": ...}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from weft.errors import ArgumentError, DataError
from weft.tf1.framework.graph import fail
from weft.tf1.keras.engine import nest

Config = dict[str, Any]
_TENSOR: Final = "__keras_tensor__"
_FUNCTIONAL: Final = "Functional"
_MODULES: Final = {
    "initializer": "keras.initializers", "regularizer": "keras.regularizers",
    "constraint": "keras.constraints", "rate": "keras.optimizers.schedules",
}  # fmt: skip
"""Modules of objects, by the last word of the argument."""
_NOT_IN_3: Final = {
    "batch_input_shape", "input_length", "time_major", "implementation", "dtype", "decay",
}  # fmt: skip
_NEW_IN_3: Final = {
    "autocast": True, "ema_momentum": 0.99, "ema_overwrite_frequency": None,
    "global_clipnorm": None,
    "gradient_accumulation_steps": None, "groups": 1, "ignore_class": None, "input_axes": None,
    "keepdims": False, "loss_scale_factor": None, "output_axes": None, "quantization_config": None,
    "renorm": False, "renorm_clipping": None, "renorm_momentum": 0.99, "synchronized": False,
    "use_ema": False, "weight_decay": None, "zero_output_for_mask": False,
}  # fmt: skip
"""Arguments that Weft has not, with the only value that it can do beside `None` and `False`."""
_RENAMED: Final = {("LeakyReLU", "negative_slope"): "alpha"}
_SCALED: Final = ("Glorot", "He", "Lecun")
_OTHER: Final = {"hard_sigmoid": "0.2 * x + 0.5 here, and x / 6 + 0.5 in Keras 3"}
"""Names that mean something else in Keras 3."""


def _refuse_other(name: Any) -> None:
    if isinstance(name, str) and name in _OTHER:
        text = f"expected what is the same in Keras 3, got {name!r}, which is {_OTHER[name]}"
        raise fail(ArgumentError, f"{text}; a file that ends in .h5 keeps Keras 2's meaning")


# -- reading


def from_keras3(told: Any) -> Any:
    """A configuration as Weft has it.

    Args:
        told: of Keras 3.

    Raises:
        DataError: it has an argument that Weft has not.
        ArgumentError: it names what means something else in Keras 3.
    """
    if isinstance(told, list):
        return [from_keras3(x) for x in told]
    if not isinstance(told, Mapping):
        _refuse_other(told)
        return told
    if "class_name" not in told:
        return {k: from_keras3(v) for k, v in told.items()}
    name, config = str(told["class_name"]), dict(told.get("config") or {})
    if name == "DTypePolicy":
        return config["name"]
    if name == _TENSOR:
        return {"keras_tensor": list(config["keras_history"])}
    if name in ("function", "builtin"):
        return told["config"]
    if name in ("L1", "L2"):
        name = "L1L2"
    if name in ("Sequential", _FUNCTIONAL):
        return _network(name, config)
    return _thing(name, config)


def _thing(name: str, config: Config) -> Config:
    """A layer, or another object with a class."""
    if name == "InputLayer":
        shape = config.get("batch_shape", config.get("batch_input_shape"))
        dtype = from_keras3(config.get("dtype"))
        kept = {"batch_input_shape": shape, "dtype": dtype, "name": config["name"]}
        return {"class_name": name, "config": kept}
    config = {str(_RENAMED.get((name, k), k)): from_keras3(v) for k, v in config.items()}
    if name == "Bidirectional":  # which names its layers itself
        inner = config["layer"]["config"]
        inner["name"] = inner["name"].removeprefix("forward_")
    return {"class_name": name, "config": {k: v for k, v in config.items() if _has(name, k, v)}}


def _has(name: str, argument: str, value: Any) -> bool:
    if value is None and argument in ("seed", "clipnorm", "clipvalue"):
        return False
    if argument not in _NEW_IN_3:
        return True
    if value is not None and value is not False and value != _NEW_IN_3[argument]:
        text = f"expected arguments of Weft's {name}, got {argument}={value!r}"
        raise fail(DataError, f"load_model: {text}")
    return False


def _network(name: str, config: Config) -> Config:
    shape = config.get("build_input_shape")
    if name == "Sequential":
        layers = [from_keras3(one) for one in config["layers"]]
        kept = {"name": config["name"], "layers": layers, "build_input_shape": shape}
        return {"class_name": name, "config": kept}
    layers: list[Config] = []
    for one in config["layers"]:
        if str(one.get("module", "")).startswith("keras.src.ops"):
            if one["class_name"] == "NotEqual":  # a mask, which Weft makes itself
                continue
            text = f"expected layers, got the operation {one['name']!r} between layers"
            raise fail(DataError, f"load_model: {text}")
        calls = [_call(call) for call in one["inbound_nodes"]]
        layers.append({**from_keras3(one), "name": one["name"], "inbound_nodes": calls})
    ends = {key: _places(config[key]) for key in ("input_layers", "output_layers")}
    return {"class_name": "Model", "config": {"name": config["name"], "layers": layers, **ends}}


def _call(call: Config) -> list[Any]:
    given = from_keras3(call["args"])
    kwargs = {k: v for k, v in from_keras3(call["kwargs"]).items() if k != "mask"}
    kwargs = {k: v for k, v in kwargs.items() if v is not None}
    flat: list[Any] = []
    for x in given:
        flat += x if isinstance(x, list) else [x]
    if not all([isinstance(x, dict) for x in flat]):
        raise fail(DataError, f"load_model: expected calls of tensors alone, got {call['args']!r}")
    return [[*x["keras_tensor"], kwargs if i == 0 else {}] for i, x in enumerate(flat)]


def _places(told: Any) -> list[Any]:
    if isinstance(told, Mapping):
        told = list(told.values())
    return [told] if told and isinstance(told[0], str) else told


# -- writing


def to_keras3(told: Any, module: str = "keras.layers", tensors: Any = None) -> Any:
    """A configuration of Weft's in Keras 3's form.

    Args:
        told: class name and configuration, or a plain value.
        module: of the class.
        tensors: makes a tensor's record of its place.

    Raises:
        ArgumentError: it has what Keras 3 has not.
    """
    if isinstance(told, list):
        return [to_keras3(x, module, tensors) for x in told]
    if not isinstance(told, Mapping):
        _refuse_other(told)
        return told
    if "class_name" not in told:
        return {k: to_keras3(v, module, tensors) for k, v in told.items()}
    name, config = str(told["class_name"]), dict(told["config"])
    if name == "InputLayer":
        config = {"batch_shape": config["batch_input_shape"], "dtype": config["dtype"],
                  "name": config["name"]}  # fmt: skip
    elif name == "Sequential":
        shape = config["build_input_shape"]
        first = {"batch_shape": shape, "dtype": "float32", "name": f"{config['name']}_input"}
        layers = to_keras3(config["layers"])
        if shape and config["layers"][0]["class_name"] != "InputLayer":
            layers.insert(0, _object("keras.layers", "InputLayer", first))
        config, module = {"name": config["name"], "layers": layers}, "keras"
    elif name == "Model":
        layers = [_layer(one, tensors) for one in config["layers"]]
        config = {**config, "layers": layers}
        module, name = "keras.src.models.functional", _FUNCTIONAL
    else:
        config = {
            k: to_keras3(v, _MODULES.get(k.rpartition("_")[2], module), tensors)
            for k, v in config.items()
            if k not in _NOT_IN_3
        }
        config = _narrowed(name, module, config, dict(told["config"]))
    return _object(module, name, config)


def _narrowed(name: str, module: str, config: Config, given: Config) -> Config:
    """What Keras 3's class takes."""
    if given.get("decay") or given.get("schedule_decay", 1.0) != 1.0:
        raise fail(ArgumentError, f"save: expected {name} as Keras 3 has it, without decay; a name "
                                  "that ends in .h5 keeps it")  # fmt: skip
    config.pop("schedule_decay", None)
    if name.startswith(_SCALED) and module == "keras.initializers":
        return {"seed": config.get("seed")}
    if config.get("reduction") == "auto":
        config["reduction"] = "sum_over_batch_size"
    renamed = {new: old for (cls, old), new in _RENAMED.items() if cls == name}
    return {renamed.get(k, k): v for k, v in config.items()}


def _object(module: str, name: str, config: Config) -> Config:
    return {"module": module, "class_name": name, "config": config, "registered_name": None}


def _layer(one: Config, tensors: Any) -> Config:
    calls: list[Config] = []
    for call in one["inbound_nodes"]:
        args = [tensors(x[:3]) for x in call]
        kwargs = nest.mapped(lambda x: x, call[0][3])
        calls.append({"args": args if len(args) == 1 else [args], "kwargs": kwargs})
    made = to_keras3({"class_name": one["class_name"], "config": one["config"]}, tensors=tensors)
    return {**made, "name": one["name"], "inbound_nodes": calls}


def tensor_record(place: list[Any], shape: Any, dtype: str) -> Config:
    """A tensor between layers.

    Args:
        place: a layer's name, the call's index, the output's index.
        shape: of the tensor.
        dtype: its element type.
    """
    config = {"shape": shape, "dtype": dtype, "keras_history": place}
    return {"class_name": _TENSOR, "config": config}
