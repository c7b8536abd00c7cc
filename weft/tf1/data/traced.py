"""Element functions of tensors: each is a graph, run once per element."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

from weft.errors import DTypeError
from weft.ops.boundary.state import counter
from weft.ops.declaration import op_of
from weft.pipeline.call import title
from weft.pipeline.structure import leaves, map_leaves
from weft.runtime.memory.state import State
from weft.tf1.control.py_func import py_function
from weft.tf1.creation import placeholder
from weft.tf1.data.spec import Spec, common, of_value, spec_leaves, spec_map
from weft.tf1.framework.assumed import outcomes
from weft.tf1.framework.convert import convert_to_tensor, is_tensor
from weft.tf1.framework.graph import Graph, get_default_graph
from weft.tf1.framework.tensor import OperatorNotAllowedInGraphError
from weft.tf1.session.base import BaseSession
from weft.tf1.version import Behavior


class Traced:
    """A function of an element's tensors.

    Args:
        function: takes tensors; the parts of a tuple, but not those of a named tuple, are separate
            arguments.
        spec: of the elements.
        keep: whether to return its result unchanged: a dataset.
    """

    def __init__(self, function: Callable[..., Any], spec: Any, keep: bool = False) -> None:
        self.__name__ = title(function)
        self.graph = Graph()
        self.graph.seed = get_default_graph().seed
        self.captured: dict[Any, Any] = {}  # tensors outside -> placeholders
        self.known: dict[Any, Any] = {}  # placeholders -> the values of those tensors
        self.graph.capture = self._capture
        self.local = threading.local()
        with self.graph.as_default():
            self.feeds = [placeholder(s.dtype, s.dims, name="arg") for s in spec_leaves(spec)]
            self.takes_parts = isinstance(spec, tuple) and not isinstance(spec, Spec)

            def call(*tensors: Any) -> Any:
                given = _filled(spec, tensors)
                result = function(*given) if type(spec) is tuple else function(given)
                result = tuple(result) if isinstance(result, list) else result
                return result if keep else map_leaves(_tensor, result)

            try:
                self.result = call(*self.feeds)
            except OperatorNotAllowedInGraphError:
                if keep or not Behavior.is_2:
                    raise
                self.result = _by_values(call, self.feeds, self.__name__)
        self.spec: Any = None if keep else map_leaves(of_value, self.result)
        self.session = BaseSession(graph=self.graph)

    def _capture(self, outside: Any) -> Any:
        """What stands for a tensor of the graph in which the dataset is."""
        if outside not in self.captured:
            dims = outside.shape.as_dims()
            self.captured[outside] = placeholder(outside.dtype.base_dtype, dims, name="captured")
        return self.captured[outside]

    def given(self, values: Sequence[Any]) -> Traced:
        """The function with the values of what it captured."""
        if not self.captured:
            return self
        found = copy(self)
        found.known = dict(zip(self.captured.values(), values, strict=True))
        return found

    def begun(self) -> Traced:
        """The function for a new pass, in which operations with seeds draw the same numbers."""
        if not any([op_of(node) is counter for node in self.graph.ir.nodes]):
            return self
        found = copy(self)
        found.session = self.session.with_state(State())
        return found

    def __call__(self, *parts: Any) -> Any:
        """The result for an element, as arrays."""
        self.enter(parts)
        return self.values(self.result)

    def enter(self, parts: tuple[Any, ...]) -> None:
        """Make this the current element of the thread."""
        element = parts if self.takes_parts else parts[0]
        feeds = dict(zip(self.feeds, leaves(element), strict=True))
        self.local.feeds = feeds | self.known if self.known else feeds

    def values(self, structure: Any) -> Any:
        """The values of the graph's tensors for the call's element."""
        found = iter(self.session.run(leaves(structure), self.local.feeds))
        return map_leaves(lambda _: next(found), structure)


def _by_values(call: Callable[..., Any], feeds: Sequence[Any], name: str) -> Any:
    """The result of a function whose branches depend on tensors: it runs in Python each time."""
    found = [map_leaves(of_value, y) for y in outcomes(lambda: call(*feeds))]
    if not found:
        raise
    spec = functools.reduce(lambda a, b: common(a, b, name), found)
    parts = spec_leaves(spec)
    made = py_function(lambda *values: leaves(call(*values)), feeds, [s.dtype for s in parts])
    for tensor, part in zip(made, parts, strict=True):
        if part.dims is not None:
            tensor.set_shape(part.dims)
    return _filled(spec, made)


def _filled(spec: Any, tensors: Sequence[Any]) -> Any:
    """Tensors in the structure of elements."""
    rest = iter(tensors)
    return spec_map(lambda _: next(rest), spec)


def _tensor(x: Any) -> Any:
    if is_tensor(x):
        return x
    if hasattr(x, "make_one_shot_iterator"):
        raise DTypeError("map: expected tensors, got a dataset; flat_map takes those")
    return convert_to_tensor(x)
