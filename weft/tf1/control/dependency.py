"""Operations that order others, or pass a tensor on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from weft.errors import DTypeError, GraphError
from weft.tf1.framework.convert import unary
from weft.tf1.framework.default_graph import control_dependencies, device
from weft.tf1.framework.graph import fail, get_default_graph, graph_of, name_scope, within
from weft.tf1.framework.indexed_slices import IndexedSlices
from weft.tf1.framework.tensor import Operation, Tensor


def no_op(name: str | None = None) -> Operation:
    """An operation that does nothing."""
    return get_default_graph().emit("NoOp", (), "group", name=name or "NoOp")


def _flat(inputs: Iterable[Any]) -> list[Any]:
    found: list[Any] = []
    for item in inputs:
        found.extend(_flat(item) if isinstance(item, list | tuple) else [item])
    return found


def group(*inputs: Any, name: str | None = None) -> Operation:
    """An operation that completes when all of `inputs` have run.

    Those of several devices are grouped on each first, so that one signal comes from each.
    """
    items = [item for item in _flat(inputs) if item is not None]
    graph = graph_of(items)
    found = [graph.as_graph_element(_element(item)) for item in items]
    places: dict[str, list[Any]] = {}
    for element in found:
        places.setdefault(element.device, []).append(element)
    with within(graph), name_scope(name, "group_deps") as scope:
        if len(places) < 2:
            return _after(found, scope, next(iter(places), ""))
        with control_dependencies([_after(places[p], None, p) for p in sorted(places)]):
            return no_op(scope)


def _after(elements: list[Any], name: str | None, place: str) -> Operation:
    with device(place), control_dependencies(elements):
        return no_op(name)


def _element(item: Any) -> Any:
    if isinstance(item, IndexedSlices):
        return item.values
    if not hasattr(item, "graph"):
        raise fail(DTypeError, f"group: expected tensors and operations, got {item!r}")
    return item


def tuple_(
    tensors: Sequence[Any], name: str | None = None, control_inputs: Sequence[Any] | None = None
) -> list[Any]:
    """The same tensors, available once all of them and `control_inputs` are computed."""
    gates = [t for t in tensors if t is not None]
    if not gates:
        raise fail(GraphError, "tuple: expected at least one tensor")
    with name_scope(name, "tuple", gates):
        ops = [_element(t) for t in gates] + list(control_inputs or ())
        gate = group(*ops)
        return [None if t is None else with_dependencies([gate], t) for t in tensors]


def with_dependencies(dependencies: Sequence[Any], output: Any, name: str | None = None) -> Any:
    """`output`, available once `dependencies` have run."""
    with (
        name_scope(name, "control_dependency", [output]) as scope,
        control_dependencies(dependencies),
    ):
        if isinstance(output, IndexedSlices):
            return IndexedSlices(identity(output.values), output.indices, output.dense_shape)
        return identity(output, name=scope)


def identity(input: Any, name: str | None = None) -> Any:
    """A tensor of the same value."""
    if isinstance(input, IndexedSlices):
        return IndexedSlices(identity(input.values), identity(input.indices), input.dense_shape)
    return unary("Identity", "identity", input, name)


def identity_n(input: Sequence[Any], name: str | None = None) -> list[Tensor]:
    """Tensors of the same values, all computed before any is used."""
    return tuple_(input, name or "IdentityN")


def stop_gradient(input: Any, name: str | None = None) -> Tensor:
    """The same value, without a gradient."""
    return unary("StopGradient", "stop_gradient", input, name)


__all__ = ["group", "identity", "identity_n", "no_op", "stop_gradient"]
