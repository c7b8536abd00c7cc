"""Proxies: what stands for values while Python code is traced."""

from __future__ import annotations

import dis
import operator
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from weft.eager.tensor.tensor import Tensor
from weft.ir.node import PACKAGE
from weft.mirror.supplied.fx.node import Node, Target, map_aggregate

__all__ = ["Attribute", "GraphAppendingTracer", "Proxy", "TraceError"]

_frame: Final = sys._getframe  # pyright: ignore[reportPrivateUsage]
_HERE: Final = str(Path(__file__).parent)
REFLECTED: Final = (
    "add", "mul", "sub", "mod", "floordiv", "truediv", "xor", "and", "or", "lshift", "rshift",
    "pow", "matmul",
)  # fmt: skip
OPERATORS: Final = (
    "eq", "ne", "lt", "gt", "le", "ge", "pos", "neg", "invert", "abs", "getitem", *REFLECTED,
)  # fmt: skip


class TraceError(ValueError):
    """The traced code asks for what only a value has."""


def _is_package(depth: int = 2) -> bool:
    """Whether a function of the package asks: all of it is then one node (`__torch_function__`)."""
    file = _frame(depth).f_code.co_filename
    return file.startswith(PACKAGE) and not file.startswith(_HERE)


def _refuse_package() -> None:
    if _is_package(3):
        raise TypeError("a value that is traced has no elements")


class Proxy:
    """A value of a call: what is done with it becomes a node.

    Attributes:
        node: the call.
        tracer: what traces.
    """

    def __init__(self, node: Node, tracer: Any = None) -> None:
        self.node, self.tracer = node, tracer or GraphAppendingTracer(node.graph)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """The call of a function, or of a method of tensors, as a node."""
        found: list[Proxy] = []
        map_proxies((args, kwargs or {}), found.append)
        name = getattr(func, "__name__", "")
        kind = "call_method" if getattr(Tensor, name, None) is func else "call_function"
        target = name if kind == "call_method" else func
        return found[0].tracer.create_proxy(kind, target, tuple(args), kwargs or {})

    def __getattr__(self, k: str) -> Attribute:
        if k[:2] == "__" or _is_package():
            raise AttributeError(k)
        return Attribute(self, k)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """A call of the value itself."""
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        _refuse_package()
        frame = _frame(1)
        for at in dis.get_instructions(frame.f_code):
            if at.offset == frame.f_lasti and at.opname == "UNPACK_SEQUENCE":
                return iter([self[i] for i in range(at.argval)])  # type: ignore[index]
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        _refuse_package()
        return self.tracer.to_bool(self)

    def __len__(self) -> int:
        _refuse_package()
        raise TraceError(f"len({self.node}): wrap the function that needs it by torch.fx.wrap")

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.node.name})"


def _operator(name: str, reflected: bool) -> Callable[..., Any]:
    function = getattr(operator, f"__{name}__")

    def method(self: Proxy, *others: Any) -> Any:
        _refuse_package()
        args = (*others, self) if reflected else (self, *others)
        return self.tracer.create_proxy("call_function", function, args, {})

    return method


for _name in OPERATORS:
    setattr(Proxy, f"__{_name}__", _operator(_name, False))
for _name in REFLECTED:
    setattr(Proxy, f"__r{_name}__", _operator(_name, True))


class GraphAppendingTracer:
    """Lets what is done with proxies become nodes of a graph that is there.

    Args:
        graph: where nodes are inserted.
    """

    def __init__(self, graph: Any) -> None:
        self.graph = graph

    def proxy(self, node: Node) -> Proxy:
        """The proxy of a node."""
        return Proxy(node, self)

    def create_proxy(self, kind: str, target: Target, args: Any, kwargs: Any) -> Proxy:
        """Insert a node for a call on these values, and give its proxy."""
        given = [map_aggregate(x, _node_of) for x in (tuple(args), dict(kwargs or {}))]
        return self.proxy(self.graph.create_node(kind, target, *given))

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """Refused: it is not known how many entries there are."""
        raise TraceError(f"{obj.node}: a traced value cannot be iterated over")

    def to_bool(self, obj: Proxy) -> bool:
        """Refused: which branch is taken is not known."""
        raise TraceError(f"{obj.node}: a traced value cannot decide which branch is taken")


def _node_of(x: Any) -> Any:
    return x.node if isinstance(x, Proxy) else x


class Attribute(Proxy):
    """An attribute of a proxy; a node if it is used, and none if it is a method that is called."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._made: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The node that reads it."""
        made = self._made
        if made is None:
            args = (self.root, self.attr)
            found: Node = self.tracer.create_proxy("call_function", getattr, args, {}).node
            made = self._made = found
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """A call of the method."""
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


def map_proxies(x: Any, fn: Callable[[Proxy], Any]) -> None:
    """Call `fn` with the proxies in an argument."""
    if isinstance(x, Proxy):
        fn(x)
    elif isinstance(x, tuple | list):
        for y in x:
            map_proxies(y, fn)
    elif isinstance(x, dict):
        for y in x.values():
            map_proxies(y, fn)
    elif isinstance(x, slice):
        map_proxies((x.start, x.stop, x.step), fn)
