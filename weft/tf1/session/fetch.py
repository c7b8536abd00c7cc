"""Fetches: any nesting of tensors, operations, variables and names, and the results in it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Any

from weft.errors import DTypeError, GraphError, WeftError
from weft.ir.node import Node, Value
from weft.tf1.framework.graph import Graph
from weft.tf1.framework.indexed_slices import IndexedSlices, IndexedSlicesValue
from weft.tf1.framework.sparse_tensor import SparseTensor, SparseTensorValue
from weft.tf1.framework.tensor import Operation
from weft.tf1.variable.variable import Variable

Builder = Callable[[Sequence[Any], Any], Any]  # (arrays, session) -> the result in its nesting


class Fetch:
    """The values to compute, the nodes to run, and how to nest the results."""

    def __init__(self, graph: Graph, fetches: Any, fed: Collection[Value] = ()) -> None:
        self._graph = graph
        self._fed = fed
        self.reads_variables = False
        self._values: dict[Value, int] = {}
        self._targets: dict[Node, None] = {}
        self.build: Builder = self._nested(fetches)
        self.values: tuple[Value, ...] = tuple(self._values)
        self.targets: tuple[Node, ...] = tuple(self._targets)
        self.direct = self._is_direct(fetches)

    def _is_direct(self, fetches: Any) -> bool:
        """Whether the list of arrays is the result itself."""
        if type(fetches) is not list:
            return False
        elements = [f for f in fetches if not isinstance(f, list | tuple | Mapping)]
        plain = len(elements) == len(fetches) and not self._targets
        return plain and len(self.values) == len(fetches) and not self._special(fetches)

    def _special(self, fetches: Sequence[Any]) -> bool:
        return any(isinstance(f, IndexedSlices | SparseTensor) for f in fetches)

    def _nested(self, fetches: Any) -> Builder:
        if fetches is None:
            raise DTypeError(
                "fetches: expected a tensor, an operation or a name, got None "
                "(what tf.gradients returns for an x that its ys do not depend on)"
            )
        if isinstance(fetches, Mapping):
            return self._mapping(fetches)
        if isinstance(fetches, list | tuple):
            return self._sequence(fetches)
        if isinstance(fetches, IndexedSlices):
            return self._slices(fetches)
        if isinstance(fetches, SparseTensor):
            indices, values, shape = map(self._element, fetches.parts)
            return lambda arrays, session: SparseTensorValue(
                indices(arrays, session), values(arrays, session), shape(arrays, session)
            )
        return self._element(fetches)

    def _mapping(self, fetches: Mapping[Any, Any]) -> Builder:
        parts = {key: self._nested(value) for key, value in fetches.items()}
        kind: Any = type(fetches) if issubclass(type(fetches), dict) else dict

        def build(arrays: Sequence[Any], session: Any) -> Any:
            return kind((key, part(arrays, session)) for key, part in parts.items())

        return build

    def _sequence(self, fetches: Sequence[Any]) -> Builder:
        parts = [self._nested(value) for value in fetches]
        kind: Any = type(fetches)
        if kind is list and all(isinstance(part, _Element) for part in parts):
            places: list[Any] = [part.place for part in parts]  # pyright: ignore
            return lambda arrays, session: [None if p is None else arrays[p] for p in places]
        if hasattr(kind, "_fields"):
            return lambda arrays, session: kind(*[part(arrays, session) for part in parts])
        if kind is list:
            return lambda arrays, session: [part(arrays, session) for part in parts]
        return lambda arrays, session: kind([part(arrays, session) for part in parts])

    def _slices(self, slices: IndexedSlices) -> Builder:
        values, indices = self._nested(slices.values), self._nested(slices.indices)
        shape = None if slices.dense_shape is None else self._nested(slices.dense_shape)
        return lambda arrays, session: IndexedSlicesValue(
            values(arrays, session),
            indices(arrays, session),
            None if shape is None else shape(arrays, session),
        )

    def _element(self, fetch: Any) -> Builder:
        try:
            element = self._graph.as_graph_element(fetch)
        except WeftError as error:
            kind = DTypeError if isinstance(error, DTypeError) else GraphError
            raise kind(f"fetches: cannot interpret {fetch!r}: {error}") from error
        if isinstance(element, Operation):
            self._targets.update(dict.fromkeys(element.nodes))
            return _Element(None)
        owner = self._graph.keys.get(element.op.name)
        stands = isinstance(owner, Variable) and element.op.type == "VariableV2"
        if stands and element.value not in self._fed:
            self.reads_variables = True
            return lambda arrays, session: session.value_of(owner)
        return _Element(self._values.setdefault(element.value, len(self._values)))


class _Element:
    """The builder of one tensor or operation: the array at a place, or `None`."""

    __slots__ = ("place",)

    def __init__(self, place: int | None) -> None:
        self.place = place

    def __call__(self, arrays: Sequence[Any], session: Any) -> Any:
        return None if self.place is None else arrays[self.place]


def structure_key(fetches: Any) -> Any:
    """A hashable description of nested fetches: kinds, keys and elements."""
    if isinstance(fetches, Mapping):
        items = [(key, structure_key(value)) for key, value in fetches.items()]
        return (type(fetches), *items)
    if isinstance(fetches, list | tuple):
        return (type(fetches), *[structure_key(value) for value in fetches])
    if not isinstance(fetches, Hashable):
        raise DTypeError(f"fetches: expected a tensor, an operation or a name, got {fetches!r}")
    return fetches
