"""The compiler's input: a request on a user's graph, and the pure step that it becomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from weft.ir.graph import Graph, in_order_of_creation, rewrite, toposort
from weft.ir.node import Node, Value
from weft.ops.boundary.state import assign, placeholder, variable
from weft.ops.declaration import op_of
from weft.ops.effect import is_felt, is_host


@dataclass(frozen=True)
class Request:
    """A front end's request: values to return, nodes to run for effect, values it will feed.

    Attributes:
        done: nodes that have acted in an earlier part of the step: they only order others.
        placed: full device names of nodes; others are on the device that they ask for.
    """

    graph: Graph
    fetches: tuple[Value, ...]
    targets: tuple[Node, ...] = ()
    feeds: tuple[Value, ...] = ()
    done: frozenset[Node] = frozenset()
    placed: Mapping[Node, str] = field(default_factory=dict)


def predecessors(request: Request) -> Callable[[Node], list[Node]]:
    """The predecessors of a node, given the feeds."""
    fed, edges, done = frozenset(request.feeds), request.graph.edges, request.done

    def before(node: Node) -> list[Node]:
        data = [v.node for v in node.inputs if v not in fed]
        found = [*data, *node.control, *edges.get(node, ())]
        return [n for n in found if n not in done] if done else found

    return before


def needed(request: Request) -> list[Node]:
    """The nodes that a request needs, in the order of the step."""
    fed = frozenset(request.feeds)
    roots = [v.node for v in request.fetches if v not in fed]
    return in_order_of_creation(request.graph, [*roots, *request.targets], predecessors(request))


def unread(request: Request) -> list[Value]:
    """Values that a request must fetch, too, for nodes to be run that it needs for their effect.

    A pure step has no control dependencies: what only they ask for would be dead code. Of it, nodes
    are run that act or may refuse, such as checks.
    """
    nodes = needed(request)
    stored = [n for n in nodes if op_of(n) is assign or is_host(n)]
    roots = [*[v.node for v in request.fetches], *stored]
    fed = frozenset(request.feeds)
    data = toposort(
        request.graph, roots, lambda node: [v.node for v in node.inputs if v not in fed]
    )
    read = set(data)
    return [n.outputs[0] for n in nodes if n not in read and n.outputs and is_felt(n)]


@dataclass(frozen=True)
class Step:
    """One step as a pure graph: concrete shapes, no effects, no control dependencies.

    Variables are `variable` nodes whose output is the value before the step. The graph's outputs
    are the fetches, then the value after the step of each variable in `updates`.
    """

    graph: Graph
    feeds: tuple[str, ...]  # names of the placeholder nodes, in the order of the request's feeds
    updates: tuple[str, ...]  # keys of the variables that the step changes
    lasting: frozenset[str] = frozenset()  # feeds that rarely change between steps
    repeated: bool = False  # the body of a loop, during which lasting feeds do not change

    def with_graph(self, graph: Graph) -> Step:
        """The same step on a rewritten graph."""
        return replace(self, graph=graph)

    def lasting_values(self) -> frozenset[Value]:
        """Values that depend on lasting feeds and constants alone."""
        found: set[Value] = set()
        for node in self.graph.nodes:
            known = op_of(node) is not variable and all(v in found for v in node.inputs)
            if node.name in self.lasting if op_of(node) is placeholder else known:
                found.update(node.outputs)
        return frozenset(found)

    @property
    def fetches(self) -> tuple[Value, ...]:
        """The outputs that the caller gets."""
        return self.graph.outputs[: len(self.graph.outputs) - len(self.updates)]

    @property
    def new_values(self) -> dict[str, Value]:
        """The value after the step, per changed variable."""
        outputs = self.graph.outputs[len(self.graph.outputs) - len(self.updates) :]
        return dict(zip(self.updates, outputs, strict=True))


def storing(step: Step, keys: tuple[str, ...], homes: dict[int, str]) -> Step:
    """The same step with its fetches stored in variables instead of returned.

    Args:
        keys: one variable per fetch.
        homes: feeds, by position, that are the old value of the variable of this key.
    """
    variables = {step.feeds[position]: key for position, key in homes.items()}

    def rule(node: Node, out: Graph) -> tuple[Value, ...] | None:
        if op_of(node) is not placeholder or node.name not in variables:
            return None
        attrs = {**node.attrs, "key": variables[node.name]}
        variable = Node("variable", (), attrs, node.types, node.name, source=node.source)
        return out.append(variable).outputs

    return replace(step, graph=rewrite(step.graph, rule), updates=(*keys, *step.updates))
