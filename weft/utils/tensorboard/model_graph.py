"""The graph of a model: its nodes, in the scopes of the modules that recorded them."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from weft.eager.tensor.dispatch import lazy_of
from weft.eager.tensor.handle import Handle
from weft.errors import DTypeError
from weft.formats.event.graph import NodeDef
from weft.func.function import take_apart, trace_function
from weft.func.tree import flatten
from weft.ir.node import Node, Value
from weft.ir.shape import known

LONGEST_ATTRIBUTE: Final = 200  # letters


class Call(NamedTuple):
    """A call of a module: its path, its input and output tensors."""

    path: str
    inputs: list[Any]
    outputs: list[Any]


class ScopedGraph(NamedTuple):
    """A traced model.

    Attributes:
        inputs: placeholders with their names.
        nodes: the others, in order.
        outputs: of the model.
        scopes: of the nodes.
    """

    inputs: dict[Node, NodeDef]
    nodes: Sequence[Node]
    outputs: Sequence[Value]
    scopes: dict[Node, str]


def model_nodes(model: Callable[..., Any], args: Sequence[Any]) -> list[NodeDef]:
    """The nodes of a model called with these arguments; nothing is computed.

    Raises:
        DTypeError: the model is not callable.
        TracerError: it reads the value of a tensor.
    """
    if not callable(model):
        raise DTypeError(f"add_graph: expected a module or a function, got {model!r}")
    return _defined(_traced(model, args))


def _traced(model: Any, args: Sequence[Any]) -> ScopedGraph:
    calls: list[Call] = []
    counts: list[int] = []

    def run(*inputs: Any) -> list[Any]:
        groups = [_tensors(model(*inputs))]
        for call in calls:
            groups += [call.inputs, call.outputs]
        counts.extend([len(group) for group in groups])
        return [tensor for group in groups for tensor in group]

    apart = take_apart((tuple(args), {}), numbers=False)
    with _watched(model, calls):
        function, captured, _, changed = trace_function(run, apart)
    found = iter(function.outputs)
    outputs, *parts = [[next(found) for _ in range(count)] for count in counts]
    root = type(model).__name__ if hasattr(model, "named_modules") else model.__name__
    scopes: dict[Node, str] = dict.fromkeys([v.node for v in function.inputs], "")
    for number, call in enumerate(calls):  # inner ones end before outer ones
        _give_scope(scopes, parts[2 * number], parts[2 * number + 1], _path(root, call.path))
    names = _parameter_names(model, root)
    for handle, value in zip(reversed(changed), reversed(function.outputs), strict=False):
        _, name = names.get(id(lazy_of(handle)), ("", root))
        _give_scope(scopes, (), [value], name.rpartition("/")[0] or root)
    given = len(function.inputs) - len(captured)
    inputs: dict[Node, NodeDef] = {}
    for number, value in enumerate(function.inputs):
        lazy = captured[number - given] if number >= given else None
        kind, name = names.get(id(lazy), ("captured", f"{root}/captured/{number - given}"))
        if lazy is None:
            kind, name = "input", f"input/{number}"
        inputs[value.node] = NodeDef(name, kind, (), [value.shape], value.dtype.name)
    nodes = function.nodes
    for node in nodes:
        scopes.setdefault(node, root)
    return ScopedGraph(inputs, nodes, outputs, scopes)


@contextlib.contextmanager
def _watched(model: Any, calls: list[Call]) -> Iterator[None]:
    """Inside, calls of the model's modules are reported as they end."""

    def hook(path: str) -> Any:
        def note(_: Any, args: Any, kwargs: Any, output: Any) -> None:
            calls.append(Call(path, _tensors((args, kwargs)), _tensors(output)))

        return note

    with contextlib.ExitStack() as stack:
        if hasattr(model, "named_modules"):
            for path, module in model.named_modules():
                handle = module.register_forward_hook(hook(path), with_kwargs=True)
                stack.callback(handle.remove)
        yield


def _tensors(structure: Any) -> list[Any]:
    return [leaf for leaf in flatten(structure)[0] if isinstance(leaf, Handle)]


def _path(root: str, path: str) -> str:
    return "/".join([root, *path.split(".")]) if path else root


def _give_scope(
    scopes: dict[Node, str], inputs: Sequence[Value], outputs: Sequence[Value], scope: str
) -> None:
    """Set the scope of nodes between these values that have none."""
    ends = {value.node for value in inputs}
    stack = [value.node for value in outputs]
    while stack:
        node = stack.pop()
        if node not in scopes and node not in ends:
            scopes[node] = scope
            stack += [value.node for value in node.inputs]


def _parameter_names(model: Any, root: str) -> dict[int, tuple[str, str]]:
    found: dict[int, tuple[str, str]] = {}
    if hasattr(model, "named_modules"):
        for kind, named in [("parameter", "named_parameters"), ("buffer", "named_buffers")]:
            for path, tensor in getattr(model, named)():
                found[id(lazy_of(tensor))] = kind, _path(root, path)
    return found


def _defined(graph: ScopedGraph) -> list[NodeDef]:
    names = {node: definition.name for node, definition in graph.inputs.items()}
    taken = Counter(names.values())
    for node in graph.nodes:
        name = f"{graph.scopes[node]}/{node.op}"
        names[node] = f"{name}_{taken[name]}" if taken[name] else name
        taken[name] += 1
    found = list(graph.inputs.values())
    for node in graph.nodes:
        inputs = [_input(names, value) for value in node.inputs]
        shapes = [known(value.shape) for value in node.outputs]
        attributes = {k: _shown(v) for k, v in node.attrs.items()}
        dtype = node.types[0].dtype.name if node.types else ""
        found.append(NodeDef(names[node], node.op, inputs, shapes, dtype, attributes))
    for number, value in enumerate(graph.outputs):
        shapes = [value.shape]
        found.append(
            NodeDef(f"output/{number}", "output", [_input(names, value)], shapes, value.dtype.name)
        )
    return found


def _input(names: dict[Node, str], value: Value) -> str:
    name = names[value.node]
    return f"{name}:{value.index}" if value.index else name


def _shown(attribute: Any) -> str:
    text = str(attribute)
    return text if len(text) <= LONGEST_ATTRIBUTE else text[:LONGEST_ATTRIBUTE] + "..."
