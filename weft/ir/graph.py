"""A graph: nodes in an order in which every node follows its inputs."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence

from weft.errors import GraphError
from weft.ir.node import Attrs, Node, Source, TensorType, Value, user_source


class Graph:
    """Nodes, their unique names, and (for a graph that is to be run) its outputs.

    Nodes are frozen and may belong to several graphs. `edges` holds control dependencies added
    after a node was built; they are the only way to make a cycle, which `toposort` refuses.
    """

    def __init__(self, nodes: Iterable[Node] = (), outputs: Sequence[Value] = ()) -> None:
        self.nodes: list[Node] = []
        self.outputs: tuple[Value, ...] = tuple(outputs)
        self.edges: dict[Node, tuple[Node, ...]] = {}
        self._by_name: dict[str, Node] = {}
        self._counts: dict[str, int] = {}
        self._scope = ""
        self._device = ""
        self._source: Source | None = None
        self._control: tuple[Node, ...] = ()
        self._lock = threading.RLock()
        for node in nodes:
            self.append(node)

    def add(
        self,
        op: str,
        inputs: tuple[Value, ...],
        attrs: Attrs,
        types: tuple[TensorType, ...],
        name: str | None = None,
        operands: tuple[str, ...] = (),
        regions: tuple[Graph, ...] = (),
        source: Source | None = None,
    ) -> Node:
        """Append a new node in the current name scope, device and control context.

        Raises:
            GraphError: an input belongs to another graph.
        """
        with self._lock:
            for value in inputs:
                if self._by_name.get(value.node.name) is not value.node:
                    raise GraphError(f"{op}: input {value.name} belongs to another graph")
            node = Node(
                op, inputs, attrs, types, self.unique_name(self._scope + (name or op)), operands,
                self._control, self._device, source or self._source or user_source(), regions,
            )  # fmt: skip
            return self.append(node)

    def append(self, node: Node) -> Node:
        """Take in a node that was built elsewhere, under its own name.

        Raises:
            GraphError: the name is taken by another node.
        """
        taken = self._by_name.setdefault(node.name, node)
        if taken is not node:
            raise GraphError(f"graph: the name {node.name!r} is taken")
        self.nodes.append(node)
        self._counts.setdefault(node.name.lower(), 1)
        return node

    def __contains__(self, node: Node) -> bool:
        return self._by_name.get(node.name) is node

    def find(self, name: str) -> Node:
        """The node called `name`.

        Raises:
            GraphError: there is none.
        """
        try:
            return self._by_name[name]
        except KeyError:
            raise GraphError(f"graph: no node is called {name!r}") from None

    def unique_name(self, name: str) -> str:
        """`name`, or `name_1`, `name_2`, ... where it is taken (TensorFlow's rule, case blind)."""
        key = name.lower()
        count = self._counts.get(key, 0)
        self._counts[key] = count + 1
        if count == 0:
            return name
        while f"{key}_{count}" in self._counts:
            count += 1
        self._counts[key] = count + 1
        self._counts[f"{key}_{count}"] = 1
        return f"{name}_{count}"

    def add_control_edge(self, node: Node, before: Node) -> None:
        """Make `node` wait for `before`, although it is already built."""
        self.edges[node] = (*self.edges.get(node, ()), before)

    def predecessors(self, node: Node) -> list[Node]:
        """Nodes that must run before `node`: producers of its inputs, then control dependencies."""
        found = [value.node for value in node.inputs]
        found.extend(node.control)
        found.extend(self.edges.get(node, ()))
        return found

    @contextlib.contextmanager
    def name_scope(self, name: str) -> Iterator[str]:
        """Prefix the names of nodes built inside; yields the prefix, such as `layer1/`."""
        with self._set("_scope", self.unique_name(self._scope + name) + "/" if name else ""):
            yield self._scope

    @contextlib.contextmanager
    def prefix(self, scope: str) -> Iterator[None]:
        """Names of nodes built inside begin with exactly `scope`, which keeps its own slash."""
        with self._set("_scope", scope):
            yield

    @contextlib.contextmanager
    def control_dependencies(self, nodes: Iterable[Node]) -> Iterator[None]:
        """Nodes built inside run after all of `nodes`."""
        with self._set("_control", tuple(dict.fromkeys((*self._control, *nodes)))):
            yield

    @contextlib.contextmanager
    def without_control(self) -> Iterator[None]:
        """Nodes built inside have no control dependencies."""
        with self._set("_control", ()):
            yield

    @contextlib.contextmanager
    def device(self, name: str) -> Iterator[None]:
        """Nodes built inside are placed on the device called `name`."""
        with self._set("_device", name):
            yield

    @contextlib.contextmanager
    def on_behalf_of(self, node: Node, scope: str | None = None) -> Iterator[None]:
        """Nodes built inside carry `node`'s name as scope, its device and the line that made it."""
        before = self._scope, self._device, self._source
        scope = node.name + "/" if scope is None else scope
        self._scope, self._device, self._source = scope, node.device, node.source
        try:
            yield
        finally:
            self._scope, self._device, self._source = before

    @contextlib.contextmanager
    def _set(self, field: str, value: object) -> Iterator[None]:
        before = getattr(self, field)
        setattr(self, field, value)
        try:
            yield
        finally:
            setattr(self, field, before)

    @contextlib.contextmanager
    def as_default(self) -> Iterator[Graph]:
        """Operations called inside, in this thread, add their nodes to this graph."""
        stack = _stack()
        stack.append(self)
        try:
            yield self
        finally:
            stack.remove(self)

    def __repr__(self) -> str:
        return f"<Graph of {len(self.nodes)} nodes>"


_local = threading.local()
_fallback = Graph()


def _stack() -> list[Graph]:
    stack: list[Graph] | None = getattr(_local, "stack", None)
    if stack is None:
        stack = _local.stack = []
    return stack


def current_graph() -> Graph:
    """The innermost `as_default` graph of this thread, else one that the process shares."""
    stack = _stack()
    return stack[-1] if stack else _fallback


def set_fallback(graph: Graph) -> None:
    """Make `graph` the one in use outside every `as_default` block."""
    global _fallback
    _fallback = graph


def toposort(
    graph: Graph,
    roots: Iterable[Node],
    predecessors: Callable[[Node], list[Node]] | None = None,
) -> list[Node]:
    """Everything that `roots` need, predecessors first; iterative, so depth is no limit.

    Raises:
        GraphError: the control dependencies form a cycle; the message names it.
    """
    before = predecessors or graph.predecessors
    done: set[Node] = set()
    active: dict[Node, None] = {}
    order: list[Node] = []
    for root in roots:
        stack: list[tuple[Node, Iterator[Node]]] = []
        nxt: Node | None = root
        while stack or nxt is not None:
            if nxt is not None and nxt not in done:
                _refuse_cycle(nxt, active)
                active[nxt] = None
                stack.append((nxt, iter(before(nxt))))
            nxt = next(stack[-1][1], None) if stack else None
            if nxt is None and stack:
                node, _ = stack.pop()
                del active[node]
                done.add(node)
                order.append(node)
    return order


def _refuse_cycle(node: Node, active: dict[Node, None]) -> None:
    if node in active:
        path = list(active)
        cycle = [n.describe() for n in path[path.index(node) :]]
        raise GraphError("control dependencies form a cycle: " + " <- ".join([*cycle, cycle[0]]))


def rewrite(graph: Graph, rule: Callable[[Node, Graph], Sequence[Value] | None]) -> Graph:
    """Rebuild a graph node by node.

    `rule(node, out)` sees each node with its inputs already mapped into the graph `out`, which is
    the current graph during the call. It returns values to use instead of the node's outputs, or
    `None` to keep the node.
    """
    out = Graph()
    out._counts = dict(graph._counts)  # pyright: ignore[reportPrivateUsage]
    mapped: dict[Value, Value] = {}
    nodes: dict[Node, Node] = {}
    with out.as_default():
        for node in graph.nodes:
            inputs = tuple([mapped[v] for v in node.inputs])
            before = (*node.control, *graph.edges.get(node, ()))
            control = tuple(dict.fromkeys([nodes[n] for n in before if n in nodes]))
            new = node.with_inputs(inputs, control)
            replacement = rule(new, out)
            if replacement is None:
                out.append(new)
                replacement = new.outputs
            nodes[node] = replacement[0].node if replacement else new
            for old, value in zip(node.outputs, replacement, strict=True):
                mapped[old] = value
    out.outputs = tuple(mapped[v] for v in graph.outputs)
    return out
