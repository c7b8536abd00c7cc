"""Random calls of public functions with invalid arguments, by number."""

import inspect
import random
import re
from collections.abc import Callable, Iterator
from functools import partial
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

import weft as wf
import weft.numpy as wnp
import weft.tf1 as tf
from weft.eager.tensor.handle import Handle
from weft.errors import WeftError
from weft.ops.refusal import GuardedMaking

# They change what the next call sees, or read and write files.
LEFT_OUT = {
    "from_file", "load", "manual_seed", "reset_default_graph", "save", "seed", "set_default_dtype",
    "set_grad_enabled", "set_printoptions", "set_random_seed", "set_rng_state",
}  # fmt: skip


class Odd:
    """An object that is nothing to any operation."""


def _ones(*shape: int) -> Any:
    return wf.ones(shape)


HOSTILE: list[Callable[[], Any]] = [
    lambda: None, lambda: "abc", lambda: "", lambda: b"ab", lambda: [[1, 2], [3]], lambda: [1, "a"],
    lambda: {}, lambda: {"a": 1}, Odd, lambda: object, lambda: True, lambda: 1.5,
    lambda: float("nan"), lambda: -1, lambda: -7, lambda: 0, lambda: 7, lambda: 2**70, lambda: (),
    lambda: [], lambda: (0, 0), lambda: (-1, -1), lambda: (0, None), lambda: ("a",),
    lambda: [None], lambda: [Odd()], set, lambda: {1, 2}, lambda: 1j, lambda: wf.float32,
    lambda: int, lambda: slice(None), lambda: ..., lambda: range(3), lambda: np.array(["a"]),
    lambda: np.array([None]), lambda: np.zeros((2, 0, 3)), lambda: wf.zeros(()),
    lambda: wf.zeros(0), lambda: _ones(5), lambda: _ones(2, 3, 4, 5),
    lambda: wf.ones(2, 2, dtype=wf.complex64), lambda: wf.ones(2, 3, dtype=wf.bool_),
    lambda: iter([1, 2]), lambda: np.datetime64("2020-01-01"), lambda: [_ones(2), None],
    lambda: [_ones(2), _ones(2, 2)], lambda: NotImplemented, lambda: (2, -3), lambda: "cuda",
]  # fmt: skip
"""Makers of hostile arguments; what they give may be used up or changed."""

USUAL: list[Callable[[], Any]] = [
    lambda: _ones(2, 3), lambda: _ones(2, 3), lambda: 1, lambda: 0, lambda: (2, 3), lambda: 0.5,
]  # fmt: skip
"""Makers of arguments that many functions take."""


def _functions(module: ModuleType) -> Iterator[Any]:
    listed = dir(module) if module is wf else getattr(module, "__all__", dir(module))
    for name in sorted(n for n in listed if n[0] != "_" and n not in LEFT_OUT):
        function = getattr(module, name)
        if isinstance(function, FunctionType) and function.__module__.startswith("weft"):
            yield function


def _methods(cls: type) -> Iterator[Any]:
    for name in sorted(n for n in dir(cls) if n[0] != "_" and n not in vars(Handle)):
        method = inspect.getattr_static(cls, name)
        if isinstance(method, FunctionType) and len(inspect.signature(method).parameters) > 1:
            yield partial(method, _ones(2, 3))


def _classes(module: ModuleType, base: type) -> Iterator[Any]:
    for name in sorted(module.__all__):
        cls = getattr(module, name)
        if isinstance(cls, type) and issubclass(cls, base) and cls is not base:
            yield cls


def _declared(module: ModuleType) -> Iterator[Any]:
    """The functions that stand in a module itself."""
    return (f for f in _functions(module) if f.__module__ == module.__name__)


FRONT_ENDS: dict[str, Callable[[], Iterator[Any]]] = {
    "eager": lambda: _functions(wf),
    "tensor": lambda: _methods(wf.Tensor),
    "functional": lambda: _functions(wf.nn.functional),
    "layers": lambda: _classes(wf.nn, wf.nn.Module),
    "linalg": lambda: _functions(wf.linalg),
    "fft": lambda: _functions(wf.fft),
    "special": lambda: _functions(wf.special),
    "signal": lambda: _functions(wf.signal.windows),
    "numpy": lambda: _functions(wnp),
    "scipy": lambda: _functions(wf.scipy.special),
    "tf1": lambda: _functions(tf),
    "func": lambda: _functions(wf.func),
    "sparse": lambda: _functions(wf.sparse),
    "ops": lambda: _functions(wf.ops),
    "init": lambda: _declared(wf.nn.init),
    "utils": lambda: _functions(wf.nn.utils),
    "optimizers": lambda: _classes(wf.optim, wf.optim.Optimizer),
    "schedulers": lambda: _classes(wf.optim.lr_scheduler, GuardedMaking),
}


def arguments(function: Any, rnd: random.Random) -> tuple[list[Any], dict[str, Any]]:
    """Arguments of which one or two are hostile, or too many, or unknown."""
    kinds = [p.kind for p in inspect.signature(function).parameters.values()]
    count = sum(k in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
                for k in kinds)  # fmt: skip
    args = [rnd.choice(USUAL)() for _ in range(rnd.randint(0, min(count, 4)) or 1)]
    for _ in range(rnd.choice([1, 1, 2])):
        args[rnd.randrange(len(args))] = rnd.choice(HOSTILE)()
    return args, {"unknown": 1} if rnd.random() < 0.05 else {}


def fault(name: str, error: Exception) -> str | None:
    """The fault of an error; `None` if it names the operation and is a Weft error."""
    text = str(error)
    if isinstance(error, WeftError):
        return None if re.match(r"[\w.\[\]]+(\(\))?[^:]*: .", text) else "no operation is named"
    if re.match(rf"([\w.]+\.)?{name}\(\) (got|takes|missing)", text):
        return None  # Python's own words
    told = isinstance(error, TypeError | ValueError | NotImplementedError)
    return None if told and re.match(rf"{name}\S*: ", text) else "a plain exception"


def refusals(front: str, count: int, seed: int) -> Iterator[tuple[str, Exception]]:
    """The errors of random calls, with a name for each."""
    rnd = random.Random(f"{front} {seed}")
    functions = list(FRONT_ENDS[front]())
    while count:
        function = rnd.choice(functions)
        args, named = arguments(function, rnd)
        try:
            with tf.Graph().as_default():
                function(*args, **named)
        except Exception as error:
            count -= 1
            yield getattr(function, "func", function).__name__, error
