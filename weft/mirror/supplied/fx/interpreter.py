"""Runs a graph node by node."""

from __future__ import annotations

from typing import Any

from weft.mirror.supplied.fx.graph import Graph
from weft.mirror.supplied.fx.node import Node, map_arg

__all__ = ["Interpreter"]


class Interpreter:
    """Runs the graph of a module; subclasses change what a node does.

    Attributes:
        env: the values of nodes that are needed later.

    Args:
        module: the module, which the graph takes submodules and tensors from.
        garbage_collect_values: whether values are dropped after their last use.
        graph: another graph than the module's.
    """

    def __init__(
        self, module: Any, garbage_collect_values: bool = True, graph: Graph | None = None
    ) -> None:
        self.module, self.graph = module, module.graph if graph is None else graph
        self.garbage_collect_values = garbage_collect_values
        self.env: dict[Node, Any] = {}

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None) -> Any:
        """The output for these inputs.

        Args:
            initial_env: values of nodes that are known.
        """
        self.env, self.args_iter = dict(initial_env or {}), iter(args)
        last = {x: node for node in self.graph.nodes for x in node.all_input_nodes}
        for node in self.graph.nodes:
            if node not in self.env:
                self.env[node] = self.run_node(node)
            if node.op == "output":
                return self.env[node]
            if self.garbage_collect_values:
                for used in [x for x in node.all_input_nodes if last[x] is node]:
                    del self.env[used]
        return None

    def run_node(self, n: Node) -> Any:
        """The value of a node, by the method that has the name of its kind."""
        return getattr(self, n.op)(n.target, *self.fetch_args_kwargs_from_env(n))

    def placeholder(self, target: Any, args: Any, kwargs: Any) -> Any:
        """The next input, or its default.

        Raises:
            RuntimeError: there is none.
        """
        found = next(self.args_iter, *args[:1] or (self,))
        if found is self:
            raise RuntimeError(f"run: expected a value for the input {target}")
        return found

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        """An attribute of the module."""
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """The result of a function."""
        return target(*args, **kwargs)

    def call_method(self, target: Any, args: Any, kwargs: Any) -> Any:
        """The result of a method of the first argument."""
        return getattr(args[0], target)(*args[1:], **kwargs)

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        """The result of a submodule."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Any, args: Any, kwargs: Any) -> Any:
        """What the graph gives."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """An attribute of the module by its path."""
        found = self.module
        for part in target.split("."):
            found = getattr(found, part)
        return found

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[Any, Any]:
        """The values of a node's arguments."""
        return map_arg((n.args, n.kwargs), lambda x: self.env[x])
