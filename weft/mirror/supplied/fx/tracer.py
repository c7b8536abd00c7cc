"""Tracing: modules and functions are run on proxies, and what they do becomes a graph."""

from __future__ import annotations

import builtins
import inspect
import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from enum import Enum
from functools import wraps
from types import FunctionType, ModuleType
from typing import Any, Final, NoReturn

from weft.eager.tensor.device import Device
from weft.eager.tensor.tensor import Tensor
from weft.ir.dtype import DType
from weft.mirror.supplied.fx.graph import Graph
from weft.mirror.supplied.fx.graph_module import GraphModule
from weft.mirror.supplied.fx.node import INPUT, Node, Target, map_aggregate
from weft.mirror.supplied.fx.proxy import Proxy, TraceError, map_proxies
from weft.nn import Module, Parameter, Sequential
from weft.nn.module.tree import Tree

__all__ = ["Tracer", "TracerBase", "is_fx_tracing", "symbolic_trace", "wrap"]

_BASE: Final = (
    int,
    float,
    bool,
    complex,
    str,
    bytes,
    type(None),
    type(...),
    DType,
    Device,
    range,
    Enum,
)
_LAYERS: Final = ("weft.nn", "torch.nn", "torch.ao.nn")
_wrapped: Final[dict[tuple[int, str], dict[str, Any]]] = {}
_open: Final[list[Tracer]] = []


def is_fx_tracing() -> bool:
    """Whether code is being traced."""
    return bool(_open)


class Tracer:
    """Traces a module or a function; subclasses say which modules are single calls.

    Attributes:
        root: the module that is traced.
        graph: what it does.

    Args:
        autowrap_modules: modules whose functions are single calls.
        autowrap_functions: further such functions.
    """

    proxy_buffer_attributes = False
    traced_func_name = "forward"
    graph: Graph
    root: Any

    def __init__(
        self, autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
    ) -> None:  # fmt: skip
        self._searched = list(autowrap_modules)
        listed = [vars(module).items() for module in autowrap_modules]
        own = [f for each in listed for name, f in each if name[0] != "_" and callable(f)]
        self._single = {id(f): f for f in (*own, *autowrap_functions)}
        self._parameters: dict[str, Proxy] = {}

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether a call of a module is a single node: those of `torch.nn` are."""
        del module_qualified_name
        return type(m).__module__.startswith(_LAYERS) and not isinstance(m, Sequential)

    def call_module(
        self, m: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """A call of a module: a node, or what `forward` does."""
        name = self.path_of_module(m)
        if self.is_leaf_module(m, name):
            return self.create_proxy("call_module", name, args, kwargs)
        return forward(*args, **kwargs)

    def proxy(self, node: Node) -> Proxy:
        """The proxy of a node."""
        return Proxy(node, self)

    def iter(self, obj: Proxy) -> NoReturn:
        """Refused: it is not known how many entries there are."""
        raise TraceError(f"{obj.node}: a traced value cannot be iterated over")

    def to_bool(self, obj: Proxy) -> NoReturn:
        """Refused: which branch is taken is not known."""
        raise TraceError(f"{obj.node}: a traced value cannot decide which branch is taken")

    def create_node(
        self, kind: str, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any],
        name: str | None = None, type_expr: Any = None,
    ) -> Node:  # fmt: skip
        """Insert a node."""
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def create_proxy(
        self, kind: str, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any],
        name: str | None = None, type_expr: Any = None, proxy_factory_fn: Any = None,
    ) -> Proxy:  # fmt: skip
        """Insert a node for a call on these values, and give its proxy."""
        given = self.create_arg(tuple(args)), self.create_arg(dict(kwargs))
        node = self.create_node(kind, target, *given, name, type_expr)
        return (proxy_factory_fn or self.proxy)(node)

    def create_arg(self, a: Any) -> Any:
        """An argument of a node for a value: proxies are nodes, tensors are attributes."""
        return map_aggregate(a, self._argument)

    def _argument(self, a: Any) -> Any:
        if isinstance(a, Proxy):
            return a.node
        if isinstance(a, Tensor):
            return self.create_node("get_attr", self._name_of(a), (), {})
        if isinstance(a, Module):
            return self.create_node("get_attr", self.path_of_module(a), (), {})
        if isinstance(a, _BASE) or callable(a):
            return a
        raise NotImplementedError(f"an argument of {type(a).__name__} cannot be traced: {a!r}")

    def _name_of(self, tensor: Tensor) -> str:
        """The name of a parameter, a buffer or another tensor of the module."""
        entries = (*self.root.named_parameters(), *self.root.named_buffers())
        for name, each in entries:
            if each is tensor:
                return name
        for path, module in self.root.named_modules():
            for name, each in vars(module).items():
                if each is tensor:
                    return f"{path}.{name}".lstrip(".")
        number = 0
        while hasattr(self.root, f"_tensor_constant{number}"):
            number += 1
        setattr(self.root, f"_tensor_constant{number}", tensor)
        return f"_tensor_constant{number}"

    def path_of_module(self, mod: Module) -> str:
        """The name of a submodule.

        Raises:
            NameError: it is none of the traced module.
        """
        for name, each in self.root.named_modules():
            if each is mod:
                return name
        raise NameError(f"{type(mod).__name__} is not a submodule of {type(self.root).__name__}")

    def trace(self, root: Any, concrete_args: dict[str, Any] | None = None) -> Graph:
        """The graph of a module or a function.

        Args:
            root: what is traced.
            concrete_args: values of arguments that are not traced.
        """
        is_module = isinstance(root, Module)
        function = getattr(type(root), self.traced_func_name) if is_module else root
        self.root = root if is_module else Module()
        self.graph = Graph(tracer_cls=type(self))
        self._parameters = {}
        parameters = [*inspect.signature(inspect.unwrap(function)).parameters.values()]
        inputs = {p.name: self._input(p, concrete_args or {}) for p in parameters[is_module:]}
        with self._patched(function):
            found = function(*[root] * is_module, **inputs)
        self.create_node("output", "output", (self.create_arg(found),), {})
        return self.graph

    def _input(self, p: inspect.Parameter, concrete: dict[str, Any]) -> Any:
        """The proxy of a parameter of the function, or its value that is not traced.

        Raises:
            TraceError: it stands for any number of arguments.
        """
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            raise TraceError(f"{p}: a function is traced whose inputs have names")
        default = concrete.get(p.name, p.default)
        given = () if default is p.empty else (default,)
        made = self.create_proxy(INPUT, p.name, given, {})
        return concrete.get(p.name, made)

    @contextmanager
    def _patched(self, function: Any) -> Iterator[None]:
        """Modules and functions ask the tracer."""
        call, read = Module.__call__, Tree.__getattr__

        def called(module: Module, *args: Any, **kwargs: Any) -> Any:
            def forward(*args: Any, **kwargs: Any) -> Any:
                return call(module, *args, **kwargs)

            self._wrap_in(stack, getattr(module.forward, "__globals__", {}))
            return self.call_module(module, forward, args, kwargs)

        def attribute(module: Tree, name: str) -> Any:
            found = read(module, name)
            return self._parameter(found) if isinstance(found, Parameter) else found

        with ExitStack() as stack:
            stack.callback(_open.remove, self)
            _open.append(self)
            _patch(stack, Module, "__call__", called)
            _patch(stack, Tree, "__getattr__", attribute)
            for (_, name), names in _wrapped.items():
                _wrap_item(stack, names, name)
            self._wrap_in(stack, getattr(inspect.unwrap(function), "__globals__", {}))
            for module in self._searched:
                self._wrap_in(stack, vars(module))
            yield

    def _wrap_in(self, stack: ExitStack, names: dict[str, Any]) -> None:
        """Functions of a module that are single calls become so."""
        for name, value in [*names.items()]:
            if self._single.get(id(value)) is value and callable(value):
                _wrap_item(stack, names, name)

    def _parameter(self, parameter: Parameter) -> Any:
        """The proxy of a parameter of the module."""
        for name, each in self.root.named_parameters():
            if each is parameter:
                if name not in self._parameters:
                    self._parameters[name] = self.create_proxy("get_attr", name, (), {})
                return self._parameters[name]
        return parameter


TracerBase = Tracer


def _patch(stack: ExitStack, owner: Any, name: str, value: Any) -> None:
    stack.callback(setattr, owner, name, getattr(owner, name))
    setattr(owner, name, value)


def _wrap_item(stack: ExitStack, names: dict[str, Any], name: str) -> None:
    before = names.get(name, getattr(builtins, name, None))
    stack.callback(names.__setitem__, name, before)
    names[name] = single(before)


def single(function: Any) -> Any:
    """A function whose calls on proxies are nodes."""

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        found: list[Proxy] = []
        map_proxies((args, kwargs), found.append)
        if not found:
            return function(*args, **kwargs)
        return found[0].tracer.create_proxy("call_function", function, args, kwargs)

    return called


def wrap(fn_or_name: Any) -> Any:
    """Calls of a function of this module are single nodes, also as a decorator.

    Args:
        fn_or_name: the function or its name; also that of a builtin function.

    Raises:
        RuntimeError: it is neither.
    """
    if not isinstance(fn_or_name, str | FunctionType):
        raise RuntimeError(f"wrap: expected a function of a module or its name, got {fn_or_name!r}")
    is_name = isinstance(fn_or_name, str)
    name = fn_or_name if is_name else fn_or_name.__name__
    frame = inspect.currentframe()
    assert frame is not None and frame.f_back is not None
    names = frame.f_back.f_globals if is_name else fn_or_name.__globals__
    _wrapped[id(names), name] = names
    return fn_or_name


def symbolic_trace(root: Any, concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """A module that does what a module or a function does, by its graph.

    Args:
        root: what is traced: it is run on proxies, so values must not decide what it does.
        concrete_args: values of arguments that are not traced.
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
