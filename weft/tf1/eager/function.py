"""`tf.function`: a function of tensors as one program, traced once for each signature."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final

import numpy as np

from weft.errors import ArgumentError
from weft.tf1.creation import placeholder
from weft.tf1.eager.graph import EagerGraph
from weft.tf1.eager.tensor import EagerTensor, array_in, held_array
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.graph import computes_at_once, fail, get_default_graph, is_symbolic
from weft.tf1.framework.indexed_slices import IndexedSlices
from weft.tf1.framework.sparse_tensor import SparseTensor
from weft.tf1.framework.structure import flatten, pack
from weft.tf1.framework.tensor import Operation, Tensor
from weft.tf1.framework.tensor_spec import TensorSpec
from weft.tf1.variable.variable import Variable
from weft.tf1.version import Behavior

__all__ = ["function"]

MOST_TRACES: Final = 32
_VALUES: Final = (bool, int, float, complex, str, bytes, type(None))
_LOG: Final = logging.getLogger("tensorflow")


class _Same:
    """An object as part of a key, by its identity."""

    def __init__(self, thing: Any) -> None:
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.thing is other.thing

    def __hash__(self) -> int:
        return id(self.thing)


class Trace:
    """A function's operations for one signature, in the eager graph.

    Args:
        function: what is traced.
        arguments: its arguments, a nesting of `leaves`; tensors among them become placeholders.
        shapes: of the placeholders; `None` for those of the tensors.
    """

    def __init__(
        self, graph: EagerGraph, function: Callable[..., Any], arguments: Any,
        leaves: Sequence[Any], shapes: Sequence[Any] | None,
    ) -> None:  # fmt: skip
        self._graph = graph
        self.feeds: list[Tensor] = []
        with graph.tracing() as effects:
            inside = [self._inside(x, shapes) for x in leaves]
            args, options = pack(arguments, inside)
            self._result = function(*args, **options)
            found = [_output(y) for y in flatten(self._result)]
        self._fixed = [None if isinstance(y, Tensor) and not y.has_value else [y] for y in found]
        outputs = [y for y, fixed in zip(found, self._fixed, strict=True) if fixed is None]
        self._fetches: list[Any] = [*outputs, *effects]
        self._count = len(outputs)
        session = graph.session
        owned = [v for v in graph.keys.values() if isinstance(v, Variable)]
        new = [v.initializer for v in owned if v.key not in session.state]
        if new:
            session.run(new, self._fed(leaves))
        graph.take_waiting()

    def _inside(self, leaf: Any, shapes: Sequence[Any] | None) -> Any:
        if not isinstance(leaf, EagerTensor):
            return leaf
        shape = leaf.shape if shapes is None else shapes[len(self.feeds)]
        self.feeds.append(placeholder(leaf.dtype, shape, "args"))
        return self.feeds[-1]

    def _fed(self, leaves: Sequence[Any]) -> dict[Tensor, Any]:
        arrays = [array_in(x.held) for x in leaves if isinstance(x, EagerTensor)]
        return dict(zip(self.feeds, arrays, strict=True))

    def __call__(self, leaves: Sequence[Any]) -> Any:
        """The result for other tensors of the same signature."""
        feeds, session = self._fed(leaves), self._graph.session
        found = session.run(self._fetches, feeds) if self._fetches else []
        op = Operation.__new__(Operation)
        op.setup(self._graph, "PartitionedCall", "PartitionedCall", (), (), {})
        made = [
            EagerTensor(op, i, held_array(np.asarray(y)))
            for i, y in enumerate(found[: self._count])
        ]
        op.finish(made, ())
        rest = iter(made)
        return pack(self._result, [next(rest) if x is None else x[0] for x in self._fixed])


class Function:
    """A function that is traced at its first call with each signature.

    Args:
        function: the function of Python.
        signature: shapes and types of its tensors, for one trace of all calls.
    """

    def __init__(self, function: Callable[..., Any], signature: Any) -> None:
        functools.update_wrapper(self, function)
        self.python_function = function
        self._signature: list[Any] | None = None if signature is None else flatten(signature)
        self._traces: dict[Any, Trace] = {}
        self._untraced = False

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Call the function.

        Raises:
            ArgumentError: a tensor does not fit the signature.
        """
        graph: Any = get_default_graph()
        by_python = self._untraced or Behavior.runs_functions
        if by_python or not computes_at_once(graph) or graph.tapes:
            return self.python_function(*args, **options)
        if options:  # equal calls have one trace, however they are written
            bound = inspect.signature(self.python_function).bind(*args, **options)
            args, options = bound.args, bound.kwargs
        arguments = (args, options)
        given = flatten(arguments)
        leaves = [_tensor(x) for x in given]
        kinds = [_kind(x) for x in leaves]
        if any([kind is None for kind in kinds]):
            return self.python_function(*args, **options)
        if self._signature is not None:
            kinds = self._checked(given, leaves, kinds)
        key = (graph, _outline(arguments), *kinds)
        trace = self._traces.get(key)
        if trace is None:
            return self._first(graph, key, arguments, leaves)
        return trace(leaves)

    def get_concrete_function(self, *args: Any, **options: Any) -> Callable[..., Any]:
        """The function of tensors alone: values of Python are those that are given here.

        Args:
            args, options: the function's arguments, with a `TensorSpec` or a tensor for each tensor
                that a call gives, in this order.
        """
        arguments = (args or tuple(self._signature or ()), options)
        leaves = flatten(arguments)
        places = [i for i, x in enumerate(leaves)
                  if isinstance(x, TensorSpec | EagerTensor | np.ndarray)]  # fmt: skip

        def concrete(*tensors: Any, **named: Any) -> Any:
            filled = list(leaves)
            for i, tensor in zip(places, [*tensors, *named.values()], strict=True):
                filled[i] = tensor
            positional, rest = pack(arguments, filled)
            return self(*positional, **rest)

        return concrete

    def _checked(self, given: list[Any], leaves: list[Any], kinds: list[Any]) -> list[Any]:
        """Tensors in the types of the signature, whose shapes are not part of the key."""
        assert self._signature is not None
        places = [i for i, x in enumerate(leaves) if isinstance(x, EagerTensor)]
        if len(places) < len(self._signature):  # numbers, for which tensors are expected
            places = [i for i, x in enumerate(leaves)
                      if isinstance(x, EagerTensor | bool | int | float | str)]  # fmt: skip
        if len(places) != len(self._signature):
            text = f"expected {len(self._signature)} tensors, got {len(places)}"
            raise fail(ArgumentError, f"{self.python_function.__name__}: {text}")
        for i, spec in zip(places, self._signature, strict=True):
            kind, one = spec.dtype, leaves[i]
            if isinstance(given[i], np.ndarray | np.generic):
                one = np.asarray(given[i], kind.as_numpy_dtype)
            tensor = leaves[i] = convert_to_tensor(one, kind)
            if not spec.shape.is_compatible_with(tensor.shape):
                text = f"expected a tensor like {spec}, got one of shape {tensor.shape}"
                raise fail(ArgumentError, f"{self.python_function.__name__}: {text}")
            kinds[i] = "tensor"
        return kinds

    def _first(self, graph: EagerGraph, key: Any, arguments: Any, leaves: list[Any]) -> Any:
        """The first call with a signature; where it cannot be traced, Python runs it each time."""
        shapes = None if self._signature is None else [spec.shape for spec in self._signature]
        reason: Any = f"it has {MOST_TRACES} traces, for as many values of Python"
        if len(self._traces) < MOST_TRACES:
            try:
                trace = Trace(graph, self.python_function, arguments, leaves, shapes)
            except Exception as error:
                reason = error
            else:
                self._traces[key] = trace
                return trace(leaves)
        args, options = arguments
        result = self.python_function(*args, **options)
        self._untraced = True
        name = self.python_function.__name__
        _LOG.warning("tf.function: %s runs in Python at each call: %s", name, reason)
        return result


def function(
    func: Callable[..., Any] | None = None, input_signature: Any = None, autograph: bool = True,
    experimental_relax_shapes: bool = False, **options: Any,
) -> Callable[..., Any]:  # fmt: skip
    """A function of tensors as one program, which is traced once for each signature.

    A signature has types and shapes of tensors and arrays, and values of Python; side effects of
    Python take place while it is traced. Variables are read and assigned at each call, in the order
    of the program. There is no AutoGraph: a function whose branches or loops of Python depend on
    tensors runs in Python at each call, and a warning says so. So does every function under an open
    `GradientTape`.

    Args:
        func: the function; without one, a decorator is returned.
        input_signature: shapes and types of the tensors, for one trace; `None` for sizes that vary.
        autograph, experimental_relax_shapes: accepted.
        options: `jit_compile`, `reduce_retracing` and others: accepted, everything is compiled.

    >>> import weft.tf1 as tf
    >>> tf.enable_eager_execution()
    >>> total = tf.Variable(0.0)
    >>> @tf.function
    ... def add(x):
    ...     print("traced")
    ...     return total.assign_add(x)
    >>> [float(add(tf.constant(x))) for x in (1.0, 2.0)]
    traced
    [1.0, 3.0]
    >>> tf.compat.v1.disable_eager_execution()
    """
    del autograph, experimental_relax_shapes, options
    if func is None:
        return functools.partial(function, input_signature=input_signature)
    return Function(func, input_signature)


def _tensor(leaf: Any) -> Any:
    """Arrays are tensors."""
    return convert_to_tensor(leaf) if isinstance(leaf, np.ndarray | np.generic) else leaf


def _kind(leaf: Any) -> Hashable:
    """A leaf in the key of a trace; `None` if it may not be traced."""
    if isinstance(leaf, EagerTensor):
        return leaf.dtype, leaf.used.shape
    if isinstance(leaf, _VALUES):
        return type(leaf), repr(leaf)
    if is_symbolic(leaf) or isinstance(leaf, SparseTensor | IndexedSlices):
        return None
    return _Same(leaf)


def _output(y: Any) -> Any:
    """A result as a tensor; operations and `None` are `None`."""
    if y is None or isinstance(y, Operation):
        return None
    return y if isinstance(y, EagerTensor) else convert_to_tensor(y)


def _outline(x: Any) -> Hashable:
    """A nesting without its leaves."""
    if isinstance(x, dict):
        return type(x), *[(key, _outline(x[key])) for key in sorted(x)]
    if isinstance(x, list | tuple):
        return type(x), *map(_outline, x)
    return None
