"""A module that runs a graph."""

from __future__ import annotations

import copy
from typing import Any

from weft.eager.tensor.tensor import Tensor
from weft.mirror.supplied.fx.code import code_of
from weft.mirror.supplied.fx.graph import Graph
from weft.mirror.supplied.fx.interpreter import Interpreter
from weft.mirror.supplied.fx.node import INPUT
from weft.nn import Module, Parameter

__all__ = ["GraphModule", "_CodeOnlyModule", "_copy_attr"]

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"


def _copy_attr(from_module: Any, to_module: Any, target: str) -> None:
    """Give a module the attribute of another; modules on the way are made."""
    *path, name = target.split(".")
    for part in path:
        from_module = getattr(from_module, part)
        if not hasattr(to_module, part):
            to_module.add_module(part, Module())
        to_module = getattr(to_module, part)
    _assign(to_module, name, getattr(from_module, name))


def _assign(module: Any, name: str, value: Any) -> None:
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        module.register_buffer(name, value)
    else:
        setattr(module, name, value)


class _CodeOnlyModule(Module):
    """A module with the attributes of another, which a graph's copy is made from."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


class GraphModule(Module):
    """A module that runs a graph.

    Args:
        root: the module whose submodules and tensors the graph names, or a dictionary of them.
        graph: what it does.
        class_name: the name of its class.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Each has a class of its own, which programs rename."""
        del args, kwargs
        return object.__new__(type(cls.__name__, (cls,), {"__module__": cls.__module__}))

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = class_name
        self.training = getattr(root, "training", True)
        for node in graph.nodes:
            if node.op in ("get_attr", "call_module"):
                if isinstance(root, dict):
                    self._take(str(node.target), root)
                else:
                    _copy_attr(root, self, str(node.target))
        self.meta: dict[str, Any] = {}
        self._tracer_cls = graph._tracer_cls  # pyright: ignore[reportPrivateUsage]
        self.graph = graph

    def _take(self, target: str, entries: dict[str, Any]) -> None:
        place: Any = self
        *path, name = target.split(".")
        for part in path:
            if not hasattr(place, part):
                place.add_module(part, Module())
            place = getattr(place, part)
        _assign(place, name, entries[target])

    @property
    def graph(self) -> Graph:
        """What it does."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        object.__setattr__(self, "_graph", g)
        g.owning_module = self

    @property
    def code(self) -> str:
        """The Python text of `forward`."""
        return code_of(self._graph.nodes)

    def print_readable(self, print_output: bool = True) -> str:
        """The Python text of the class, which is also printed."""
        lines = self.code.strip().splitlines()
        text = "\n".join([f"class {type(self).__name__}(torch.nn.Module):", *[
            f"    {line}".rstrip() for line in lines]])  # fmt: skip
        if print_output:
            print(text)
        return text

    def recompile(self) -> None:
        """Has no effect: the graph is run as it is."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the graph."""
        if not kwargs:
            return Interpreter(self).run(*args)
        inputs = [node for node in self._graph.nodes if node.op == INPUT]
        env = dict(zip(inputs, args, strict=False))
        env |= {node: kwargs[node.target] for node in inputs if node.target in kwargs}
        return Interpreter(self).run(initial_env=env)

    def add_submodule(self, target: str, m: Module) -> bool:
        """Add a submodule by its path; modules on the way are made."""
        self._take(target, {target: m})
        return True

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        body = copy.deepcopy({k: v for k, v in vars(self).items() if k != "_graph"}, memo)
        vars(made).update(body)
        made.graph = copy.deepcopy(self._graph, memo)
        return made
