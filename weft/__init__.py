"""Weft: one dataflow graph, one compiler, a whole training step as one native program."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

import numpy as _numpy  # here and not deeper: 28 of 79 ms less, measured with CPython 3.11

from weft import config, errors
from weft.ir.dtype import (
    bfloat16,
    bool_,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from weft.version import __version__

if TYPE_CHECKING:
    from weft import datasets, ops, tf1
    from weft.eager.functions.api import *  # noqa: F403
    from weft.func.explanation import explain as explain
    from weft.serialization import load as load
    from weft.serialization import save as save

del _numpy
__all__ = [
    "__version__", "bfloat16", "bool_", "complex64", "complex128", "config", "datasets", "errors",
    "float16", "float32", "float64", "int8", "int16", "int32", "int64", "ops", "tf1", "uint8",
    "uint16", "uint32", "uint64",
]  # fmt: skip

# Loaded on first use, so that `import weft` stays instant.
_MODULES = (
    "accelerator", "amp", "autograd", "backends", "checkpoint", "cuda", "data", "datasets",
    "distributed", "fft", "func", "horovod", "linalg", "metrics", "models", "multiprocessing",
    "nn", "numpy", "ops", "optim", "scipy", "signal", "sparse", "special", "tf1", "train", "utils",
)  # fmt: skip
# Functions that PyTorch also offers without the name of their module
_FUNCTIONAL = (
    "adaptive_avg_pool1d", "alpha_dropout", "avg_pool1d", "bilinear",
    "binary_cross_entropy_with_logits", "channel_shuffle", "conv1d", "conv2d", "conv3d",
    "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_similarity", "dropout",
    "feature_alpha_dropout", "group_norm", "layer_norm", "max_pool1d", "max_pool2d", "max_pool3d",
    "pairwise_distance", "pdist", "pixel_shuffle", "pixel_unshuffle", "prelu", "rms_norm",
    "threshold", "triplet_margin_loss",
)  # fmt: skip
_ELSEWHERE = {
    "weft.nn.functional": _FUNCTIONAL,
    "weft.fft": ("istft", "stft"),
    "weft.serialization": ("load", "save"),
    "weft.sparse": ("sparse_csr_tensor",),
    "weft.func": (
        "associative_scan",
        "cond",
        "fori_loop",
        "map",
        "scan",
        "switch",
        "vmap",
        "while_loop",
    ),
    "weft.func.explanation": ("explain",),
    "weft.special": ("igamma", "igammac", "mvlgamma"),
}
_METHODS = {"weft.fft": ("istft", "stft"), "weft.special": ("igamma", "igammac", "mvlgamma")}


def _api() -> Any:
    """The define-by-run front end, told where to find the modules above it."""
    api: Any = sys.modules.get("weft.eager.functions.api")
    if api is None or not hasattr(api.Tensor, "stft"):
        interchange = importlib.import_module("weft.eager.tensor.interchange.interchange")
        interchange.set_namespace(lambda: importlib.import_module("weft.numpy"))
        api = importlib.import_module("weft.eager.functions.api")
        refusal = importlib.import_module("weft.ops.refusal")
        for module, names in _METHODS.items():
            for name in names:
                setattr(api.Tensor, name, refusal.refusing(_method(module, name)))
    return api


def _method(module: str, name: str) -> Any:
    """A tensor method that is a module's function; its first call loads the module."""

    def method(self: Any, *args: Any, **options: Any) -> Any:
        return getattr(importlib.import_module(module), name)(self, *args, **options)

    method.__name__, method.__qualname__ = name, f"Tensor.{name}"
    method.__doc__ = f"See `{module}.{name}`."
    return method


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"weft.{name}")
    for module, names in _ELSEWHERE.items():
        if name in names:
            return getattr(importlib.import_module(module), name)
    if not name.startswith("_"):
        api = _api()
        if name.endswith("_") and hasattr(api.Tensor, name):
            return getattr(api.Tensor, name)  # `wf.relu_(x)` is `x.relu_()`
        if name in api.__all__:
            outlet = importlib.import_module("weft.eager.functions.out_argument")
            rule = api.OUT.get(name, outlet.Out.SAME_KIND)
            value = outlet.with_outlet(getattr(api, name), name=name, rule=rule)
            globals()[name] = value
            return value
        source = importlib.import_module("weft.ops.declaration").exported("torch", name)
        if source is not None:  # declared later, by a user
            declared = importlib.import_module("weft.eager.functions.elementwise.declared")
            return declared.function_of(source)
    raise AttributeError(f"module 'weft' has no attribute {name!r}")


def __dir__() -> list[str]:
    elsewhere = [name for names in _ELSEWHERE.values() for name in names]
    elsewhere += importlib.import_module("weft.ops.declaration").exports("torch")
    return sorted({*__all__, *_MODULES, *elsewhere, *_api().__all__})
