"""A graph of Python calls, in the order of their execution."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from weft.mirror.supplied.fx.node import INPUT, Node, Target, map_arg, shown

__all__ = ["Graph"]

_TAKEN: Final = {*keyword.kwlist, *dir(builtins), "inf", "nan", "NoneType", "torch", "device"}
_NUMBERED: Final = re.compile(r"(.*?)_(\d+)")


class _Names:
    """Names that are identifiers and differ."""

    def __init__(self) -> None:
        self.used: set[str] = set()
        self._last: dict[str, int] = {}

    def create_name(self, candidate: str) -> str:
        """The name itself, or with a number."""
        name = re.sub(r"[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        name = f"_{name}" if name[0].isdigit() else name
        match = _NUMBERED.fullmatch(name)
        base, number = (match[1], int(match[2])) if match else (name, 0)
        if match is None or name in self.used:
            number = self._last.get(name, 0)
            if name in _TAKEN:
                number += 1
                name = f"{base}_{number}"
        while name in self.used:
            number += 1
            name = f"{base}_{number}"
        self.used.add(name)
        self._last[base] = number
        return name


def _candidate(target: Target) -> str:
    """The name of a call: `conv1` of a module, `add` of `operator.add`, in snake case."""
    name = target if isinstance(target, str) else getattr(target, "__name__", type(target).__name__)
    if name.startswith("__") and name.endswith("__"):
        name = name[2:-2]
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name).lower()


class Nodes:
    """The nodes of a graph in order; some may be erased meanwhile."""

    def __init__(self, graph: Graph, backward: bool = False) -> None:
        self._graph, self._backward = graph, backward

    def __iter__(self) -> Iterator[Node]:
        root = self._graph.root
        node = root.prev if self._backward else root.next
        while node is not root:
            if not node.is_erased:
                yield node
            node = node.prev if self._backward else node.next

    def __reversed__(self) -> Iterator[Node]:
        return iter(Nodes(self._graph, not self._backward))

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Graph:
    """Calls of functions, methods and modules, from inputs to an output.

    Attributes:
        owning_module: the module that runs it.
    """

    def __init__(self, owning_module: Any = None, tracer_cls: Any = None) -> None:
        self.owning_module = owning_module
        self._tracer_cls = tracer_cls
        self.root = Node(self, "", "root", "", (), {})
        self._names = _Names()
        self._place: Callable[[Node], None] = self.root.prepend

    @property
    def nodes(self) -> Nodes:
        """The nodes in order."""
        return Nodes(self)

    def create_node(
        self, op: str, target: Target, args: Any = None, kwargs: Any = None,
        name: str | None = None, type_expr: Any = None,
    ) -> Node:  # fmt: skip
        """Insert a node; it gets a name of its own."""
        named = self._names.create_name(name or _candidate(target))
        node = Node(self, named, op, target, args or (), kwargs or {}, type_expr)
        self._place(node)
        return node

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """An input."""
        args = () if default_value is ... else (default_value,)
        return self.create_node(INPUT, name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """A parameter, a buffer or another attribute of the module."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(self, module_name: str, args: Any = None, kwargs: Any = None) -> Node:
        """A call of a submodule."""
        return self.create_node("call_module", module_name, args, kwargs)

    def call_method(self, method_name: str, args: Any = None, kwargs: Any = None) -> Node:
        """A call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs)

    def call_function(self, the_function: Any, args: Any = None, kwargs: Any = None) -> Node:
        """A call of a function."""
        return self.create_node("call_function", the_function, args, kwargs)

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """What the graph gives."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda x: x) -> Node:
        """Insert a copy of another graph's node.

        Args:
            arg_transform: the node of this graph for one of the other.
        """
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = dict(node.meta)
        return made

    def erase_node(self, to_erase: Node) -> None:
        """Remove a node.

        Raises:
            RuntimeError: another node uses its result.
        """
        if to_erase.users:
            raise RuntimeError(f"erase_node: {list(to_erase.users)} still use {to_erase}")
        to_erase.unlink()
        to_erase.is_erased = True
        to_erase.args, to_erase.kwargs = (), {}

    @contextmanager
    def _inserting(self, place: Callable[[Node], None]) -> Iterator[None]:
        before, self._place = self._place, place
        try:
            yield
        finally:
            self._place = before

    def inserting_before(self, n: Node | None = None) -> Any:
        """A context in which nodes are inserted before one, or at the end."""
        return self._inserting((self.root if n is None else n).prepend)

    def inserting_after(self, n: Node | None = None) -> Any:
        """A context in which nodes are inserted behind one, or at the beginning."""
        behind = (self.root if n is None else n).next
        return self._inserting(behind.prepend)

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Remove nodes whose results nothing uses; whether there were any."""
        needed, count = is_impure_node or Node.is_impure, len(self.nodes)
        for node in reversed(self.nodes):
            if not (node.users or needed(node)):
                self.erase_node(node)
        return len(self.nodes) < count

    def lint(self) -> None:
        """Check that each node uses earlier ones of this graph.

        Raises:
            RuntimeError: one does not.
        """
        seen: set[Node] = set()
        for node in self.nodes:
            late = [x for x in node.all_input_nodes if x not in seen]
            if late:
                raise RuntimeError(f"lint: {node} uses {late[0]}, which is not before it")
            seen.add(node)

    def print_tabular(self) -> None:
        """Print a line for each node: what it does, its name, and its arguments."""
        rows: list[tuple[str, ...]] = [
            ("opcode", "name", "target", "args", "kwargs"),
            *[(n.op, n.name, shown(n.target), str(n.args), str(n.kwargs)) for n in self.nodes],
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        rows.insert(1, tuple(["-" * width for width in widths]))
        for row in rows:
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
            print("  ".join(cells).rstrip())

    def __str__(self) -> str:
        lines = [f"{n} = {n.op}[{shown(n.target)}]({n.args}, {n.kwargs})" for n in self.nodes]
        return "\n    ".join(["graph():", *lines])

    def __deepcopy__(self, memo: dict[int, Any]) -> Graph:
        made = Graph(tracer_cls=self._tracer_cls)
        nodes: dict[Node, Node] = {}
        for node in self.nodes:
            nodes[node] = made.node_copy(node, lambda x: nodes[x])
        memo[id(self)] = made
        return made
