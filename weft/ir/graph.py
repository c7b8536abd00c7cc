"""A graph: a list of nodes in topological order."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence

from weft.errors import GraphError
from weft.ir.node import Attrs, Node, Region, Source, TensorType, Value, user_source
from weft.ir.on_behalf import Colocated, Context, OnBehalf


class Graph:
    """Nodes, their unique names, and (for a graph that is to be run) its outputs.

    Nodes are frozen and may belong to several graphs. `edges` holds control dependencies that were
    added after a node was built; only they can form a cycle, which `toposort` rejects.
    `colocations` holds, for a node that must be on the device of others, these others.
    """

    def __init__(self, nodes: Iterable[Node] = (), outputs: Sequence[Value] = ()) -> None:
        self.nodes: list[Node] = []
        self.outputs: tuple[Value, ...] = tuple(outputs)
        self.edges: dict[Node, tuple[Node, ...]] = {}
        self.colocations: dict[Node, tuple[Node, ...]] = {}
        self._by_name: dict[str, Node] = {}
        self._counts: dict[str, int] = {}
        self._scope = ""
        self._device = ""
        self._source: Source | None = None
        self._control: tuple[Node, ...] = ()
        self._colocating = False
        self._lock = threading.Lock()
        for node in nodes:
            self.append(node)

    def add(
        self, op: str, inputs: tuple[Value, ...], attrs: Attrs, types: tuple[TensorType, ...],
        name: str | None = None, operands: tuple[str, ...] = (), regions: tuple[Region, ...] = (),
        source: Source | None = None, device: str = "",
    ) -> Node:  # fmt: skip
        """Appends a new node, in the current name scope, device and control context.

        Args:
            device: instead of the current device.

        Raises:
            GraphError: an input belongs to another graph, or the name is not a str.
        """
        if name is not None and not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise GraphError.here(f"{op}: expected a name of type str, got {name!r}")
        by_name = self._by_name
        with self._lock:
            for value in inputs:
                producer = value.node
                if by_name.get(producer.name) is not producer:
                    raise GraphError(f"{op}: input {value.name} belongs to another graph")
            name = self.unique_name(self._scope + (name or op))
            node = by_name[name] = Node(
                op, inputs, attrs, types, name, operands, self._control, device or self._device,
                source or self._source or user_source(), regions,
            )  # fmt: skip
            self.nodes.append(node)
        return node

    def append(self, node: Node) -> Node:
        """Adds a node that was built elsewhere, under its own name.

        Raises:
            GraphError: the name is taken by another node.
        """
        taken = self._by_name.setdefault(node.name, node)
        if taken is not node:
            raise GraphError(f"graph: the name {node.name!r} is taken")
        self.nodes.append(node)
        self._counts.setdefault(node.name.lower(), 1)
        return node

    def truncate(self, length: int) -> list[Node]:
        """Removes and returns the nodes after the first `length`, for a rewrite."""
        gone = self.nodes[length:]
        del self.nodes[length:]
        for node in gone:
            del self._by_name[node.name]
        return gone

    def __contains__(self, node: Node) -> bool:
        return self._by_name.get(node.name) is node

    def own(self, value: Value) -> Value:
        """The value that represents `value` in this graph: itself, unless a closure captured it."""
        return value

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
        """`name`, or `name_1`, `name_2`, ... if it is taken; TensorFlow's rule, ignoring case."""
        key = name.lower()
        counts = self._counts
        count = counts.get(key, 0)
        counts[key] = count + 1
        if count == 0:
            return name
        unique = f"{key}_{count}"
        while unique in counts:
            count += 1
            unique = f"{key}_{count}"
        counts[key] = count + 1
        counts[unique] = 1
        return unique if key == name else f"{name}_{count}"

    def add_control_edge(self, node: Node, before: Node) -> None:
        """Adds a control dependency to a node that is already built."""
        self.edges[node] = (*self.edges.get(node, ()), before)

    def colocate(self, nodes: Iterable[Node], others: Iterable[Node]) -> None:
        """Puts nodes on the device of others, whichever that will be."""
        found = tuple(dict.fromkeys(others))
        for node in nodes:
            there = self.colocations.get(node, ())
            new = [other for other in found if other is not node and other not in there]
            if new:
                self.colocations[node] = (*there, *new)

    def colocated(self) -> Iterator[tuple[Node, Node]]:
        """Pairs of nodes that must be on one device."""
        for node, others in self.colocations.items():
            yield from ((node, other) for other in others if node in self and other in self)

    @contextlib.contextmanager
    def colocating(self) -> Iterator[None]:
        """Puts nodes built on behalf of another on its device."""
        with self._set("_colocating", True):
            yield

    def predecessors(self, node: Node) -> list[Node]:
        """Nodes that must run before `node`: producers of its inputs, then control dependencies."""
        found = [value.node for value in node.inputs]
        found.extend(node.control)
        found.extend(self.edges.get(node, ()))
        return found

    @contextlib.contextmanager
    def name_scope(self, name: str) -> Iterator[str]:
        """Prefixes the names of nodes built inside; yields the prefix, such as `layer1/`."""
        with self._set("_scope", self.unique_name(self._scope + name) + "/" if name else ""):
            yield self._scope

    @contextlib.contextmanager
    def prefix(self, scope: str) -> Iterator[None]:
        """Gives nodes built inside exactly the prefix `scope`, which includes its own slash."""
        with self._set("_scope", scope):
            yield

    @contextlib.contextmanager
    def control_dependencies(self, nodes: Iterable[Node]) -> Iterator[None]:
        """Makes nodes built inside run after all of `nodes`."""
        with self._set("_control", tuple(dict.fromkeys((*self._control, *nodes)))):
            yield

    @contextlib.contextmanager
    def device(self, name: str) -> Iterator[None]:
        """Places nodes built inside on the device `name`."""
        with self._set("_device", name):
            yield

    def on_behalf_of(
        self, node: Node, scope: str | None = None, device: str | None = None
    ) -> OnBehalf:
        """Gives nodes built inside the scope, device and source line of `node`, unless given.

        They are colocated as `node` is.
        """
        scope = node.name + "/" if scope is None else scope
        context = (scope, node.device if device is None else device, node.source)
        others = self.colocations.get(node, ())
        if self._colocating:
            others = (node,)
        return Colocated(self, context, others) if others else OnBehalf(self, context)

    def exchange(self, context: Context) -> Context:
        """Sets name scope, device and source line of nodes to be built; returns the old ones."""
        before = self._scope, self._device, self._source
        self._scope, self._device, self._source = context
        return before

    @contextlib.contextmanager
    def at(self, source: Source | None) -> Iterator[None]:
        """Sets the user's source line of nodes built inside."""
        with self._set("_source", source):
            yield

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
        """Makes this the graph to which operations called in this thread add nodes."""
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
    """This thread's innermost `as_default` graph, else the graph that the process shares."""
    try:
        return _local.stack[-1]
    except (AttributeError, IndexError):
        return _fallback


def toposort(
    graph: Region,
    roots: Iterable[Node],
    predecessors: Callable[[Node], list[Node]] | None = None,
) -> list[Node]:
    """Everything that `roots` need, in topological order; iterative, so depth is unlimited.

    Raises:
        GraphError: the control dependencies form a cycle; the message names it.
    """
    before = predecessors or graph.predecessors
    done: set[Node] = set()
    active: dict[Node, None] = {}  # the path from a root to the node in hand
    order: list[Node] = []
    for root in roots:
        stack = [root]
        while stack:
            node = stack[-1]
            if node in done:
                stack.pop()
            elif node in active:  # second visit: all predecessors are done
                stack.pop()
                del active[node]
                done.add(node)
                order.append(node)
            else:
                active[node] = None
                for earlier in reversed(before(node)):
                    if earlier not in done:
                        _refuse_cycle(earlier, active)
                        stack.append(earlier)
    return order


def in_order_of_creation(
    graph: Graph, roots: Iterable[Node], predecessors: Callable[[Node], list[Node]]
) -> list[Node]:
    """What `roots` need, in creation order, unless a control dependency contradicts it.

    A gradient's nodes are created layer by layer, so that what a layer needs is near its use. The
    order does not depend on that of the roots.

    Raises:
        GraphError: the control dependencies form a cycle; the message names it.
    """
    order = toposort(graph, roots, predecessors)
    wanted = set(order)
    place = {node: i for i, node in enumerate(n for n in graph.nodes if n in wanted)}
    if any(place[p] > place[node] for node in order for p in predecessors(node)):
        return order
    return list(place)


def _refuse_cycle(node: Node, active: dict[Node, None]) -> None:
    if node in active:
        path = list(active)
        cycle = [n.describe() for n in path[path.index(node) :]]
        raise GraphError("control dependencies form a cycle: " + " <- ".join([*cycle, cycle[0]]))


def rewrite(graph: Graph, rule: Callable[[Node, Graph], Sequence[Value] | None]) -> Graph:
    """Rebuilds a graph node by node.

    `rule(node, out)` sees each node with its inputs already mapped into the graph `out`, which is
    the current graph during the call; nodes that it builds are on the device of `node`. It returns
    values to use instead of the node's outputs, or `None` to keep the node.
    """
    out = Graph()
    out._counts = dict(graph._counts)  # pyright: ignore[reportPrivateUsage]
    mapped: dict[Value, Value] = {}
    nodes: dict[Node, Node] = {}
    with out.as_default():
        for node in graph.nodes:
            inputs = tuple([mapped[v] for v in node.inputs])
            before = node.control
            if graph.edges:
                before = (*before, *graph.edges.get(node, ()))
            if before:
                before = tuple(dict.fromkeys([nodes[n] for n in before if n in nodes]))
            new = node.with_inputs(inputs, before)
            out._device = node.device  # pyright: ignore[reportPrivateUsage]
            replacement = rule(new, out)
            if replacement is None:
                out.append(new)
                replacement = new.outputs
            nodes[node] = replacement[0].node if replacement else new
            if len(replacement) == len(node.outputs) == 1:
                mapped[node.outputs[0]] = replacement[0]
            else:
                mapped.update(zip(node.outputs, replacement, strict=True))
    out._device = ""  # pyright: ignore[reportPrivateUsage]
    out.outputs = tuple(mapped[v] for v in graph.outputs)
    return out
