"""The public names of every front end."""

from __future__ import annotations

import bisect
import functools
import importlib
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import weft
from weft.eager.tensor.handle import Handle
from weft.ops.declaration import Op

EAGER = (
    "weft", "weft.nn.functional", "weft.nn.init", "weft.nn.utils", "weft.linalg", "weft.fft",
    "weft.special", "weft.signal.windows", "weft.autograd", "weft.autograd.functional",
    "weft.scipy.special", "weft.scipy.linalg", "weft.scipy.signal", "weft.func",
    *[f"weft.scipy.stats.{name}" for name in (
        "beta", "chi2", "dirichlet", "gamma", "multivariate_normal", "norm", "poisson", "t"
    )],
)  # fmt: skip
ARRAY = ("weft.numpy", "weft.numpy.linalg", "weft.numpy.fft", "weft.numpy.random")
DEFERRED = (
    "weft.tf1", "weft.tf1.nn", "weft.tf1.layers", "weft.tf1.losses", "weft.tf1.math",
    "weft.tf1.linalg", "weft.tf1.random", "weft.tf1.train",
)  # fmt: skip
TRANSFORMS = (
    "grad", "value_and_grad", "elementwise_grad", "vmap", "jit", "jacobian", "jacfwd", "hessian",
    "checkpoint",
)  # fmt: skip
# Everything a package offers is its own; elsewhere a module's names include those of its helpers.
WHOLE = ("weft", "weft.numpy", "weft.ops")
LEFT_OUT = {
    "save": "files are attacked on their own", "load": "files are attacked on their own",
    "from_file": "files are attacked on their own", "find_nan": "runs a function many times",
    "gradcheck": "runs a function many times", "gradgradcheck": "runs a function many times",
    "set_num_threads": "of all calls that follow", "set_printoptions": "of all calls that follow",
    "reset_default_graph": "of the graph that holds the call", "py_func": "the user's own code",
    "numpy_function": "the user's own code", "primitive": "declares a function of the user's",
    "defvjp": "declares a function of the user's", "host_call": "the user's own code",
    "call": "takes graphs, of which none is drawn",
}  # fmt: skip
OPERATORS = (
    "add", "and", "bool", "complex", "contains", "copy", "deepcopy", "divmod", "eq", "float",
    "floordiv", "format", "ge", "getitem", "gt", "iadd", "iand", "ifloordiv", "imod", "imul",
    "index", "int", "invert", "ipow", "isub", "iter", "itruediv", "le", "len", "lshift", "lt",
    "matmul", "mod", "mul", "ne", "neg", "or", "pow", "radd", "rdivmod", "rmatmul", "rpow", "rsub",
    "rtruediv", "setitem", "sub", "truediv", "xor",
)  # fmt: skip


@dataclass(frozen=True)
class Target:
    """A callable.

    Attributes:
        text: how a user names it.
        front: eager, array, graph (TensorFlow 1) or node (`weft.ops`).
        kind: function, op (of the registry), method, layer, optimizer or transform.
        described: what has the parameters; a method's first is the receiver.
    """

    text: str
    front: str
    kind: str
    called: Callable[..., Any]
    described: Callable[..., Any]

    @property
    def name(self) -> str:
        """The last part of the text, without underscores."""
        return self.text.rpartition(".")[2].strip("_")

    @property
    def names(self) -> list[str]:
        """The name, and those of which it is an alias, a copy or a variant of another width."""
        plain = getattr(weft.Tensor, self.name, self.described)
        others = [getattr(x, "__name__", "").strip("_") for x in (plain, self.described)]
        return [self.name, self.name.removesuffix("_copy"), re.sub(r"\dd$", "", self.name), *others]


def names(module: ModuleType) -> list[str]:
    """The public callables that a module defines."""
    told: list[str] = getattr(module, "__all__", []) if module.__name__ not in WHOLE else []
    found = [name for name in told or dir(module) if name[0] != "_" and name not in LEFT_OUT]
    return [name for name in found if _offered(module, getattr(module, name), bool(told))]


def _offered(module: ModuleType, value: Any, told: bool) -> bool:
    if not callable(value) or isinstance(value, type | ModuleType):
        return False
    owner = str(getattr(value, "__module__", ""))
    whole = told or module.__name__ in WHOLE
    return owner.startswith("weft") and (whole or owner == module.__name__)


def _functions(paths: tuple[str, ...], front: str) -> Iterator[Target]:
    for path in paths:
        module = importlib.import_module(path)
        for name in names(module):
            if not (path == "weft.func" and name in TRANSFORMS):
                value = getattr(module, name)
                kind = "op" if isinstance(value, Op) else "function"
                yield Target(f"{path}.{name}", front, kind, value, value)


def _methods(owner: type, text: str, front: str) -> Iterator[Target]:
    inner = {*vars(Handle), *LEFT_OUT}  # called by front ends only
    own = [name for name in dir(owner) if name[0] != "_" and name not in inner]
    for name in own + [f"__{name}__" for name in OPERATORS]:
        if callable(getattr(owner, name, None)):
            called = functools.partial(_method, name)
            yield Target(f"{text}.{name}", front, "method", called, getattr(owner, name))


def _method(name: str, receiver: Any, *args: Any, **options: Any) -> Any:
    return getattr(receiver, name)(*args, **options)


def _classes(module: ModuleType, base: type, kind: str) -> Iterator[Target]:
    for name in sorted(dir(module)):
        value = getattr(module, name)
        if isinstance(value, type) and issubclass(value, base) and value is not base:
            yield Target(f"{module.__name__}.{name}", "eager", kind, value, value)


@functools.cache
def targets() -> tuple[Target, ...]:
    """All callables."""
    func = importlib.import_module("weft.func")
    array = importlib.import_module("weft.numpy").ndarray
    found = [
        *_functions(EAGER, "eager"),
        *_functions(ARRAY, "array"),
        *_functions(DEFERRED, "graph"),
        *_functions(("weft.ops",), "node"),
        *_methods(weft.Tensor, "Tensor", "eager"),
        *_methods(array, "ndarray", "array"),
        *_classes(weft.nn, weft.nn.Module, "layer"),
        *_classes(weft.optim, weft.optim.Optimizer, "optimizer"),
    ]
    found += [
        Target(f"weft.func.{name}", "eager", "transform", value, value)
        for name, value in [(name, getattr(func, name)) for name in TRANSFORMS]
    ]
    return tuple(found)


def drawn_target(point: int, among: Callable[[Target], bool] = lambda _: True) -> Target:
    """The target at a point in [0, 2**32) of a ring, on which every target has several places.

    An added or removed name changes only draws next to its own places: other cases keep their calls
    while the package grows (consistent hashing, Karger et al. 1997).
    """
    places, owners = _ring()
    first = bisect.bisect_left(places, point)
    return next(t for k in range(len(owners)) if among(t := owners[(first + k) % len(owners)]))


PLACES = 8  # of a target: the more, the more evenly they are drawn
OF_TRANSFORM = 240  # as many as the functions that it is drawn for deserve


@functools.cache
def _ring() -> tuple[list[int], list[Target]]:
    ring = [
        (zlib.crc32(f"{target.text} {k}".encode()), target.text, target)
        for target in targets()
        for k in range(OF_TRANSFORM if target.kind == "transform" else PLACES)
    ]
    ring.sort(key=lambda entry: entry[:2])
    return [place for place, _, _ in ring], [target for _, _, target in ring]
