"""`tf.gradients`: adds the backward graph to the graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

from weft import ops
from weft.errors import DTypeError, NotDifferentiableError, UnknownKeyError
from weft.ir.node import Value
from weft.ops.indexing.row_sparse import RowSparse
from weft.tf1 import creation
from weft.tf1.framework.convert import convert_to_tensor, is_tensor
from weft.tf1.framework.graph import Graph, fail, get_default_graph, graph_of, name_scope
from weft.tf1.framework.indexed_slices import IndexedSlices
from weft.tf1.framework.tensor import Tensor
from weft.tf1.shaping import arrangement
from weft.tf1.variable.variable import Variable
from weft.transform import gradient

__all__ = [
    "AggregationMethod", "RegisterGradient", "UnconnectedGradients", "gradients", "hessians",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])

_TYPES = {
    "add": "AddV2", "subtract": "Sub", "multiply": "Mul", "divide": "RealDiv", "negative": "Neg",
    "matmul": "MatMul", "reshape": "Reshape", "sum": "Sum", "add_n": "AddN", "select": "Select",
    "broadcast_to": "BroadcastTo", "transpose": "Transpose", "identity": "Identity",
    "conv_grad_input": "Conv2DBackpropInput", "conv_grad_weight": "Conv2DBackpropFilter",
    "constant": "Const", "max_pool_grad": "MaxPoolGrad", "avg_pool_grad": "AvgPoolGrad",
    "concatenate": "ConcatV2", "slice": "StridedSlice", "cast": "Cast", "square": "Square",
}  # fmt: skip


class AggregationMethod:
    """How gradients are summed: accepted; there is one way."""

    ADD_N = 0
    DEFAULT = ADD_N
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


class UnconnectedGradients:
    """The gradient of unconnected inputs: `NONE` or `ZERO`."""

    NONE = "none"
    ZERO = "zero"


def gradients(
    ys: Any, xs: Any, grad_ys: Any = None, name: str = "gradients",
    colocate_gradients_with_ops: bool = False, gate_gradients: bool = False,
    aggregation_method: Any = None, stop_gradients: Any = None,
    unconnected_gradients: Any = UnconnectedGradients.NONE,
) -> list[Any]:  # fmt: skip
    """Derivatives of the sum of `ys` by each of `xs`.

    Args:
        ys: a tensor or several.
        xs: a tensor or variable, or several.
        grad_ys: the initial gradient of each y; ones by default.
        name: the name scope of the new operations.
        colocate_gradients_with_ops: put each gradient with its operation, even where none has a
            device.
        gate_gradients, aggregation_method: accepted for old programs.
        stop_gradients: tensors to treat as constants.
        unconnected_gradients: `'none'` or `'zero'`, for an x on which no y depends.

    Returns:
        One gradient per x: a tensor, `IndexedSlices` if it comes only from lookups, or `None`.

    Raises:
        NotDifferentiableError: an operation on the way has no gradient.
    """
    del gate_gradients, aggregation_method
    outputs, inputs = _listed(ys), _listed(xs)
    graph = graph_of([*outputs, *inputs])
    with graph.as_default(), name_scope(name, "gradients", [*outputs, *inputs]) as scope:
        y_tensors = [convert_to_tensor(y) for y in outputs]
        for y in y_tensors:
            if not (y.dtype.is_floating or y.dtype.is_complex):
                return [None] * len(inputs)
        edges = [edge_of(x) for x in inputs]
        stops = [edge_of(s) for s in _listed(stop_gradients)] if stop_gradients is not None else []
        starts = _starts(y_tensors, grad_ys)
        together = graph.ir.colocating() if colocate_gradients_with_ops else nullcontext()
        with together:
            found = _backward(graph, scope, y_tensors, edges, starts, stops)
        results = [_wrapped(graph, g) for g in found]
        if unconnected_gradients == UnconnectedGradients.ZERO:
            pairs = zip(results, inputs, strict=True)
            return [creation.zeros_like(x) if g is None else g for g, x in pairs]
        return results


def _listed(items: Any) -> list[Any]:
    return list(items) if isinstance(items, list | tuple) else [items]


def edge_of(x: Any) -> Value:
    """The value to differentiate by: for a variable its handle, so that all reads count."""
    if isinstance(x, Variable):
        return x.handle
    if isinstance(x, IndexedSlices):
        return x.values.used
    tensor = convert_to_tensor(x)
    owner = tensor.graph.keys.get(tensor.op.name)
    if isinstance(owner, Variable) and tensor.op.type == "VariableV2":
        return owner.handle
    return tensor.used


def _starts(ys: Sequence[Tensor], grad_ys: Any) -> list[Value | None]:
    given = [None] * len(ys) if grad_ys is None else _listed(grad_ys)
    if len(given) != len(ys):
        raise fail(DTypeError, f"gradients: expected {len(ys)} grad_ys, got {len(given)}")
    starts: list[Value | None] = []
    for y, g in zip(ys, given, strict=True):
        if g is None:
            starts.append(None)
            continue
        kind = y.dtype.base_dtype
        if is_tensor(g) and g.dtype.is_floating and kind.is_floating:  # also of another size
            with get_default_graph().building():
                starts.append(ops.cast(convert_to_tensor(g).used, dtype=kind.ir))
        else:
            starts.append(convert_to_tensor(g, kind, name="grad_ys").used)
    return starts


def _backward(
    graph: Graph, scope: str, ys: Sequence[Tensor], xs: Sequence[Value],
    starts: Sequence[Value | None], stops: Sequence[Value],
) -> list[Any]:  # fmt: skip
    outer = scope[:-1].rpartition("/")[0]  # the transformation itself opens a scope `gradients`
    with graph.building(outer, graph.control):
        given = [None if g is None else conjugated(g) for g in starts]
        found = gradient.gradients([y.used for y in ys], xs, given, stops)
        return [None if g is None else conjugated(g) for g in found]


def conjugated(g: Any) -> Any:
    """TensorFlow's gradient of complex numbers from the graph's, or back: the conjugate.

    Real ones are the same (see `weft.ops.elementwise.complex_number`).
    """
    if not g.dtype.is_complex:
        return g
    return replace(g, values=ops.conj(g.values)) if isinstance(g, RowSparse) else ops.conj(g)


def _wrapped(graph: Graph, g: Any) -> Any:
    if g is None:
        return None
    if isinstance(g, RowSparse):
        return IndexedSlices(
            wrap(graph, g.values), wrap(graph, g.indices), _shape_tensor(graph, g.shape)
        )
    return wrap(graph, g)


def wrap(graph: Graph, value: Value) -> Tensor:
    """The tensor of a value that a transformation created."""
    return graph.wrap(value, _TYPES.get(value.node.op, value.node.op))


def _shape_tensor(graph: Graph, shape: Any) -> Tensor:
    if isinstance(shape, Value):
        return wrap(graph, shape)
    return convert_to_tensor(list(shape), name="Shape")


def hessians(ys: Any, xs: Any, name: str = "hessians", **options: Any) -> list[Tensor]:
    """Second derivatives of `ys` by each x, of shape x.shape + x.shape."""
    found: list[Tensor] = []
    with name_scope(name):
        for x in _listed(xs):
            first = gradients(ys, x, **options)[0]
            count = x.shape.num_elements()
            if first is None or count is None:
                raise fail(NotDifferentiableError, f"hessians: expected a known shape, got {x!r}")
            flat = arrangement.reshape(first, [-1])
            rows = [arrangement.reshape(gradients(flat[i], x)[0], [-1]) for i in range(count)]
            dims = x.shape.as_list()
            found.append(arrangement.reshape(arrangement.stack(rows), dims + dims))
    return found


class RegisterGradient:
    """A decorator: the gradient of a type of operations, for `Graph.gradient_override_map`.

    Args:
        op_type: a name of one's own; those of operations have their gradients.

    Raises:
        UnknownKeyError: the name has a gradient already, as in TensorFlow.
    """

    _known: ClassVar[dict[str, Any]] = {}

    def __init__(self, op_type: str) -> None:
        self._type = op_type

    def __call__(self, f: F) -> F:
        """The function itself."""
        if self._type in self._known:
            text = f"Registering two gradient with name '{self._type}'!"
            raise fail(UnknownKeyError, f"RegisterGradient: {text}")
        self._known[self._type] = f
        return f
