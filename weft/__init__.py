"""Weft: one dataflow graph, one compiler, a whole training step as one native program."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import numpy as _numpy  # here and not deeper: 28 of 79 ms less, measured with CPython 3.11

from weft import config as config
from weft import errors as errors
from weft import exports as _exports
from weft.ir.dtype import *
from weft.version import __version__ as __version__

del _numpy
_exports.gather(globals(), "__version__", "config", "datasets", "errors", "ops", "tf1")

# Loaded on first use, so that `import weft` stays instant: a row is `from module import names`.
_LAZY = {
    "weft": (
        "accelerator", "amp", "autograd", "backends", "checkpoint", "cluster", "cuda", "data",
        "datasets", "distributed", "distributions", "fft", "func", "horovod", "linalg", "metrics",
        "models", "multiprocessing", "nn", "numpy", "ops", "optim", "scipy", "signal", "sparse",
        "special", "table", "tf1", "torchmetrics", "train", "utils",
    ),
    "weft.fft": ("istft", "stft"),
    "weft.func": (
        "associative_scan", "cond", "fori_loop", "map", "scan", "switch", "vmap", "while_loop",
    ),
    "weft.func.explanation": ("explain",),
    "weft.nn.functional": (  # what PyTorch also offers without the name of the module
        "adaptive_avg_pool1d", "alpha_dropout", "avg_pool1d", "bilinear",
        "binary_cross_entropy_with_logits", "channel_shuffle", "conv1d", "conv2d", "conv3d",
        "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_similarity", "dropout",
        "feature_alpha_dropout", "group_norm", "layer_norm", "max_pool1d", "max_pool2d",
        "max_pool3d", "pairwise_distance", "pdist", "pixel_shuffle", "pixel_unshuffle", "prelu",
        "rms_norm", "threshold", "triplet_margin_loss",
    ),
    "weft.serialization": ("load", "save"),
    "weft.special": ("igamma", "igammac", "mvlgamma"),
}  # fmt: skip
_METHODS = {module: _LAZY[module] for module in ("weft.fft", "weft.special")} | {
    "weft.nn.functional": ("prelu",)
}


def _api() -> Any:
    """The define-by-run front end, told where to find the modules above it."""
    api: Any = sys.modules.get("weft.eager.functions.api")
    if api is None or not hasattr(api.Tensor, "stft"):
        hooks = importlib.import_module("weft.ir.hooks").HOOKS
        hooks.array_namespace = lambda: importlib.import_module("weft.numpy")
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


def _eager(name: str) -> Any:
    """A function of tensors, with `out=`; an in-place method; an operation that a program declares.

    Raises:
        AttributeError: there is none.
    """
    if not name.startswith("_"):
        api = _api()
        if name.endswith("_") and hasattr(api.Tensor, name):
            return getattr(api.Tensor, name)  # `wf.relu_(x)` is `x.relu_()`
        if name in api.__all__:
            outlet = importlib.import_module("weft.eager.functions.out_argument")
            rule = api.OUT.get(name, outlet.Out.SAME_KIND)
            return outlet.with_outlet(getattr(api, name), name=name, rule=rule)
        source = importlib.import_module("weft.ops.declaration").source_of("torch", name)
        if source is not None:  # declared later, by a user
            declared = importlib.import_module("weft.eager.functions.elementwise.declared")
            return declared.function_of(source)
    raise AttributeError(f"module 'weft' has no attribute {name!r}")


def _names() -> list[str]:
    """The names that `_eager` knows."""
    declared = importlib.import_module("weft.ops.declaration").sources("torch")
    return [*_api().__all__, *declared]


_exports.lazy(globals(), _LAZY, _eager, _names)
